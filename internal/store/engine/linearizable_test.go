package engine

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/mayflydb/mayfly/internal/invariant"
	"github.com/mayflydb/mayfly/internal/store/dynamo"
)

// keyOp is an operation on one key: a read and perhaps a put.
type keyOp struct {
	key      string
	begun    Instant // the clock when it was called
	deadline Instant // of the value to put
	put      int     // the value to put; 0: none
}

// keyAnswer is the result of an operation.
type keyAnswer struct {
	ended Instant // the clock when it returned
	seen  int     // the previous value; 0: none
	done  bool    // the put happened
}

// keyState is the state of a key, as far as operations have shown it.
type keyState struct {
	value    int     // 0: nothing
	deadline Instant // the value is gone from here on
	now      Instant // the present instant is at least this
}

// expiringKey is the sequential model of one key with a deadline, under a clock that moves while
// operations run: an operation takes effect at one instant between its call and its return, and
// from the deadline on the item does not exist.
var expiringKey = porcupine.Model{
	Partition: func(history []porcupine.Operation) (out [][]porcupine.Operation) {
		byKey := map[string][]porcupine.Operation{}
		for _, op := range history {
			key := op.Input.(keyOp).key
			byKey[key] = append(byKey[key], op)
		}
		for _, ops := range byKey {
			out = append(out, ops)
		}
		return out
	},
	Init: func() any { return keyState{now: minInstant} },
	Step: func(state, input, output any) (bool, any) {
		s, in, out := state.(keyState), input.(keyOp), output.(keyAnswer)
		s.now = max(s.now, in.begun)
		switch {
		case s.now > out.ended: // an operation before it happened after it had returned
			return false, s
		case out.seen != 0 && (out.seen != s.value || s.deadline <= s.now):
			return false, s
		case out.seen == 0 && s.value != 0:
			if s.deadline > out.ended {
				return false, s
			}
			s.now = max(s.now, s.deadline)
			s.value = 0
		}
		if out.done && in.put != 0 {
			s.value, s.deadline = in.put, in.deadline
		}
		return true, s
	},
}

// TestStrictlyGoneLinearizable: gets, puts and conditional puts of single keys are linearizable,
// including their expiry, while the clock moves and the reaper works.
func TestStrictlyGoneLinearizable(t *testing.T) {
	holds(t, func(t testing.TB) {
		rounds := 20
		if testing.Short() || raceEnabled {
			rounds = 6
		}
		expired := 0
		for round := range rounds {
			d := openMemory(t, func(o *Options) { o.StreamShards = 1 })
			history := expiringHistory(d, uint64(round), shapes[round%len(shapes)])
			d.close()
			switch porcupine.CheckOperationsTimeout(expiringKey, history, time.Minute) {
			case porcupine.Illegal:
				t.Fatalf("round %d: the history of %d operations has no order", round, len(history))
			case porcupine.Unknown:
				t.Fatalf("round %d: a minute was not enough to order %d operations", round, len(history))
			}
			expired += countExpired(history)
		}
		if expired < 5*rounds {
			t.Errorf("too mild: in %d rounds %d operations found that an item had expired", rounds, expired)
		}
	}, invariant.ShowExpired, invariant.FireEarly)
}

// An expiry that an operation saw before the deadline is noticed, also if a longer one saw it too.
func TestExpiringKeyNoticesEarly(t *testing.T) {
	short := porcupine.Operation{Input: keyOp{key: "k", deadline: 100, put: 1}, Return: 10, Output: keyAnswer{ended: 10, done: true}}
	get := func(call, ret int64) porcupine.Operation {
		return porcupine.Operation{Input: keyOp{key: "k", begun: Instant(call)}, Call: call, Return: ret, Output: keyAnswer{ended: Instant(ret)}}
	}
	for _, c := range []struct {
		ops   []porcupine.Operation
		right bool
	}{
		{[]porcupine.Operation{short, get(20, 110)}, true},
		{[]porcupine.Operation{short, get(20, 60)}, false},
		{[]porcupine.Operation{short, get(20, 110), get(20, 60)}, false},
	} {
		if got := porcupine.CheckOperations(expiringKey, c.ops); got != c.right {
			t.Errorf("%+v: %t, want %t", c.ops, got, c.right)
		}
	}
}

// countExpired counts the operations that found nothing under a key that was put and never deleted.
func countExpired(history []porcupine.Operation) (n int) {
	put := map[string]int64{} // when the first put of a key returned
	for _, op := range history {
		in, out := op.Input.(keyOp), op.Output.(keyAnswer)
		if at, known := put[in.key]; out.done && in.put != 0 && (!known || op.Return < at) {
			put[in.key] = op.Return
		}
	}
	for _, op := range history {
		at, known := put[op.Input.(keyOp).key]
		if known && op.Call > at && op.Output.(keyAnswer).seen == 0 {
			n++
		}
	}
	return n
}

// expiringHistory returns the operations of a few clients on two keys while the clock moves.
func expiringHistory(d *db, seed uint64, s shape) (history []porcupine.Operation) {
	tab := d.table("events", s.shape)
	const clients, ops = 5, 60
	var (
		mu      sync.Mutex
		order   atomic.Int64 // orders calls and returns
		values  atomic.Int64
		done    = make(chan struct{})
		working sync.WaitGroup
		moving  sync.WaitGroup
	)
	moving.Go(func() {
		random := rand.New(rand.NewPCG(seed, 1000))
		for {
			select {
			case <-done:
				return
			default:
				if err := d.clock.Advance(time.Duration(random.IntN(3)) * time.Millisecond); err != nil {
					d.t.Error(err)
					return
				}
				settleBriefly()
			}
		}
	})
	for client := range clients {
		working.Go(func() {
			random := rand.New(rand.NewPCG(seed, uint64(client)))
			for range ops {
				in := keyOp{key: fmt.Sprint("k", random.IntN(2))}
				call := order.Add(1)
				in.begun = d.Now()
				var out keyAnswer
				switch random.IntN(5) {
				case 0, 1:
					out = d.look(tab, in)
				case 2:
					in.put, in.deadline = int(values.Add(1)), in.begun+Instant(random.IntN(40))
					out = d.replace(tab, in, -1)
				default: // conditional on no item, or on one of the last values
					in.put, in.deadline = int(values.Add(1)), in.begun+Instant(random.IntN(40))
					out = d.replace(tab, in, max(0, in.put-random.IntN(2*clients)))
				}
				out.ended = d.Now()
				mu.Lock()
				history = append(history, porcupine.Operation{ClientId: client, Input: in, Call: call, Output: out, Return: order.Add(1)})
				mu.Unlock()
			}
		})
	}
	working.Wait()
	close(done)
	moving.Wait()
	return history
}

// look reads a key.
func (d *db) look(tab *Table, in keyOp) keyAnswer {
	return keyAnswer{seen: valueOf(d.get(tab, item("pk", in.key, "sk", 1)))}
}

// replace puts a key if its value is expect (0: none, -1: any).
func (d *db) replace(tab *Table, in keyOp, expect int) (out keyAnswer) {
	seconds := fmt.Sprintf("%d.%03d", in.deadline/1000, in.deadline%1000)
	it := item("pk", in.key, "sk", 1, "v", in.put).With("ttl", number(seconds))
	no := errors.New("no")
	w := &Write{Table: tab, Key: keyOf(d.t, tab, it), ReadOld: true, Decide: func(old dynamo.Item, _ Instant) (dynamo.Item, error) {
		out.seen = valueOf(old)
		if expect >= 0 && out.seen != expect {
			return nil, no
		}
		return it, nil
	}}
	err := d.Write(context.Background(), w)
	if err != nil && !errors.Is(err, ErrRefused) {
		d.t.Error(err)
	}
	out.done = err == nil
	return out
}

// valueOf returns the value of an item, or 0 for none.
func valueOf(it dynamo.Item) int {
	if it == nil {
		return 0
	}
	v, err := strconv.Atoi(it.Get("v").Number().String())
	if err != nil {
		panic(err)
	}
	return v
}
