package pace

import (
	"context"
	"math"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly/internal/clock"
)

// Budget limits the units consumed per second. The units of a response are known only afterwards,
// so after spending too much the next request waits. A throttled request halves the rate, which
// recovers within a minute.
type Budget struct {
	elapsed clock.Elapsed
	mu      struct {
		sync.Mutex
		most    float64 // units a second; 0: no bound
		rate    float64 // units a second at present
		balance float64 // units; below zero, one has to wait
		at      time.Duration
		each    float64 // units that an item that was read has cost lately
		pages   float64 // responses that use up the budget of a second
	}
}

const (
	budgetGrowth = 60.0 // seconds in which a rate grows by the most
	budgetLeast  = 0.01 // of the most: as low as a rate falls
	// units of an item of 4 KB, if the endpoint does not return the consumption
	unitsWithout = 0.5
	// responses that use up the budget of a second; a single one of a megabyte costs 128 units
	pagesPerSecond = 4
	// the same of a slow reader: a response costs at least half a unit, and is rounded up to the next
	slowPages = 0.25
	// items in a response. A megabyte of small items takes 15 MB when decoded.
	pageMost = 4000
)

// NewBudget returns a budget of units per second; 0: no limit.
func NewBudget(most float64) *Budget {
	b := &Budget{elapsed: clock.Stopwatch()}
	b.mu.most, b.mu.rate, b.mu.balance, b.mu.each, b.mu.pages = most, most, most/pagesPerSecond, unitsWithout, pagesPerSecond
	return b
}

// NewSlowBudget returns a budget of few units per second, for few large responses.
func NewSlowBudget(most float64) *Budget {
	b := NewBudget(most)
	b.mu.pages = slowPages
	return b
}

// Share sets the units a second of this worker's part of the budget. The present rate keeps its
// proportion to them.
func (b *Budget) Share(most float64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.mu.most > 0 {
		b.mu.rate *= most / b.mu.most
	} else {
		b.mu.rate = most
	}
	b.mu.most = most
}

// Wait waits until something may be spent.
func (b *Budget) Wait(ctx context.Context) error {
	for {
		pause := b.due()
		if pause <= 0 {
			return ctx.Err()
		}
		clock.Pause(min(pause, time.Second), ctx.Done()) // the rate may be another by then
		if err := ctx.Err(); err != nil {
			return err
		}
	}
}

// due returns how long to wait until something may be spent; 0 if that is now.
func (b *Budget) due() time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.mu.most == 0 {
		return 0
	}
	now := b.elapsed()
	passed := (now - b.mu.at).Seconds()
	b.mu.at = now
	b.mu.rate = min(b.mu.rate+b.mu.most*passed/budgetGrowth, b.mu.most)
	b.mu.balance = min(b.mu.balance+b.mu.rate*passed, max(b.mu.rate/b.mu.pages, 1))
	if b.mu.balance > 0 {
		return 0
	}
	return time.Duration((-b.mu.balance/b.mu.rate + 0.001) * float64(time.Second))
}

// Spend records the consumption of a response with so many items. If the endpoint has not returned
// it, each item counts as unitsWithout, and a response without items as one item.
func (b *Budget) Spend(read int, consumed *types.ConsumedCapacity) {
	spent := unitsWithout * float64(max(read, 1))
	if consumed != nil && consumed.CapacityUnits != nil {
		spent = *consumed.CapacityUnits
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.mu.balance -= spent
	if read > 0 {
		b.mu.each = max(spent/float64(read), 0.001)
	}
}

// Cut halves the rate, because a request has failed or was throttled.
func (b *Budget) Cut() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.mu.rate = max(b.mu.rate/2, b.mu.most*budgetLeast)
}

// Items returns how many items may be read per second at present, by what they have cost lately; +Inf
// if there is no limit.
func (b *Budget) Items() float64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.mu.most == 0 {
		return math.Inf(1)
	}
	return b.mu.rate / b.mu.each
}

// Limit returns the maximum number of items in the next response.
func (b *Budget) Limit() *int32 {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.mu.most == 0 {
		return aws.Int32(pageMost)
	}
	return aws.Int32(int32(min(max(b.mu.rate/b.mu.pages/b.mu.each, 1), pageMost)))
}
