package lifecycle_test

import (
	"context"
	"testing"
	"time"
)

const butterfly = `
lifecycle: butterfly
attributes: {larva: S}
states:
  - name: egg
    next: [{to: larva, after: 4 days}]
  - name: larva
    next: [{to: cocoon, after: $larva, handler: note}]
  - name: cocoon
    next: [{to: butterfly, after: 11d, handler: note, input: {wings: 4}}]
  - name: butterfly
    next: [{to: gone, after: 1 month, handler: note}]
  - name: gone
    remove: true
`

// A butterfly makes each of its transitions at its instant.
func TestButterfly(t *testing.T) {
	w := newWorld(t)
	w.apply(butterfly)
	w.create("butterfly", "b-1", "larva", "2 weeks")
	if got, want := w.state("butterfly", "b-1"), "egg, larva@96h0m0s"; got != want {
		t.Errorf("it is %s, not %s", got, want)
	}
	w.advance(4*24*time.Hour - time.Millisecond)
	if got, want := w.state("butterfly", "b-1"), "egg, larva@96h0m0s"; got != want {
		t.Errorf("a millisecond before it is due it is %s, not %s", got, want)
	}
	w.advance(time.Millisecond)
	if got, want := w.state("butterfly", "b-1"), "larva, cocoon@432h0m0s"; got != want {
		t.Errorf("it is %s, not %s", got, want)
	}
	ahead, err := w.Ahead(context.Background(), "butterfly", "b-1", 10)
	must(t, err)
	// It becomes a butterfly on January 30 and goes a month later: there is no February 30.
	if len(ahead) != 3 || ahead[2].To != "gone" || !ahead[2].At.Equal(time.Date(2030, 2, 28, 0, 0, 0, 0, time.UTC)) {
		t.Errorf("ahead are %+v", ahead)
	}
	w.advance(30 * 24 * time.Hour)
	w.want(w.events("butterfly", "b-1"),
		"created →egg@0s", "transition egg→larva@96h0m0s", "transition larva→cocoon@432h0m0s", "transition cocoon→butterfly@696h0m0s")
	w.advance(60 * 24 * time.Hour)
	w.want(w.calls(), "b-1 butterfly→gone@1392h0m0s", "b-1 cocoon→butterfly@696h0m0s", "b-1 larva→cocoon@432h0m0s")
	if _, err := w.Get(context.Background(), "butterfly", "b-1"); err == nil {
		t.Error("it is still there")
	}
	events, err := w.History(context.Background(), "butterfly", "b-1")
	must(t, err)
	for _, e := range events {
		if e.Lateness() != 0 || e.Handler != "" && e.Outcome != "delivered" {
			t.Errorf("%+v", e)
		}
	}
}
