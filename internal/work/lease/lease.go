package lease

import (
	"context"
	"errors"
	"maps"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

// ErrLost says that another worker has a lease by now, or was faster to take it.
var ErrLost = errors.New("another worker has the lease")

// Leases are the leases of one consumer, as one worker sees them.
type Leases struct {
	db       *dynamodb.Client
	consumer string
	o        Options
	mu       struct {
		sync.Mutex
		seen    map[string]sight  // by shard
		held    map[string]*Lease // by shard: what was taken, and neither released nor seen to be lost; of a worker among others
		looked  time.Duration     // when the last look at the rows began
		present presence
	}
}

// presence is since when, without a gap, and until when the others know by this worker's own row that it is there.
type presence struct {
	known bool          // there was such a row
	since time.Duration // when the first write of it was answered
	last  time.Duration // when the last one that succeeded began
}

// sight is what a row was when it last changed, and when that was seen.
type sight struct {
	owner      string
	term, beat int64
	at         time.Duration
}

// New gives the leases of a consumer. It asks for nothing yet.
func New(db *dynamodb.Client, consumer string, o Options) *Leases {
	l := &Leases{db: db, consumer: consumer, o: o.withDefaults()}
	l.mu.seen, l.mu.held = map[string]sight{}, map[string]*Lease{}
	return l
}

// Owner is the worker's name.
func (l *Leases) Owner() string { return l.o.Owner }

// Duration is that of the leases.
func (l *Leases) Duration() time.Duration { return l.o.Duration }

// Rows reads the consumer's leases, by shard, and notes which have changed since it was last called. One of this worker's that is another's by now, or nobody's, is lost.
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
		if _, ok := rows[shard]; !ok && !(IsCrew(shard) && now-s.at < l.o.Duration) { // a worker whose own row somebody has deleted may be there
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

// drop forgets a lease that is released or lost.
func (l *Leases) drop(h *Lease) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.mu.held[h.shard] == h {
		delete(l.mu.held, h.shard)
	}
}

// shown notes that a row has changed just now.
func (l *Leases) shown(r Row) {
	now := l.o.Elapsed()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mu.seen[r.Shard] = sight{r.Owner, r.Term, r.Beat, now}
}

// silentLocked is how long the owner of a row had given no sign of life when the rows were last looked at. ok is false where the row is not as it was then.
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

// renewed is when a lease was last known to be held that was itself written at the instant given.
func (l *Leases) renewed(written time.Duration) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.mu.present.known && l.mu.present.since <= written {
		return max(written, l.mu.present.last)
	}
	return written
}

// attended notes that this worker's own row was written, by a call that began then; again is false where the row is a new one.
func (l *Leases) attended(began time.Duration, again bool) {
	now := l.o.Elapsed()
	l.mu.Lock()
	defer l.mu.Unlock()
	if !again || now-l.mu.present.last >= l.o.Duration {
		l.mu.present.since = now
	}
	l.mu.present.known, l.mu.present.last = true, began
}

// Free reports whether a row can be taken: nobody has it, this worker has it and does not know, or its owner had been silent for the duration of a lease when Rows was last called.
func (l *Leases) Free(r Row) bool {
	if r.Owner == "" || r.Owner == l.o.Owner || l.o.Exclusive {
		return true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	silent, ok := l.silentLocked(r)
	return ok && silent >= l.o.Duration
}

// Take takes a lease that is as the row says, or a new one where the row is that of no term. It is ErrLost where another worker was faster.
func (l *Leases) Take(ctx context.Context, r Row) (*Lease, error) {
	began := l.o.Elapsed()
	after := Row{Shard: r.Shard, Owner: l.o.Owner, Term: r.Term + 1, Beat: r.Beat + 1, Checkpoint: r.Checkpoint}
	err := l.replace(ctx, r, after)
	var changed *errChanged
	if errors.As(err, &changed) {
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

// Disown gives up a row that says that this worker has it, which it does not know of or could not release: the others would take it for held as long as the worker is there.
func (l *Leases) Disown(ctx context.Context, r Row) error {
	after := r
	after.Owner, after.Term, after.Beat, after.damage = "", max(r.Term, 1), r.Beat+1, nil
	err := l.replace(ctx, r, after)
	var changed *errChanged
	if errors.As(err, &changed) {
		return nil // the next look tells
	}
	return err
}

// Note makes a row that nobody owns, with a checkpoint, where there is none. It gives the row that there is then.
func (l *Leases) Note(ctx context.Context, shard, checkpoint string) (Row, error) {
	row := Row{Shard: shard, Term: 1, Beat: 1, Checkpoint: checkpoint}
	err := l.replace(ctx, Row{Shard: shard}, row)
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

// Forget deletes a row that is still as given. One that has changed stays.
func (l *Leases) Forget(ctx context.Context, r Row) error {
	_, err := l.forget(ctx, r)
	return err
}

// forget deletes a row, too. It gives the row that has stayed; without a term where none has.
func (l *Leases) forget(ctx context.Context, r Row) (now Row, err error) {
	condition, names, values := r.isAs()
	_, err = l.db.DeleteItem(ctx, &dynamodb.DeleteItemInput{
		TableName: aws.String(TableName), Key: r.key(l.consumer),
		ConditionExpression: &condition, ExpressionAttributeNames: names, ExpressionAttributeValues: values,
	})
	if conditionFailed(err) {
		return l.row(ctx, r.Shard) // it may be gone, by an earlier try of the same call
	}
	return Row{}, err
}

// Exclusive reports whether the worker is alone.
func (l *Leases) Exclusive() bool { return l.o.Exclusive }

// Elapsed is the local monotonic clock.
func (l *Leases) Elapsed() time.Duration { return l.o.Elapsed() }

// Lease is one that this worker has taken. Its methods may be called from many goroutines; the writes happen one after another.
type Lease struct {
	leases *Leases
	shard  string
	term   int64
	// writing has an element while a write is under way. mu is free meanwhile: how long the lease has been held must be known above all while a write hangs.
	writing chan struct{}
	mu      struct {
		sync.Mutex
		row     Row
		renewed time.Duration // when the last write of the row that succeeded began
		lost    bool
		failed  int64 // writes since the last one that succeeded, of which nobody knows whether they came through
		given   bool  // it is being given up, and another worker may have it by now
	}
}

// Shard is what the lease is for.
func (h *Lease) Shard() string { return h.shard }

// Term is the fencing token: greater than that of every owner before.
func (h *Lease) Term() int64 { return h.term }

// Checkpoint is the one that was saved last, by this owner or one before.
func (h *Lease) Checkpoint() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.mu.row.Checkpoint
}

// Age is how long ago the lease was last known to be held. At the duration of leases another worker may take it: a lease that is lost is at least so old.
func (h *Lease) Age() time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.mu.lost {
		return max(h.leases.o.Elapsed()-h.mu.renewed, h.leases.o.Duration)
	}
	return h.leases.o.Elapsed() - h.leases.renewed(h.mu.renewed)
}

// compare notes that the lease is lost where its row, which was read after it was taken, says so. Another worker may have taken it that goes by leases of another duration, or somebody has
// deleted or damaged the row.
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

// Save writes a checkpoint, which also renews the lease. It is ErrLost once another worker has taken it: nothing is written then.
func (h *Lease) Save(ctx context.Context, checkpoint string) error {
	return h.write(ctx, func(r *Row) { r.Checkpoint = checkpoint })
}

// Beat renews the lease.
func (h *Lease) Beat(ctx context.Context) error { return h.write(ctx, func(*Row) {}) }

// Release gives the lease up, so that another worker can take it at once. A lease that is lost is released already.
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

// write changes the row where this owner's term lasts.
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
		after.Beat += 1 + failed // not the beat of a write before, which may have come through long ago, and would be taken for this one
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
		// A write of ours that seemed to fail has come through. Its checkpoint is the latest that was to be saved: what only renews or releases the lease keeps it.
		h.mu.row.Beat, h.mu.row.Checkpoint = changed.now.Beat, changed.now.Checkpoint
		h.mu.Unlock()
	}
}

func (h *Lease) state() (row Row, failed int64, lost bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.mu.row, h.mu.failed, h.mu.lost
}
