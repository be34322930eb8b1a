package trigger_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"pgregory.net/rapid"

	"github.com/mayflydb/mayfly"
	"github.com/mayflydb/mayfly/internal/work/deliver"
	"github.com/mayflydb/mayfly/internal/work/lease"
	"github.com/mayflydb/mayfly/internal/work/trigger"
	"github.com/mayflydb/mayfly/target"
)

// moody is a target that fails at random, and always for some records. It remembers the accepted
// records in their order.
type moody struct {
	partial bool
	poison  map[int]bool
	mu      struct {
		sync.Mutex
		random *rand.Rand
		took   []int // values
	}
}

func valuesOf(e events.DynamoDBEvent) (all []int) {
	for _, r := range e.Records {
		v, _ := strconv.Atoi(r.Change.NewImage["v"].Number())
		all = append(all, v)
	}
	return all
}

func (m *moody) Invoke(_ context.Context, d target.Delivery) ([]byte, error) {
	var e events.DynamoDBEvent
	if err := json.Unmarshal(d.Body, &e); err != nil {
		return nil, target.Permanent("BadEvent", err.Error())
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	all := valuesOf(e)
	bad := slices.IndexFunc(all, func(v int) bool { return m.poison[v] })
	switch n := m.mu.random.IntN(10); {
	case n == 0:
		return nil, &target.Error{Code: "TooManyRequestsException", Throttled: true}
	case n == 1:
		return nil, errors.New("connection refused")
	case n == 2 && bad < 0 && !m.partial:
		return nil, failed("no luck")
	case n <= 4 && m.partial && bad < 0:
		bad = m.mu.random.IntN(len(all))
	}
	if bad < 0 {
		m.mu.took = append(m.mu.took, all...)
		return nil, nil
	}
	if !m.partial {
		return nil, failed("poison")
	}
	m.mu.took = append(m.mu.took, all[:bad]...)
	return []byte(fmt.Sprintf(`{"batchItemFailures":[{"itemIdentifier":%q}]}`, e.Records[bad].Change.SequenceNumber)), nil
}

func (m *moody) Deliver(ctx context.Context, deliveries []target.Delivery) []error {
	results := make([]error, len(deliveries))
	for i, d := range deliveries {
		_, results[i] = m.Invoke(ctx, d)
	}
	return results
}

// taken returns the values in the order in which they were first accepted.
func (m *moody) taken() (all []int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	seen := map[int]bool{}
	for _, v := range m.mu.took {
		if !seen[v] {
			seen[v] = true
			all = append(all, v)
		}
	}
	return all
}

// letters returns the dead letters.
func (w *world) letters() (all []deliver.DeadLetter) {
	for from, more := "", true; more; more = from != "" {
		page, next, err := deliver.ListDeadLetters(context.Background(), w.DynamoDB(), deliver.DeadLetterFilter{}, 100, from)
		must(w.t, err)
		for _, letter := range page {
			whole, _, err := deliver.GetDeadLetter(context.Background(), w.DynamoDB(), letter.ID)
			must(w.t, err)
			all = append(all, whole)
		}
		from = next
	}
	return all
}

// dead returns the values of records in dead letters.
func (w *world) dead() map[int]bool {
	dead := map[int]bool{}
	for _, letter := range w.letters() {
		var e events.DynamoDBEvent
		if err := json.Unmarshal(letter.Body, &e); err != nil {
			w.t.Errorf("a dead letter without records: %s", letter.Body)
		}
		for _, v := range valuesOf(e) {
			dead[v] = true
		}
	}
	return dead
}

// DeliveredAtLeastOnce: despite failures and restarts of the worker, every matching record is
// accepted by the target or becomes a dead letter. With order, the records of a key are accepted in
// their order.
func TestDeliveredAtLeastOnce(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		w := newWorld(t)
		w.table("things")
		s := trigger.Spec{
			Name: "law", Table: "things", Target: arnFunction, Batch: rapid.IntRange(1, 8).Draw(r, "batch"), Parallel: rapid.IntRange(1, 4).Draw(r, "parallel"),
			Order: rapid.SampledFrom([]string{"key", "none"}).Draw(r, "order"), Per: rapid.SampledFrom([]string{"batch", "record"}).Draw(r, "per"),
			Retries: new(rapid.IntRange(0, 3).Draw(r, "retries")), Filter: []string{`{"dynamodb": {"NewImage": {"v": {"N": [{"anything-but": {"suffix": "0"}}]}}}}`},
		}
		s.Partial = s.Per == "batch" && s.Order == "key" && rapid.Bool().Draw(r, "partial")
		s.Bisect = s.Per == "batch" && s.Order == "key" && rapid.Bool().Draw(r, "bisect")
		keys := map[int]string{}
		to := &moody{partial: s.Partial, poison: map[int]bool{}}
		to.mu.random = rand.New(rand.NewPCG(rapid.Uint64().Draw(r, "seed"), 0))
		n := rapid.IntRange(1, 60).Draw(r, "records")
		for v := range n {
			keys[v] = rapid.SampledFrom([]string{"a", "b", "c", "d"}).Draw(r, "key")
			to.poison[v] = rapid.IntRange(0, 15).Draw(r, "poison") == 0
		}
		if rapid.Bool().Draw(r, "function") {
			w.to(arnFunction, to, target.Limits{Batch: rapid.IntRange(1, 5).Draw(r, "limit")})
		} else {
			s.Partial, to.partial = false, false
			w.to(arnFunction, plain{to}, target.Limits{Batch: rapid.IntRange(1, 5).Draw(r, "limit")})
		}
		stop := w.run(s)
		for v := range n {
			w.put("things", keys[v], 0, v)
			if rapid.IntRange(0, 30).Draw(r, "stop") == 0 {
				stop()
				stop = w.run(s)
			}
		}
		settled := func() bool {
			dead, taken := w.dead(), to.taken()
			for v := range n {
				if v%10 != 0 && !dead[v] && !slices.Contains(taken, v) {
					return false
				}
			}
			return true
		}
		await(t, "every record is taken or dead", settled, func() any { return fmt.Sprint(s, w.dead(), to.taken()) })
		stop()
		dead, taken := w.dead(), to.taken()
		for i, v := range taken {
			if v%10 == 0 {
				r.Fatalf("%d does not match the filter, and was taken", v)
			}
			for earlier := range v {
				if s.Order == "key" && keys[earlier] == keys[v] && earlier%10 != 0 && !dead[earlier] && !slices.Contains(taken[:i], earlier) {
					r.Fatalf("%d was taken before %d of the same key: %v, dead %v", v, earlier, taken, dead)
				}
			}
		}
	})
}

// plain hides that a target can answer.
type plain struct{ target.Target }

// Several workers share the shards of a trigger, keep the order of each key, and take over from a
// stopped one.
func TestWorkers(t *testing.T) {
	w := newWorldOf(t, mayfly.Options{Shards: 4})
	w.table("things")
	to := &moody{poison: map[int]bool{}}
	to.mu.random = rand.New(rand.NewPCG(1, 2))
	w.to(arnFunction, to, target.Limits{})
	w.options.Leases = lease.Options{Duration: 200 * time.Millisecond}
	s := trigger.Spec{Name: "shared", Table: "things", Target: arnFunction, Batch: 3, Parallel: 2, Partial: true}
	stops := []func(){w.run(s), w.run(s), w.run(s)}
	const n, keys = 300, 17
	for v := range n {
		w.put("things", fmt.Sprint("key", v%keys), 0, v)
		if v%100 == 50 {
			stops[v/100]()
			stops[v/100] = w.run(s)
		}
	}
	await(t, "all are taken", func() bool { return len(to.taken()) == n }, func() any { return len(to.taken()) })
	last := map[int]int{}
	for _, v := range to.taken() {
		if before, ok := last[v%keys]; ok && before > v {
			t.Errorf("%d came before %d", before, v)
		}
		last[v%keys] = v
	}
}
