package console

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/mayflydb/mayfly"
	"github.com/mayflydb/mayfly/lifecycle"
)

// TestNextChangeOnce: a form that brings the next change of an entity forward, and is sent again
// after that change, does not bring forward the change after it.
func TestNextChangeOnce(t *testing.T) {
	s := open(t, mayfly.Options{})
	l, err := lifecycle.New(lifecycle.Options{DB: s.db.DynamoDB(), Streams: s.db.Streams(), Now: s.db.Clock().Now, Unmapped: true})
	must(t, err)
	_, err = l.Apply(t.Context(), lifecycle.Definition{Name: "parcel", States: []lifecycle.State{
		{Name: "waiting", Next: []lifecycle.Transition{{To: "reminded", After: "3 days"}}}, {Name: "reminded", Next: []lifecycle.Transition{{To: "returned", After: "1 week"}}}, {Name: "returned"},
	}}, lifecycle.ApplyOptions{})
	must(t, err)
	_, err = l.Create(t.Context(), "parcel", "p-1", nil)
	must(t, err)
	next := func() lifecycle.Entity {
		t.Helper()
		e, err := l.Get(t.Context(), "parcel", "p-1")
		must(t, err)
		return e
	}
	form := url.Values{"do": {"now"}, "id": {"p-1"}, "generation": {field(t, s.page("lifecycle/parcel/entity", url.Values{"id": {"p-1"}}), "generation")}}
	s.followed(s.post("lifecycle/parcel/entity", form))
	if e := next(); e.State != "waiting" || !e.Next.Equal(begin) {
		t.Fatalf("the next change of %+v is not now", e)
	}
	_, err = l.Move(t.Context(), "parcel", "p-1", "reminded") // as the process would that runs lifecycles
	must(t, err)
	before := next()
	if text := s.post("lifecycle/parcel/entity", form).refused(t, http.StatusConflict); !strings.Contains(text, errEntityChanged.text) {
		t.Errorf("the same form again: %.300s", text)
	}
	if after := next(); !after.Next.Equal(before.Next) || after.Generation != before.Generation {
		t.Errorf("the entity is %+v; want %+v", after, before)
	}
}
