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

// TargetOptions say how the samples that guard removes are archived. The zero value is ready to use.
type TargetOptions struct {
	// Wait is how long a sample waits for others at most before their file is written, in real time: guard removes it that much later. Default: 100 ms. Range: a millisecond to a minute.
	Wait time.Duration
	// Rows is how many samples make a file that is finished. Default: 50,000. Range: 1 to 400,000.
	Rows int
	// Mark is the attribute in which guard notes what it is about to remove (guard.Options.Mark): it is no metric. Default: none.
	Mark string
	// Logger is told what an operator has to know. Default: nobody is.
	Logger *slog.Logger
}

const (
	waitDefault = 100 * time.Millisecond
	waitMax     = time.Minute

	batchSamplesMax = 10_000   // of a batch
	batchBytesMax   = 16 << 20 // of a batch, about

	writeTime = 5 * time.Minute // that writing a batch takes at most
	mergeTime = time.Minute     // that putting files together takes at most, while what is delivered waits
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

// Target archives samples before guard removes them: it is what guard.Options.Archive can be for one series. A delivery has arrived when its sample is in a file, durably. What is
// delivered within a short time is written together, a file for each day, and a day's small files are put together when there are many.
//
// Guard may deliver a sample more than once: again after a crash of its own, and once more, as the final delivery, where the item was changed right before it went. The last
// one counts; of two targets that are at work at one time, that of the one that was made later. What an item has besides its key, numbers and metadata is in no file, nor is its TTL;
// a number is kept as a float64. All methods may be called at once.
type Target struct {
	a      *Archive
	o      TargetOptions
	writer string // in the names of its files, and of no other's: those of later ones are greater

	turn    chan struct{} // holds one for who writes files
	days    days          // its holder's
	batches sync.WaitGroup
	merging context.Context // of what puts files together
	stop    context.CancelFunc

	mu struct {
		sync.Mutex
		closed    bool
		gathering *batch // that takes samples; nil: the next one begins a batch
	}
}

var _ target.Target = (*Target)(nil)

// Target makes a target. The archive must have no files of Export or Follow. What earlier targets have left of files that are in larger ones is removed.
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

// batch is samples that are written together.
type batch struct {
	full    chan struct{} // closed when it takes no more
	done    chan struct{} // closed when errs says what has become of each
	ctx     context.Context
	cancel  context.CancelFunc // when nobody waits for it any more
	samples []timeseries.Sample
	errs    []error
	bytes   int
	waiting int // callers' samples; guarded by the target's lock
}

// place is a sample's in a batch.
type place struct {
	*batch
	at int
}

// errClosed says that a target takes nothing any more.
var errClosed = errors.New("the archive is closed")

// Deliver writes the samples of deliveries that guard makes. What is no sample of a series is refused for good.
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

// expiry is what is needed of guard.Expiry.
type expiry struct {
	Attribute string          `json:"attribute"`
	Item      json.RawMessage `json:"item"`
}

// read gives the sample of a delivery.
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

// noSample is an error of what is refused for good.
func noSample(err error) error {
	return &target.Error{Code: "NotASample", Message: err.Error(), Permanent: true, Err: err}
}

// join gives a sample a place in a batch.
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

// endLocked lets no more samples into a batch.
func (t *Target) endLocked(b *batch) {
	if t.mu.gathering == b {
		t.mu.gathering = nil
		close(b.full)
	}
}

// await waits until a sample is in a file, or ctx is done.
func (t *Target) await(ctx context.Context, p place) error {
	select {
	case <-p.done:
		return p.errs[p.at]
	case <-ctx.Done():
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if p.waiting--; p.waiting == 0 {
		t.endLocked(p.batch) // who comes now must not get into it
		p.cancel()
	}
	return ctx.Err()
}

// run writes a batch when it is full or has waited, and it is its turn. It takes samples until then.
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

// write writes a batch within bounded time: a store that does not answer is an error, which guard tells of and tries again.
func (t *Target) write(b *batch) {
	ctx, cancel := context.WithTimeout(b.ctx, writeTime)
	defer cancel()
	b.errs = t.days.write(ctx, b.samples)
}

// Close lets nothing more be delivered, waits for what is being written, and puts the small files of each day together, for up to 10 seconds: those that it does not get to stay, and are as good.
func (t *Target) Close() {
	t.mu.Lock()
	t.mu.closed = true
	if b := t.mu.gathering; b != nil {
		t.endLocked(b)
	}
	t.mu.Unlock()
	defer clock.AfterFunc(closeTime, t.stop).Stop()
	t.batches.Wait()
	t.turn <- struct{}{} // another Close may have it
	defer func() { <-t.turn }()
	t.days.merge(t.merging, true)
}
