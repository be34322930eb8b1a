package fromkafka

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/sasl/plain"

	"github.com/mayflydb/mayfly/internal/brokertest"
	"github.com/mayflydb/mayfly/timeseries"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// broker is a cluster with a topic. It is kfake, by the client's author, and not Kafka: it speaks
// the protocol over TCP, and has groups, transactions and retention.
type broker struct {
	testing.TB
	*kfake.Cluster
	producer *kgo.Client
	sent     int
}

const partitions = 4

func newBroker(t testing.TB, options ...kfake.Opt) *broker {
	t.Helper()
	c, err := kfake.NewCluster(append([]kfake.Opt{kfake.NumBrokers(1), kfake.SeedTopics(partitions, "readings"), kfake.GroupMinSessionTimeout(100 * time.Millisecond)}, options...)...)
	must(t, err)
	t.Cleanup(c.Close)
	b := &broker{TB: t, Cluster: c}
	return b
}

// produce produces records to the topic: those of a device to one partition.
func (b *broker) produce(records ...*kgo.Record) {
	b.Helper()
	if b.producer == nil {
		var err error
		b.producer, err = kgo.NewClient(append(b.client(), kgo.DefaultProduceTopic("readings"), kgo.RecordPartitioner(kgo.ManualPartitioner()))...)
		must(b.TB, err)
		b.Cleanup(b.producer.Close)
	}
	must(b.TB, b.producer.ProduceSync(b.Context(), records...).FirstErr())
}

// send produces the next readings.
func (b *broker) send(n int) {
	b.Helper()
	var records []*kgo.Record
	for range n {
		records = append(records, &kgo.Record{Value: brokertest.Reading(b.sent), Partition: int32(b.sent % brokertest.Devices)})
		b.sent++
	}
	b.produce(records...)
}

func (b *broker) client() []kgo.Opt {
	return []kgo.Opt{kgo.SeedBrokers(b.ListenAddrs()...), kgo.MetadataMinAge(50 * time.Millisecond), kgo.FetchMaxWait(50 * time.Millisecond)}
}

func (b *broker) options() Options {
	return Options{Client: b.client(), Topic: "readings", Group: "weather"}
}

func (b *broker) untilCaughtUp() Options {
	o := b.options()
	o.UntilCaughtUp = true
	return o
}

// Records become samples, unusable ones are rejected, and all are committed. Later records are read
// later, and a new run continues after the committed offsets.
func TestIngest(t *testing.T) {
	t.Parallel()
	b, w := newBroker(t), brokertest.New(t)
	for round := range 2 {
		b.send(700)
		b.produce(&kgo.Record{Value: []byte(`{"device":`), Partition: 3}, &kgo.Record{Value: nil, Partition: 3}, &kgo.Record{Value: brokertest.Reading(0), Partition: 3})
		r := w.Receiver()
		run := brokertest.Go(t, func(ctx context.Context) error { return Ingest(ctx, r, b.options()) })
		brokertest.Await(t, "everything", func() bool { return w.Count() == b.sent })
		b.send(3)
		brokertest.Await(t, "the later records", func() bool { return r.Report().Messages == 706 })
		run.End()
		w.Want(b.sent)
		if report := r.Report(); report.Written != 704 || report.Rejected != 1 {
			t.Errorf("round %d: the report is %+v", round, report)
		}
	}
	if aside := w.Aside(); len(aside) != 2 || aside[0].From != "readings 3@0" || aside[1].From != "readings 3@3" || aside[0].Reason != timeseries.ReasonSyntax {
		t.Errorf("put aside are %+v", aside)
	}
}

// UntilCaughtUp ends Ingest: for an empty topic, beside another member, and if transaction marks
// end the log.
func TestIngestUntilCaughtUp(t *testing.T) {
	t.Parallel()
	b, w := newBroker(t), brokertest.New(t)
	transactions, err := kgo.NewClient(append(b.client(), kgo.TransactionalID("t"), kgo.DefaultProduceTopic("readings"), kgo.RecordPartitioner(kgo.ManualPartitioner()))...)
	must(t, err)
	t.Cleanup(transactions.Close)
	for _, n := range []int{0, 1, 1200} {
		b.send(n)
		for _, commit := range []kgo.TransactionEndTry{kgo.TryCommit, kgo.TryAbort} {
			must(t, transactions.BeginTransaction())
			record := &kgo.Record{Value: []byte(`{"device":"aborted","time":"2030-01-01T00:00:00Z","n":1}`), Partition: int32(n % 2)}
			if commit == kgo.TryCommit {
				record.Value = brokertest.Reading(b.sent)
				b.sent++
			}
			must(t, transactions.ProduceSync(t.Context(), record).FirstErr())
			must(t, transactions.EndTransaction(t.Context(), commit))
		}
		var runs []*brokertest.Run
		for range 2 {
			r := w.Receiver()
			runs = append(runs, brokertest.Go(t, func(ctx context.Context) error { return Ingest(ctx, r, b.untilCaughtUp()) }))
		}
		for _, run := range runs {
			must(t, run.Ended())
		}
		w.Want(b.sent)
	}
	latest, err := w.Series.Reader(timeseries.ReaderOptions{Strong: true}).Latest(t.Context(), "aborted")
	if err != nil || len(latest) > 0 {
		t.Errorf("of an aborted transaction there is %v, %v", latest, err)
	}
}

// UntilCaughtUp ends Ingest even if the last offsets have no record: compaction leaves an empty
// batch, or none. kfake always keeps the last batch whole, so the test answers like Kafka for these
// offsets.
func TestIngestUntilCaughtUpWithCompaction(t *testing.T) {
	t.Parallel()
	const n, end = 30, 35
	empty := kmsg.NewRecordBatch()
	empty.FirstOffset, empty.LastOffsetDelta, empty.Magic, empty.ProducerID = n, end-n-1, 2, -1
	empty.Length = int32(len(empty.AppendTo(nil)) - 12)
	empty.CRC = int32(crc32.Checksum(empty.AppendTo(nil)[21:], crc32.MakeTable(crc32.Castagnoli)))
	for name, left := range map[string][]byte{"an empty batch": empty.AppendTo(nil), "nothing": nil} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, w := newBroker(t), brokertest.New(t)
			must(t, b.CreateTopic("compacted", 1, nil))
			for i := range n {
				b.produce(&kgo.Record{Topic: "compacted", Value: brokertest.Reading(i)})
			}
			b.ControlKey(int16(kmsg.ListOffsets), func(request kmsg.Request) (kmsg.Response, error, bool) {
				b.KeepControl()
				r := request.(*kmsg.ListOffsetsRequest)
				if r.Topics[0].Partitions[0].Timestamp != atEnd {
					return nil, nil, false
				}
				answer, topic, p := r.ResponseKind().(*kmsg.ListOffsetsResponse), kmsg.NewListOffsetsResponseTopic(), kmsg.NewListOffsetsResponseTopicPartition()
				topic.Topic, p.Offset = r.Topics[0].Topic, end
				topic.Partitions = append(topic.Partitions, p)
				answer.Topics = append(answer.Topics, topic)
				return answer, nil, true
			})
			b.ControlKey(int16(kmsg.Fetch), func(request kmsg.Request) (kmsg.Response, error, bool) {
				b.KeepControl()
				r := request.(*kmsg.FetchRequest)
				if len(r.Topics) == 0 || r.Topics[0].Partitions[0].FetchOffset < n {
					return nil, nil, false
				}
				answer, topic, p := r.ResponseKind().(*kmsg.FetchResponse), kmsg.NewFetchResponseTopic(), kmsg.NewFetchResponseTopicPartition()
				topic.Topic, topic.TopicID = r.Topics[0].Topic, r.Topics[0].TopicID
				p.HighWatermark, p.LastStableOffset = end, end
				if r.Topics[0].Partitions[0].FetchOffset < end {
					p.RecordBatches = left
				}
				topic.Partitions = append(topic.Partitions, p)
				answer.Topics = append(answer.Topics, topic)
				// a broker waits for more records
				b.SleepControl(func() { time.Sleep(10 * time.Millisecond) })
				return answer, nil, true
			})
			o := b.untilCaughtUp()
			o.Topic = "compacted"
			run := brokertest.Go(t, func(ctx context.Context) error { return Ingest(ctx, w.Receiver(), o) })
			must(t, run.Ended())
			w.Want(n)
		})
	}
}

// Cut off before or after any of its calls, and started again, an ingest stores every sample once.
func TestIngestCutOff(t *testing.T) {
	t.Parallel()
	b, w := newBroker(t), brokertest.New(t)
	for call := 0; ; call++ {
		b.send(40)
		w.Cut.After(call/2, call%2 == 1, nil)
		err := Ingest(t.Context(), w.Receiver(), b.untilCaughtUp())
		if was := w.Cut.Mend(); was != (err != nil) {
			t.Fatalf("call %d: cut off is %t, and the error %v", call, was, err)
		}
		if err == nil {
			if call < 6 {
				t.Errorf("it makes %d calls only", call/2)
			}
			break
		}
		must(t, Ingest(t.Context(), w.Receiver(), b.untilCaughtUp()))
		w.Want(b.sent)
	}
}

// After a kill -9 between writing and committing, records are read again and stored once.
func TestIngestGoneBeforeCommitting(t *testing.T) {
	t.Parallel()
	b, w := newBroker(t), brokertest.New(t)
	b.send(100)
	refused := b.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.OffsetCommit}, Err: kerr.UnknownMemberID, Count: -1})
	r := w.Receiver()
	run := brokertest.Go(t, func(ctx context.Context) error { return Ingest(ctx, r, b.options()) })
	brokertest.Await(t, "everything, and a part again", func() bool { return w.Count() == b.sent && r.Report().Messages > int64(b.sent) })
	run.End()
	refused.Remove()
	again := w.Receiver()
	must(t, Ingest(t.Context(), again, b.untilCaughtUp()))
	w.Want(b.sent)
	if n := again.Report().Messages; n != int64(b.sent) {
		t.Errorf("%d messages came again, and nothing was committed", n)
	}
}

// While members join and leave, every sample is stored once, and no committed offset moves back.
func TestRebalance(t *testing.T) {
	t.Parallel()
	b, w := newBroker(t), brokertest.New(t)
	var mu sync.Mutex
	highest, back := map[int32]int64{}, 0
	b.Control(func(request kmsg.Request) (kmsg.Response, error, bool) {
		b.KeepControl()
		if c, ok := request.(*kmsg.OffsetCommitRequest); ok {
			mu.Lock()
			defer mu.Unlock()
			for _, topic := range c.Topics {
				for _, p := range topic.Partitions {
					if p.Offset < highest[p.Partition] {
						back++
					}
					highest[p.Partition] = max(highest[p.Partition], p.Offset)
				}
			}
		}
		return nil, nil, false
	})
	var runs []*brokertest.Run
	receivers := []*timeseries.Receiver{}
	for round := range 6 {
		b.send(200)
		r := w.Receiver()
		receivers = append(receivers, r)
		o := b.options()
		o.Session = 5 * time.Second
		runs = append(runs, brokertest.Go(t, func(ctx context.Context) error { return Ingest(ctx, r, o) }))
		if round%2 == 1 {
			runs[0].End()
			runs = runs[1:]
		}
		b.send(200)
	}
	brokertest.Await(t, "everything", func() bool { return w.Count() == b.sent })
	for _, run := range runs {
		run.End()
	}
	w.Want(b.sent)
	mu.Lock()
	defer mu.Unlock()
	if back > 0 {
		t.Errorf("%d offsets were moved back", back)
	}
	n := int64(0)
	for _, r := range receivers {
		n += r.Report().Messages
	}
	if n > int64(b.sent) {
		t.Logf("%d messages came for %d", n, b.sent)
	}
}

// Partitions keep their owner during a batch: a member that joins meanwhile starts after it.
func TestInHand(t *testing.T) {
	t.Parallel()
	b, w := newBroker(t), brokertest.New(t)
	b.send(30)
	b.produce(&kgo.Record{Value: []byte("broken"), Partition: 0})
	writer, err := w.Series.Writer(context.Background(), timeseries.WriterOptions{})
	must(t, err)
	t.Cleanup(writer.Close)
	held, going := make(chan struct{}), make(chan struct{})
	slow, err := timeseries.NewReceiver(writer, timeseries.NDJSON, timeseries.Mapping{}, func([]timeseries.Rejected) error {
		close(held)
		<-going
		return nil
	})
	must(t, err)
	o := b.options()
	o.Session = 5 * time.Second
	first := brokertest.Go(t, func(ctx context.Context) error { return Ingest(ctx, slow, o) })
	<-held
	r := w.Receiver()
	second := brokertest.Go(t, func(ctx context.Context) error { return Ingest(ctx, r, o) })
	_, err = b.WaitGroupInfo(t.Context(), "weather", func(g *kfake.GroupInfo) bool { return len(g.Members) == 2 })
	must(t, err)
	beats := b.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Heartbeat}, Observe: true, Count: -1})
	brokertest.Await(t, "some heartbeats", func() bool { return beats.Hits() >= 2 })
	if n := r.Report().Messages; n > 0 {
		t.Errorf("%d records that are in hand came to another member", n)
	}
	close(going)
	brokertest.Await(t, "that the second has a part", func() bool {
		b.send(30)
		return r.Report().Messages > 0
	})
	brokertest.Await(t, "everything", func() bool { return w.Count() == b.sent })
	first.End()
	second.End()
	w.Want(b.sent)
	if n := slow.Report().Messages + r.Report().Messages; n != int64(b.sent)+1 {
		t.Errorf("%d messages came, for %d", n, b.sent+1)
	}
}

// The end of its session replaces a killed member, which never leaves the group.
func TestKilledMember(t *testing.T) {
	t.Parallel()
	b, w := newBroker(t), brokertest.New(t)
	b.send(100)
	// A member that joins, gets partitions, reads, and neither commits nor leaves.
	dead, err := kgo.NewClient(append(b.client(), kgo.ConsumerGroup("weather"), kgo.ConsumeTopics("readings"), kgo.DisableAutoCommit(), kgo.SessionTimeout(time.Second), kgo.HeartbeatInterval(100*time.Millisecond),
		kgo.InstanceID("dead"))...) // an instance with an id does not leave when it is closed
	must(t, err)
	dead.PollRecords(t.Context(), 10)
	dead.Close()
	r := w.Receiver()
	must(t, Ingest(t.Context(), r, b.untilCaughtUp()))
	w.Want(b.sent)
}

// Records that the brokers deleted before Ingest read them are reported, and the rest is read; so
// is a new topic of the same name.
func TestLost(t *testing.T) {
	t.Parallel()
	b, w := newBroker(t), brokertest.New(t)
	b.send(30)
	must(t, Ingest(t.Context(), w.Receiver(), b.untilCaughtUp()))
	for range 10 {
		b.produce(&kgo.Record{Value: []byte("{}"), Partition: 0})
	}
	must(t, b.DeleteRecords("readings", 0, 15))
	b.send(30)
	var messages brokertest.Messages
	o := b.untilCaughtUp()
	o.Lost = messages.Add
	must(t, Ingest(t.Context(), w.Receiver(), o))
	if want := "of readings, partition 0, the offsets 10 to 14 were deleted before they were read"; messages.String() != want {
		t.Errorf("the messages are %q, want %q", messages.String(), want)
	}
	w.Want(b.sent)
	if n := len(w.Aside()); n != 5 {
		t.Errorf("%d were put aside", n)
	}
}

// Records deleted during a read are reported too.
func TestLostWhileReading(t *testing.T) {
	t.Parallel()
	b, w := newBroker(t), brokertest.New(t)
	b.send(3)
	var messages brokertest.Messages
	o := b.options()
	o.Lost = messages.Add
	held, going := make(chan struct{}), make(chan struct{})
	var once sync.Once
	o.Committed = func() { once.Do(func() { close(held); <-going }) }
	run := brokertest.Go(t, func(ctx context.Context) error { return Ingest(ctx, w.Receiver(), o) })
	<-held
	// More than one fetch.
	filler := []byte(strings.Repeat("x", 100_000))
	for range 300 {
		b.produce(&kgo.Record{Value: filler, Partition: 0})
	}
	end := b.PartitionInfo("readings", 0).HighWatermark
	must(t, b.DeleteRecords("readings", 0, end))
	close(going)
	brokertest.Await(t, "the report of lost records", func() bool { return strings.Contains(messages.String(), fmt.Sprintf("to %d were deleted", end-1)) })
	b.send(3)
	brokertest.Await(t, "the rest", func() bool { return w.Count() == 6 })
	run.End()
	w.Want(6)
}

// A missing topic, or one deleted during a read, is an error that says so; a topic created again is
// read.
func TestTopicIsGone(t *testing.T) {
	t.Parallel()
	b, w := newBroker(t), brokertest.New(t)
	o := b.options()
	o.Topic = "nothing"
	if err := Ingest(t.Context(), w.Receiver(), o); !errors.Is(err, ErrNoTopic) || err.Error() != `topic not found: "nothing"` {
		t.Errorf("got %v", err)
	}
	b.send(3)
	run := brokertest.Go(t, func(ctx context.Context) error { return Ingest(ctx, w.Receiver(), b.options()) })
	brokertest.Await(t, "the beginning", func() bool { return w.Count() == 3 })
	must(t, b.DeleteTopic("readings"))
	if err := run.Ended(); !errors.Is(err, ErrNoTopic) || !strings.Contains(err.Error(), "was deleted") {
		t.Errorf("got %v", err)
	}
	must(t, b.CreateTopic("readings", 1, nil))
	again := newProducer(b)
	for i := range 6 {
		must(t, again.ProduceSync(t.Context(), &kgo.Record{Value: brokertest.Reading(i), Partition: 0}).FirstErr())
	}
	must(t, Ingest(t.Context(), w.Receiver(), b.untilCaughtUp()))
	w.Want(6)
}

func newProducer(b *broker) *kgo.Client {
	b.Helper()
	client, err := kgo.NewClient(append(b.client(), kgo.DefaultProduceTopic("readings"), kgo.RecordPartitioner(kgo.ManualPartitioner()))...)
	must(b.TB, err)
	b.Cleanup(client.Close)
	return client
}

// A topic deleted and created again during a read is read from its beginning.
func TestTopicMadeAnew(t *testing.T) {
	t.Parallel()
	b, w := newBroker(t), brokertest.New(t)
	b.send(6)
	var logged brokertest.Messages
	o := b.options()
	o.Logger = slog.New(slog.NewTextHandler(writerFunc(func(p []byte) (int, error) { logged.Add(string(p)); return len(p), nil }), nil))
	run := brokertest.Go(t, func(ctx context.Context) error { return Ingest(ctx, w.Receiver(), o) })
	brokertest.Await(t, "the beginning", func() bool { return w.Count() == 6 })
	must(t, b.DeleteTopic("readings"))
	must(t, b.CreateTopic("readings", partitions, nil))
	again := newProducer(b)
	for i := range 9 {
		must(t, again.ProduceSync(t.Context(), &kgo.Record{Value: brokertest.Reading(i), Partition: int32(i % 3)}).FirstErr())
	}
	brokertest.Await(t, "the rest", func() bool { return w.Count() == 9 })
	run.End()
	w.Want(9)
}

type writerFunc func(p []byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// The errors for a wrong password and for missing permissions name the fault.
func TestNotAllowed(t *testing.T) {
	t.Parallel()
	w := brokertest.New(t)
	topic := kfake.ACL{Resource: kmsg.ACLResourceTypeTopic, Name: "readings", Pattern: kmsg.ACLResourcePatternTypeLiteral, Operation: kmsg.ACLOperationRead, Allow: true}
	group := kfake.ACL{Resource: kmsg.ACLResourceTypeGroup, Name: "weather", Pattern: kmsg.ACLResourcePatternTypeLiteral, Operation: kmsg.ACLOperationRead, Allow: true}
	b := newBroker(t, kfake.EnableSASL(), kfake.EnableACLs(), kfake.Superuser("PLAIN", "admin", "admin"),
		kfake.User("PLAIN", "both", "x", topic, group), kfake.User("PLAIN", "group", "x", group), kfake.User("PLAIN", "topic", "x", topic))
	// Kafka answers that the password is wrong; kfake would only hang up.
	b.ControlKey(int16(kmsg.SASLAuthenticate), func(request kmsg.Request) (kmsg.Response, error, bool) {
		b.KeepControl()
		r := request.(*kmsg.SASLAuthenticateRequest)
		if !bytes.Contains(r.SASLAuthBytes, []byte("wrong")) {
			return nil, nil, false
		}
		answer := r.ResponseKind().(*kmsg.SASLAuthenticateResponse)
		answer.ErrorCode = kerr.SaslAuthenticationFailed.Code
		return answer, nil, true
	})
	for _, c := range []struct {
		user, password string
		want           error
		text           string
	}{
		{"both", "x", nil, ""},
		{"both", "wrong", kerr.SaslAuthenticationFailed, "the brokers do not know the user"},
		{"group", "x", kerr.TopicAuthorizationFailed, `the user may not read the topic "readings"`},
		{"topic", "x", kerr.GroupAuthorizationFailed, `the user may not read with the group "weather"`},
	} {
		o := b.untilCaughtUp()
		o.Client = append(o.Client, kgo.SASL(plain.Auth{User: c.user, Pass: c.password}.AsMechanism()))
		err := Ingest(t.Context(), w.Receiver(), o)
		if !errors.Is(err, c.want) || err != nil && !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s with %s: got %v", c.user, c.password, err)
		}
	}
	o := b.options()
	o.Client = []kgo.Opt{kgo.SeedBrokers("127.0.0.1:1")}
	if err := Ingest(t.Context(), w.Receiver(), o); err == nil || !strings.Contains(err.Error(), "refused") {
		t.Errorf("a broker that is not there gives %v", err)
	}
	if err := Ingest(t.Context(), w.Receiver(), Options{}); err == nil {
		t.Error("no options are enough")
	}
}

// Ingest waits for brokers that fail for a while.
func TestBrokersFail(t *testing.T) {
	t.Parallel()
	b, w := newBroker(t), brokertest.New(t)
	b.send(10)
	var calls atomic.Int64
	b.Control(func(request kmsg.Request) (kmsg.Response, error, bool) {
		b.KeepControl()
		switch request.(type) {
		case *kmsg.FetchRequest, *kmsg.OffsetCommitRequest, *kmsg.JoinGroupRequest, *kmsg.ListOffsetsRequest, *kmsg.OffsetFetchRequest:
			if n := calls.Add(1); n%3 == 0 {
				return nil, errors.New("the connection breaks"), true
			}
		}
		return nil, nil, false
	})
	run := brokertest.Go(t, func(ctx context.Context) error { return Ingest(ctx, w.Receiver(), b.options()) })
	brokertest.Await(t, "the beginning", func() bool { return w.Count() == 10 })
	b.send(10)
	brokertest.Await(t, "the rest", func() bool { return w.Count() == 20 })
	run.End()
	w.Want(20)
}

// A batch that exceeds the limit after decompression ends Ingest, because its partition cannot be
// read any further.
func TestTooLargeUnpacked(t *testing.T) {
	t.Parallel()
	b, w := newBroker(t), brokertest.New(t)
	large, err := kgo.NewClient(append(b.client(), kgo.DefaultProduceTopic("readings"), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerBatchMaxBytes(unpackedBytes+1<<20),
		kgo.ProducerBatchCompression(kgo.GzipCompression()))...)
	must(t, err)
	t.Cleanup(large.Close)
	b.send(3)
	must(t, large.ProduceSync(t.Context(), &kgo.Record{Value: make([]byte, unpackedBytes+1)}).FirstErr())
	run := brokertest.Go(t, func(ctx context.Context) error { return Ingest(ctx, w.Receiver(), b.options()) })
	if err := run.Ended(); !errors.Is(err, kgo.ErrMaxDecompress) || !strings.Contains(err.Error(), "partition 0: the batch of records at offset 1 is larger than 64 MiB") {
		t.Errorf("got %v", err)
	}
	w.Want(3)
}
