package guard

import (
	"fmt"
	"slices"
	"sync"

	"github.com/mayflydb/mayfly/guard/internal/armed"
	"github.com/mayflydb/mayfly/guard/internal/strategy"
)

// Removals counts the removals of all guards that share it, at the same time or one after the
// other, towards Options.MaxRemovals. The zero value has counted none.
type Removals struct {
	mu struct {
		sync.Mutex
		open     int64 // under way, without the doubtful ones
		made     int64
		doubtful int64        // perhaps made: the answer was lost
		guards   []*allowance // that remove items
	}
}

// allowance counts removals towards Options.MaxRemovals. A removal counts from before its attempt
// on, until it was certainly not made. After an attempt whose answer was lost it counts for good,
// since a refusal of the next attempt does not show who removed the item. So guard never removes
// more items than allowed, and may stop a few early.
type allowance struct {
	most int64 // 0: no limit
	*Removals
	freed    chan struct{}      // has an element when more may begin
	open     int64              // part of Removals' ones; guarded by its mutex
	doubtful map[attempted]bool // not ended; guarded by the same
}

// attempted is an entry without its armer.
type attempted struct {
	key            armed.Key
	at             int64
	value, version string
}

func attemptOf(e armed.Entry) attempted { return attempted{e.Key, e.At, e.Text(), e.Version} }

func newAllowance(most int64, shared *Removals) *allowance {
	if shared == nil {
		shared = &Removals{}
	}
	return &allowance{most: most, Removals: shared, freed: make(chan struct{}, 1), doubtful: map[attempted]bool{}}
}

// join takes part in the sharing until leave is called, after the end of all attempts. Those that
// were reserved and not made do not count then.
func (a *allowance) join() (leave func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.mu.guards = append(a.mu.guards, a)
	return func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.mu.guards = slices.DeleteFunc(a.mu.guards, func(one *allowance) bool { return one == a })
		a.giveBackLocked(int(a.open))
	}
}

// reserve returns how many of n removals may begin, and counts them. used is true if no more may,
// whatever becomes of those under way.
func (a *allowance) reserve(n int) (allowed int, used bool) {
	if a.most == 0 {
		return n, false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	left := a.most - a.mu.made - a.mu.doubtful
	allowed = int(min(int64(n), max(left-a.mu.open, 0)))
	a.open += int64(allowed)
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
		if !a.doubtful[attemptOf(f.Entry)] {
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
	if made || a.doubtful[one] {
		a.mu.made++
	}
	if !a.doubtful[one] {
		a.giveBackLocked(1)
		return
	}
	delete(a.doubtful, one)
	a.mu.doubtful--
}

// again counts a failed attempt. unknown is true if the item may be gone because of it.
func (a *allowance) again(f armed.Removal, unknown bool) {
	if a.most == 0 {
		return
	}
	one := attemptOf(f.Entry)
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.doubtful[one] {
		return
	}
	if unknown {
		a.doubtful[one] = true
		a.mu.doubtful++
	}
	a.giveBackLocked(1)
}

func (a *allowance) giveBackLocked(n int) {
	a.open -= int64(n)
	a.mu.open -= int64(n)
	if n <= 0 {
		return
	}
	for _, one := range a.mu.guards {
		strategy.Nudge(one.freed)
	}
}

// problem returns the problem that ends guard when the allowance is used up.
func (a *allowance) problem() *Problem {
	a.mu.Lock()
	defer a.mu.Unlock()
	message := fmt.Sprintf("the limit of removals is reached: %d", a.mu.made)
	if a.mu.doubtful > 0 {
		message += fmt.Sprintf(", and perhaps %d more, as the endpoint did not answer", a.mu.doubtful)
	}
	return &Problem{Code: Limit, Message: message, Next: "check that they were the right ones; start guard again to remove more (--max-removals)"}
}
