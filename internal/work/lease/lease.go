package lease

import (
	"context"
	"errors"
	"maps"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly/internal/work/attr"
)

// ErrLost is the error of a lease that another worker has taken.
var ErrLost = errors.New("another worker has the lease")

// Leases are the leases of one consumer, from the view of one worker.
type Leases struct {
	db       *dynamodb.Client
	consumer string
	o        Options
	mu       struct {
		sync.Mutex
		seen map[string]sight // by shard
		// by shard: leases that were taken, and neither released nor lost; not used by an exclusive
		// worker
		held    map[string]*Lease
		looked  time.Duration // time at which the last reading of the rows began
		present presence
	}
}

// presence is the period for which this worker's own row has shown, without a gap, that it is
// alive.
type presence struct {
	known bool          // the row existed
	since time.Duration // time at which its first write was answered
	last  time.Duration // time at which its last successful write began
}

// sight is a row's contents after its last change, and the time at which the change was seen.
type sight struct {
	owner      string
	term, beat int64
	at         time.Duration
}

// New returns the leases of a consumer. It makes no call.
func New(db *dynamodb.Client, consumer string, o Options) *Leases {
	l := &Leases{db: db, consumer: consumer, o: o.withDefaults()}
	l.mu.seen, l.mu.held = map[string]sight{}, map[string]*Lease{}
	return l
}

// Owner returns the worker's name.
func (l *Leases) Owner() string { return l.o.Owner }

// Duration returns the duration of the leases.
func (l *Leases) Duration() time.Duration { return l.o.Duration }

// Rows returns the consumer's leases by shard, and records which of them have changed since the
// last call. A lease of this worker whose row has another owner, or none, is lost.
func (l *Leases) Rows(ctx context.Context) (map[string]Row, error) {
	held := l.holds() // the rows are newer
	began := l.o.Elapsed()
	rows, err := l.rows(ctx)
	if err != nil {
		return nil, err
	}
	for shard, h := range held {
		h.compare(rows[shard])
	}
	now := l.o.Elapsed()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mu.looked = began
	for shard, r := range rows {
		if s, ok := l.mu.seen[shard]; !ok || s.owner != r.Owner || s.term != r.Term || s.beat != r.Beat {
			l.mu.seen[shard] = sight{r.Owner, r.Term, r.Beat, now}
		}
	}
	for shard, s := range l.mu.seen {
		// a worker whose own row was deleted may be alive
		if _, ok := rows[shard]; !ok && !(IsCrew(shard) && now-s.at < l.o.Duration) {
			delete(l.mu.seen, shard)
		}
	}
	return rows, nil
}

func (l *Leases) holds() map[string]*Lease {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.mu.held)
}

// drop removes a lease that is released or lost.
func (l *Leases) drop(h *Lease) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.mu.held[h.shard] == h {
		delete(l.mu.held, h.shard)
	}
}

// noteChange records that a row has just changed: its owner is alive now.
func (l *Leases) noteChange(r Row) {
	now := l.o.Elapsed()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mu.seen[r.Shard] = sight{r.Owner, r.Term, r.Beat, now}
}

// silentLocked returns how long the owner of a row had been silent when the rows were last read. ok
// is false if the row has changed since.
func (l *Leases) silentLocked(r Row) (silent time.Duration, ok bool) {
	s, ok := l.mu.seen[r.Shard]
	if !ok || s.owner != r.Owner || s.term != r.Term || s.beat != r.Beat {
		return 0, false
	}
	at := s.at
	if own, is := l.mu.seen[crewPrefix+r.Owner]; is {
		at = max(at, own.at)
	}
	return l.mu.looked - at, true
}

// renewed returns the time at which a lease was last known to be held, if the lease itself was last
// written at that time.
func (l *Leases) renewed(written time.Duration) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.mu.present.known && l.mu.present.since <= written {
		return max(written, l.mu.present.last)
	}
	return written
}

// attended records that a call, which began at the given time, wrote this worker's own row. again is
// false for a new row.
func (l *Leases) attended(began time.Duration, again bool) {
	now := l.o.Elapsed()
	l.mu.Lock()
	defer l.mu.Unlock()
	if !again || now-l.mu.present.last >= l.o.Duration {
		l.mu.present.since = now
	}
	l.mu.present.known, l.mu.present.last = true, began
}

// Free reports whether a row can be taken: it has no owner, this worker owns it without knowing, or
// its owner had been silent for the duration of a lease at the last call of Rows.
func (l *Leases) Free(r Row) bool {
	if r.Owner == "" || r.Owner == l.o.Owner || l.o.Exclusive {
		return true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	silent, ok := l.silentLocked(r)
	return ok && silent >= l.o.Duration
}

// Take takes the lease of a row, or creates it if the row has no term. It returns ErrLost if
// another worker was first.
func (l *Leases) Take(ctx context.Context, r Row) (*Lease, error) {
	began := l.o.Elapsed()
	after := Row{Shard: r.Shard, Owner: l.o.Owner, Term: r.Term + 1, Beat: r.Beat + 1, Checkpoint: r.Checkpoint, Origin: r.Origin}
	err := l.replace(ctx, r, after)
	if _, ok := errors.AsType[*errChanged](err); ok {
		return nil, ErrLost
	}
	if err != nil {
		return nil, err
	}
	h := &Lease{leases: l, shard: after.Shard, term: after.Term, writing: make(chan struct{}, 1)}
	h.mu.row, h.mu.renewed = after, began
	if !l.o.Exclusive {
		l.mu.Lock()
		l.mu.held[h.shard] = h
		l.mu.Unlock()
	}
	return h, nil
}

// Disown releases a row that names this worker as its owner although the worker does not have the
// lease. Otherwise the others would consider it held while this worker is alive.
func (l *Leases) Disown(ctx context.Context, r Row) error {
	after := r
	after.Owner, after.Term, after.Beat, after.damage = "", max(r.Term, 1), r.Beat+1, nil
	err := l.replace(ctx, r, after)
	if _, ok := errors.AsType[*errChanged](err); ok {
		return nil // the next reading shows the result
	}
	return err
}

// Note creates a row without an owner, with a checkpoint, unless the row exists. It returns the
// present row.
func (l *Leases) Note(ctx context.Context, shard, checkpoint string) (Row, error) {
	return l.Create(ctx, Row{Shard: shard, Checkpoint: checkpoint})
}

// Create is like Note for a row that may have an origin too.
func (l *Leases) Create(ctx context.Context, row Row) (Row, error) {
	row.Owner, row.Term, row.Beat = "", 1, 1
	err := l.replace(ctx, Row{Shard: row.Shard}, row)
	var changed *errChanged
	if !errors.As(err, &changed) {
		return row, err
	}
	if now := changed.now; now.Damaged() {
		if row.Owner = now.Owner; now.Checkpoint != "" {
			row.Checkpoint = now.Checkpoint
		}
		if err = l.replace(ctx, now, row); !errors.As(err, &changed) {
			return row, err
		}
	}
	return changed.now, nil
}

// Mark creates a row without an owner, or changes it and takes it from its owner. So a later Forget
// of the row as it was before keeps it.
func (l *Leases) Mark(ctx context.Context, shard string) error {
	var changed *errChanged
	for before := (Row{Shard: shard}); ; before = changed.now {
		after := Row{Shard: shard, Term: before.Term + 1, Beat: before.Beat + 1, Checkpoint: before.Checkpoint, Origin: before.Origin}
		if err := l.replace(ctx, before, after); !errors.As(err, &changed) {
			return err
		}
	}
}

// Forget deletes a row unless it has changed.
func (l *Leases) Forget(ctx context.Context, r Row) error {
	_, err := l.forget(ctx, r)
	return err
}

// forget deletes a row unless it has changed. It returns the remaining row; its term is 0 if there
// is none.
func (l *Leases) forget(ctx context.Context, r Row) (now Row, err error) {
	condition, names, values := r.isAs()
	// a row that was deleted and made again has the same first terms
	if names["#o"] = attrOwner; r.Owner == "" {
		condition += " AND attribute_not_exists(#o)"
	} else {
		if values == nil {
			values = map[string]types.AttributeValue{}
		}
		condition, values[":o"] = condition+" AND #o = :o", attr.S(r.Owner)
	}
	_, err = l.db.DeleteItem(ctx, &dynamodb.DeleteItemInput{
		TableName: aws.String(l.o.TableName()), Key: r.key(l.consumer),
		ConditionExpression: &condition, ExpressionAttributeNames: names, ExpressionAttributeValues: values,
	})
	if conditionFailed(err) {
		return l.row(ctx, r.Shard) // it may be gone, by an earlier try of the same call
	}
	return Row{}, err
}

// Exclusive reports whether no other worker reads the same streams.
func (l *Leases) Exclusive() bool { return l.o.Exclusive }

// Elapsed returns the local monotonic time.
func (l *Leases) Elapsed() time.Duration { return l.o.Elapsed() }

// Lease is a lease that this worker has taken. Its methods may be called from many goroutines; the
// writes happen one after another.
type Lease struct {
	leases *Leases
	shard  string
	term   int64
	// writing has an element while a write is under way. mu is free meanwhile: how long the lease
	// has been held must be known above all while a write hangs.
	writing chan struct{}
	mu      struct {
		sync.Mutex
		row     Row
		renewed time.Duration // time at which the row's last successful write began
		lost    bool
		failed  int64 // failed writes since then, each of which may have succeeded at the endpoint
		given   bool  // the lease is being released, and another worker may have it
	}
}

// Shard returns the name of the shard.
func (h *Lease) Shard() string { return h.shard }

// Term returns the fencing token. It is greater than the terms of all earlier owners.
func (h *Lease) Term() int64 { return h.term }

// Checkpoint returns the last saved checkpoint, of this owner or an earlier one.
func (h *Lease) Checkpoint() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.mu.row.Checkpoint
}

// Age returns the time since the lease was last known to be held. At the leases' duration another
// worker may take it; a lost lease is at least that old.
func (h *Lease) Age() time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.mu.lost {
		return max(h.leases.o.Elapsed()-h.mu.renewed, h.leases.o.Duration)
	}
	return h.leases.o.Elapsed() - h.leases.renewed(h.mu.renewed)
}

// compare marks the lease as lost if its row, read after it was taken, shows that. A worker with
// another duration may have taken it, or someone may have deleted or damaged the row.
func (h *Lease) compare(r Row) {
	h.mu.Lock()
	is := r.Term == h.term && r.Owner == h.leases.o.Owner
	if !is && !h.mu.given {
		h.mu.lost = true
	}
	h.mu.Unlock()
	if !is {
		h.leases.drop(h)
	}
}

// Save writes a checkpoint and renews the lease. It writes nothing and returns ErrLost if another
// worker has taken the lease.
func (h *Lease) Save(ctx context.Context, checkpoint string) error {
	return h.write(ctx, func(r *Row) { r.Checkpoint = checkpoint })
}

// Beat renews the lease.
func (h *Lease) Beat(ctx context.Context) error { return h.write(ctx, func(*Row) {}) }

// Release releases the lease, so that another worker can take it at once. A lost lease needs no
// release.
func (h *Lease) Release(ctx context.Context) error {
	h.mu.Lock()
	h.mu.given = true
	h.mu.Unlock()
	h.leases.drop(h)
	err := h.write(ctx, func(r *Row) { r.Owner = "" })
	h.mu.Lock()
	defer h.mu.Unlock()
	h.mu.lost = true
	if errors.Is(err, ErrLost) {
		return nil
	}
	return err
}

// write changes the row during this owner's term.
func (h *Lease) write(ctx context.Context, change func(*Row)) error {
	select {
	case h.writing <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-h.writing }()
	for {
		before, failed, lost := h.state()
		if lost {
			return ErrLost
		}
		began := h.leases.o.Elapsed()
		after := before
		// not the beat of a write before, which may have come through long ago, and would be taken
		// for this one
		after.Beat += 1 + failed
		change(&after)
		err := h.leases.replace(ctx, before, after)
		var changed *errChanged
		h.mu.Lock()
		switch {
		case err == nil:
			h.mu.row, h.mu.renewed, h.mu.failed = after, began, 0
			h.mu.Unlock()
			return nil
		case !errors.As(err, &changed):
			h.mu.failed++
			h.mu.Unlock()
			return err
		case changed.now.Term != before.Term || changed.now.Owner != before.Owner || changed.now.Beat <= before.Beat:
			h.mu.lost = true
			h.mu.Unlock()
			return ErrLost
		}
		// A write of ours that seemed to fail has succeeded. Its checkpoint is the latest of the
		// saved ones: renewals and releases keep it.
		h.mu.row.Beat, h.mu.row.Checkpoint = changed.now.Beat, changed.now.Checkpoint
		h.mu.Unlock()
	}
}

func (h *Lease) state() (row Row, failed int64, lost bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.mu.row, h.mu.failed, h.mu.lost
}
