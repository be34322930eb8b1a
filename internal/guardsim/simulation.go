package guardsim

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/mayflydb/mayfly"
	"github.com/mayflydb/mayfly/guard"
	"github.com/mayflydb/mayfly/internal/clock"
	"github.com/mayflydb/mayfly/planner"
)

// simulation is one run. Its measured window begins when the first item is due.
type simulation struct {
	o          Options
	workers    []*worker
	share      float64 // of the fleet
	partitions int     // of mayfly.deadlines
	units      float64 // write units of an item
	entry      float64 // of its entry in the index
	due        int     // items whose deadlines are in the window or before it
	saves      float64 // what the checkpoint of a shard counts as: see [simulation.own]
	store      dynamodb.HTTPClient

	start   time.Time
	elapsed clock.Elapsed
	settled time.Time // when each worker has its share
	begin   time.Time // of the window
	end     time.Time
	done    atomic.Uint64 // the part that is done, as bits

	mu       sync.Mutex
	items    *items
	written  int // items that users have written
	table    partitions
	index    []*meter // of the index's shards; nil: there is no index
	keys     map[string]*meter
	leaseKey float64 // read units a second of the key of all leases
	listings *meter
	latest   []time.Duration // lateness by item; -1: it is there

	early, again, gone              int
	calls                           float64 // GetRecords
	deletes, indexWrites, ownWrites float64 // write units
	reads, leaseReads               float64 // read units; of the leases since the workers have settled
	rows                            float64 // written into mayfly.deadlines, less the deleted ones
	fault                           time.Time
	recovered                       time.Duration // from the fault to the last late removal
}

// recoveredLate is from which lateness on a removal counts as one of a fleet that has not recovered.
const recoveredLate = 2 * time.Second

func newSimulation(o Options) *simulation {
	n := o.share()
	return &simulation{o: o, workers: make([]*worker, n), share: float64(n) / float64(o.Plan.Useful()), units: planner.WriteUnits(o.Load.ItemBytes, false), entry: o.Load.EntryUnits(), keys: map[string]*meter{}}
}

// now is the time in the bubble.
func (s *simulation) now() time.Time { return s.start.Add(s.elapsed()) }

// measures reports whether it is the measured window.
func (s *simulation) measures() bool {
	now := s.now()
	return !now.Before(s.begin) && now.Before(s.end)
}

// count adds to a counter in the measured window.
func (s *simulation) count(counter *float64, n float64) {
	if s.measures() {
		*counter += n
	}
}

// scaled returns how many shards or partitions are simulated. It rounds their number, and returns the
// factor that makes up for it: each one's limit is multiplied by it.
func scaled(all int, share float64) (n int, factor float64) {
	exact := float64(all) * share
	n = max(int(math.Round(exact)), 1)
	return n, exact / float64(n)
}

// prepare makes the endpoint. It runs in the bubble.
func (s *simulation) prepare() (*mayfly.DB, error) {
	s.start, s.elapsed = clock.New().Now(), clock.Stopwatch()
	db, err := mayfly.Open("", mayfly.Options{DatabaseOnly: true})
	if err != nil {
		return nil, err
	}
	s.store = db.DynamoDB().Options().HTTPClient
	lease := s.o.Plan.Lease
	settle := 4*lease + 20*time.Second // until each worker has its share
	lead, runIn := s.o.lead(), s.o.runIn()
	s.begin = s.start.Add(settle + lead + runIn).Truncate(time.Second)
	s.settled, s.end = s.start.Add(settle), s.begin.Add(s.o.For)
	rate := s.o.Load.Expirations * s.share
	s.items = newItems(s.begin.Add(-runIn), rate, s.o.For+runIn, lead, s.o.Whole)
	s.due = s.items.due
	s.latest = make([]time.Duration, s.due)
	for i := range s.latest {
		s.latest[i] = -1
	}
	l := s.o.limits
	shards, indexShards := s.o.shards()
	roots, factor := scaled(shards, s.share)
	pace := func(shards int) float64 { return max(0.05, 0.002*float64(shards)) } // seconds: internal/work/consume
	s.saves = pace(roots) / pace(shards)
	s.table.byID = map[string]*shard{}
	s.table.make = func(parent *shard) *shard {
		now := s.now()
		return &shard{born: now, writes: newMeter(l.partitionWrites*factor, now), bytes: newMeter(l.shardBytes*factor, now), calls: newMeter(l.shardCalls, now)}
	}
	for range roots {
		s.table.roots = append(s.table.roots, s.table.add(nil))
	}
	s.listings = newMeter(l.listings*max(s.share, 0.2), s.start)
	s.leaseKey = l.keyReads * s.share * s.share
	if s.o.Plan.Strategy == "index" {
		n, factor := scaled(indexShards, s.share)
		for range n {
			s.index = append(s.index, newMeter(l.indexWrites*factor, s.start))
		}
	} else {
		s.partitions = 1 << bits.Len(uint(math.Ceil(float64(s.o.Plan.Partitions)*s.share))-1)
	}
	return db, nil
}

// key returns the meter of a partition key of one of guard's own tables.
func (s *simulation) key(table, key string) *meter {
	m := s.keys[table+" "+key]
	if m == nil {
		rate := s.o.limits.keyWrites * s.share // the rows of all workers' leases have one key
		if table != guard.LeasesTable {
			rate = s.o.limits.keyWrites * float64(s.o.Plan.Partitions) * s.share / float64(max(s.partitions, 1))
		}
		m = newMeter(rate, s.now())
		s.keys[table+" "+key] = m
	}
	return m
}

// late notes that a worker has got the answer to the removal of an item.
func (s *simulation) late(i int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	late := time.Duration(now.UnixMilli()-s.items.at(i)) * time.Millisecond
	if i < s.due && s.items.at(i) >= s.begin.UnixMilli() {
		s.latest[i] = late
	}
	if late > recoveredLate && !s.fault.IsZero() && now.After(s.fault) {
		s.recovered = max(s.recovered, now.Sub(s.fault))
	}
}

// run runs the simulation in the bubble. A worker that ends by itself is an error.
func (s *simulation) run(ctx context.Context) (err error) {
	db, err := s.prepare()
	if err != nil {
		return err
	}
	defer func() {
		for _, w := range s.workers {
			if w != nil {
				w.stop()
				<-w.over
			}
		}
		if closed := db.Close(); err == nil {
			err = closed
		}
	}()
	for i := range s.workers {
		w, err := s.newWorker(i)
		if err != nil {
			return err
		}
		w.start()
		s.workers[i] = w
	}
	faults := s.faults()
	limit := s.end.Add(s.patience())
	for now := s.now(); now.Before(limit); now = s.now() {
		if ctx.Err() != nil {
			return nil
		}
		if err := s.ended(); err != nil {
			return err
		}
		if s.measures() {
			s.sample()
		}
		if len(faults) > 0 && !now.Before(faults[0].at) {
			faults[0].happen()
			faults = faults[1:]
		}
		s.mu.Lock()
		gone := s.gone
		s.write(now)
		s.mu.Unlock()
		if gone == s.due && !now.Before(s.end) {
			break
		}
		s.progress(now, gone)
		clock.Pause(250*time.Millisecond, nil)
	}
	return nil
}

// patience is how long after the window the last item may be removed.
func (s *simulation) patience() time.Duration {
	return 5*time.Minute + 4*s.o.Plan.Lease + s.o.Pause
}

// ended returns an error if a worker has ended that was not killed.
func (s *simulation) ended() error {
	for i, w := range s.workers {
		select {
		case <-w.over:
			if !w.isDead() {
				return fmt.Errorf("worker %d has ended: %w", i, w.err)
			}
		default:
		}
	}
	return nil
}

// sample notes how much is in the workers' memory.
func (s *simulation) sample() {
	for _, w := range s.workers {
		if !w.isDead() {
			w.armed = max(w.armed, w.guard.Stats().Armed)
		}
	}
}

// fault is something that happens in the run.
type fault struct {
	at     time.Time
	happen func()
}

// faults returns the faults by time: at a third of the window, and at the second one.
func (s *simulation) faults() (all []fault) {
	if !s.o.faulty() {
		return nil
	}
	third := s.begin.Add(s.o.For / 3)
	var slow []*shard
	add := func(at time.Time, happen func()) { all = append(all, fault{at, happen}) }
	add(third, func() {
		s.mu.Lock()
		s.fault = s.now()
		s.mu.Unlock()
		for _, w := range s.workers[:s.o.lost()] {
			w.kill()
		}
		if s.o.Pause > 0 {
			s.workers[0].pause(s.o.Pause)
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.o.Reshard {
			for _, at := range s.table.open() {
				s.table.split(at)
			}
		}
		open := s.table.open()
		slow = open[:int(math.Ceil(s.o.Throttle*float64(len(open))))]
		s.throttle(slow, 0.1)
	})
	add(s.begin.Add(s.o.For*2/3), func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.throttle(slow, 10)
	})
	return all
}

// throttle multiplies the units of some partitions.
func (s *simulation) throttle(some []*shard, by float64) {
	now := s.now()
	for _, at := range some {
		at.writes.refill(now)
		at.writes.rate *= by
		at.writes.have = min(at.writes.have, at.writes.rate)
	}
}

// progress notes the part that is done: by time, and after the window by removals.
func (s *simulation) progress(now time.Time, gone int) {
	part := min(max(now.Sub(s.start).Seconds()/s.end.Sub(s.start).Seconds(), 0), 1)*0.3 + 0.7*float64(gone)/float64(max(s.due, 1))
	s.done.Store(math.Float64bits(part))
}

// reportProgress reports the progress in real time, outside of the bubble.
func (s *simulation) reportProgress(ctx context.Context) (stop func()) {
	if s.o.Progress == nil {
		return func() {}
	}
	over, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			clock.Pause(500*time.Millisecond, over)
			select {
			case <-over:
				return
			default:
				s.o.Progress(math.Float64frombits(s.done.Load()))
			}
		}
	}()
	return func() {
		close(over)
		<-ended
	}
}

// quantile returns a quantile of sorted durations.
func quantile(sorted []time.Duration, q float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[min(int(math.Ceil(q*float64(len(sorted))))-1, len(sorted)-1)]
}

// outcome returns the figures of the run, for the whole fleet.
func (s *simulation) outcome() *planner.GuardOutcome {
	span, whole := s.o.For.Seconds(), 1/s.share
	o := &planner.GuardOutcome{
		Strategy: s.o.Plan.Strategy, Fleet: s.o.Plan.Workers, Useful: s.o.Plan.Useful(), Workers: len(s.workers), Died: s.o.lost(), Partitions: s.partitions, IndexShards: len(s.index), StreamShards: len(s.table.roots),
		For: s.o.For, Whole: s.o.Whole, Due: s.due - s.items.from(s.begin.UnixMilli()), Early: s.early, Lost: s.items.left(), Again: s.again, Recovered: s.recovered,
	}
	var late []time.Duration
	for _, l := range s.latest {
		if l >= 0 {
			late = append(late, l)
		}
	}
	slices.Sort(late)
	o.P50, o.P99, o.Max = quantile(late, 0.5), quantile(late, 0.99), quantile(late, 1)
	var worked time.Duration
	lived := 0
	for _, w := range s.workers {
		if !w.mu.dead {
			worked += w.mu.worked
			lived++
		}
		o.Armed, o.InFlight = max(o.Armed, w.armed), max(o.InFlight, w.inFlight)
	}
	// the rows of removals are deleted when there is little else to do
	o.Owed = max(s.rows, 0)
	owed := o.Owed / s.o.limits.records / span / float64(max(lived, 1))
	o.Busy = worked.Seconds()/span/float64(max(lived, 1)) + owed
	o.WriteUnits = (s.deletes + s.indexWrites + s.ownWrites + o.Owed) / span * whole
	o.ReadUnits = s.reads/span*whole + s.leaseReads/s.end.Sub(s.settled).Seconds()*whole*whole
	if every := s.o.Plan.Lease + s.o.Plan.Lease/4; s.index == nil && s.o.For < every {
		o.Polled = every // the owners' reads are of another time
	}
	o.StreamCalls = s.calls / span * whole
	o.Price(s.o.Plan, s.o.Load, s.o.Prices)
	o.Limits = s.limits(span, owed)
	o.Limits = append(o.Limits, planner.GuardLimit{Name: "memory of a worker", Use: o.MemoryBytes / s.o.limits.memory})
	slices.SortStableFunc(o.Limits, func(a, b planner.GuardLimit) int { return cmp.Compare(b.Use, a.Use) })
	return o
}

// limits returns how much of each limit was used, but for the memory. owed is work that each worker has
// put off, as a part of its time.
func (s *simulation) limits(span, owed float64) []planner.GuardLimit {
	var all []planner.GuardLimit
	add := func(name string, use, refused float64) {
		all = append(all, planner.GuardLimit{Name: name, Use: use, Refused: refused})
	}
	most := func(name string, meters []*meter) {
		use, refused := 0.0, 0.0
		for _, m := range meters {
			use, refused = max(use, m.used/span/m.rate), max(refused, float64(m.refused)/float64(max(m.taken+m.refused, 1)))
		}
		if len(meters) > 0 {
			add(name, use, refused)
		}
	}
	var writes, bytes, calls, rows, leases []*meter
	for _, at := range s.table.all {
		writes, bytes, calls = append(writes, at.writes), append(bytes, at.bytes), append(calls, at.calls)
	}
	for name, m := range s.keys {
		if strings.HasPrefix(name, guard.LeasesTable+" ") {
			leases = append(leases, m)
		} else {
			rows = append(rows, m)
		}
	}
	busiest := 0.0
	for _, w := range s.workers {
		busiest = max(busiest, w.mu.worked.Seconds()/span)
	}
	add("processor of a worker", busiest+owed, 0)
	most("write units of a partition of the table", writes)
	if s.index == nil {
		most("bytes of a shard", bytes)
		most("GetRecords calls of a shard", calls)
		most("write units of a key of mayfly.deadlines", rows)
		most("DescribeStream calls", []*meter{s.listings})
	}
	most("write units of a shard of the index", s.index)
	most("write units of the leases", leases)
	add("read units of the leases", s.leaseReads/s.end.Sub(s.settled).Seconds()/s.leaseKey, 0)
	return all
}
