package aws

import (
	"context"
	"fmt"
	"sync"

	"github.com/mayflydb/mayfly/target"
)

// atOnce is the number of concurrent calls of one Deliver if each delivery is a call of its own.
const atOnce = 8

// singly returns a sender that makes a call for each delivery, several at a time, and those for one
// key one after another.
func singly(call func(ctx context.Context, d *target.Delivery) error) sender {
	return func(ctx context.Context, deliveries []target.Delivery, indexes []int, results []error) {
		chains := chainsOf(deliveries, indexes)
		waiting := make(chan []int, len(chains))
		for _, chain := range chains {
			waiting <- chain
		}
		close(waiting)
		var workers sync.WaitGroup
		for range min(atOnce, len(chains)) {
			workers.Go(func() {
				for chain := range waiting {
					for _, i := range chain {
						results[i] = guarded(ctx, &deliveries[i], call)
					}
				}
			})
		}
		workers.Wait()
	}
}

// chainsOf puts deliveries of one key into a chain, and each without a key into one of its own.
func chainsOf(deliveries []target.Delivery, indexes []int) (chains [][]int) {
	at := map[string]int{}
	for _, i := range indexes {
		key := deliveries[i].Key
		if place, found := at[key]; found && key != "" {
			chains[place] = append(chains[place], i)
			continue
		}
		at[key] = len(chains)
		chains = append(chains, []int{i})
	}
	return chains
}

// guarded makes one call. A panic is a failure of the delivery: the caller of Deliver cannot catch
// one of another goroutine.
func guarded(ctx context.Context, d *target.Delivery, call func(context.Context, *target.Delivery) error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &target.Error{Code: "TargetPanicked", Message: fmt.Sprint(p)}
		}
	}()
	if err := ctx.Err(); err != nil {
		return failure(err)
	}
	return failure(call(ctx, d))
}
