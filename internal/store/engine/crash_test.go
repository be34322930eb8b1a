package engine

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/mayflydb/mayfly/internal/store/dynamo"
	"github.com/mayflydb/mayfly/internal/store/kv"
	"github.com/mayflydb/mayfly/internal/testkit"
)

// The crash test runs a random workload on a file system that loses unsynced data, and cuts its
// power at the k-th operation. It opens the remaining disk, and compares it with the acknowledged
// writes and with every answer that a reader got before. crash_check_test.go has the checks.

const (
	crashWriters  = 3
	crashKeys     = 4  // of each writer, in each table
	crashSteps    = 36 // of each writer
	crashMaxTTL   = 3  // seconds
	crashMaxSleep = 1500
)

// crashStreams are the tables that have a stream.
var crashStreams = []string{"events", "keys"}

// crashTableNames are all of them, as crashTables makes them.
var crashTableNames = []string{"events", "late", "plain", "keys"}

// crashSeeds is for long runs; the default takes seconds.
var crashSeeds = flag.Uint64("crash-seeds", testkit.Size[uint64](1, 5), "how many workloads the crash test cuts")

// history lists the attempts to change one key, in order. A key has one writer, so only its last
// attempt may be unacknowledged. An item carries the number of its attempt as v.
type history struct {
	table    string
	key      dynamo.Item
	mu       sync.Mutex
	attempts []attempt
	acked    int // the last attempt that was acknowledged; -1: none
	seen     int // the last attempt whose item a reader saw; -1: none
	gone     int // the last attempt acknowledged before a read that found no item; -1: no such read
}

// attempt is one try to change a key.
type attempt struct {
	item  dynamo.Item // nil: a delete
	batch int         // the number of its batch, over all writers
}

// begin records an attempt before it starts.
func (h *history) begin(it dynamo.Item, batch int) (n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.attempts = append(h.attempts, attempt{it, batch})
	return len(h.attempts) - 1
}

// next returns the number of the next attempt.
func (h *history) next() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.attempts)
}

func (h *history) ack(n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.acked = n
}

func (h *history) ackedNow() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.acked
}

// answered records the result of a read: an item, or nil after attempt acked was acknowledged.
func (h *history) answered(it dynamo.Item, acked int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if it == nil {
		h.gone = max(h.gone, acked)
	} else {
		h.seen = max(h.seen, attemptOf(it))
	}
}

// attemptOf returns the number of the attempt that wrote an item.
func attemptOf(it dynamo.Item) int {
	n, err := strconv.Atoi(it.Get("v").Number().String())
	if err != nil {
		panic(err)
	}
	return n
}

// crashRun is one workload up to its end or to the cut.
type crashRun struct {
	seed     uint64
	cut      int64
	disk     *kv.CrashFS
	poke     chan struct{} // holds a token when a sync has begun: the reader then reads
	keys     []*history
	batches  sync.Mutex // guards batch
	batch    int
	ttlAcked bool            // TTL of table late was acknowledged as enabled
	indexes  []*indexHistory // the changes of indexes during the writes
	expiry   Expiry          // of table late, as last acknowledged
	changing bool            // a later change was not acknowledged
	feed     struct {
		acked    string // the destination of table events, as last acknowledged
		changing bool   // a later change was not acknowledged
	}
	records map[uint64]string // the records that readers saw, by sequence number
	nextSeq uint64            // the greatest NextSeq that a reader saw
}

// crashOptions opens a directory with a clock that shows the same early instant at each start.
func crashOptions(fs kv.FS) Options {
	return Options{Dir: "data", FS: fs, Clock: frozenClock(), ClockControl: true, ReserveBytes: -1, StreamShards: 2, ShardBytes: 1500}
}

// indexHistory is an index that a writer adds to a table, or removes from it.
type indexHistory struct {
	table, name string
	remove      bool
	acked       bool // the change was acknowledged
	read        bool // a reader read an added index, so it was built
}

// newCrashRun returns the workload of a seed, cut after k operations; negative: never.
func newCrashRun(seed uint64, k int64) *crashRun {
	r := &crashRun{seed: seed, cut: k, disk: kv.NewCrashFS(), poke: make(chan struct{}, 1), records: map[uint64]string{}, nextSeq: 1}
	r.disk.CutAfter(k)
	r.disk.KeepUnsynced(int(seed%3)*40, uint64(k))
	r.indexes = []*indexHistory{{table: "events", name: "byV"}, {table: "late", name: "byV"}, {table: "events", name: "local", remove: true}}
	for w := range crashWriters {
		for i := range crashKeys {
			for _, table := range crashTableNames {
				r.keys = append(r.keys, &history{table: table, key: item("pk", fmt.Sprint("w", w, "k", i/2), "sk", i%2), acked: -1, seen: -1, gone: -1})
			}
		}
	}
	return r
}

// beforeSync lets the reader run: the applied and unsynced state is the one that a crash takes
// back.
func (r *crashRun) beforeSync(string) error {
	select {
	case r.poke <- struct{}{}:
	default:
	}
	for range 30 {
		runtime.Gosched()
	}
	return nil
}

// run works until the workload ends or the power is cut.
func (r *crashRun) run() {
	r.disk.BeforeSync = r.beforeSync
	e, err := Open(crashOptions(r.disk))
	if err != nil {
		return
	}
	e.backfillItems = 3 // an index takes several steps, and a cut may come between them
	ctx, cancel := context.WithCancel(context.Background())
	var background sync.WaitGroup
	background.Go(func() { _ = e.Run(ctx) }) // ends with the store
	if tables, err := crashTables(ctx, e, r.mode(0), r.mode(1)); err == nil {
		done := make(chan struct{})
		background.Go(func() { r.observe(ctx, e, tables, done) })
		var writers sync.WaitGroup
		for w := range crashWriters {
			writers.Go(func() { r.write(ctx, e, tables, w) })
		}
		writers.Wait()
		close(done)
	}
	cancel()
	background.Wait()
	_ = e.Close() // fails after a cut
}

// mode returns the expiry of table events (n = 0), of plain and keys (n = 1), and of table late
// after n changes: strict and aws in turn.
func (r *crashRun) mode(n int) Expiry {
	if (r.seed+uint64(n))%2 == 1 {
		return Expiry{}
	}
	return Expiry{Mode: ExpiryAWS, Seed: r.seed, Delay: Delay{spread: true, most: crashMaxSleep}}
}

// crashTables creates the tables. events has every feature of a table. late has an index of several
// attributes, and gets TTL while it is written, and then another expiry mode. plain has no stream and no index, and keys has a stream
// without images: the reaper reads no item of these two.
func crashTables(ctx context.Context, e *Engine, x, other Expiry) (map[string]*Table, error) {
	key := KeySchema{Partition: []KeyAttr{{"pk", dynamo.KindString}}, Sort: []KeyAttr{{"sk", dynamo.KindNumber}}}
	byG := IndexDesc{Name: "byG", Global: true, Projection: Projection{Type: "ALL"}, Key: KeySchema{Partition: []KeyAttr{{"g", dynamo.KindString}}}}
	local := IndexDesc{Name: "local", Projection: Projection{Type: "KEYS_ONLY"}, Key: KeySchema{Partition: key.Partition, Sort: []KeyAttr{{"v", dynamo.KindNumber}}}}
	byGAndV := byG
	byGAndV.Key = KeySchema{Partition: []KeyAttr{{"g", dynamo.KindString}, {"pk", dynamo.KindString}}, Sort: []KeyAttr{{"v", dynamo.KindNumber}, {"sk", dynamo.KindNumber}}}
	tables := map[string]*Table{}
	for _, d := range []TableDesc{
		{Name: "events", Indexes: []IndexDesc{byG, local}, TTL: TTLDesc{Attribute: "ttl", Expiry: x}, Stream: StreamSpec{ViewType: "NEW_AND_OLD_IMAGES"}},
		{Name: "late", Indexes: []IndexDesc{byGAndV}},
		{Name: "plain", TTL: TTLDesc{Attribute: "ttl", Expiry: other}},
		{Name: "keys", TTL: TTLDesc{Attribute: "ttl", Expiry: other}, Stream: StreamSpec{ViewType: "KEYS_ONLY"}},
	} {
		d.Namespace, d.Key = "default", key
		tab, err := e.CreateTable(ctx, d)
		if err != nil {
			return nil, err
		}
		tables[d.Name] = tab
	}
	return tables, nil
}

// write is one writer: puts with and without deadlines, near and far (so that renewals, and
// deadlines below the mark, occur), deletes, batches over several tables, and advances of time.
func (r *crashRun) write(ctx context.Context, e *Engine, tables map[string]*Table, w int) {
	random := rand.New(rand.NewPCG(r.seed, uint64(w)))
	each := len(r.keys) / crashWriters
	mine := r.keys[w*each : (w+1)*each]
	for step := range crashSteps {
		switch op := random.IntN(20); {
		case op < 4:
			if e.Clock().Advance(time.Duration(random.IntN(crashMaxSleep))*time.Millisecond) != nil {
				return
			}
		case op == 4: // tables, a new log and a new manifest
			if e.kv.Flush() != nil {
				return
			}
		case op < 16:
			if !r.apply(ctx, e, tables, random, mine[random.IntN(len(mine))]) {
				return
			}
		default:
			first := random.IntN(len(mine) - 3)
			if !r.apply(ctx, e, tables, random, mine[first:first+3]...) {
				return
			}
		}
		if w == 0 && step == crashSteps/3 && !r.enable(ctx, e) {
			return
		}
		if step == crashSteps/4+2*w && !r.changeIndex(ctx, e, r.indexes[w]) {
			return
		}
		if w == 1 && step%7 == 3 && !r.changeFeed(ctx, e, step/7) {
			return
		}
		if w == 0 && step >= crashSteps/2 && step%3 == 0 && !r.change(ctx, e, r.mode(step/3)) {
			return
		}
	}
}

// apply makes one batch of changes and reports whether it was acknowledged.
func (r *crashRun) apply(ctx context.Context, e *Engine, tables map[string]*Table, random *rand.Rand, keys ...*history) bool {
	r.batches.Lock()
	r.batch++
	batch := r.batch
	r.batches.Unlock()
	var ws []*Write
	numbers := make([]int, len(keys))
	for i, h := range keys {
		it := crashItem(random, h, e.Now())
		numbers[i] = h.begin(it, batch)
		k, err := tables[h.table].Desc().KeyOf(h.key)
		if err != nil {
			panic(err)
		}
		readOld := h.table == "events" || random.IntN(2) == 0
		ws = append(ws, &Write{Table: tables[h.table], Key: k, ReadOld: readOld, Decide: func(dynamo.Item, Instant) (dynamo.Item, error) { return it, nil }})
	}
	if e.Write(ctx, ws...) != nil {
		return false
	}
	for i, h := range keys {
		h.ack(numbers[i])
	}
	return true
}

// crashItem draws the next item of a key, or nil.
func crashItem(random *rand.Rand, h *history, now Instant) dynamo.Item {
	if random.IntN(6) == 0 {
		return nil
	}
	it := h.key.With("v", number(fmt.Sprint(h.next())))
	if g := random.IntN(4); g > 0 {
		it = it.With("g", dynamo.AppendString(nil, fmt.Sprint("g", g)))
	}
	if s := random.IntN(crashMaxTTL + 2); s <= crashMaxTTL {
		it = it.With("ttl", number(fmt.Sprint(int64(now)/1000+int64(s))))
	}
	return it
}

// enable turns TTL on for table late, which then has items that the backfill must find.
func (r *crashRun) enable(ctx context.Context, e *Engine) bool {
	_, err := e.Alter(ctx, "default", "late", func(d *TableDesc, _ Instant) error {
		d.TTL.Attribute = "ttl"
		return nil
	})
	r.ttlAcked = err == nil
	return err == nil
}

// changeIndex adds an index to a table during the writes, or removes one.
func (r *crashRun) changeIndex(ctx context.Context, e *Engine, h *indexHistory) bool {
	_, err := e.Alter(ctx, "default", h.table, func(d *TableDesc, _ Instant) error {
		if h.remove {
			d.Indexes = slices.DeleteFunc(d.Indexes, func(ix IndexDesc) bool { return ix.Name == h.name })
			return nil
		}
		d.Indexes = append(d.Indexes, IndexDesc{
			Name: h.name, Global: true, Projection: Projection{Type: "ALL"},
			Key: KeySchema{Partition: []KeyAttr{{"v", dynamo.KindNumber}, {"pk", dynamo.KindString}}, Sort: []KeyAttr{{"sk", dynamo.KindNumber}}},
		})
		return nil
	})
	h.acked = err == nil
	return err == nil
}

// change gives table late another expiry.
func (r *crashRun) change(ctx context.Context, e *Engine, x Expiry) bool {
	r.changing = true
	_, err := e.Alter(ctx, "default", "late", func(d *TableDesc, _ Instant) error {
		d.TTL.Expiry = x
		return nil
	})
	if err == nil {
		r.expiry, r.changing = x, false
	}
	return err == nil
}

// observe reads whenever a sync is about to begin, and records every answer.
func (r *crashRun) observe(ctx context.Context, e *Engine, tables map[string]*Table, done <-chan struct{}) {
	random := rand.New(rand.NewPCG(r.seed, 99))
	for {
		select {
		case <-r.poke:
		case <-done:
			return
		}
		r.observeIndexes(ctx, e, tables)
		h := r.keys[random.IntN(len(r.keys))]
		switch random.IntN(4) {
		case 0:
			r.observeScan(ctx, e, tables[h.table])
		case 1:
			r.observeStream(ctx, e, tables[crashStreams[random.IntN(len(crashStreams))]])
		default:
			r.observeGet(ctx, e, tables[h.table], h)
		}
	}
}

func (r *crashRun) observeGet(ctx context.Context, e *Engine, tab *Table, h *history) {
	acked := h.ackedNow()
	k, err := tab.Desc().KeyOf(h.key)
	if err != nil {
		panic(err)
	}
	var it dynamo.Item
	if e.Read(ctx, func(v *View) (err error) { it, _, err = v.Get(tab, k); return err }) == nil {
		h.answered(it, acked)
	}
}

// observeIndexes reads the added indexes, once they are readable.
func (r *crashRun) observeIndexes(ctx context.Context, e *Engine, tables map[string]*Table) {
	for _, h := range r.indexes {
		ix := tables[h.table].Desc().Index(h.name)
		if h.remove || ix == nil || ix.Building {
			continue
		}
		h.read = h.read || e.Read(ctx, func(v *View) error {
			return v.Range(tables[h.table], Range{Index: ix}, func(dynamo.Item) (bool, error) { return false, nil })
		}) == nil
	}
}

// observeScan reads a whole table or an index of it. An item missing from a table's Scan does not
// exist; an index need not show every item.
func (r *crashRun) observeScan(ctx context.Context, e *Engine, tab *Table) {
	acked := make([]int, len(r.keys))
	for i, h := range r.keys {
		acked[i] = h.ackedNow()
	}
	var scan Range
	if acked[0]%2 == 1 {
		scan.Index = tab.Desc().Index("byG")
	}
	found := map[string]dynamo.Item{}
	err := e.Read(ctx, func(v *View) error {
		clear(found)
		return v.Range(tab, scan, func(it dynamo.Item) (bool, error) {
			found[tab.Desc().Key.pick(it).String()] = bytes.Clone(it)
			return true, nil
		})
	})
	if err != nil {
		return
	}
	for i, h := range r.keys {
		if it := found[h.key.String()]; h.table == tab.Desc().Name && (it != nil || scan.Index == nil) {
			h.answered(it, acked[i])
		}
	}
}

func (r *crashRun) observeStream(ctx context.Context, e *Engine, tab *Table) {
	next := e.NextSeq()
	d, err := e.StreamByLabel("default", tab.Desc().Name, tab.Desc().Stream.Label)
	if err != nil {
		return
	}
	r.nextSeq = max(r.nextSeq, next)
	for _, sh := range d.Shards {
		page, err := e.Records(ctx, d.ID, sh.No, sh.First, 1000, 1<<20, 0)
		if err != nil {
			return
		}
		for _, rec := range page.Records {
			r.records[rec.Seq] = recordText(rec)
		}
	}
}

func recordText(r Record) string {
	return fmt.Sprint(r.Seq, " at ", r.At, " event ", r.Event, " service ", r.Service, " of ", r.Keys, ": ", r.Old, " → ", r.New)
}

// crashCuts are the operations at which a workload of a seed is cut: every step-th, and the last is
// no cut at all.
func crashCuts(seed uint64, step int64) (cuts []int64) {
	whole := newCrashRun(seed, -1)
	whole.run()
	for k := int64(seed) % step; k < whole.disk.Ops(); k += step {
		cuts = append(cuts, k)
	}
	return append(cuts, -1)
}

// crashAndCheck runs one workload up to its cut, checks the disk, and returns the number of
// expiries on it. With again it also cuts the recovery, early and late.
func crashAndCheck(t testing.TB, seed uint64, k int64, again bool) (expired int) {
	r := newCrashRun(seed, k)
	r.run()
	if !again {
		return r.check(t, r.disk.AfterCrash())
	}
	for _, after := range []int64{0, 3, 6, 9} {
		disk := r.disk.AfterCrash()
		disk.CutAfter(after)
		if e, err := Open(crashOptions(disk)); err == nil {
			_ = e.Close() // fails after a cut
		}
		expired = r.check(t, disk.AfterCrash())
	}
	return expired
}

// TestNothingLost: an acknowledged write survives a crash, with its deadline, its index entries and
// its record. No answer depends on state that a crash can take back. The test also covers the crash
// half of ExactlyOneRecord, OrderPerKey, RenewedLives, MarkBelowAll and StrictlyGone.
func TestNothingLost(t *testing.T) {
	step := int64(1)
	if testing.Short() || raceEnabled {
		step = 11
	}
	expired, cuts := 0, 0
	for seed := uint64(1); seed <= *crashSeeds; seed++ {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			for i, k := range crashCuts(seed, step) {
				expired += crashAndCheck(t, seed, k, i%10 == 5)
				cuts++
				if t.Failed() {
					t.Fatalf("seed %d, cut after %d operations", seed, k)
				}
			}
		})
	}
	t.Logf("%d cuts, %.1f expiries on disk at each", cuts, float64(expired)/float64(cuts))
	if expired < 10*cuts {
		t.Error("too mild: fewer than 10 expiries on disk at a cut on average")
	}
}

// sortedSeqs returns the sequence numbers of records in order.
func sortedSeqs(m map[uint64]string) []uint64 {
	out := make([]uint64, 0, len(m))
	for seq := range m {
		out = append(out, seq)
	}
	slices.Sort(out)
	return out
}
