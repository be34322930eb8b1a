package bench

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// A call that starts late because the one before it was slow counts from its planned start, in the
// phase in which it ends.
func TestForegroundPhases(t *testing.T) {
	var slow atomic.Bool
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		if slow.CompareAndSwap(true, false) {
			time.Sleep(400 * time.Millisecond)
		}
	}))
	defer server.Close()
	address := strings.TrimPrefix(server.URL, "http://")
	opened, err := dial(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	l := &line{operation: "GetItem", caller: &countingCaller{request: rawRequest(address, "x", ""), left: 1e6}, conn: opened}
	f := &foreground{lines: []*line{l}}
	ctx, cancel := context.WithCancel(t.Context())
	f.cancel = cancel
	f.running.Go(func() { l.run(ctx, 0) })
	defer f.stop()
	time.Sleep(100 * time.Millisecond)
	calm := f.phase()["GetItem"]
	slow.Store(true)
	time.Sleep(time.Second)
	during := f.phase()["GetItem"]
	if calm.calls == 0 || calm.errors+during.errors > 0 {
		t.Fatalf("%d calls, errors: %s%s", calm.calls, calm.problem, during.problem)
	}
	if most := during.latency.quantile(1); most < 400*time.Millisecond {
		t.Errorf("the slow call took %v", most)
	}
	if behind := during.latency.quantile(0.8); behind < 20*time.Millisecond {
		t.Errorf("the calls behind the slow one took %v", behind)
	}
}
