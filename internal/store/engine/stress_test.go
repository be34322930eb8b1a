package engine

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mayflydb/mayfly/internal/store/dynamo"
)

// settleBriefly lets other goroutines run.
func settleBriefly() {
	for range 5 {
		runtime.Gosched()
	}
}

// stress is writers, readers, a reaper and stream readers on few keys.
type stress struct {
	*db
	tab *Table
	// of items; ascending in each key's commit order, because Decide assigns them under the key's
	// lock
	versions atomic.Int64
	done     chan struct{}
}

const stressKeys = 4

func stressKey(n int) dynamo.Item { return item("pk", fmt.Sprint("k", n), "sk", 1) }

// over reports whether the workers must end.
func (s *stress) over() bool {
	select {
	case <-s.done:
		return true
	default:
		return false
	}
}

// version writes the next version of a key, with a deadline soon, late or never.
func (s *stress) version(random *rand.Rand, n int) *Write {
	key := stressKey(n)
	ttl := random.IntN(6)
	return &Write{Table: s.tab, Key: keyOf(s.t, s.tab, key), ReadOld: true, Decide: func(_ dynamo.Item, now Instant) (dynamo.Item, error) {
		it := key.With("v", number(fmt.Sprint(s.versions.Add(1)))).With("g", dynamo.AppendString(nil, "g"))
		if ttl < 3 {
			at := now + Instant(ttl*7)
			it = it.With("ttl", number(fmt.Sprintf("%d.%03d", at/1000, at%1000)))
		}
		return it, nil
	}}
}

// write is one writer.
func (s *stress) write(seed uint64, ops int) {
	random := rand.New(rand.NewPCG(seed, seed))
	ctx := context.Background()
	for range ops {
		var err error
		switch n := random.IntN(stressKeys); random.IntN(6) {
		case 0:
			err = s.Write(ctx, unset(s.t, s.tab, stressKey(n)))
		case 1: // two twins, always written together, and never expiring
			v := fmt.Sprint(s.versions.Add(1))
			err = s.Write(ctx, set(s.t, s.tab, item("pk", "twin a", "sk", 1, "v", v)), set(s.t, s.tab, item("pk", "twin b", "sk", 1, "v", v)))
		case 2: // many keys, in any order
			err = s.Write(ctx, s.version(random, (n+2)%stressKeys), s.version(random, n), s.version(random, (n+1)%stressKeys))
		default:
			err = s.Write(ctx, s.version(random, n))
		}
		if err != nil {
			s.t.Error(err)
			return
		}
	}
}

// read is one reader: versions do not go back, a removed item does not return unchanged, and twins
// are equal.
func (s *stress) read(seed uint64) {
	random := rand.New(rand.NewPCG(seed, seed))
	ctx := context.Background()
	var last [stressKeys]int
	var gone [stressKeys]bool
	for !s.over() {
		n := random.IntN(stressKeys)
		var it, a, b dynamo.Item
		err := s.ReadSnapshot(ctx, func(v *View) (err error) {
			for key, into := range map[string]*dynamo.Item{"twin a": &a, "twin b": &b, fmt.Sprint("k", n): &it} {
				if *into, _, err = v.Get(s.tab, keyOf(s.t, s.tab, item("pk", key, "sk", 1))); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			s.t.Error(err)
			return
		}
		if random.IntN(3) == 0 {
			it = s.get(s.tab, stressKey(n))
		}
		if (a == nil) != (b == nil) || !dynamo.Equal(a.Get("v"), b.Get("v")) {
			s.t.Errorf("one snapshot shows %v and %v", a, b)
		}
		v := valueOf(it)
		if it != nil && (v < last[n] || v == last[n] && gone[n]) {
			s.t.Errorf("k%d was at version %d (gone: %v), and now it is at %d", n, last[n], gone[n], v)
		}
		gone[n] = it == nil
		if it != nil {
			last[n] = v
		}
	}
}

// scan is a reader of ranges: no key occurs twice, and every index entry matches its key.
func (s *stress) scan() {
	ix := s.tab.Desc().Index("byG")
	for i := 0; !s.over(); i++ {
		r := Range{}
		if i%2 == 1 && ix != nil {
			r = Range{Index: ix, Partition: []dynamo.Value{dynamo.AppendString(nil, "g")}}
		}
		seen := map[string]bool{}
		for _, it := range s.items(s.tab, r) {
			key := s.tab.Desc().Key.pick(it).String()
			if seen[key] {
				s.t.Errorf("%s occurs twice in one range", key)
			}
			seen[key] = true
		}
	}
}

// follow is a consumer of the stream that waits for records, shard after shard, parents first,
// until the stream has ended.
func (s *stress) follow(slot int, into *[]Record) {
	no := s.stream(s.tab).Shards[slot].No
	for no != 0 {
		for from := uint64(1); ; {
			page, err := s.Records(context.Background(), s.stream(s.tab).ID, no, from, 50, 1<<20, time.Minute)
			if err != nil {
				s.t.Error(err)
				return
			}
			*into = append(*into, page.Records...)
			if from = page.Next; page.End {
				break
			}
		}
		next := uint32(0)
		for _, sh := range s.stream(s.tab).Shards {
			if sh.Parent == no {
				next = sh.No
			}
		}
		no = next
	}
}

// Writers, readers, a reaper and consumers work on few keys, with a clock that moves: readers never
// see a key go back, consumers see every change of a key once and in order, and in the end all
// parts agree.
func TestStress(t *testing.T) {
	eachShape(t, Expiry{}, testStress)
}

func testStress(t *testing.T, sh shape) {
	const slots, writers = 2, 6
	ops := 400
	if testing.Short() || raceEnabled {
		ops = 100
	}
	d := openMemory(t, func(o *Options) { o.StreamShards, o.ShardBytes = slots, 4<<10 })
	s := &stress{db: d, tab: d.table("events", sh.shape), done: make(chan struct{})}
	var working, reading sync.WaitGroup
	var followed [slots][]Record
	for slot := range slots {
		if sh.view == "" {
			break
		}
		reading.Go(func() { s.follow(slot, &followed[slot]) })
	}
	for i := range 2 {
		reading.Go(func() { s.read(uint64(i)) })
	}
	reading.Go(s.scan)
	reading.Go(func() {
		for !s.over() {
			if err := d.clock.Advance(time.Millisecond); err != nil {
				t.Error(err)
			}
			settleBriefly()
		}
	})
	reading.Go(func() {
		for !s.over() {
			s.prepare(s.tab, d.Now())
			settleBriefly()
		}
	})
	for w := range writers {
		working.Go(func() { s.write(uint64(w), ops) })
	}
	working.Wait()
	close(s.done)
	d.advance(time.Second)
	var all []Record
	if sh.view != "" {
		all = d.records(s.tab)
		alterStream(t, d, s.tab, "")
	}
	reading.Wait()
	d.verify()

	var live []Record
	for _, rs := range followed {
		live = append(live, rs...)
	}
	if len(live) != len(all) {
		t.Errorf("consumers saw %d records of %d", len(live), len(all))
	}
	wantLives(t, live, sh)
	for _, it := range d.items(s.tab, Range{}) {
		if it.Get("ttl") != nil {
			t.Errorf("%v is there after its deadline", it)
		}
	}
}

// wantLives checks that each key's records follow on each other: every change begins with the state
// that its predecessor left, as far as the stream's view shows.
func wantLives(t testing.TB, rs []Record, s shape) {
	t.Helper()
	there := map[string]dynamo.Item{}
	for _, r := range rs {
		key := r.Keys.String()
		before := there[key]
		want := Modify
		switch {
		case before == nil:
			want = Insert
		case r.Event == Remove:
			want = Remove
		}
		if r.Event != want || s.hasOld() && r.Old.String() != before.String() {
			t.Errorf("%s: record %d is event %d with old image %v behind %v", key, r.Seq, r.Event, r.Old, before)
			return
		}
		if r.Service && r.Event != Remove || s.hasOld() && (r.Old == nil) != (r.Event == Insert) || s.view != "KEYS_ONLY" && (r.New == nil) != (r.Event == Remove) {
			t.Errorf("%s: record %+v", key, r)
		}
		switch there[key] = r.New; {
		case r.Event == Remove:
			delete(there, key)
		case r.New == nil:
			there[key] = r.Keys
		}
	}
}

// wantChains is wantLives for a stream with both images.
func wantChains(t testing.TB, rs []Record) {
	t.Helper()
	wantLives(t, rs, shape{view: "NEW_AND_OLD_IMAGES"})
}

// Tables are created, changed and dropped while other calls use the existing ones.
func TestStressCatalogue(t *testing.T) {
	d := openMemory(t)
	done := make(chan struct{})
	var using sync.WaitGroup
	for range 2 {
		using.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-done:
					return
				default:
				}
				for _, tab := range d.Tables() {
					w := set(t, tab, item("pk", "a", "sk", i%3, "g", "x", "v", i, "ttl", unix(time.Duration(i%3)*time.Second)))
					if err := d.Write(context.Background(), w); err != nil && !errors.Is(err, ErrTableNotFound) {
						t.Error(err)
					}
				}
				if _, err := d.Streams(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	ctx := context.Background()
	for i := range 40 {
		name := fmt.Sprint("t", i%5)
		if i >= 5 {
			if _, err := d.DropTable(ctx, "default", name, nil); err != nil {
				t.Fatal(err)
			}
		}
		d.table(name)
		d.setTTL(fmt.Sprint("t", i%5), []string{"ttl", "other", ""}[i%3])
		if err := d.clock.Advance(100 * time.Millisecond); err != nil {
			t.Fatal(err)
		}
	}
	close(done)
	using.Wait()
	d.advance(time.Minute)
	d.verify()
}
