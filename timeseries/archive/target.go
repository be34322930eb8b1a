package archive

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"

	"github.com/mayflydb/mayfly/internal/clock"
	"github.com/mayflydb/mayfly/target"
	"github.com/mayflydb/mayfly/timeseries"
)

// TargetOptions configure a Target. The zero value is valid.
type TargetOptions struct {
	// Wait is the longest time that a sample waits for others, in real time; guard removes it that
	// much later. Default: 100 ms. Range: a millisecond to a minute.
	Wait time.Duration
	// Rows is the number of samples at which a file stops growing. Default: 50,000. Range: 1 to
	// 400,000.
	Rows int
	// Mark is the attribute with which guard marks an item before it removes it
	// (guard.Options.Mark); it is no metric. Default: none.
	Mark string
	// Logger receives messages for operators. Default: none.
	Logger *slog.Logger
}

const (
	waitDefault = 100 * time.Millisecond
	waitMax     = time.Minute

	batchSamplesMax = 10_000   // of a batch
	batchBytesMax   = 16 << 20 // of a batch, an estimate

	writeTime = 5 * time.Minute // limit for writing a batch
	mergeTime = time.Minute     // limit for combining files, during which deliveries wait
	closeTime = 10 * time.Second
)

func (o TargetOptions) withDefaults() TargetOptions {
	o.Wait = cmp.Or(o.Wait, waitDefault)
	o.Rows = cmp.Or(o.Rows, followRowsDefault)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

func (o TargetOptions) validate() error {
	var all []error
	if o.Wait < time.Millisecond || o.Wait > waitMax {
		all = append(all, fmt.Errorf("the option Wait: %s is not between a millisecond and a minute", o.Wait))
	}
	if o.Rows < 1 || o.Rows > followRowsMax {
		all = append(all, fmt.Errorf("the option Rows: %d is not between 1 and %d", o.Rows, followRowsMax))
	}
	return errors.Join(all...)
}

// Target archives samples before guard removes them; use it as guard.Options.Archive of one series.
// A delivery succeeds when a file has its sample, durably. A target writes the deliveries of a
// short time together, one file per day, and combines a day's small files when there are many.
//
// Guard may deliver a sample more than once: again after a crash, and as a final delivery if the
// item changed just before its removal. The last delivery counts; of two concurrent targets, the
// newer one's. Files have an item's key, numbers (as float64) and metadata, but neither its TTL nor
// other attributes. All methods are safe for concurrent use.
type Target struct {
	a      *Archive
	o      TargetOptions
	writer string // unique in the names of its files; later targets have greater ones

	turn    chan struct{} // a semaphore for writing files
	days    days          // guarded by turn
	batches sync.WaitGroup
	merging context.Context // context for combining files
	stop    context.CancelFunc

	mu struct {
		sync.Mutex
		closed    bool
		gathering *batch // accepts samples; nil: the next sample starts a batch
	}
}

var _ target.Target = (*Target)(nil)

// Target returns a new target. The archive must have no files of Export or Follow. Target removes
// files of earlier targets that larger ones include.
func (a *Archive) Target(ctx context.Context, o TargetOptions) (*Target, error) {
	o = o.withDefaults()
	if err := o.validate(); err != nil {
		return nil, err
	}
	names, err := a.list(ctx, allDays)
	if err == nil {
		err = a.mixed(names.days, kindRemoved)
	}
	if err != nil {
		return nil, err
	}
	for _, name := range names.included {
		a.removeIncluded(ctx, name, o.Logger)
	}
	t := &Target{a: a, o: o, turn: make(chan struct{}, 1)}
	t.merging, t.stop = context.WithCancel(context.Background())
	t.writer = fmt.Sprintf("%013x%s", clock.New().Millis(), strings.ToLower(rand.Text()[:12]))
	t.days = days{a: a, o: o, writer: t.writer, open: map[string]*growing{}}
	return t, nil
}

// batch is a set of samples for one write.
type batch struct {
	full    chan struct{} // closed when it accepts no more samples
	done    chan struct{} // closed when errs has the outcome of each sample
	ctx     context.Context
	cancel  context.CancelFunc // called when no caller waits any longer
	samples []timeseries.Sample
	errs    []error
	bytes   int
	waiting int // samples whose callers wait; guarded by the target's lock
}

// place is a sample's position in a batch.
type place struct {
	*batch
	at int
}

// errClosed reports that a target is closed.
var errClosed = errors.New("the archive is closed")

// Deliver writes the samples of guard's deliveries. A delivery that is not a sample of a series
// fails for good.
func (t *Target) Deliver(ctx context.Context, deliveries []target.Delivery) []error {
	results := make([]error, len(deliveries))
	places := make([]place, len(deliveries))
	for i := range deliveries {
		s, err := t.read(&deliveries[i])
		if err == nil {
			places[i], err = t.join(&s, len(deliveries[i].Body))
		}
		results[i] = err
	}
	for i, p := range places {
		if p.batch != nil {
			results[i] = t.await(ctx, p)
		}
	}
	return results
}

// expiry is the used part of guard.Expiry.
type expiry struct {
	Attribute string          `json:"attribute"`
	Item      json.RawMessage `json:"item"`
}

// read returns the sample of a delivery.
func (t *Target) read(d *target.Delivery) (s timeseries.Sample, err error) {
	var e expiry
	if err := json.Unmarshal(d.Body, &e); err != nil {
		return s, noSample(fmt.Errorf("the delivery does not come from guard: %w", err))
	}
	if e.Attribute != timeseries.AttributeTTL {
		return s, noSample(fmt.Errorf("the item's TTL attribute is %q, but a sample's is %q", e.Attribute, timeseries.AttributeTTL))
	}
	image, err := attributevalue.UnmarshalMapJSON(e.Item)
	if err != nil {
		return s, noSample(fmt.Errorf("the delivery's item: %w", err))
	}
	delete(image, t.o.Mark)
	if s, _, err = timeseries.ReadItem(image); err != nil {
		return s, noSample(err)
	}
	if _, err := newMetrics().row(&s); err != nil {
		return s, noSample(err)
	}
	return s, nil
}

// noSample marks an error as final.
func noSample(err error) error {
	return &target.Error{Code: "NotASample", Message: err.Error(), Permanent: true, Err: err}
}

// join adds a sample to a batch.
func (t *Target) join(s *timeseries.Sample, bytes int) (place, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.mu.closed {
		return place{}, errClosed
	}
	b := t.mu.gathering
	if b == nil {
		b = &batch{full: make(chan struct{}), done: make(chan struct{})}
		b.ctx, b.cancel = context.WithCancel(context.Background())
		t.mu.gathering = b
		t.batches.Go(func() { t.run(b) })
	}
	b.samples, b.bytes, b.waiting = append(b.samples, *s), b.bytes+bytes, b.waiting+1
	if len(b.samples) >= batchSamplesMax || b.bytes >= batchBytesMax {
		t.endLocked(b)
	}
	return place{b, len(b.samples) - 1}, nil
}

// endLocked closes a batch to further samples.
func (t *Target) endLocked(b *batch) {
	if t.mu.gathering == b {
		t.mu.gathering = nil
		close(b.full)
	}
}

// await waits until a file has the sample, or ctx is done.
func (t *Target) await(ctx context.Context, p place) error {
	select {
	case <-p.done:
		return p.errs[p.at]
	case <-ctx.Done():
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if p.waiting--; p.waiting == 0 {
		t.endLocked(p.batch) // no later sample may join it
		p.cancel()
	}
	return ctx.Err()
}

// run writes a batch after it is full or has waited long enough, and after the writes before it.
// Until then the batch accepts samples.
func (t *Target) run(b *batch) {
	defer b.cancel()
	clock.Pause(t.o.Wait, b.full)
	t.turn <- struct{}{}
	defer func() { <-t.turn }()
	t.mu.Lock()
	t.endLocked(b)
	t.mu.Unlock()
	t.write(b)
	close(b.done)
	ctx, cancel := context.WithTimeout(t.merging, mergeTime)
	defer cancel()
	t.days.merge(ctx, false)
}

// write writes a batch within a time limit: a store that hangs is an error, which guard logs and
// retries.
func (t *Target) write(b *batch) {
	ctx, cancel := context.WithTimeout(b.ctx, writeTime)
	defer cancel()
	b.errs = t.days.write(ctx, b.samples)
}

// Close refuses further deliveries, waits for writes in progress, and combines the small files of
// each day. It stops combining 10 seconds after its call, even if the writes have taken that long.
// Small files that remain serve as well.
func (t *Target) Close() {
	t.mu.Lock()
	t.mu.closed = true
	if b := t.mu.gathering; b != nil {
		t.endLocked(b)
	}
	t.mu.Unlock()
	defer clock.AfterFunc(closeTime, t.stop).Stop()
	t.batches.Wait()
	t.turn <- struct{}{} // another Close may hold it
	defer func() { <-t.turn }()
	t.days.merge(t.merging, true)
}
