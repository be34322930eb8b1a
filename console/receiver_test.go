package console_test

import (
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mayflydb/mayfly"
	"github.com/mayflydb/mayfly/target"
)

// mailFunction is the ARN of the function that a receiver stands for.
const mailFunction = "arn:aws:lambda:us-east-1:000000000000:function:mail"

// receiver is an HTTP server to which mailFunction delivers.
type receiver struct {
	mapping target.Mapping
	mu      sync.Mutex
	status  int // of the answers; 0: 200
	bodies  []string
}

// newReceiver starts a receiver.
func newReceiver(t *testing.T) *receiver {
	t.Helper()
	r := &receiver{}
	hook, err := target.NewWebhook(target.WebhookOptions{URL: serve(t, r), Mode: target.Binary, Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := hook.Close(); err != nil {
			t.Error(err)
		}
	})
	r.mapping = target.Mapping{ARN: mailFunction, Target: hook, Name: "mail"}
	return r
}

// ServeHTTP implements http.Handler.
func (r *receiver) ServeHTTP(w http.ResponseWriter, in *http.Request) {
	body, _ := io.ReadAll(in.Body) // a cut body is an attempt that comes again
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.status != 0 {
		http.Error(w, "the post office is on fire", r.status)
		return
	}
	r.bodies = append(r.bodies, string(body))
}

// answer sets the status of later answers.
func (r *receiver) answer(status int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.status = status
}

// received returns the number of bodies with a text.
func (r *receiver) received(text string) (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, b := range r.bodies {
		if strings.Contains(b, text) {
			n++
		}
	}
	return n
}

// await waits until so many bodies with a text have come.
func (r *receiver) await(t *testing.T, text string, n int) {
	t.Helper()
	await(t, func() bool { return r.received(text) >= n }, "so many bodies with "+text)
}

// await waits until a condition holds.
func await(t *testing.T, holds func() bool, what string) {
	t.Helper()
	limit := time.After(40 * time.Second)
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for !holds() {
		select {
		case <-again.C:
		case <-limit:
			t.Fatal("there never were " + what)
		}
	}
}

// withReceiver runs a test in each world; servers of ours deliver to a receiver.
func withReceiver(t *testing.T, change func(*mayfly.Options), test func(*testing.T, *world, *receiver)) {
	for name, options := range map[string]mayfly.Options{
		"mayfly": {Frozen: true, ClockControl: mayfly.ClockControlOn},
		"aws":    {Expiry: mayfly.ExpiryAWS},
	} {
		t.Run(name, func(t *testing.T) {
			r := newReceiver(t)
			options.Targets = []target.Mapping{r.mapping}
			if change != nil {
				change(&options)
			}
			test(t, newWorld(t, name, options), r)
		})
	}
	t.Run("dynalite", func(t *testing.T) { test(t, newDynalite(t), nil) })
}
