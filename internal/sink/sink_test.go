package sink_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/mayflydb/mayfly/internal/sink"
	"github.com/mayflydb/mayfly/target"
)

// A template fills in fields of a delivery, cleaned for their place.
func TestTemplate(t *testing.T) {
	d := target.Delivery{ID: "i", Source: "s", Type: "Scheduled Event", Subject: "a.b", TargetARN: "arn:aws:sqs:us-east-1:1:jobs"}
	clean := sink.Word(func(r rune) bool { return r != '.' && r != ' ' })
	for text, want := range map[string]string{
		"":                                "",
		"jobs":                            "jobs",
		"{name}.{type}":                   "jobs.Scheduled_Event",
		"a.{id}{source}.b.{subject}{key}": "a.is.b.a_b_",
		"{target}":                        "arn:aws:sqs:us-east-1:1:jobs",
	} {
		parsed, err := sink.ParseTemplate(text)
		if err != nil || parsed.Expand(d, clean) != want {
			t.Errorf("%s: %q, %v", text, parsed.Expand(d, clean), err)
		}
	}
	for text, want := range map[string]string{
		"{": `has a "{" without its "}"`, "a{id": `has a "{" without its "}"`, "}": `has a "}" without its "{"`, "{id}}": `has a "}" without its "{"`,
		"{}":                      "has the unknown field {}; use one of {id}, {key}, {name}, {source}, {subject}, {target}, {type}",
		strings.Repeat("x", 1025): "is longer than 1024 bytes",
	} {
		if _, err := sink.ParseTemplate(text); err == nil || err.Error() != want {
			t.Errorf("%.20s: %v, not %s", text, err, want)
		}
	}
}

// FuzzTemplate: an accepted template without fields is its own text, and a cleaner sees every
// value.
func FuzzTemplate(f *testing.F) {
	for _, seed := range []string{"", "a.b", "{id}", "{{id}}", "x{name}{key}y", "{", "}"} {
		f.Add(seed, "v.w")
	}
	f.Fuzz(func(t *testing.T, text, value string) {
		parsed, err := sink.ParseTemplate(text)
		if err != nil {
			return
		}
		d := target.Delivery{ID: value, Source: value, Type: value, Subject: value, Key: value, TargetARN: value}
		clean := sink.Word(func(r rune) bool { return r >= 'a' && r <= 'z' })
		if got := parsed.Expand(d, clean); !strings.ContainsAny(text, "{}") && got != text || strings.ContainsAny(got, "{}") {
			t.Errorf("%q became %q", text, got)
		}
	})
}

// An address is parsed, and no error quotes its credentials.
func TestAddress(t *testing.T) {
	ports := map[string]string{"amqp": "5672", "amqps": "5671"}
	a, err := sink.ParseAddress("amqp://u:p%40ss@host/v%2Fhost", ports)
	if want := (sink.Address{Scheme: "amqp", Host: "host:5672", User: "u", Password: "p@ss", Path: "v/host"}); err != nil || a != want {
		t.Errorf("%+v, %v", a, err)
	}
	if a, err := sink.ParseAddress("amqps://[::1]:99", ports); err != nil || a != (sink.Address{Scheme: "amqps", Host: "[::1]:99"}) {
		t.Errorf("%+v, %v", a, err)
	}
	for _, s := range []string{"", "host", "http://hunter2@h", "amqp://", "amqp://u:hunter2@", "amqp://u:hunter2@h?x", "amqp://u:hunter2@h#x", "amqp://u:hunter%2@h", "amqp://h:hunter2"} {
		if _, err := sink.ParseAddress(s, ports); err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", s, err)
		}
	}
}

// TLS reads the named files, and reports faults in them.
func TestTLS(t *testing.T) {
	var off *sink.TLS
	if c, err := off.Config(); c != nil || err != nil {
		t.Error(c, err)
	}
	if c, err := (&sink.TLS{ServerName: "x"}).Config(); err != nil || c.ServerName != "x" {
		t.Error(c, err)
	}
	empty := filepath.Join(t.TempDir(), "empty")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, bad := range []sink.TLS{{CA: "/nowhere"}, {CA: empty}, {Cert: "a"}, {Key: "a"}, {Cert: empty, Key: empty}} {
		if _, err := bad.Config(); err == nil || !strings.HasPrefix(err.Error(), "tls: ") {
			t.Errorf("%+v: %v", bad, err)
		}
	}
}

// wire stands for a connection.
type wire struct {
	number       int
	broken, shut atomic.Bool
}

// connect returns a Lazy each of whose attempts to connect waits until the test permits it.
func connect() (l *sink.Lazy[*wire], opened *atomic.Int32, permit chan error, made chan *wire) {
	l, opened, permit, made = &sink.Lazy[*wire]{}, &atomic.Int32{}, make(chan error), make(chan *wire, 10)
	l.Open = func(ctx context.Context) (*wire, error) {
		n := opened.Add(1)
		select {
		case err := <-permit:
			if err != nil {
				return nil, err
			}
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		w := &wire{number: int(n)}
		made <- w
		return w, nil
	}
	l.Broken = func(w *wire) bool { return w.broken.Load() }
	l.Shut = func(w *wire) { w.shut.Store(true) }
	return l, opened, permit, made
}

// Concurrent requests share an attempt and its result; a broken connection is closed and replaced.
func TestLazy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, opened, permit, made := connect()
		refused := errors.New("refused")
		for round, outcome := range []error{refused, nil} {
			results := make(chan error, 5)
			for range 5 {
				go func() {
					_, err := l.Get(t.Context())
					results <- err
				}()
			}
			synctest.Wait() // all of them wait for one attempt
			if n := int(opened.Load()); n != round+1 {
				t.Fatalf("%d attempts", n)
			}
			permit <- outcome
			for range 5 {
				if err := <-results; !errors.Is(err, outcome) {
					t.Errorf("round %d: %v", round, err)
				}
			}
		}
		first := <-made
		if w, err := l.Get(t.Context()); w != first || err != nil {
			t.Errorf("%v, %v", w, err)
		}
		first.broken.Store(true)
		go func() { permit <- nil }()
		if w, err := l.Get(t.Context()); err != nil || w.number != 3 || !first.shut.Load() {
			t.Errorf("after it broke: %v, %v", w, err)
		}
		second := <-made
		l.Close()
		if _, err := l.Get(t.Context()); !errors.Is(err, sink.ErrClosed) || !second.shut.Load() {
			t.Errorf("after the end: %v", err)
		}
		l.Close()
	})
}

// A caller may stop waiting. Closing ends an attempt, and its callers receive an error.
func TestLazyGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, _, _, _ := connect()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := l.Get(ctx); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		// the time limit of the attempt
		if _, err := l.Get(t.Context()); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		waiting := make(chan error)
		go func() {
			_, err := l.Get(t.Context())
			waiting <- err
		}()
		synctest.Wait()
		l.Close()
		if err := <-waiting; !errors.Is(err, sink.ErrClosed) {
			t.Error(err)
		}
	})
}

// All returns a result for each delivery.
func TestAll(t *testing.T) {
	if got := fmt.Sprint(sink.All(2, sink.ErrClosed)); got != "[TargetClosed: the target is being closed TargetClosed: the target is being closed]" {
		t.Error(got)
	}
}
