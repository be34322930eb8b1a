package pace

import (
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// A budget's rate is as configured, for any cost of requests.
func TestBudget(t *testing.T) {
	now := time.Duration(0)
	b := NewBudget(100)
	b.elapsed = func() time.Duration { return now }
	spent := 0.0
	for now < 60*time.Second {
		if wait := b.due(); wait > 0 {
			now += wait
			continue
		}
		cost := float64(1 + int(spent)%40)
		spent += cost
		b.Spend(10, &types.ConsumedCapacity{CapacityUnits: aws.Float64(cost)})
	}
	if spent < 5900 || spent > 6100 {
		t.Errorf("%v units were spent in a minute at 100 a second", spent)
	}
	if limit := *b.Limit(); limit < 1 || limit > 250 {
		t.Errorf("pages of %d items", limit)
	}
	b.Cut()
	b.Cut()
	spent, began := 0.0, now
	for now < began+time.Second {
		if wait := b.due(); wait > 0 {
			now += wait
			continue
		}
		spent++
		b.Spend(1, &types.ConsumedCapacity{CapacityUnits: aws.Float64(1)})
	}
	if spent < 10 || spent > 60 {
		t.Errorf("after two refusals %v units were spent in a second", spent)
	}
	b.Share(10)
	b.Share(100)
	if b.mu.rate < 24 { // a quarter, of before the last second
		t.Errorf("a share that grows again has a rate of %v", b.mu.rate)
	}
	if limit := *NewBudget(0).Limit(); limit != pageMost {
		t.Errorf("without a bound, pages have %d items", limit)
	}
	b.Spend(3, nil) // an endpoint that does not return the consumption
	if b.mu.each != unitsWithout {
		t.Errorf("each is taken to cost %v", b.mu.each)
	}
}
