package deliver_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/mayflydb/mayfly"
	"github.com/mayflydb/mayfly/internal/work/deliver"
	"github.com/mayflydb/mayfly/target"
)

// Couriers of different names at one endpoint have different targets: a parked or redriven parcel
// comes back only to the courier that parked it.
func TestNamedCouriers(t *testing.T) {
	everywhere(t, mayfly.Options{}, func(t *testing.T, e *endpoint) {
		var well atomic.Bool
		flaky := func(permanent bool) answers {
			return func(_ context.Context, d target.Delivery) error {
				switch {
				case well.Load():
					return nil
				case permanent:
					return target.Permanent("Gone", "because")
				}
				return errors.New("not yet")
			}
		}
		targets := func() map[string]answers { return map[string]answers{"arn:x": flaky(false), "arn:gone": flaky(true)} }
		own := e.courier(t, deliver.Options{Backoff: soon}, targets(), target.Limits{})
		named := e.courier(t, deliver.Options{Backoff: soon, Name: "aside"}, targets(), target.Limits{})
		toGone := func(j *deliver.Parcel) { j.Delivery.TargetARN = "arn:gone" }
		own.send(t, "own")
		named.send(t, "named")
		own.send(t, "own-dead", toGone)
		named.send(t, "named-dead", toGone)
		await(t, "attempts and dead letters", func() bool {
			tries := func(p *post) (n int) {
				p.read(func() { n = len(p.made) })
				return n
			}
			return tries(own) >= 4 && tries(named) >= 4 && len(e.all(t, deliver.DeadLetterFilter{}, 10)) == 2
		})
		// each is empty for the moment of an attempt
		for _, table := range []string{deliver.RetriesTable, deliver.RetriesTable + ".aside"} {
			await(t, "a parked job in "+table, func() bool { return e.items(t, table) > 0 })
		}
		well.Store(true)
		if n, err := deliver.RedriveDeadLetters(t.Context(), e.db, "own-dead", "named-dead"); n != 2 || err != nil {
			t.Fatal(n, err)
		}
		delivered := func(p *post, ids ...string) bool {
			all := true
			p.read(func() {
				for _, id := range ids {
					all = all && p.ended[id].Delivered
				}
			})
			return all
		}
		await(t, "all to be delivered", func() bool { return delivered(own, "own", "own-dead") && delivered(named, "named", "named-dead") })
		for p, other := range map[*post]string{own: "named", named: "own"} {
			p.read(func() {
				for id := range p.bodies {
					if len(id) > len(other) && id[:len(other)+1] == other+" " || len(id) > len(other)+5 && id[:len(other)+6] == other+"-dead " {
						t.Errorf("an attempt of the other's: %s", id)
					}
				}
			})
		}
	})
}
