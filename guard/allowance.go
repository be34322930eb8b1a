package guard

import (
	"fmt"
	"sync"

	"github.com/mayflydb/mayfly/guard/internal/armed"
	"github.com/mayflydb/mayfly/guard/internal/strategy"
)

// allowance counts removals towards Options.MaxRemovals. A removal counts from before its attempt
// on, until it was certainly not made. After an attempt whose answer was lost it counts for good,
// since a refusal of the next attempt does not show who removed the item. So guard never removes
// more items than allowed, and may stop a few early.
type allowance struct {
	most  int64         // 0: no limit
	freed chan struct{} // has an element when more may begin
	mu    struct {
		sync.Mutex
		open     int64 // under way, without the doubtful ones
		made     int64
		doubtful map[attempted]bool // perhaps made, and not ended
	}
}

// attempted is an entry without its armer.
type attempted struct {
	key            armed.Key
	at             int64
	value, version string
}

func attemptOf(e armed.Entry) attempted { return attempted{e.Key, e.At, e.Text(), e.Version} }

func newAllowance(most int64) *allowance {
	a := &allowance{most: most, freed: make(chan struct{}, 1)}
	a.mu.doubtful = map[attempted]bool{}
	return a
}

// reserve returns how many of n removals may begin, and counts them. used is true if no more may,
// whatever becomes of those under way.
func (a *allowance) reserve(n int) (allowed int, used bool) {
	if a.most == 0 {
		return n, false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	left := a.most - a.mu.made - int64(len(a.mu.doubtful))
	allowed = int(min(int64(n), max(left-a.mu.open, 0)))
	a.mu.open += int64(allowed)
	return allowed, left <= 0
}

// begin gives back what a batch does not need of the reserved number. Doubtful ones count already.
func (a *allowance) begin(reserved int, batch []armed.Removal) {
	if a.most == 0 {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, f := range batch {
		if !a.mu.doubtful[attemptOf(f.Entry)] {
			reserved--
		}
	}
	a.giveBackLocked(reserved)
}

// end counts a removal that will not be attempted again. made is true if guard removed the item.
func (a *allowance) end(f armed.Removal, made bool) {
	if a.most == 0 {
		return
	}
	one := attemptOf(f.Entry)
	a.mu.Lock()
	defer a.mu.Unlock()
	doubtful := a.mu.doubtful[one]
	if made || doubtful {
		a.mu.made++
	}
	if delete(a.mu.doubtful, one); !doubtful {
		a.giveBackLocked(1)
	}
}

// again counts a failed attempt. unknown is true if the item may be gone because of it.
func (a *allowance) again(f armed.Removal, unknown bool) {
	if a.most == 0 {
		return
	}
	one := attemptOf(f.Entry)
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.mu.doubtful[one] {
		return
	}
	if unknown {
		a.mu.doubtful[one] = true
	}
	a.giveBackLocked(1)
}

func (a *allowance) giveBackLocked(n int) {
	if a.mu.open -= int64(n); n > 0 {
		strategy.Nudge(a.freed)
	}
}

// problem returns the problem that ends guard when the allowance is used up.
func (a *allowance) problem(table string) *Problem {
	a.mu.Lock()
	defer a.mu.Unlock()
	message := fmt.Sprintf("the limit of removals from table %s is reached: %d", table, a.mu.made)
	if n := len(a.mu.doubtful); n > 0 {
		message += fmt.Sprintf(", and perhaps %d more, as the endpoint did not answer", n)
	}
	return &Problem{Code: Limit, Message: message, Next: "check that they were the right ones; start guard again to remove more (--max-removals)"}
}
