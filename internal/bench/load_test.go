package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// countingCaller makes a number of calls, and records the answers.
type countingCaller struct {
	request []byte
	left    int
	judge   func(body []byte) error
}

func (c *countingCaller) next() []byte {
	if c.left == 0 {
		return nil
	}
	c.left--
	return c.request
}

func (c *countingCaller) done(body []byte) (int, error) {
	if c.judge != nil {
		return 2, c.judge(body)
	}
	return 2, nil
}

// runLoad runs n callers with this many calls each.
func runLoad(t *testing.T, handler http.HandlerFunc, n, calls int, body string, judge func([]byte) error) *tally {
	t.Helper()
	server := httptest.NewServer(handler)
	defer server.Close()
	address := strings.TrimPrefix(server.URL, "http://")
	var callers []caller
	for range n {
		callers = append(callers, &countingCaller{request: rawRequest(address, "x", body), left: calls, judge: judge})
	}
	total, took, err := load(context.Background(), address, callers, time.Minute)
	if err != nil || took <= 0 {
		t.Fatalf("took %v: %v", took, err)
	}
	return total
}

// Every request has one answer, for any sizes of bodies and answers.
func TestLoadCountsCalls(t *testing.T) {
	for _, size := range []int{0, 10, 4 << 20} {
		body := strings.Repeat("x", size)
		var served atomic.Int64
		got := runLoad(t, func(w http.ResponseWriter, r *http.Request) {
			all, _ := io.ReadAll(r.Body)
			served.Add(1)
			w.Write(all)
		}, 7, 5, body, func(answered []byte) error {
			if string(answered) != body {
				return errors.New("another body came back")
			}
			return nil
		})
		if got.calls != 35 || got.items != 70 || got.errors != 0 || served.Load() != 35 || got.latency.n != 35 {
			t.Errorf("%d bytes: %d calls, %d items, %d errors (%s), %d served", size, got.calls, got.items, got.errors, got.problem, served.Load())
		}
	}
}

// Answers other than 200, and those that the caller refuses, count as errors and not as calls.
func TestLoadCountsErrors(t *testing.T) {
	var n atomic.Int64
	got := runLoad(t, func(w http.ResponseWriter, r *http.Request) {
		switch n.Add(1) % 3 {
		case 0:
			http.Error(w, "throttled", http.StatusBadRequest)
		case 1:
			fmt.Fprint(w, "wrong")
		default:
			fmt.Fprint(w, "right")
		}
	}, 1, 30, "", func(body []byte) error {
		if string(body) != "right" {
			return fmt.Errorf("got %q", body)
		}
		return nil
	})
	if got.calls != 10 || got.errors != 20 || got.latency.n != 10 || got.problem != `got "wrong"` {
		t.Errorf("%d calls, %d errors, first %q", got.calls, got.errors, got.problem)
	}
}

// A connection that the server closes after an answer is replaced without an error. A broken one is
// replaced and counts as an error, and a worker ends after several in a row.
func TestLoadReplacesConnections(t *testing.T) {
	got := runLoad(t, func(w http.ResponseWriter, r *http.Request) { w.Header().Set("Connection", "close") }, 3, 4, "", nil)
	if got.calls != 12 || got.errors != 0 {
		t.Errorf("closing: %d calls, %d errors (%s)", got.calls, got.errors, got.problem)
	}
	var n atomic.Int64
	got = runLoad(t, func(w http.ResponseWriter, r *http.Request) {
		if n.Add(1)%2 == 0 {
			panic(http.ErrAbortHandler)
		}
	}, 1, 10, "", nil)
	if got.calls != 5 || got.errors != 5 {
		t.Errorf("breaking now and then: %d calls, %d errors (%s)", got.calls, got.errors, got.problem)
	}
	got = runLoad(t, func(w http.ResponseWriter, r *http.Request) { panic(http.ErrAbortHandler) }, 2, 10, "", nil)
	if got.calls != 0 || got.errors != 2*brokenMax {
		t.Errorf("breaking always: %d calls, %d errors (%s)", got.calls, got.errors, got.problem)
	}
}

// A load ends with its context, even with a pending answer.
func TestLoadEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	release := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		cancel()
		<-release
	}))
	defer server.Close()
	defer close(release)
	address := strings.TrimPrefix(server.URL, "http://")
	_, _, err := load(ctx, address, []caller{&countingCaller{request: rawRequest(address, "x", ""), left: 1}}, time.Minute)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestLoadWithoutAServer(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	address := strings.TrimPrefix(server.URL, "http://")
	server.Close()
	if _, _, err := load(context.Background(), address, []caller{&countingCaller{left: 1}}, time.Second); err == nil {
		t.Error("no error")
	}
}
