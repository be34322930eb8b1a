package chrome

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// A visitor clicks what can be seen: not a hidden element, not one under another, and one below the
// window after a scroll.
func TestClick(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		w.Write([]byte(`<!DOCTYPE html><link rel=icon href=data:,>
			<button hidden>Go</button>
			<button style="visibility: hidden">Go</button>
			<button id=covered style="position: absolute; top: 0; left: 0">under</button>
			<div style="position: absolute; top: 0; left: 0; width: 300px; height: 300px"></div>
			<div style="height: 3000px"></div>
			<button id=seen onclick="document.title = 'clicked'"><b>
				Go</b></button>`))
	}))
	defer server.Close()
	tab := Start(t).Open(t, Desk)
	tab.Go(server.URL)
	if at := Eval[*point](tab, clickPoint(bySelector("#covered"))); at != nil {
		t.Errorf("a covered element can be clicked at %v", *at)
	}
	if at := Eval[*point](tab, clickPoint(byText("none"))); at != nil {
		t.Errorf("an element that does not exist can be clicked at %v", *at)
	}
	tab.ClickText("Go")
	tab.Wait(`document.title === "clicked"`)
}

// recorder is a test that keeps its errors.
type recorder struct {
	testing.TB
	errors   []string
	cleanups []func()
}

func (r *recorder) Error(args ...any) { r.errors = append(r.errors, fmt.Sprint(args...)) }
func (r *recorder) Failed() bool      { return false }
func (r *recorder) Cleanup(f func())  { r.cleanups = append(r.cleanups, f) }

// A test fails for errors and warnings that scripts write to the console, unless it forgives them.
func TestConsole(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		w.Write([]byte(`<!DOCTYPE html><link rel=icon href=data:,><script>
			console.log("fine"); console.error("broken", 7, new Error("why")); console.warn("odd"); console.error("forgiven")</script>`))
	}))
	defer server.Close()
	r := &recorder{TB: t}
	tab := Start(t).Open(r, Desk)
	tab.Go(server.URL)
	tab.Wait("true") // the events come before this answer
	tab.Forgive("forgiven")
	for _, end := range r.cleanups {
		end()
	}
	if len(r.errors) != 2 || !strings.Contains(r.errors[0], `"broken" 7 Error: why`) || !strings.Contains(r.errors[1], "odd") {
		t.Errorf("the errors are %q", r.errors)
	}
}
