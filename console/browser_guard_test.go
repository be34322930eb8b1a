package console_test

import (
	"context"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly/guard"
	"github.com/mayflydb/mayfly/internal/testkit/chrome"
)

// While a guard removes the expired items of a table, the page shows its worker, the number and the
// lateness of its removals, its shares, and the expirations to come.
func TestBrowserGuard(t *testing.T) {
	b := chrome.Start(t)
	everywhere(t, func(t *testing.T, w *world) {
		ttl, view := "", types.StreamViewType("")
		if w.own != nil {
			view = types.StreamViewTypeNewAndOldImages // so the workers share its shards
		}
		m := w.makeTable(t, "carts", ttl, view)
		now := time.Now()
		m.put(attributes{"id": "late", "until": now.Add(-time.Minute).Unix()})
		m.put(attributes{"id": "soon", "until": now.Add(5 * time.Minute).Unix()})
		m.put(attributes{"id": "kept", "until": now.Add(1000 * time.Hour).Unix()})
		w.guard(t, m)
		for _, view := range w.views() {
			t.Run(view.Name, func(t *testing.T) {
				tab := b.Open(t, view)
				tab.Go(w.pages)
				tab.Press("g", "u")
				tab.WaitText("h1", "Guard")
				tab.WaitText("main", "Guarded tables: carts")
				tab.Fill("input[name=table]", "unknown")
				tab.Fill("input[name=attribute]", "until")
				tab.FollowText("Show")
				tab.WaitText(".problem", "ResourceNotFoundException")
				tab.FollowText(m.name)
				tab.WaitText("main", "carts")
				await(t, func() bool {
					tab.FollowText("Show")
					return chrome.Eval[bool](tab, `document.querySelector("main").innerText.includes("tester") && document.querySelector("[data-label=Removed]")?.innerText === "1"`)
				}, "reports of the worker")
				tab.WaitText("main", "until")
				tab.Wait(`/\d+ ms/.test(document.querySelector("[data-label='Late: p50, p99, most']").innerText)`)
				tab.Wait(`document.querySelectorAll(".timeline svg:not([hidden]) rect.bar").length > 0`)
				tab.Picture("guard")
			})
		}
		if !m.has("kept") || !m.has("soon") {
			t.Error("an item is gone that has not expired")
		}
	})
}

// guard runs guard over a table until the end of the test.
func (w *world) guard(t *testing.T, m made) {
	t.Helper()
	o := guard.Options{DB: w.db, Table: m.name, Attribute: "until", Owner: "tester", LocalClock: true, Alone: true, AcceptOverdue: -1}
	if w.own != nil {
		o.Streams = w.own.Streams()
	}
	g, err := guard.New(o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- g.Run(ctx) }()
	await(t, func() bool { return g.Stats().Counts[guard.Removed] == 1 }, "removals") // reports are ten seconds apart
	reported := make(chan struct{})
	go func() { defer close(reported); g.Report(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		<-reported
	})
}
