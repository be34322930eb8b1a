package timeseries

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/mayflydb/mayfly/internal/option"
	"github.com/mayflydb/mayfly/internal/work/attr"
)

// WriterOptions configure a Writer. The zero value is valid.
type WriterOptions struct {
	// Parallel is the number of concurrent calls. Default: 32. Range: 1 to 256.
	Parallel int
	// Queue is the maximum number of waiting samples; Write blocks while it is full. Default:
	// 10,000. Range: 25 to 1,000,000.
	Queue int
	// RetryFor is how long a temporary failure of the endpoint is retried, in real time. Default:
	// one minute. Range: a millisecond to a day.
	RetryFor time.Duration
	// ShardRate is the rate, in writes of 1 KB per second, above which a device gets more shards.
	// Default: 700, since a partition takes 1,000. Negative: rates never add shards.
	ShardRate float64
	// MaxShards is the maximum number of shards that a writer chooses for a device. Default: 16.
	// Range: 1, which means no sharding, to 100.
	MaxShards int
}

func (o WriterOptions) withDefaults() WriterOptions {
	if o.Parallel == 0 {
		o.Parallel = 32
	}
	if o.Queue == 0 {
		o.Queue = 10_000
	}
	if o.RetryFor == 0 {
		o.RetryFor = time.Minute
	}
	if o.ShardRate == 0 {
		o.ShardRate = 700
	}
	if o.MaxShards == 0 {
		o.MaxShards = 16
	}
	return o
}

func (o WriterOptions) validate() error {
	var all option.Complaints
	all.AddIf(o.Parallel < 1 || o.Parallel > 256, "Parallel", "%d is not between 1 and 256", o.Parallel)
	all.AddIf(o.Queue < batchMax || o.Queue > 1_000_000, "Queue", "%d is not between %d and 1,000,000", o.Queue, batchMax)
	all.AddIf(o.RetryFor < time.Millisecond || o.RetryFor > 24*time.Hour, "RetryFor", "%s is not between a millisecond and a day", o.RetryFor)
	all.AddIf(o.MaxShards < 1 || o.MaxShards > shardsMax, "MaxShards", "%d is not between 1 and %d", o.MaxShards, shardsMax)
	return all.Err("timeseries: ")
}

// Writer writes samples in batches of 25 from all its callers, several batches at a time. Its
// goroutines run while the queue has samples; Close waits for them. Its methods are safe for
// concurrent use.
type Writer struct {
	series *Series
	o      WriterOptions
	ctx    context.Context // bounds calls on behalf of all callers
	log    *slog.Logger
	queue  chan *entry
	wait   sync.WaitGroup // senders
	mu     struct {
		sync.Mutex
		senders int
	}
	latest latestWriter
	meter  meter
}

// entry is a queued sample.
type entry struct {
	partition, key string
	device         string
	item           item
	index          int // in the samples of the call
	call           *call
}

// call is the state of one Write.
type call struct {
	done chan struct{} // closed when no sample is left
	mu   struct {
		sync.Mutex
		left      int
		unwritten []int
		err       error // the first one
	}
}

// finish records the outcome of one sample of a call.
func (c *call) finish(index int, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil {
		c.mu.unwritten = append(c.mu.unwritten, index)
		if c.mu.err == nil || isValidation(c.mu.err) {
			// a temporary error takes precedence over a validation error, which would count all
			// samples as refused
			c.mu.err = err
		}
	}
	if c.mu.left--; c.mu.left == 0 {
		close(c.done)
	}
}

// Refused is a sample that can never be stored.
type Refused struct {
	Index int // in the arguments of Write
	Err   *SampleError
}

// WriteError lists the samples that were refused, and those to write again. All others are written.
type WriteError struct {
	Refused []Refused // never storable, because of their contents or their time
	// indexes of samples to write again, which is safe: the endpoint did not take them, or may not
	// have taken the latest sample of their device
	Unwritten []int
	// the endpoint's error; nil if there are only refused ones. After a ValidationException the
	// endpoint will never take the unwritten samples
	Err error
}

func (e *WriteError) Error() string {
	switch {
	case e.Err == nil:
		return fmt.Sprintf("%d samples were refused, the first because %s", len(e.Refused), e.Refused[0].Err)
	case len(e.Refused) == 0:
		return fmt.Sprintf("%d samples were not written: %v", len(e.Unwritten), e.Err)
	}
	return fmt.Sprintf("%d samples were refused, and %d not written: %v", len(e.Refused), len(e.Unwritten), e.Err)
}

func (e *WriteError) Unwrap() error { return e.Err }

// Writer returns a new writer. Its calls continue until ctx is done, even if the contexts of all
// callers end.
func (s *Series) Writer(ctx context.Context, o WriterOptions) (*Writer, error) {
	o = o.withDefaults()
	if err := o.validate(); err != nil {
		return nil, err
	}
	w := &Writer{series: s, o: o, ctx: ctx, log: s.spec.Logger, queue: make(chan *entry, o.Queue)}
	w.latest.init(w)
	w.meter.window = meterWindow
	w.meter.init()
	return w, nil
}

// Close waits for calls in progress. Without it no sample is lost whose Write has returned.
func (w *Writer) Close() { w.wait.Wait() }

// Write writes samples. It returns nil when they are durable at the endpoint and the latest sample
// of each device is stored, and otherwise a *WriteError. After any other error, such as a failure
// to read the shard counts, all samples must be written again. Samples may be in any order, repeat,
// and mix devices. Write blocks while the queue is full.
//
// If ctx ends first, Write returns its error, and samples may be written nevertheless: writing them
// again is safe.
func (w *Writer) Write(ctx context.Context, samples ...Sample) error {
	newest, err := w.put(ctx, samples)
	var partly *WriteError
	if err != nil && !errors.As(err, &partly) {
		return err
	}
	if late := w.latest.settle(ctx, newest); late != nil {
		if partly == nil {
			partly = &WriteError{}
		}
		// The samples are stored, but a device's latest one may not be. Writing them again repairs
		// it.
		for i := range samples {
			if _, ok := newest[samples[i].Device]; ok && !slices.Contains(partly.Unwritten, i) {
				partly.Unwritten = append(partly.Unwritten, i)
			}
		}
		if isValidation(partly.Err) { // as in finish
			partly.Err = nil
		}
		partly.Err = errors.Join(partly.Err, late)
		return partly
	}
	return err
}

// put writes samples and notes their latest ones, whose sort keys it returns by device.
func (w *Writer) put(ctx context.Context, samples []Sample) (newest map[string]string, err error) {
	shards, err := w.series.shards.get(ctx)
	if err != nil {
		return nil, err
	}
	c := &call{done: make(chan struct{})}
	c.mu.left = 1 // counts this function
	var refused []Refused
	candidates := map[string]candidate{}
	now := w.series.spec.Now()
	for i := range samples {
		e, latest, bad := w.entry(&samples[i], shards, now)
		if bad != nil {
			refused = append(refused, Refused{i, bad})
			continue
		}
		e.index, e.call = i, c
		if best, ok := candidates[e.device]; !ok || best.key < e.key {
			candidates[e.device] = candidate{e.key, i, latest}
		}
		c.mu.Lock()
		c.mu.left++
		c.mu.Unlock()
		if err := w.enqueue(ctx, e); err != nil {
			return nil, err
		}
	}
	w.startSenders(true)
	c.finish(0, nil)
	select {
	case <-c.done:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	return w.noteNewest(samples, candidates, c), w.outcome(refused, c)
}

func (w *Writer) outcome(refused []Refused, c *call) error {
	if len(refused) == 0 && c.mu.err == nil {
		return nil
	}
	slices.Sort(c.mu.unwritten)
	return &WriteError{refused, c.mu.unwritten, c.mu.err}
}

// candidate is a sample that may be its device's latest.
type candidate struct {
	key   string
	index int
	item  func() item
}

// noteNewest notes the newest written sample of each device.
func (w *Writer) noteNewest(samples []Sample, candidates map[string]candidate, c *call) map[string]string {
	newest := map[string]string{}
	for device, best := range candidates {
		if slices.Contains(c.mu.unwritten, best.index) {
			continue // a later write of the sample settles it
		}
		newest[device] = best.key
		w.latest.note(device, best.key, best.item)
	}
	return newest
}

// entry returns the queue entry of a sample, and a function that makes the item for the table of
// latest samples.
func (w *Writer) entry(s *Sample, shards map[string]Shards, now time.Time) (*entry, func() item, *SampleError) {
	if err := w.series.Check(s, now); err != nil {
		return nil, nil, err
	}
	metadata, err := s.metadata()
	if err != nil {
		return nil, nil, err
	}
	spec := &w.series.spec
	key := sortKey(s, metadata)
	var deadline time.Time
	if spec.Retention > 0 {
		deadline = s.Time.Add(spec.Retention)
	}
	count := 1
	if n, ok := shards[s.Device]; ok {
		count = n.Writers(now)
	}
	e := &entry{key: key, device: s.Device, partition: partition(s.Device, shardOf(key, count))}
	e.item = newItem(s, key, metadata, deadline)
	e.item[attrDevice] = attr.S(e.partition)
	for _, metric := range spec.Metrics {
		if _, ok := s.Values[metric]; ok {
			e.item[bucketOf(metric)] = attr.S(bucket(metric, s.Time, bucketShard(s.Device, spec.MetricShards)))
		}
	}
	return e, func() item { return newItem(s, key, metadata, deadline) }, nil
}

// Check returns the reason why a sample cannot be stored at this instant, or nil. It does not check
// the tags: Write refuses a sample with bad ones.
func (s *Series) Check(sample *Sample, now time.Time) *SampleError {
	if err := sample.check(); err != nil {
		return err
	}
	switch ahead := sample.Time.Sub(now); {
	case s.spec.Retention > 0 && !sample.Time.Add(s.spec.Retention).After(now):
		return refuse(ReasonExpired, "its retention ended at %s", sample.Time.Add(s.spec.Retention).UTC().Format(time.RFC3339Nano))
	case ahead > s.spec.Ahead:
		return refuse(ReasonFuture, "its time %s is more than %s in the future", sample.Time.UTC().Format(time.RFC3339Nano), s.spec.Ahead)
	}
	return nil
}

// enqueue adds an entry, and waits while the queue is full.
func (w *Writer) enqueue(ctx context.Context, e *entry) error {
	select {
	case w.queue <- e:
		w.startSenders(false)
		return nil
	default:
	}
	w.startSenders(true)
	select {
	case w.queue <- e:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-w.ctx.Done():
		return w.ctx.Err()
	}
}

// startSenders starts another goroutine if a batch is queued, or any sample if anything is set, and
// the limit allows one more.
func (w *Writer) startSenders(anything bool) {
	if n := len(w.queue); n == 0 || !anything && n%batchMax != 0 {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.mu.senders < w.o.Parallel {
		w.mu.senders++
		w.wait.Go(w.sendAll)
	}
}

// sendAll sends batches until the queue is empty.
func (w *Writer) sendAll() {
	for {
		batch := w.take()
		if batch == nil {
			return
		}
		w.send(batch)
		w.grow()
	}
}

// take returns up to a batch of the queue. If the queue is empty, the caller's sender must end.
func (w *Writer) take() (batch []*entry) {
	// checking the queue and counting the sender out are one step, so that a later entry starts a
	// new one
	w.mu.Lock()
	defer w.mu.Unlock()
	for len(batch) < batchMax {
		select {
		case e := <-w.queue:
			batch = append(batch, e)
		default:
			if batch == nil {
				w.mu.senders--
			}
			return batch
		}
	}
	return batch
}
