package guard

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/mayflydb/mayfly/internal/clock"
)

// Functions runs guard as cloud functions, which run for a while and are called again: see Sweep
// and StreamRecords, which do the same for a single call. It remembers the name of the TTL
// attribute between calls. It ignores Options.Strategy.
type Functions struct {
	o         Options
	attribute atomic.Value // a string: found by the first call if Options does not name it
}

// NewFunctions returns functions with the options of all their calls. Each call checks the options,
// and returns what is wrong with them.
func NewFunctions(o Options) *Functions { return &Functions{o: o} }

// once is a strategy that ends by itself.
type once func(ctx context.Context) error

func (f once) Run(ctx context.Context) error { return f(ctx) }

const (
	reserveShare = 20 // this part of a call's time is left for its end
	reserveMost  = 3 * time.Second
)

// call runs a guard for one call of a strategy. work runs beside the removals, and returns when the
// removals it needs have ended. ended, which may be nil, is called at the end.
func (f *Functions) call(ctx context.Context, by Strategy, ended func(*Guard), work func(ctx context.Context, g *Guard) error) error {
	o := f.o
	o.Strategy = Auto
	if o.Attribute == "" {
		o.Attribute, _ = f.attribute.Load().(string)
	}
	g, err := New(o)
	if err != nil {
		return err
	}
	if ended != nil {
		defer ended(g)
	}
	if err := g.prepare(ctx); err != nil {
		return err
	}
	f.attribute.Store(g.o.Attribute)
	if by == Index {
		if err := g.admit(ctx, by, "", true); err != nil {
			return err
		}
	}
	within, cancel := reserve(ctx)
	defer cancel()
	err = g.work(within, once(func(ctx context.Context) error { return work(ctx, g) }))
	g.refuseFirstPass(ctx, err)
	return err
}

// reserve returns a context that ends a little before ctx, so that there is time to save and report
// the progress.
func reserve(ctx context.Context) (context.Context, context.CancelFunc) {
	end, has := ctx.Deadline()
	if !has {
		return context.WithCancel(ctx)
	}
	left := end.Sub(clock.New().Now())
	return context.WithTimeout(ctx, left-min(left/reserveShare, reserveMost))
}
