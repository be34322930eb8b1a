package guard

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"

	"github.com/mayflydb/mayfly/internal/clock"
)

const (
	// before a page is asked for again; then twice as long each time
	askFirst = 50 * time.Millisecond
	askMost  = 10 * time.Second
)

// asker reads pages within a budget. It retries transient errors with growing pauses; a permanent
// error is a *Problem.
type asker struct {
	g      *Guard
	budget *budget
}

// query reads a page of a query.
func (a *asker) query(ctx context.Context, in *dynamodb.QueryInput) (items []map[string]types.AttributeValue, err error) {
	in.ReturnConsumedCapacity = types.ReturnConsumedCapacityTotal
	in.Limit = a.budget.limit()
	var out *dynamodb.QueryOutput
	err = a.again(ctx, "Query", func() (int, *types.ConsumedCapacity, error) {
		if out, err = a.g.db.Query(ctx, in); err != nil {
			return 0, nil, err
		}
		return int(out.ScannedCount), out.ConsumedCapacity, nil
	})
	if err != nil {
		return nil, err
	}
	in.ExclusiveStartKey = out.LastEvaluatedKey
	return out.Items, nil
}

// scan reads a page of a scan. It returns the items and the number of items read, which is larger
// if a filter excludes some.
func (a *asker) scan(ctx context.Context, in *dynamodb.ScanInput) (items []map[string]types.AttributeValue, read int, err error) {
	in.ReturnConsumedCapacity = types.ReturnConsumedCapacityTotal
	in.Limit = a.budget.limit()
	var out *dynamodb.ScanOutput
	err = a.again(ctx, "Scan", func() (int, *types.ConsumedCapacity, error) {
		if out, err = a.g.db.Scan(ctx, in); err != nil {
			return 0, nil, err
		}
		return int(out.ScannedCount), out.ConsumedCapacity, nil
	})
	if err != nil {
		return nil, 0, err
	}
	in.ExclusiveStartKey = out.LastEvaluatedKey
	return out.Items, int(out.ScannedCount), nil
}

// again asks until there is an answer.
func (a *asker) again(ctx context.Context, doing string, ask func() (read int, consumed *types.ConsumedCapacity, err error)) error {
	for pause := askFirst; ; pause = min(2*pause, askMost) {
		if err := a.budget.wait(ctx); err != nil {
			return err
		}
		read, consumed, err := ask()
		if err == nil {
			a.budget.spend(read, consumed)
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if p := a.refused(doing, err); p != nil {
			return p
		}
		a.budget.cut()
		a.g.observe(Event{What: Throttled, Err: err})
		a.g.log.Warn("the endpoint does not answer; trying again", "table", a.g.o.Table, "operation", doing, "error", err, "after", pause)
		clock.Pause(pause/2+rand.N(pause/2), ctx.Done())
	}
}

// refused returns the problem if another attempt would fail in the same way, else nil.
func (a *asker) refused(doing string, err error) *Problem {
	if p := a.g.problem(doing, err); p != nil {
		return p
	}
	var e smithy.APIError
	if errors.As(err, &e) && e.ErrorCode() == "ValidationException" {
		return &Problem{Code: Misconfigured, Message: fmt.Sprintf("the endpoint refuses the %s of %s", doing, a.g.o.Table),
			Next: "check the attribute and the index with `mayfly guard init`", Err: err}
	}
	return nil
}

// budget limits the units consumed per second. The units of a response are known only afterwards,
// so after spending too much the next request waits. A throttled request halves the rate, which
// recovers within a minute.
type budget struct {
	elapsed clock.Elapsed
	mu      struct {
		sync.Mutex
		most    float64 // units a second; 0: no bound
		rate    float64 // of now
		balance float64 // units; below zero, one has to wait
		at      time.Duration
		each    float64 // units that an item that was read has cost lately
	}
}

const (
	budgetGrowth = 60.0 // seconds in which a rate grows by the most
	budgetLeast  = 0.01 // of the most: as low as a rate falls
	// units of an item of 4 KB, if the endpoint does not return the consumption
	unitsWithout = 0.5
	// responses that use up the budget of a second; a single one of a megabyte costs 128 units
	pagesPerSecond = 4
)

func newBudget(most float64) *budget {
	b := &budget{elapsed: clock.Stopwatch()}
	b.mu.most, b.mu.rate, b.mu.balance, b.mu.each = most, most, most/pagesPerSecond, unitsWithout
	return b
}

// share sets this worker's part of the budget.
func (b *budget) share(most float64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.mu.most > 0 {
		b.mu.rate *= most / b.mu.most
	} else {
		b.mu.rate = most
	}
	b.mu.most = most
}

// wait waits until something may be spent.
func (b *budget) wait(ctx context.Context) error {
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

// due is how long until something may be spent.
func (b *budget) due() time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.mu.most == 0 {
		return 0
	}
	now := b.elapsed()
	passed := (now - b.mu.at).Seconds()
	b.mu.at = now
	b.mu.rate = min(b.mu.rate+b.mu.most*passed/budgetGrowth, b.mu.most)
	b.mu.balance = min(b.mu.balance+b.mu.rate*passed, max(b.mu.rate/pagesPerSecond, 1))
	if b.mu.balance > 0 {
		return 0
	}
	return time.Duration((-b.mu.balance/b.mu.rate + 0.001) * float64(time.Second))
}

// spend records the consumption of a response with so many items.
func (b *budget) spend(read int, consumed *types.ConsumedCapacity) {
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

// cut halves the rate.
func (b *budget) cut() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.mu.rate = max(b.mu.rate/2, b.mu.most*budgetLeast)
}

// limit returns the maximum number of items in the next response; nil if there is no limit.
func (b *budget) limit() *int32 {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.mu.most == 0 {
		return nil
	}
	return aws.Int32(int32(min(max(b.mu.rate/pagesPerSecond/b.mu.each, 1), 100_000)))
}
