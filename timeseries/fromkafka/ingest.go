package fromkafka

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/mayflydb/mayfly/internal/clock"
	"github.com/mayflydb/mayfly/internal/work/retry"
	"github.com/mayflydb/mayfly/timeseries"
)

// Options select the records. Client, Topic and Group are required.
type Options struct {
	// Client configures the connection to the brokers: addresses, TLS, SASL.
	Client []kgo.Opt
	Topic  string
	// Group is the consumer group, whose offsets are the checkpoint. A new group starts at the
	// topic's beginning.
	Group string
	// Session is the time after which others get the partitions of a dead process. Default: 10 s.
	// The brokers limit it, by default to between 6 s and 30 minutes.
	Session time.Duration
	// UntilCaughtUp ends Ingest when the group has committed everything that the topic had at the
	// start. Default: Ingest continues until its context is done.
	UntilCaughtUp bool
	// Committed is called after each durable and committed batch. Default: no calls.
	Committed func()
	// Lost receives a sentence about records that the brokers deleted before they were read.
	// Default: the logger.
	Lost func(what string)
	// Logger receives messages for operators. Default: none.
	Logger *slog.Logger
}

const (
	batchMax       = 5000    // records per write
	fetchBytes     = 8 << 20 // of a broker's response; a single batch of records may be larger
	partitionBytes = 1 << 20 // of a partition in it
	fetchesAtOnce  = 4
	unpackedBytes  = 64 << 20 // of a batch of records

	sessionDefault = 10 * time.Second
	heartbeatParts = 3
	// for a member to release partitions: longer than a writer retries
	rebalanceLimit = 3 * time.Minute
	commitLimit    = 10 * time.Second
	// a broker's wait for records, unless Client has another
	fetchFor  = 500 * time.Millisecond
	lookEvery = 250 * time.Millisecond // between checks for UntilCaughtUp
	goneAfter = 5                      // consecutive checks without the topic
)

// afterFailure is how soon brokers that failed are asked again.
var afterFailure = retry.Policy{First: 100 * time.Millisecond, Most: 5 * time.Second}

// ErrNoTopic reports that the brokers do not have the topic, or no longer.
var ErrNoTopic = errors.New("topic not found")

func (o *Options) complete() error {
	if len(o.Client) == 0 || o.Topic == "" || o.Group == "" {
		return errors.New("the options Client, Topic and Group must be set")
	}
	if o.Session == 0 {
		o.Session = sessionDefault
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Committed == nil {
		o.Committed = func() {}
	}
	if o.Lost == nil {
		o.Lost = func(what string) { o.Logger.Error("records were lost", "what", what) }
	}
	return nil
}

// Ingest passes a topic's records to a receiver. It returns nil when ctx is done, or, with
// UntilCaughtUp, when it has caught up. It returns an error if the brokers do not describe the
// topic within seconds of its start, the receiver fails, a batch of records is too large, or a
// fault needs an administrator. It waits for brokers that fail later.
func Ingest(ctx context.Context, r *timeseries.Receiver, o Options) error {
	if err := o.complete(); err != nil {
		return err
	}
	in := &ingesting{o: o, r: r}
	if err := in.open(ctx); err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	defer in.ask.close()
	for pauses := afterFailure.Start(); ctx.Err() == nil; pauses.Wait(ctx) {
		ran := clock.Stopwatch()
		err := in.session(ctx)
		if !errors.Is(err, errAgain) {
			return err
		}
		if ran() > afterFailure.Most {
			pauses.Reset()
		}
	}
	return nil
}

// errAgain ends a session after which another starts at the group's offsets.
var errAgain = errors.New("joining the group failed; trying again")

type ingesting struct {
	o       Options
	r       *timeseries.Receiver
	ask     *asker
	topic   topic
	ends    map[int32]int64 // ends of the partitions at the start; nil without UntilCaughtUp
	passed  map[int32]int64 // offsets up to which nothing follows the committed one
	quiet   bool            // the last poll was empty
	looked  clock.Elapsed
	missing int // consecutive checks without the topic
}

// open checks that the topic exists, and reads its ends.
func (in *ingesting) open(ctx context.Context) (err error) {
	if in.ask, err = newAsker(in.o); err != nil {
		return err
	}
	in.topic, err = in.ask.topic(ctx)
	if err == nil && in.o.UntilCaughtUp {
		in.passed = map[int32]int64{}
		in.ends, err = in.ask.offsets(ctx, atEnd)
	}
	if err != nil {
		in.ask.close()
		return in.explain(err)
	}
	in.looked = clock.Stopwatch()
	return nil
}

// session runs one membership in the group. It returns nil when ctx is done or all is read,
// errAgain if another session may succeed, and otherwise the error with which Ingest ends.
func (in *ingesting) session(ctx context.Context) error {
	options := append([]kgo.Opt{kgo.FetchMaxWait(fetchFor)}, in.o.Client...)
	client, err := kgo.NewClient(append(options,
		kgo.ConsumerGroup(in.o.Group),
		kgo.ConsumeTopics(in.o.Topic),
		kgo.DisableAutoCommit(),
		kgo.BlockRebalanceOnPoll(),
		kgo.SessionTimeout(in.o.Session),
		kgo.HeartbeatInterval(in.o.Session/heartbeatParts),
		kgo.RebalanceTimeout(rebalanceLimit),
		kgo.ConsumeStartOffset(kgo.NewOffset().AtStart()),
		kgo.ConsumeResetOffset(kgo.NoResetOffset()), // adjust reports deleted records
		kgo.AdjustFetchOffsetsFn(in.adjust),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		// so that commits reach the end of the log, which may be a transaction's mark
		kgo.KeepControlRecords(),
		kgo.KeepRetryableFetchErrors(),
		kgo.FetchMaxBytes(fetchBytes),
		kgo.FetchMaxPartitionBytes(partitionBytes),
		kgo.MaxConcurrentFetches(fetchesAtOnce),
		kgo.MaxDecompressBatchBytes(unpackedBytes),
	)...)
	if err != nil {
		return fmt.Errorf("the client of Kafka: %w", err)
	}
	defer client.CloseAllowingRebalance()
	for pauses := afterFailure.Start(); ctx.Err() == nil; {
		fetches := in.poll(ctx, client)
		in.quiet = len(fetches) == 0
		err := in.batch(ctx, client, fetches)
		client.AllowRebalance()
		var passing error
		if err == nil {
			passing, err = in.errors(ctx, fetches)
		}
		switch {
		case err != nil:
			return err
		case passing != nil:
			in.o.Logger.Warn("reading records failed; trying again", "topic", in.o.Topic, "error", passing, "after", pauses.Next())
			pauses.Wait(ctx)
		default:
			pauses.Reset()
		}
		if done, err := in.caughtUp(ctx); err != nil || done {
			return err
		}
	}
	return nil
}

// poll waits for records, with UntilCaughtUp for at most lookEvery. It returns nil if none have
// come by then, or when ctx is done.
func (in *ingesting) poll(ctx context.Context, client *kgo.Client) kgo.Fetches {
	if in.ends != nil {
		limited, cancel := context.WithTimeout(ctx, lookEvery)
		defer cancel()
		ctx = limited
	}
	fetches := client.PollRecords(ctx, batchMax)
	if ctx.Err() != nil && fetches.NumRecords() == 0 {
		return nil
	}
	return fetches
}

// batch writes and commits the polled records.
func (in *ingesting) batch(ctx context.Context, client *kgo.Client, fetches kgo.Fetches) error {
	records := fetches.Records()
	if len(records) == 0 {
		return nil
	}
	messages := make([]timeseries.Message, 0, len(records))
	for _, r := range records {
		if !r.Attrs.IsControl() {
			messages = append(messages, timeseries.Message{Text: r.Value, From: fmt.Sprintf("%s %d@%d", r.Topic, r.Partition, r.Offset)})
		}
	}
	if _, err := in.r.Receive(ctx, messages...); err != nil {
		if ctx.Err() != nil {
			return nil // they are read again
		}
		return err
	}
	// Commit even after ctx is done, because the records are durable.
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), commitLimit)
	defer cancel()
	if err := client.CommitRecords(limited, records...); err != nil {
		if fatal(err) {
			return in.explain(err)
		}
		in.o.Logger.Warn("offsets were not committed; the records will be delivered again", "topic", in.o.Topic, "error", err)
		return errAgain
	}
	in.o.Committed()
	return nil
}

// errors returns the error after which another poll may succeed, or the one that ends the session;
// nil if a poll's errors are harmless.
func (in *ingesting) errors(ctx context.Context, fetches kgo.Fetches) (passing, last error) {
	for _, e := range fetches.Errors() {
		var loss *kgo.ErrDataLoss
		var large *kgo.ErrDecompressTooLarge
		switch {
		case ctx.Err() != nil, errors.Is(e.Err, context.DeadlineExceeded):
		case errors.As(e.Err, &loss):
			in.o.Lost(loss.Error())
		case errors.As(e.Err, &large): // its partition can be neither read any further nor released
			return nil, fmt.Errorf("topic %q, partition %d: the batch of records at offset %d is larger than %d MiB unpacked; send smaller batches, and move the group %q to offset %d: %w",
				large.Topic, large.Partition, large.Offset, unpackedBytes>>20, in.o.Group, large.NextOffset, kgo.ErrMaxDecompress)
		case errors.Is(e.Err, kerr.OffsetOutOfRange):
			return nil, errAgain
		case errors.Is(e.Err, kerr.UnknownTopicOrPartition), errors.Is(e.Err, kerr.UnknownTopicID):
			if err := in.lookForTopic(ctx); err != nil {
				return nil, err
			}
			return e.Err, nil
		case fatal(e.Err):
			return nil, in.explain(e.Err)
		default:
			return e.Err, nil
		}
	}
	if fetches.NumRecords() > 0 {
		in.missing = 0
	}
	return nil, nil
}

// lookForTopic returns an error if the topic is gone, and errAgain if it was deleted and created
// again. A broker may not know a new topic yet, so only goneAfter consecutive checks prove that it
// is gone. Temporary failures of a check are ignored.
func (in *ingesting) lookForTopic(ctx context.Context) error {
	found, err := in.ask.topic(ctx)
	switch {
	case err == nil && found.id != in.topic.id:
		in.o.Logger.Warn("the topic was deleted and created again", "topic", in.o.Topic)
		in.topic = found
		return errAgain
	case errors.Is(err, ErrNoTopic):
		if in.missing++; in.missing >= goneAfter {
			return fmt.Errorf("%w: %q was deleted", ErrNoTopic, in.o.Topic)
		}
	case err != nil && fatal(err):
		return in.explain(err)
	}
	return nil
}

// caughtUp reports whether the group has committed everything that the topic had at the start. It
// returns false without UntilCaughtUp.
func (in *ingesting) caughtUp(ctx context.Context) (bool, error) {
	if in.ends == nil || in.looked() < lookEvery || ctx.Err() != nil {
		return false, nil
	}
	in.looked = clock.Stopwatch()
	done, err := in.allDone(ctx)
	switch {
	case err != nil && fatal(err):
		return false, in.explain(err)
	case err != nil:
		in.o.Logger.Warn("reading the group's offsets failed; trying again", "group", in.o.Group, "error", err)
		return false, nil
	}
	return done, nil
}

// allDone reports whether the group has reached each end, or has nothing to read before it. It
// checks the latter only after an empty poll, and stops at the first partition with a record.
func (in *ingesting) allDone(ctx context.Context) (bool, error) {
	committed, err := in.ask.committed(ctx, slices.Collect(maps.Keys(in.ends)))
	if err != nil {
		return false, err
	}
	starts, err := in.ask.offsets(ctx, atStart)
	if err != nil {
		return false, err
	}
	var there topic // read again: partitions move between brokers
	for partition, end := range in.ends {
		at := max(committed[partition], starts[partition], in.passed[partition])
		if at >= end {
			continue
		}
		if !in.quiet {
			return false, nil
		}
		if there.leaders == nil {
			if there, err = in.ask.topic(ctx); err != nil {
				return false, err
			}
		}
		if in.passed[partition], err = in.ask.pass(ctx, there, partition, at, end); err != nil || in.passed[partition] < end {
			return false, err
		}
	}
	return true, nil
}

// adjust reports records that the brokers have deleted as lost, and continues after them. If a
// partition ends before the group's offset, adjust reports a loss too, and continues at its start.
func (in *ingesting) adjust(ctx context.Context, offsets map[string]map[int32]kgo.Offset) (map[string]map[int32]kgo.Offset, error) {
	starts, err := in.ask.offsets(ctx, atStart)
	if err != nil {
		return nil, err
	}
	ends, err := in.ask.offsets(ctx, atEnd)
	if err != nil {
		return nil, err
	}
	for partition, offset := range offsets[in.o.Topic] {
		at := offset.EpochOffset().Offset
		start, known := starts[partition]
		if at < 0 || !known { // no committed offset
			continue
		}
		switch end := ends[partition]; {
		case at < start:
			in.o.Lost(fmt.Sprintf("of %s, partition %d, the offsets %d to %d were deleted before they were read", in.o.Topic, partition, at, start-1))
		case at > end:
			in.o.Lost(fmt.Sprintf("%s, partition %d, ends at offset %d, but the group has committed %d: it was cut or created again and is read from its beginning", in.o.Topic, partition, end, at))
		default:
			continue
		}
		offsets[in.o.Topic][partition] = kgo.NewOffset().At(start).WithEpoch(-1)
	}
	return offsets, nil
}
