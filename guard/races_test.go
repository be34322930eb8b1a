package guard

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly/guard/internal/armed"
	"github.com/mayflydb/mayfly/internal/invariant"
	"github.com/mayflydb/mayfly/internal/testkit"
)

var raceCount = flag.Int("races", testkit.Size(1000, 4000), "how many races are forced: go test ./guard -run ForcedRaces -races 1000000 -timeout 1h")

// fates are the changes of an item between the decision to remove it and the removal. They return
// whether the item has to exist afterwards.
var fates = map[string]func(w *world, name, old, later string) (stays bool){
	"renewed":     func(w *world, name, _, later string) bool { w.renew(name, later); return true },
	"no deadline": func(w *world, name, _, _ string) bool { w.put(name, ""); return true },
	"another type": func(w *world, name, old, _ string) bool {
		w.put(name, "", text("ttl", old))
		return true
	},
	"made again": func(w *world, name, _, later string) bool { w.remove(name); w.put(name, later); return true },
	"made again, and a second later": func(w *world, name, old, _ string) bool {
		w.remove(name)
		w.put(name, old+".001")
		return true
	},
	"removed":             func(w *world, name, _, _ string) bool { w.remove(name); return false },
	"written, but as due": func(w *world, name, old, _ string) bool { w.put(name, old, text("more", "x")); return false },
	"left alone":          func(*world, string, string, string) bool { return false },
}

// TestForcedRaces: two workers that both believe they own an item remove it, with each deadline
// armed twice and in any order, and it changes right before each removal. No item with another
// deadline goes.
func TestForcedRaces(t *testing.T) {
	count := *raceCount
	if testing.Short() {
		count = min(count, 1000)
	}
	wrong, removed := forceRaces(t, count)
	if wrong > 0 || removed == 0 {
		t.Errorf("%d items were removed that had another deadline by then, and %d rightly", wrong, removed)
	}
	if !invariant.Enabled {
		return
	}
	t.Run(invariant.Unconditional.String(), func(t *testing.T) {
		defer inject(invariant.Unconditional)()
		if wrong, _ := forceRaces(t, 1000); wrong == 0 {
			t.Error("the test did not notice it")
		}
	})
}

func forceRaces(t *testing.T, races int) (wrong int, removed int64) {
	const round = 1000
	var names []string
	for name := range fates {
		names = append(names, name)
	}
	w := newWorld(t)
	var mu sync.Mutex
	did := map[string]bool{}   // items to which their fate has happened, guarded by mu
	stays := map[string]bool{} // guarded by mu
	var old, later string
	tap := w.tapped()
	tap.do(func(_ context.Context, operation string, in any) error {
		d, ok := in.(*dynamodb.DeleteItemInput)
		if !ok || aws.ToString(d.TableName) != worldTable {
			return nil
		}
		name := d.Key["pk"].(*types.AttributeValueMemberS).Value
		mu.Lock()
		defer mu.Unlock() // the other worker's removal comes after it, too
		if !did[name] {
			did[name] = true
			stays[name] = fates[names[rand.IntN(len(names))]](w, name, old, later)
		}
		return nil
	})
	o := w.options(Auto)
	o.Logger = slog.New(slog.DiscardHandler)
	one, other := w.startIdle(o), w.startIdle(o)
	raced := 0
	for ; raced < races; raced += round {
		old, later = w.in(10), w.in(100_000_000)
		w.fill("item", round, old)
		var entries []armed.Entry
		for i := range round {
			e := one.entry(w, fmt.Sprint("item", i))
			entries = append(entries, e, e) // each twice
			if i%3 == 0 {                   // and of a deadline that it had before
				stale := e
				stale.Value, stale.At = "", e.At-1000
				entries = append(entries, stale)
			}
		}
		rand.Shuffle(len(entries), func(i, j int) { entries[i], entries[j] = entries[j], entries[i] })
		for i, e := range entries {
			one.arm(e)
			other.arm(entries[len(entries)-1-i])
		}
		w.advance(10 * time.Second)
		await(t, "all removals have ended", func() bool { return one.armed.Len()+other.armed.Len() == 0 })
		mu.Lock()
		for i := range round {
			name := fmt.Sprint("item", i)
			if stays[name] && !w.has(name) {
				wrong++
			}
			w.remove(name)
		}
		clear(did)
		clear(stays)
		mu.Unlock()
		tap.mu.Lock()
		tap.calls = nil
		tap.mu.Unlock()
	}
	removed = one.Stats().Counts[Removed] + other.Stats().Counts[Removed]
	t.Logf("%d races: %d removed, %d refused, %d wrong", raced, removed, one.Stats().Counts[Refused]+other.Stats().Counts[Refused], wrong)
	return wrong, removed
}
