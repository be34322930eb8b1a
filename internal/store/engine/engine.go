package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mayflydb/mayfly/internal/clock"
	"github.com/mayflydb/mayfly/internal/invariant"
	"github.com/mayflydb/mayfly/internal/points"
	"github.com/mayflydb/mayfly/internal/store/due"
	"github.com/mayflydb/mayfly/internal/store/kv"
)

// Options configures an engine. The zero value is a memory engine on the real clock.
type Options struct {
	// Dir is the data directory. Empty: all data is in memory and lost with the process.
	Dir string
	// FS is the file system of Dir. Nil: the real one. Tests pass one that crashes.
	FS kv.FS
	// Durability is the meaning of an acknowledgement. Default kv.Sync, or kv.Memory if Dir is
	// empty.
	Durability kv.Durability
	// CacheBytes bounds the block cache. Default: kv's.
	CacheBytes int64
	// MemTableBytes is the greatest size of one memtable. Default: kv's.
	MemTableBytes int64
	// ReserveBytes is the size of the file that a full disk releases. Default: kv's.
	ReserveBytes int64
	// Clock is the engine's time. Nil: the wall clock.
	Clock *clock.Clock
	// Start is a new database's first instant; zero: the clock's own. An existing database follows
	// the wall clock, and never goes below its last instant.
	Start time.Time
	// Frozen stops the clock from the beginning, so that a new database shows Start itself. It has
	// no effect on a Clock of the caller.
	Frozen bool
	// ClockControl allows a directory whose last instant is far ahead of the wall clock. The clock
	// then continues from there.
	ClockControl bool
	// StreamShards is the number of shards of a new stream, 1 to 256. Default 4.
	StreamShards int
	// ShardBytes is the size at which a shard is closed and gets a child. Default 64 MB.
	ShardBytes int64
	// StreamRetention is the lifetime of stream records by the engine's clock. Default 24 h.
	StreamRetention time.Duration
	// HoldBytes is the volume beyond the retention that streams keep for consumers before HoldsFull
	// reports it. Default 8 GB.
	HoldBytes int64
	// CollectionBytesMax is the greatest size of an item collection of a table with local indexes, in
	// DynamoDB bytes: items and entries of one partition key. Default 10 GB.
	CollectionBytesMax int64
	// Logger receives warnings and faults. Default: discards.
	Logger *slog.Logger
	// OnReap is called with every durable removal of expired items, outside all locks. It must not
	// block. Nil: not called.
	OnReap func(Reap)
	// OnDrop is called when a table was deleted, also one whose restore or import has failed. It
	// must be quick, and may read but not change the catalogue.
	OnDrop func(namespace, name string)
}

// Reap is one durable removal of expired items of a table, by the reaper, by a write in their place
// or by a backfill.
type Reap struct {
	Namespace, Table string
	// when each was to be removed: its deadline, and in aws expiry some time after it
	Due     []Instant
	Durable time.Time // the clock's time at the end of the disk sync
}

func (o Options) withDefaults() Options {
	if o.Dir == "" {
		o.Durability = kv.Memory
	}
	o.StreamShards = cmp.Or(o.StreamShards, 4)
	o.ShardBytes = cmp.Or(o.ShardBytes, 64<<20)
	o.StreamRetention = cmp.Or(o.StreamRetention, 24*time.Hour)
	o.CollectionBytesMax = cmp.Or(o.CollectionBytesMax, collectionBytesMax)
	o.HoldBytes = cmp.Or(o.HoldBytes, 8<<30)
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	return o
}

// aheadMax is the greatest lead of a directory's last instant over the wall clock without clock
// control.
const aheadMax = time.Minute

// Engine is an open database. Its methods are safe for concurrent use.
type Engine struct {
	opts  Options
	log   *slog.Logger
	kv    *kv.DB
	clock *clock.Clock
	// points is what happened in each minute
	points *points.Recorder
	queue  *due.Queue
	soon   *due.Queue // of preparers: at an instant ahead of their tables' in queue
	// activity counts the work in flight beside the due queue: an advance of the clock waits for
	// it.
	activity clock.Activity

	stripes [stripeCount]stripe
	order   order
	// the number of the last commit; raised inside the commit section, before the apply
	lastCommit atomic.Uint64
	durable    durability

	catalogue catalogue
	streams   streams
	backups   backups
	jobs      jobs
	expiring  *due.Handle // removes backups that have expired
	consumers consumers
	heldBytes atomic.Int64 // volume that the streams keep beyond the retention for consumers
	// work outside of calls: counts of items, reaper slices that wait for the disk
	background sync.WaitGroup
	reaping    chan struct{} // holds a token for each such slice
	room       atomic.Int64  // bytes that prepared removals may still take

	snapshot func() *kv.Snapshot // kv's NewSnapshot; tests commit just before or after it
	// holds a request to run all backfills: the function to call when they have ended
	backfills     chan func()
	backfillRetry retry // of the backfills that met a damaged file
	failedRetry   retry // of the backfills that met another error
	openSources   int   // of restores; touched by runBackfills only
	sourceAwaited bool  // a restore waits until another one closes its source; touched by runBackfills only
	backfillItems int   // backfillSlice, except in tests that need many steps

	calls    calls
	pace     pace
	failOnce sync.Once
	failure  atomic.Pointer[error]
	failed   chan struct{} // closed when the store stops
	closed   atomic.Bool
	life     context.Context
	// ends life, and with it Run, the counts and every Advance, when the engine closes or the store
	// stops
	stop context.CancelFunc
}

// Open opens or creates a database in the state of its last durable commit. It starts no background
// work; Run does.
func Open(opts Options) (*Engine, error) {
	opts = opts.withDefaults()
	store, err := kv.Open(kv.Options{
		Dir: opts.Dir, FS: opts.FS, Durability: opts.Durability, CacheBytes: opts.CacheBytes, MemTableBytes: opts.MemTableBytes, ReserveBytes: opts.ReserveBytes,
		Essential: []byte{spaceItems}, // the end of the catalogue
		Logger:    opts.Logger,
	})
	if err != nil {
		return nil, err
	}
	e := &Engine{
		opts: opts, log: opts.Logger, kv: store, backfills: make(chan func(), 1), backfillItems: backfillSlice,
		failed: make(chan struct{}), reaping: make(chan struct{}, reapAhead),
	}
	e.snapshot = store.NewSnapshot
	e.failedRetry.first = backfillPause
	e.calls.last = make(chan struct{}, 1)
	e.durable.cond.L = &e.durable.mu
	e.catalogue.tables = map[tableName]*Table{}
	e.backups.byID = map[string]*BackupDesc{}
	e.streams.byID = map[uint32]*stream{}
	e.consumers.byStream = map[uint32][]*Hold{}
	e.life, e.stop = context.WithCancel(context.Background())
	if err := e.recover(); err != nil {
		return nil, errors.Join(err, store.Close())
	}
	return e, nil
}

// recover reads the catalogue, sets the clock and the sequence numbers behind those on disk, and
// rolls the shards over.
func (e *Engine) recover() error {
	if err := e.checkFormat(); err != nil {
		return err
	}
	if err := e.recoverClock(); err != nil {
		return err
	}
	e.checkRestart()
	e.points = points.NewRecorder(points.Options{Now: e.clock.Millis, Shown: e.clock.Shown})
	e.queue, e.soon = due.New(e.clock, e.dueFailed), due.New(e.clock, e.dueFailed)
	e.room.Store(prepareBytes)
	e.expiring = e.queue.Add(backupExpirer{e})
	if err := e.loadStreams(); err != nil {
		return err
	}
	if err := e.loadTables(); err != nil {
		return err
	}
	if err := e.loadJobs(); err != nil {
		return err
	}
	if err := e.loadBackups(); err != nil {
		return err
	}
	return e.rollAll()
}

// recoverClock ensures that now never falls below the last instant on disk.
func (e *Engine) recoverClock() error {
	last, lastSeq, err := e.clockIn(e.kv)
	if err != nil {
		return err
	}
	fresh := last == minInstant // nothing was ever committed
	e.order.instant, e.order.lastSeq = last, lastSeq
	e.durable.instant.Store(int64(last))
	e.clock = e.opts.Clock
	if e.clock == nil {
		e.clock = clock.New()
		switch begins := fresh && !e.opts.Start.IsZero(); {
		case begins && e.opts.Frozen:
			e.clock = clock.NewFrozenAt(e.opts.Start)
		case begins:
			e.clock = clock.NewAt(e.opts.Start)
		case e.opts.Frozen:
			e.clock.Freeze()
		}
		e.clock.OnStep(e.wallStepped)
	}
	ahead := last - e.Now() // in ms: a time.Duration overflows at 292 years
	if fresh || ahead <= 0 || invariant.Injected(invariant.NoRestartInstant) {
		return nil
	}
	if ahead <= Instant(aheadMax.Milliseconds()) {
		e.log.Warn("the machine's clock is behind the last time on disk; the database's clock waits until it has caught up", "behind", time.Duration(ahead)*time.Millisecond)
		e.clock.Raise(int64(last))
		return nil
	}
	if !e.opts.ClockControl {
		return fmt.Errorf("%w: the last time on disk is %s, the machine's clock shows %s",
			ErrAhead, last.Time().Format(time.RFC3339Nano), e.Now().Time().Format(time.RFC3339Nano))
	}
	return e.clock.Set(last.Time())
}

// wallStepped logs a step of the machine's clock with its effect.
func (e *Engine) wallStepped(by time.Duration) {
	if by < 0 {
		e.log.Warn("the machine's clock went back; the database's clock waits until it has caught up", "by", -by)
		return
	}
	e.log.Warn("the machine's clock went forward; items that fell due meanwhile expire now", "by", by)
}

// Now returns the engine's present instant.
func (e *Engine) Now() Instant { return Instant(e.clock.Millis()) }

// Clock returns the engine's clock.
func (e *Engine) Clock() *clock.Clock { return e.clock }

// Failed returns a channel that is closed when the store stops after a failed write or sync.
func (e *Engine) Failed() <-chan struct{} { return e.failed }

// Err returns nil, or the reason why the store does not accept work.
func (e *Engine) Err() error { return e.ready() }

// Run reaps, trims and backfills until ctx is done, the engine closes or the store fails. No answer
// of a read depends on it. Only one call may run at a time.
func (e *Engine) Run(ctx context.Context) error {
	if err := e.enter(); err != nil {
		e.adoptFailure()
		return withoutStop(err)
	}
	defer e.leave()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(e.life, cancel)()

	work := []func(context.Context) error{e.queue.Run, e.soon.Run, e.runBackfills, e.watchStore, e.watchDamage}
	errs := make(chan error, len(work))
	for _, run := range work {
		go func() { errs <- run(ctx) }()
	}
	var err error
	for range work {
		err = errors.Join(err, withoutStop(<-errs))
		cancel()
	}
	if stopped := e.ready(); stopped != nil {
		return withoutStop(stopped)
	}
	return err
}

// watchStore notices a store that stops between calls, because of a flush or a compaction.
func (e *Engine) watchStore(ctx context.Context) error {
	select {
	case <-e.kv.Stopped():
	case <-ctx.Done(): // perhaps because the reaper met the failure first
	}
	e.adoptFailure()
	return ctx.Err()
}

// adoptFailure stops the engine too if the store has stopped.
func (e *Engine) adoptFailure() {
	if err := e.kv.Failed(); err != nil {
		e.fail(err)
	}
}

// withoutStop returns nil for an error that only means that background work was asked to stop.
func withoutStop(err error) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, ErrClosed) {
		return nil
	}
	return err
}

// dueFailed handles errors of the reaper and the trimmer. A failed store ends the loop; any other
// error is retried.
func (e *Engine) dueFailed(_ due.Source, err error) error {
	if stopped := e.ready(); stopped != nil {
		return stopped
	}
	e.logDamage(err, "removing due items failed; trying again")
	return nil
}

// Close stops the background work, waits for it and for every call inside, and closes the store.
// Read and Decide must not call it.
func (e *Engine) Close() error {
	if e.closed.Swap(true) {
		return nil
	}
	e.stop()
	e.wakeStreamReaders()
	e.durable.mu.Lock()
	e.durable.cond.Broadcast()
	e.durable.mu.Unlock()
	e.waitCalls() // including Run
	e.background.Wait()
	return e.kv.Close()
}

// Copy returns the store's files at one instant, with every acknowledged write. A store that is opened
// with them continues as if it had been stopped then.
func (e *Engine) Copy() (*kv.Copy, error) {
	if err := e.enter(); err != nil {
		return nil, err
	}
	defer e.leave()
	return e.kv.Copy()
}
