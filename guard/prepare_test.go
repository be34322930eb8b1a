package guard

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"
)

// An endpoint that takes requests and never answers is a problem, and not waited for without end.
func TestSilentEndpoint(t *testing.T) {
	t.Parallel()
	w := newWorld(t, overHTTP)
	w.via(func(r *http.Request, _ func(*http.Request) (*http.Response, error)) (*http.Response, error) {
		<-r.Context().Done()
		return nil, r.Context().Err()
	})
	g, err := New(w.options(Scan))
	must(t, err)
	g.patience = 50 * time.Millisecond
	var p *Problem
	if err := g.Run(t.Context()); !errors.As(err, &p) || p.Code != Unavailable || p.Next == "" {
		t.Errorf("ends with %v", err)
	}
}

// An attribute that cannot be a mark is refused before anything is removed, even if the TTL
// attribute is known only then.
func TestMarkProblems(t *testing.T) {
	t.Parallel()
	for mark, says := range map[string]string{"ttl": "is the TTL attribute itself", "pk": "is a key of the table", "user": "is a key of an index"} {
		w := newWorld(t, withIndex("byUser", "user", "N"))
		o := w.options(Scan)
		o.Attribute, o.Mark = "", mark
		g, err := New(o)
		must(t, err)
		var p *Problem
		if err := g.Run(t.Context()); !errors.As(err, &p) || p.Code != Misconfigured || !strings.Contains(p.Message, says) || !strings.Contains(p.Next, "--mark") {
			t.Errorf("with the mark %s it ends with %v", mark, err)
		}
	}
}
