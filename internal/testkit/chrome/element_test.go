package chrome

import (
	"net/http"
	"net/http/httptest"
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
	if at := Eval[*point](tab, spot(bySelector("#covered"))); at != nil {
		t.Errorf("a covered element can be clicked at %v", *at)
	}
	if at := Eval[*point](tab, spot(byText("none"))); at != nil {
		t.Errorf("an element that does not exist can be clicked at %v", *at)
	}
	tab.ClickText("Go")
	tab.Wait(`document.title === "clicked"`)
}
