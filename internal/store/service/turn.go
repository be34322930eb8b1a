package service

import "context"

// turnsMax is the number of requests that do much work at the same time. With one fewer than
// processors, a small request always finds one.
func turnsMax(processors int) int { return max(processors-1, 1) }

const (
	// heavyWork is the work of a request, in bytes, after which it needs a turn.
	heavyWork = 256 << 10
	// entryWork is the work of an item or index entry besides its bytes.
	entryWork = 256
)

// Turn is a request's right to do much work: to evaluate a page of a thousand items, or to answer
// with a megabyte. Few requests have it at the same time; the others wait in line, without a limit.
// So scans of ten clients do not hold up another client's GetItem, nor does the memory of their
// answers add up. A request that does little never waits.
type Turn struct {
	turns chan struct{}
	work  int
	taken bool
}

type turnKey struct{}

// NewTurn returns a context for a request that may do much work. The caller ends the turn when the
// answer is complete.
func (s *Service) NewTurn(ctx context.Context) (context.Context, *Turn) {
	t := &Turn{turns: s.turns}
	return context.WithValue(ctx, turnKey{}, t), t
}

// turnOf returns the context's turn, or nil, which never waits.
func turnOf(ctx context.Context) *Turn {
	t, _ := ctx.Value(turnKey{}).(*Turn)
	return t
}

// Do adds work of so many bytes, and waits for the turn when the request has become a heavy one.
// The error is ctx's.
func (t *Turn) Do(ctx context.Context, bytes int) error {
	if t == nil || t.taken {
		return nil
	}
	if t.work += bytes; t.work < heavyWork {
		return nil
	}
	select {
	case t.turns <- struct{}{}:
		t.taken = true
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// End passes the turn on.
func (t *Turn) End() {
	if t.taken {
		<-t.turns
		t.taken = false
	}
}
