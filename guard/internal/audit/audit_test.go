package audit

import (
	"testing"
	"time"

	"github.com/mayflydb/mayfly/guard/internal/armed"
	"github.com/mayflydb/mayfly/guard/internal/strategy"
)

// An invalid checkpoint counts as none. A pass is due until it has ended, and then after the time
// between two beginnings.
func TestAuditPlace(t *testing.T) {
	for text, want := range map[string]place{
		"": {}, "nothing": {}, `{"began":5,"key":"?"}`: {Began: 5}, `{"began":5,"ended":9}`: {Began: 5, Ended: 9},
	} {
		if got := readPlace(text); got != want {
			t.Errorf("%q is read as %+v", text, got)
		}
	}
	if due := (place{Began: 5}).due(time.Second); due != 0 {
		t.Errorf("a pass that is under way is due at %d", due)
	}
	if due := (place{Began: 5, Ended: 900}).due(time.Second); due != 1005 {
		t.Errorf("the next pass is due at %d", due)
	}
}

// The checkpoint stays before the page of the first suspect.
func TestAuditPosition(t *testing.T) {
	a := &Audit{Reader: &strategy.Reader{}}
	at := place{Key: "b", Began: 5}
	if got, want := a.position(at), `{"key":"b","began":5}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	a.suspects = []suspect{{Entry: armed.Entry{Key: "k"}, from: "a"}}
	if got, want := a.position(at), `{"key":"a","began":5}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
