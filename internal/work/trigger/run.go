package trigger

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"

	"github.com/mayflydb/mayfly/internal/work/consume"
	"github.com/mayflydb/mayfly/internal/work/ensure"
	"github.com/mayflydb/mayfly/internal/work/retry"
)

// run is a running trigger.
type run struct {
	*plan
	o        *Options
	triggers *Triggers
	revision int64 // of the mapping; 0 for a declared trigger
	cancel   context.CancelFunc
	log      *slog.Logger
	rests    rests
	over     atomic.Bool // its stream has ended
	// closed when the database has registered the consumer, or need not: the stream is missing, or
	// the database is another process
	registered chan struct{}
	once       sync.Once
	turn       chan struct{} // closed when no earlier feed comes first
	turned     sync.Once
	reading    string         // ARN of the current stream
	ends       sync.WaitGroup // of all lanes
	mu         struct {
		sync.Mutex
		shards map[string]*shard
		result string // as last written: of the last batch, or the reason why no batches come
	}
}

func newRun(t *Triggers, p *plan, revision int64, cancel context.CancelFunc) *run {
	r := &run{plan: p, o: &t.o, triggers: t, revision: revision, cancel: cancel, log: t.o.Logger.With("trigger", p.id)}
	r.mu.shards = map[string]*shard{}
	r.registered, r.turn = make(chan struct{}), make(chan struct{})
	if p.feed != nil && p.feed.Waits {
		r.rests.follow(true)
	} else {
		r.takeTurn()
	}
	if t.o.Registry.Register == nil {
		r.noteRegistered()
	}
	return r
}

// noteRegistered records that the database has registered the consumer, or need not.
func (r *run) noteRegistered() { r.once.Do(func() { close(r.registered) }) }

// isRegistered reports whether noteRegistered was called.
func (r *run) isRegistered() bool {
	select {
	case <-r.registered:
		return true
	default:
		return false
	}
}

// takeTurn begins the delivery of the records that were read so far: no earlier feed comes first.
func (r *run) takeTurn() {
	r.turned.Do(func() {
		r.rests.follow(false) // first, so that the clock waits for the deliveries
		close(r.turn)
	})
}

// awaitTurn waits until records may be delivered, or ctx is done.
func (r *run) awaitTurn(ctx context.Context) {
	select {
	case <-r.turn:
	case <-ctx.Done():
	}
}

// windowRecords bounds the records that a consumer reads ahead of the first one that is not done.
const windowRecords = 10_000

// newConsumer returns the reader of a stream.
func (r *run) newConsumer(stream string, start consume.Start) *consume.Consumer {
	streams := r.o.Streams
	if r.feed != nil {
		streams = r.o.Feeds.Streams
	}
	return &consume.Consumer{
		Name: r.consumer(), StreamARN: stream, Start: start, DB: r.o.DB, Streams: streams, Now: r.o.Clock.Now, Leases: r.o.Leases,
		Registry: r.o.Registry.Notify(r.noteRegistered), Window: max(windowRecords, 2*r.batch), Logger: r.o.Logger, Handle: r.handle, Settle: r.settle,
	}
}

// run reads the stream until ctx is done, and then each following stream of its table.
func (r *run) run(ctx context.Context) {
	defer r.noteRegistered()
	if r.missed {
		if result, err := r.triggers.missing(ctx, r.stream); err == nil && result == "" {
			r.result(ctx, resultOK)
		}
	}
	// a second stream began while the first was read
	for start := r.start; ; start = consume.TrimHorizon {
		var looked func()
		r.reading, looked = r.nextStream(ctx, r.reading, func() {
			if start == consume.Latest {
				start = consume.SinceCreation
			}
		})
		if r.reading == "" {
			return
		}
		consumer := r.newConsumer(r.reading, start)
		consumer.Registry = consumer.Registry.Notify(looked)
		r.rests.to(consumer.Rest)
		err := consumer.Run(ctx)
		looked()
		r.ends.Wait()
		switch {
		case err != nil:
			r.log.Error("the trigger has stopped", "error", err)
			return
		case ctx.Err() != nil:
			return
		case r.feed != nil:
			r.finishFeed(ctx)
			return
		}
		r.over.Store(true)
		r.log.Warn("the stream has ended", "stream", r.reading)
	}
}

// result stores the result of a batch with the mapping, if it has changed. It reports whether it is
// stored.
func (r *run) result(ctx context.Context, result string) bool {
	if r.revision == 0 {
		return true
	}
	r.mu.Lock()
	same := r.mu.result == result
	r.mu.result = result
	r.mu.Unlock()
	if same {
		return true
	}
	if err := r.triggers.setResult(ctx, r.id, result); err != nil && ctx.Err() == nil {
		r.log.Warn("the result was not written", "result", result, "error", err)
		r.mu.Lock()
		r.mu.result = "" // so that the next equal result is written
		r.mu.Unlock()
		return false
	}
	return true
}

// begun reports whether records written from now on are delivered. With the start LATEST that takes
// a moment.
func (r *run) begun(ctx context.Context) bool {
	if r.start != consume.Latest || r.over.Load() {
		return true
	}
	begun, err := r.newConsumer(r.stream, r.start).Begun(ctx)
	return begun && err == nil
}

// nextStream returns the ARN of the stream after last; "" if ctx is done. It waits while the table
// is missing or has no further stream. If there was none at first, it calls isNew: the stream is
// younger than the trigger. The caller must call looked, as after AwaitStream.
func (r *run) nextStream(ctx context.Context, last string, isNew func()) (arn string, looked func()) {
	if r.stream != "" {
		if last != "" && !r.awaitAgain(ctx) {
			return "", func() {}
		}
		return r.stream, func() {}
	}
	return consume.AwaitStream(ctx, r.o.DB, r.o.Registry, r.table, last, func(err error) {
		r.noteRegistered()
		if err == nil || ensure.Missing(err) {
			isNew()
		}
		consume.LogNoStream(r.log, r.table, err)
	})
}

// awaitAgain waits until an ended stream can be read again, at an endpoint that had lost it for a
// while. It returns false if ctx is done. Meanwhile the mapping's result names the problem.
func (r *run) awaitAgain(ctx context.Context) bool {
	for pauses := whileMissing.Start(); ctx.Err() == nil; {
		changed, looked := r.o.Registry.NextChange()
		looked() // no clock waits for a stream that was lost
		result, err := r.triggers.missing(ctx, r.stream)
		switch {
		case err != nil && ctx.Err() == nil:
			r.log.Warn("looking for the stream failed; trying again", "stream", r.stream, "error", err, "after", pauses.Next())
		case err == nil && result == "":
			r.result(ctx, resultOK)
			return true
		}
		if changed == nil || err != nil || !r.result(ctx, result) {
			pauses.Wait(ctx)
			continue
		}
		select {
		case <-changed:
		case <-ctx.Done():
		}
	}
	return false
}

// whileMissing is how soon a stream is looked for again.
var whileMissing = retry.Policy{First: time.Second, Most: time.Minute}

// missing returns the result of a mapping whose stream cannot be read; "" if it can.
func (t *Triggers) missing(ctx context.Context, stream string) (result string, err error) {
	out, err := t.o.Streams.DescribeStream(ctx, &dynamodbstreams.DescribeStreamInput{StreamArn: &stream})
	var gone *types.ResourceNotFoundException
	switch {
	case errors.As(err, &gone):
		return resultNoStream, nil
	case err != nil:
		return "", err
	case out.StreamDescription.StreamStatus == types.StreamStatusDisabled:
		return resultDisabled, nil
	}
	return "", nil
}

// handle takes a page of a shard's records, in their order.
func (r *run) handle(ctx context.Context, id string, records []consume.Record) error {
	s, err := r.shard(ctx, id)
	if err != nil {
		return err
	}
	return s.take(ctx, records)
}

// settle waits until the lanes of a shard that is no longer read have ended, with their calls of
// the target, and the courier has settled their parcels.
func (r *run) settle(ctx context.Context, id string) {
	r.mu.Lock()
	s := r.mu.shards[id]
	r.mu.Unlock()
	if s == nil {
		return
	}
	drained := make(chan struct{})
	go func() {
		s.ends.Wait()
		close(drained)
	}()
	select {
	case <-drained:
		r.o.Courier.Settle(ctx, id)
	case <-ctx.Done():
	}
}

// shard returns the shard for the current reading. After a failure or a lost lease, a shard is read
// anew from its checkpoint. The lanes of the reading before must end first, so that no two lanes
// have the same key.
func (r *run) shard(ctx context.Context, id string) (*shard, error) {
	r.mu.Lock()
	before := r.mu.shards[id]
	if before != nil && before.ctx == ctx {
		r.mu.Unlock()
		return before, nil
	}
	s := newShard(ctx, r, id)
	for other, old := range r.mu.shards { // shards that were read to their ends
		if old.ctx.Err() != nil {
			delete(r.mu.shards, other)
		}
	}
	r.mu.shards[id] = s
	r.mu.Unlock()
	if before != nil {
		before.ends.Wait()
	}
	return s, ctx.Err()
}
