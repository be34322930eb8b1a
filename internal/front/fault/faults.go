package fault

import (
	"cmp"
	"context"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/mayflydb/mayfly/internal/clock"
	"github.com/mayflydb/mayfly/internal/store/dynamo"
)

// Faults applies rules to calls. It is safe for concurrent use; a nil one does nothing.
type Faults struct {
	mu    sync.Mutex
	rules []counted
}

// counted is a rule that counts its calls and has random numbers of its own. So other rules do not
// change which calls it strikes.
type counted struct {
	Rule
	calls  int // that the rule fits
	random *rand.Rand
}

// New returns the faults of checked rules, or nil if there are none. seed selects the calls that
// probabilities strike.
func New(rules []Rule, seed uint64) *Faults {
	if len(rules) == 0 {
		return nil
	}
	f := &Faults{}
	for i, r := range rules {
		f.rules = append(f.rules, counted{Rule: r, random: rand.New(rand.NewPCG(seed, uint64(i)))})
	}
	return f
}

// Strike waits as long as the rules say that chose this call, and returns the error of the first of
// them that has one. tables are those that the call uses, once for each action of a transaction.
func (f *Faults) Strike(ctx context.Context, operation string, tables []string) error {
	if f == nil {
		return nil
	}
	delay, code := f.choose(operation, tables)
	if delay > 0 {
		clock.Pause(delay, ctx.Done())
	}
	if code == "" || ctx.Err() != nil {
		return ctx.Err()
	}
	e := &dynamo.Error{Code: code, Message: texts()[code]}
	if code == dynamo.CodeTransactionCanceled {
		cancel(e, len(tables))
	}
	return e
}

func (f *Faults) choose(operation string, tables []string) (delay time.Duration, code dynamo.Code) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := range f.rules {
		r := &f.rules[i]
		if !r.fits(operation, tables) || !r.chooses() {
			continue
		}
		delay += r.Delay
		code = cmp.Or(code, dynamo.Code(r.Error))
	}
	return delay, code
}

// chooses reports whether the rule strikes the present call, which it fits.
func (r *counted) chooses() bool {
	r.calls++
	switch {
	case r.Every > 0:
		return r.calls%r.Every == 0
	case r.Probability > 0:
		return r.random.Float64() < r.Probability
	default:
		return true
	}
}

// cancel makes the first of a transaction's actions the reason of its cancellation.
func cancel(e *dynamo.Error, actions int) {
	codes := make([]string, max(1, actions))
	e.Reasons = make([]dynamo.Reason, len(codes))
	for i := range codes {
		codes[i] = "None"
		e.Reasons[i].Code = codes[i]
	}
	codes[0] = "TransactionConflict"
	e.Reasons[0] = dynamo.Reason{Code: codes[0], Message: texts()[dynamo.CodeTransactionConflict]}
	e.Message = "Transaction cancelled, please refer cancellation reasons for specific reasons [" + strings.Join(codes, ", ") + "]"
}
