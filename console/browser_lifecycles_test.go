package console_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/mayflydb/mayfly/internal/testkit/chrome"
	"github.com/mayflydb/mayfly/lifecycle"
)

// A visitor looks at a lifecycle: a drawing with the number of entities in each state, the entities
// of one state, and the path of one. The visitor pauses it, lets its next change happen now, and ends
// it.
func TestBrowserLifecycles(t *testing.T) {
	b := chrome.Start(t)
	everywhere(t, func(t *testing.T, w *world) {
		if w.own == nil {
			for _, view := range w.views() {
				tab := b.Open(t, view)
				tab.Go(w.pages + "console/lifecycles")
				tab.WaitText("main", "There are no lifecycles.")
				tab.Picture("none-" + view.Name)
			}
			return
		}
		l := w.lifecycles(t)
		for i, view := range w.views() {
			t.Run(view.Name, func(t *testing.T) {
				useLifecycle(t, b.Open(t, view), w, l, fmt.Sprintf("parcel-%d", i))
			})
		}
	})
}

func useLifecycle(t *testing.T, tab *chrome.Tab, w *world, l *lifecycle.Lifecycles, name string) {
	if _, err := l.Apply(t.Context(), lifecycle.Definition{Name: name, States: []lifecycle.State{
		{Name: "waiting", Next: []lifecycle.Transition{{To: "reminded", After: "3 days"}, {To: "fetched"}}},
		{Name: "reminded", Next: []lifecycle.Transition{{To: "returned", After: "1 week"}, {To: "fetched"}}},
		{Name: "fetched"}, {Name: "returned"},
	}}, lifecycle.ApplyOptions{}); err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		if _, err := l.Create(t.Context(), name, fmt.Sprintf("p-%d", i), nil); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := l.Move(t.Context(), name, "p-2", "fetched"); err != nil {
		t.Fatal(err)
	}
	tab.Go(w.pages)
	tab.Press("g", "l")
	tab.WaitText("h1", "Lifecycles")
	tab.FollowText(name)
	tab.WaitText("main", "3 entities")
	drawing := chrome.Eval[string](tab, `fetch(document.querySelector("main img").src).then(r => r.text()).then(text => text.match(/\d+ in the state \w+/g).join(", "))`)
	for _, want := range []string{"2 in the state waiting", "1 in the state fetched", "0 in the state returned"} {
		if !strings.Contains(drawing, want) {
			t.Errorf("the drawing has %q, without %q", drawing, want)
		}
	}
	tab.Wait(`document.querySelector("main img").naturalWidth > 50`)
	tab.Picture("lifecycle")
	tab.FollowText("fetched")
	tab.WaitText("main", "p-2")
	tab.Wait(`!document.querySelector("main").innerText.includes("p-1")`)
	tab.FollowText("p-2")
	tab.WaitText(".path", "fetched")
	tab.WaitText("main", "Nothing is pending.")

	// One that is under way.
	tab.Go(w.pages + "console/lifecycle/" + name)
	tab.Fill("input[name=id]", "p-1")
	tab.FollowText("Show")
	tab.WaitText("h1", "p-1")
	tab.WaitText(".path [aria-current]", "waiting")
	tab.WaitText(".path .ahead", "reminded")
	tab.FollowText("Pause")
	tab.WaitText("main", "Resume")
	if e := entity(t, l, name, "p-1"); e.Paused.IsZero() {
		t.Error("it is not paused")
	}
	tab.FollowText("Resume")
	tab.WaitText("main", "Pause")
	tab.FollowText("Run the next change now")
	await(t, func() bool { return entity(t, l, name, "p-1").State == "reminded" }, "changes")
	tab.Go(tab.URL())
	tab.WaitText(".path [aria-current]", "reminded")
	tab.WaitText("main", "waiting → reminded")
	if w.name == "mayfly" {
		w.advance(t, 8*24*time.Hour)
		tab.Go(tab.URL())
		tab.WaitText(".path [aria-current]", "returned")
	}
	tab.Picture("entity")
	tab.Go(w.pages + "console/lifecycle/" + name + "/entity?id=p-0")
	if w.name != "mayfly" { // there the advance has brought it to its end
		tab.FollowText("End")
		if e := entity(t, l, name, "p-0"); e.Ended != "cancelled" {
			t.Errorf("%+v", e)
		}
	}
	tab.Go(w.pages + "console/lifecycle/" + name + "/entity?id=nobody")
	tab.WaitText("main", "entity not found")
	tab.Forgive("404")
}

func entity(t *testing.T, l *lifecycle.Lifecycles, name, id string) lifecycle.Entity {
	t.Helper()
	e, err := l.Get(t.Context(), name, id)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// lifecycles runs the lifecycles of a server of ours until the end of the test.
func (w *world) lifecycles(t *testing.T) *lifecycle.Lifecycles {
	t.Helper()
	l, err := lifecycle.New(lifecycle.Options{DB: w.db, Streams: w.own.Streams(), Now: w.own.Clock().Now, Registry: w.own.Registry(), Alone: true})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- l.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	<-l.Ready()
	return l
}
