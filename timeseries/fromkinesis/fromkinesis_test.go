package fromkinesis

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"

	"github.com/mayflydb/mayfly/internal/brokertest"
	"github.com/mayflydb/mayfly/internal/testkit"
	"github.com/mayflydb/mayfly/internal/work/lease"
	"github.com/mayflydb/mayfly/timeseries"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// faulty is a transport to Kinesis that answers some calls itself.
type faulty struct {
	http.RoundTripper
	mu sync.Mutex
	// returns an error code, or "" to pass the call on; nil passes all on
	fault func(operation, body string) (code string)
	calls map[string]int
}

func (f *faulty) RoundTrip(r *http.Request) (*http.Response, error) {
	_, operation, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	text := ""
	if r.Body != nil {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		text = string(body)
		r = r.Clone(r.Context())
		r.Body = io.NopCloser(strings.NewReader(text))
	}
	f.mu.Lock()
	f.calls[operation]++
	code := ""
	if f.fault != nil {
		code = f.fault(operation, text)
	}
	f.mu.Unlock()
	if code == "" {
		return atEnd(f.RoundTripper.RoundTrip(r))
	}
	status := http.StatusBadRequest
	if code == "InternalFailure" {
		status = http.StatusInternalServerError
	}
	body := fmt.Sprintf(`{"__type":%q,"message":"not now"}`, code)
	return &http.Response{
		StatusCode: status, Request: r, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, ContentLength: int64(len(body)),
		Header: http.Header{"Content-Type": {"application/x-amz-json-1.1"}}, Body: io.NopCloser(strings.NewReader(body)),
	}, nil
}

var behind = regexp.MustCompile(`"MillisBehindLatest":[0-9]+`)

// atEnd changes a shard's last page to Amazon's form: no time is left behind. Kinesalite counts
// from the shard's end.
func atEnd(answer *http.Response, err error) (*http.Response, error) {
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(answer.Body)
	answer.Body.Close()
	if !bytes.Contains(body, []byte(`"NextShardIterator"`)) {
		body = behind.ReplaceAll(body, []byte(`"MillisBehindLatest":0`))
	}
	answer.Body, answer.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	return answer, err
}

func (f *faulty) set(fault func(operation, body string) string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fault = fault
}

func (f *faulty) count(operation string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.calls[operation]
}

// broker is a stream at kinesalite, an independent implementation of Kinesis.
type broker struct {
	*testing.T
	api    *kinesis.Client
	faults *faulty
	sent   int
}

func newBroker(t *testing.T, shards int32) *broker {
	t.Helper()
	url := testkit.Kinesalite(t)
	transport := &http.Transport{MaxIdleConnsPerHost: 16}
	t.Cleanup(transport.CloseIdleConnections)
	b := &broker{T: t, faults: &faulty{RoundTripper: transport, calls: map[string]int{}}}
	b.api = kinesis.New(kinesis.Options{
		Region: "us-east-1", Credentials: credentials.NewStaticCredentialsProvider("k", "s", ""), BaseEndpoint: &url, HTTPClient: &http.Client{Transport: b.faults}, Retryer: aws.NopRetryer{},
	})
	b.create(shards)
	return b
}

func (b *broker) create(shards int32) {
	b.Helper()
	_, err := b.api.CreateStream(b.Context(), &kinesis.CreateStreamInput{StreamName: aws.String("readings"), ShardCount: &shards})
	must(b.T, err)
	b.await("active")
}

func (b *broker) await(what string) {
	b.Helper()
	brokertest.Await(b.T, "that the stream is "+what, func() bool {
		out, err := b.api.DescribeStreamSummary(b.Context(), &kinesis.DescribeStreamSummaryInput{StreamName: aws.String("readings")})
		if what == "gone" {
			return err != nil
		}
		return err == nil && out.StreamDescriptionSummary.StreamStatus == types.StreamStatusActive
	})
}

// put puts records; those of one key are in one shard.
func (b *broker) put(key string, data ...[]byte) {
	b.Helper()
	for part := range slices.Chunk(data, 400) {
		var entries []types.PutRecordsRequestEntry
		for _, d := range part {
			entries = append(entries, types.PutRecordsRequestEntry{Data: d, PartitionKey: &key})
		}
		out, err := b.api.PutRecords(b.Context(), &kinesis.PutRecordsInput{StreamName: aws.String("readings"), Records: entries})
		must(b.T, err)
		if aws.ToInt32(out.FailedRecordCount) > 0 {
			b.Fatalf("%d records were not taken", *out.FailedRecordCount)
		}
	}
}

// send puts the next readings, in the order of each device; every shard has keys.
func (b *broker) send(n int) {
	b.Helper()
	byDevice := map[int][][]byte{}
	for range n {
		byDevice[b.sent%brokertest.Devices] = append(byDevice[b.sent%brokertest.Devices], brokertest.Reading(b.sent))
		b.sent++
	}
	for device, data := range byDevice {
		b.put(fmt.Sprintf("key-%d", device), data...)
	}
}

func (b *broker) options(w *brokertest.World) Options {
	return Options{Client: b.api, Stream: "readings", DB: w.Client, Name: "weather", Lease: 400 * time.Millisecond}
}

func (b *broker) untilCaughtUp(w *brokertest.World) Options {
	o := b.options(w)
	o.UntilCaughtUp = true
	return o
}

// Records become samples, unusable ones are rejected, and each shard has a checkpoint. Later
// records are read later, and a new run continues after its checkpoints.
func TestIngest(t *testing.T) {
	t.Parallel()
	b, w := newBroker(t, 4), brokertest.New(t)
	for round := range 2 {
		b.send(700)
		b.put("x", []byte(`{"device":`), append(slices.Clone(aggregated), "\x0a\x01several"...), brokertest.Reading(0))
		r := w.Receiver()
		run := brokertest.Go(t, func(ctx context.Context) error { return Ingest(ctx, r, b.options(w)) })
		brokertest.Await(t, "everything", func() bool { return r.Report().Messages >= 703 })
		b.send(3)
		brokertest.Await(t, "the later records", func() bool { return w.Count() == b.sent })
		run.End()
		w.Want(b.sent)
		// more if a busy machine loses the lease
		if report := r.Report(); report.Messages < 706 || report.Written < 704 || report.Rejected < 2 {
			t.Errorf("round %d: the report is %+v", round, report)
		}
	}
	aside := w.Aside()
	if len(aside) < 4 || aside[0].Reason != timeseries.ReasonSyntax || !strings.HasPrefix(aside[0].From, "readings shardId-") || !strings.Contains(aside[1].Message, "AggregationEnabled") {
		t.Errorf("put aside are %+v", aside)
	}
}

// UntilCaughtUp ends Ingest: for an empty stream, and beside another process.
func TestIngestUntilCaughtUp(t *testing.T) {
	t.Parallel()
	b, w := newBroker(t, 3), brokertest.New(t)
	must(t, Ingest(t.Context(), w.Receiver(), b.untilCaughtUp(w)))
	b.send(2500)
	var runs []*brokertest.Run
	for range 2 {
		r := w.Receiver()
		runs = append(runs, brokertest.Go(t, func(ctx context.Context) error { return Ingest(ctx, r, b.untilCaughtUp(w)) }))
	}
	for _, run := range runs {
		must(t, run.Ended())
	}
	w.Want(b.sent)
	// Beside one without UntilCaughtUp.
	r := w.Receiver()
	other := brokertest.Go(t, func(ctx context.Context) error { return Ingest(ctx, r, b.options(w)) })
	brokertest.Await(t, "the other's leases", func() bool { return b.owned(w) == 3 })
	must(t, Ingest(t.Context(), w.Receiver(), b.untilCaughtUp(w)))
	other.End()
}

// owned returns the number of shards with an owner.
func (b *broker) owned(w *brokertest.World) int {
	n := 0
	for _, row := range b.rows(w) {
		if _, owned := row["owner"]; owned && !lease.IsCrew(row["shard"].(*ddbtypes.AttributeValueMemberS).Value) {
			n++
		}
	}
	return n
}

func (b *broker) rows(w *brokertest.World) []map[string]ddbtypes.AttributeValue {
	out, err := w.Client.Scan(b.Context(), &dynamodb.ScanInput{TableName: aws.String(lease.TableName)})
	if err != nil {
		return nil
	}
	return out.Items
}

// Cut off before or after any of its calls to the database, and started again, an ingest stores
// every sample once.
func TestIngestCutOff(t *testing.T) {
	t.Parallel()
	b, w := newBroker(t, 2), brokertest.New(t)
	o := b.untilCaughtUp(w)
	o.Lease = 100 * time.Millisecond
	cuts := 0
	for call := 0; call < 40; call += 3 {
		b.send(20)
		w.Cut.After(call/2, call%2 == 1, nil)
		err := Ingest(t.Context(), w.Receiver(), o)
		if w.Cut.Mend() {
			cuts++
		}
		if err != nil {
			must(t, Ingest(t.Context(), w.Receiver(), o))
		}
		w.Want(b.sent)
	}
	if cuts < 7 {
		t.Errorf("it was cut off %d times", cuts)
	}
}

// Processes share the shards, the others take over the shards of a killed one, and every sample is
// stored once.
func TestShared(t *testing.T) {
	t.Parallel()
	b, w := newBroker(t, 4), brokertest.New(t)
	b.send(300)
	killed, dies := context.WithCancel(t.Context())
	// A killed process: without a connection to the database it can neither save nor release.
	dead := &brokertest.Cut{Over: w.Cut}
	dead.Mend()
	o := b.options(w)
	options := w.Client.Options()
	options.HTTPClient = &http.Client{Transport: dead}
	o.DB = dynamodb.New(options)
	r := w.Receiver()
	first := brokertest.Go(t, func(context.Context) error { return Ingest(killed, r, o) })
	brokertest.Await(t, "its leases", func() bool { return b.owned(w) == 4 })
	dead.After(0, false, nil)
	_, _ = dead.RoundTrip(httpRequest(t))
	dies()
	_ = first.Ended()
	b.send(300)
	var runs []*brokertest.Run
	receivers := []*timeseries.Receiver{w.Receiver(), w.Receiver()}
	for _, r := range receivers {
		runs = append(runs, brokertest.Go(t, func(ctx context.Context) error { return Ingest(ctx, r, b.options(w)) }))
	}
	brokertest.Await(t, "everything", func() bool { return w.Count() == b.sent })
	brokertest.Await(t, "that both have a part", func() bool {
		for key := range 16 { // every shard has records
			b.put(fmt.Sprint("other-", key), brokertest.Reading(0))
		}
		return receivers[0].Report().Messages > 0 && receivers[1].Report().Messages > 0
	})
	brokertest.Await(t, "everything", func() bool { return w.Count() == b.sent })
	for _, run := range runs {
		run.End()
	}
	w.Want(b.sent)
}

func httpRequest(t *testing.T) *http.Request {
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://127.0.0.1:1", nil)
	must(t, err)
	return r
}

// While a stream is split and merged, children are read after their parents, so the order of a key
// is kept and no sample is missing.
func TestResharding(t *testing.T) {
	t.Parallel()
	b, w := newBroker(t, 1), brokertest.New(t)
	r := w.Receiver()
	o := b.options(w)
	b.send(60)
	b.split()
	b.send(60)
	// Reading children before the end of their parent would break the order.
	run := brokertest.Go(t, func(ctx context.Context) error { return Ingest(ctx, r, o) })
	brokertest.Await(t, "both generations", func() bool { return w.Count() == b.sent })
	b.reshard(func() error {
		_, err := b.api.MergeShards(t.Context(), &kinesis.MergeShardsInput{
			StreamName: aws.String("readings"), ShardToMerge: aws.String("shardId-000000000001"), AdjacentShardToMerge: aws.String("shardId-000000000002"),
		})
		return err
	})
	b.send(60)
	brokertest.Await(t, "the third generation", func() bool { return w.Count() == b.sent })
	run.End()
	w.Want(b.sent)
	if n := r.Report().OutOfOrder; n > 0 {
		t.Errorf("%d readings came out of order", n)
	}
	done := 0
	for _, row := range b.rows(w) {
		if c, ok := row["checkpoint"].(*ddbtypes.AttributeValueMemberS); ok && c.Value == lease.Done {
			done++
		}
	}
	if done != 3 {
		t.Errorf("%d shards were read to their ends", done)
	}
	must(t, Ingest(t.Context(), w.Receiver(), b.untilCaughtUp(w)))
}

// UntilCaughtUp includes children: a split or merged shard is read to its end even if nothing else
// is left.
func TestReshardedUntilCaughtUp(t *testing.T) {
	t.Parallel()
	b, w := newBroker(t, 1), brokertest.New(t)
	b.send(60)
	must(t, Ingest(t.Context(), w.Receiver(), b.untilCaughtUp(w)))
	b.split()
	b.send(60)
	must(t, Ingest(t.Context(), w.Receiver(), b.untilCaughtUp(w)))
	w.Want(b.sent)
}

// split splits the first shard.
func (b *broker) split() {
	b.Helper()
	b.reshard(func() error {
		_, err := b.api.SplitShard(b.Context(), &kinesis.SplitShardInput{
			StreamName: aws.String("readings"), ShardToSplit: aws.String("shardId-000000000000"), NewStartingHashKey: aws.String("170141183460469231731687303715884105728"),
		})
		return err
	})
}

func (b *broker) reshard(do func() error) {
	b.Helper()
	must(b.T, do())
	b.await("active")
}

// With throttling, failures and expired iterators Ingest continues, and no sample is missing.
func TestFaults(t *testing.T) {
	t.Parallel()
	b, w := newBroker(t, 2), brokertest.New(t)
	b.send(100)
	n := 0
	b.faults.set(func(operation, _ string) string {
		if operation != "GetRecords" && operation != "GetShardIterator" && operation != "ListShards" {
			return ""
		}
		n++
		switch {
		case n%5 == 1 && operation == "GetRecords":
			return "ExpiredIteratorException"
		case n%11 == 2:
			return "ProvisionedThroughputExceededException"
		case n%11 == 5:
			return "InternalFailure"
		case n%11 == 8:
			return "LimitExceededException"
		}
		return ""
	})
	run := brokertest.Go(t, func(ctx context.Context) error { return Ingest(ctx, w.Receiver(), b.options(w)) })
	brokertest.Await(t, "the beginning", func() bool { return w.Count() == 100 })
	b.send(100)
	brokertest.Await(t, "the rest", func() bool { return w.Count() == 200 })
	run.End()
	w.Want(200)
	if b.faults.count("GetShardIterator") < 3 {
		t.Error("no iterator has expired")
	}
}

// change replaces the checkpoint of a shard.
func (b *broker) change(w *brokertest.World, shard string, to func(checkpoint) string) {
	b.Helper()
	for _, row := range b.rows(w) {
		if row["shard"].(*ddbtypes.AttributeValueMemberS).Value != shard {
			continue
		}
		c, ok := readCheckpoint(row["checkpoint"].(*ddbtypes.AttributeValueMemberS).Value)
		if !ok {
			b.Fatalf("the checkpoint is %v", row["checkpoint"])
		}
		row["checkpoint"] = &ddbtypes.AttributeValueMemberS{Value: to(c)}
		_, err := w.Client.PutItem(b.Context(), &dynamodb.PutItemInput{TableName: aws.String(lease.TableName), Item: row})
		must(b.T, err)
		return
	}
	b.Fatalf("the shard %s has no checkpoint", shard)
}

// Records deleted before they were read are reported once: for a checkpoint before the stream's
// retention, of another stream, or of a deleted shard.
func TestLost(t *testing.T) {
	t.Parallel()
	b, w := newBroker(t, 1), brokertest.New(t)
	b.send(30)
	must(t, Ingest(t.Context(), w.Receiver(), b.untilCaughtUp(w)))
	const shard = "shardId-000000000000"
	for _, c := range []struct {
		what string
		to   func(checkpoint) string
		want string
	}{
		{"in time", func(c checkpoint) string { c.until = time.Now().Add(-23 * time.Hour); return c.String() }, ""},
		{"old", func(c checkpoint) string { c.until = time.Now().Add(-30 * time.Hour); return c.String() }, "may have had records from"},
		{"old, and reported already", func(c checkpoint) string { return c.String() }, ""},
		{"foreign", func(c checkpoint) string { c.sequence = "12345"; return c.String() }, "no longer has the checkpoint"},
		{"damaged", func(checkpoint) string { return "nonsense" }, ""},
	} {
		b.change(w, shard, c.to)
		var messages brokertest.Messages
		o := b.untilCaughtUp(w)
		o.Lost = messages.Add
		b.send(3)
		must(t, Ingest(t.Context(), w.Receiver(), o))
		w.Want(b.sent)
		if (c.want == "") != (messages.String() == "") || !strings.Contains(messages.String(), c.want) || strings.Contains(messages.String(), "\n") {
			t.Errorf("%s: the messages are %q, want %q", c.what, messages.String(), c.want)
		}
	}
	// A shard that is no longer listed.
	for _, row := range b.rows(w) {
		if row["shard"].(*ddbtypes.AttributeValueMemberS).Value == shard {
			row["shard"] = &ddbtypes.AttributeValueMemberS{Value: "shardId-000000000099"}
			_, err := w.Client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String(lease.TableName), Item: row})
			must(t, err)
		}
	}
	var messages brokertest.Messages
	o := b.options(w)
	o.Lost = messages.Add
	run := brokertest.Go(t, func(ctx context.Context) error { return Ingest(ctx, w.Receiver(), o) })
	brokertest.Await(t, "the report of lost records", func() bool { return strings.Contains(messages.String(), "shard shardId-000000000099 is gone") })
	run.End()
}

// Deleting the stream ends Ingest with an error that says so. A new stream of the same name is read
// from its beginning.
func TestStreamIsGone(t *testing.T) {
	t.Parallel()
	b, w := newBroker(t, 2), brokertest.New(t)
	o := b.options(w)
	o.Stream = "nothing"
	if err := Ingest(t.Context(), w.Receiver(), o); !errors.Is(err, ErrNoStream) || !strings.HasPrefix(err.Error(), `stream not found: "nothing"`) {
		t.Errorf("got %v", err)
	}
	b.send(6)
	run := brokertest.Go(t, func(ctx context.Context) error { return Ingest(ctx, w.Receiver(), b.options(w)) })
	brokertest.Await(t, "the beginning", func() bool { return w.Count() == 6 })
	_, err := b.api.DeleteStream(t.Context(), &kinesis.DeleteStreamInput{StreamName: aws.String("readings")})
	must(t, err)
	if err := run.Ended(); !errors.Is(err, ErrNoStream) {
		t.Errorf("got %v", err)
	}
	b.await("gone")
	time.Sleep(time.Second) // the creation time, in seconds, identifies a stream
	b.create(1)
	b.sent = 0
	b.send(9)
	must(t, Ingest(t.Context(), w.Receiver(), b.untilCaughtUp(w)))
	w.Want(9)
}

// Without UntilCaughtUp and without shards, as for a stream being deleted, Ingest ends with an
// error.
func TestNoShardLeft(t *testing.T) {
	t.Parallel()
	b, w := newBroker(t, 1), brokertest.New(t)
	b.faults.set(func(operation, _ string) string {
		if operation == "GetRecords" {
			return "ResourceNotFoundException"
		}
		return ""
	})
	run := brokertest.Go(t, func(ctx context.Context) error { return Ingest(ctx, w.Receiver(), b.options(w)) })
	if err := run.Ended(); !errors.Is(err, ErrNoStream) {
		t.Errorf("got %v", err)
	}
}

// A missing permission ends Ingest with an error instead of endless retries.
func TestNotAllowed(t *testing.T) {
	t.Parallel()
	b, w := newBroker(t, 1), brokertest.New(t)
	b.send(3)
	for _, refused := range []string{"DescribeStreamSummary", "ListShards", "GetShardIterator", "GetRecords"} {
		b.faults.set(func(operation, _ string) string {
			if operation == refused {
				return "AccessDeniedException"
			}
			return ""
		})
		if err := Ingest(t.Context(), w.Receiver(), b.untilCaughtUp(w)); err == nil || !strings.Contains(err.Error(), "AccessDenied") {
			t.Errorf("%s: got %v", refused, err)
		}
	}
	for _, o := range []Options{{}, {Client: b.api, Stream: "s", DB: w.Client, Name: strings.Repeat("x", 501)}} {
		if err := Ingest(t.Context(), w.Receiver(), o); err == nil {
			t.Errorf("%+v is enough", o)
		}
	}
}

func TestCheckpoint(t *testing.T) {
	t.Parallel()
	at := time.Date(2030, 1, 1, 0, 0, 0, 5e6, time.UTC)
	for text, want := range map[string]checkpoint{
		"": {}, "@": {}, "123@": {sequence: "123"}, "123@1893456000005": {"123", at}, "@1893456000005": {"", at},
	} {
		if got, ok := readCheckpoint(text); !ok || got != want {
			t.Errorf("%q is %v", text, got)
		}
	}
	for _, text := range []string{"123", "x@", "1@x", "1@-1", "1@1@1", strings.Repeat("1", 200) + "@"} {
		if got, ok := readCheckpoint(text); ok {
			t.Errorf("%q is %v", text, got)
		}
	}
}

func FuzzCheckpoint(f *testing.F) {
	f.Add("123@1893456000005")
	f.Add("@")
	f.Add("end")
	f.Fuzz(func(t *testing.T, text string) {
		c, ok := readCheckpoint(text)
		if !ok {
			return
		}
		if again, ok := readCheckpoint(c.String()); !ok || again != c {
			t.Errorf("%q is %v, and read again %v", text, c, again)
		}
	})
}
