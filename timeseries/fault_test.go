package timeseries

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/mayflydb/mayfly"
	"github.com/mayflydb/mayfly/internal/work/attr"
)

// narrow is a transport that processes a part of each BatchWriteItem: take selects the partitions,
// and the rest stays unprocessed, like at an endpoint without spare capacity.
type narrow struct {
	http.RoundTripper
	mu    sync.Mutex
	take  func(partition string) bool         // nil: all partitions
	fails func(operation, body string) string // returns an error code, or "". nil: nothing fails
	calls map[string]int
}

type batch struct {
	RequestItems map[string][]struct {
		PutRequest struct{ Item map[string]map[string]any }
	}
}

func (n *narrow) RoundTrip(r *http.Request) (*http.Response, error) {
	operation := strings.TrimPrefix(r.Header.Get("X-Amz-Target"), "DynamoDB_20120810.")
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	n.mu.Lock()
	n.calls[operation]++
	code := ""
	if n.fails != nil {
		code = n.fails(operation, string(body))
	}
	var rest string
	if operation == "BatchWriteItem" && n.take != nil && code == "" {
		body, rest = n.split(body)
	}
	n.mu.Unlock()
	if code != "" {
		return answer(r, 400, fmt.Sprintf(`{"__type":"com.amazonaws.dynamodb.v20120810#%s","message":"not now"}`, code)), nil
	}
	if body == nil {
		return answer(r, 200, `{"UnprocessedItems":`+rest+`}`), nil
	}
	r = r.Clone(r.Context())
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	out, err := n.RoundTripper.RoundTrip(r)
	if err == nil && rest != "" && out.StatusCode == 200 {
		out.Body.Close()
		return answer(r, 200, `{"UnprocessedItems":`+rest+`}`), nil
	}
	return out, err
}

// split returns the part of a body to process, or nil, and the unprocessed part, or "".
func (n *narrow) split(body []byte) (through []byte, stays string) {
	var all, in, out batch
	if json.Unmarshal(body, &all) != nil {
		return body, ""
	}
	in.RequestItems, out.RequestItems = all.RequestItems, map[string][]struct {
		PutRequest struct{ Item map[string]map[string]any }
	}{}
	for table, requests := range all.RequestItems {
		in.RequestItems[table] = nil
		for _, r := range requests {
			if n.take(r.PutRequest.Item["deviceId"]["S"].(string)) {
				in.RequestItems[table] = append(in.RequestItems[table], r)
			} else {
				out.RequestItems[table] = append(out.RequestItems[table], r)
			}
		}
		if len(in.RequestItems[table]) > 0 {
			through, _ = json.Marshal(in)
		}
		if len(out.RequestItems[table]) > 0 {
			text, _ := json.Marshal(out.RequestItems)
			stays = string(text)
		}
	}
	return through, stays
}

func answer(r *http.Request, status int, body string) *http.Response {
	return &http.Response{
		StatusCode: status, Request: r, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, ContentLength: int64(len(body)),
		Header: http.Header{"Content-Type": {"application/x-amz-json-1.0"}}, Body: io.NopCloser(strings.NewReader(body)),
	}
}

// newNarrowWorld returns a series behind such a transport.
func newNarrowWorld(t *testing.T, spec Spec) (*world, *narrow) {
	t.Helper()
	db, err := mayfly.Open("", mayfly.Options{Start: start, Frozen: true})
	must(t, err)
	t.Cleanup(func() { must(t, db.Close()) })
	n := &narrow{RoundTripper: db.Transport(), calls: map[string]int{}}
	client := dynamodb.New(dynamodb.Options{
		Region: "us-east-1", Credentials: credentials.NewStaticCredentialsProvider("k", "s", ""), HTTPClient: &http.Client{Transport: n},
		BaseEndpoint: aws.String("http://127.0.0.1:1"), Retryer: aws.NopRetryer{}, DisableValidateResponseChecksum: true,
	})
	x := &world{t: t, db: db}
	spec.Table, spec.Now = "weather", db.Clock().Now
	x.open(client, spec)
	return x, n
}

func (n *narrow) set(take func(string) bool, fails func(operation, body string) string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.take, n.fails = take, fails
}

func readings(device string, n int) (samples []Sample) {
	for i := range n {
		samples = append(samples, temperature(device, -time.Duration(i)*time.Millisecond, float64(i)))
	}
	return samples
}

// Write retries unprocessed, throttled and failed items until they are written.
func TestWriteTriesAgain(t *testing.T) {
	x, n := newNarrowWorld(t, Spec{})
	chance := rand.New(rand.NewPCG(1, 2))
	n.set(func(string) bool { return chance.IntN(3) > 0 }, func(operation, _ string) string {
		if n.calls[operation] == 1 || chance.IntN(5) == 0 {
			return []string{"ProvisionedThroughputExceededException", "InternalServerError", "ThrottlingException"}[chance.IntN(3)]
		}
		return ""
	})
	x.write(readings("roof", 200)...)
	latest, err := x.r.Latest(t.Context(), "roof")
	must(t, err)
	if got := len(all(t, x.r.Range(t.Context(), Query{Device: "roof"}))); got != 200 || !latest["roof"].Time.Equal(start) {
		t.Errorf("%d samples, the latest %v", got, latest)
	}
}

// If the endpoint does not recover, Write lists the samples that are not written; the others are.
func TestWriteGivesUp(t *testing.T) {
	x, n := newNarrowWorld(t, Spec{})
	w := x.writer(WriterOptions{RetryFor: 50 * time.Millisecond})
	n.set(func(partition string) bool { return partition != "cellar" }, nil)
	samples := append(readings("roof", 30), readings("cellar", 30)...)
	err := w.Write(t.Context(), samples...)
	var partly *WriteError
	if !errors.As(err, &partly) || len(partly.Unwritten) != 30 || partly.Unwritten[0] != 30 || len(partly.Refused) != 0 {
		t.Fatalf("got %v", err)
	}
	latest, err := x.r.Latest(t.Context(), "roof", "cellar")
	must(t, err)
	if got := len(all(t, x.r.Range(t.Context(), Query{Device: "roof"}))); got != 30 || len(latest) != 1 {
		t.Errorf("%d samples, latest %v", got, latest)
	}
	n.set(nil, nil)
	must(t, w.Write(t.Context(), samples...))
	if got := len(all(t, x.r.Range(t.Context(), Query{Device: "cellar"}))); got != 30 {
		t.Errorf("%d samples", got)
	}
}

// A sample that the endpoint refuses fails alone: the others of its batch are written.
func TestWriteIsolatesWhatIsRefused(t *testing.T) {
	x, n := newNarrowWorld(t, Spec{})
	n.set(nil, func(operation, body string) string {
		if operation == "BatchWriteItem" && strings.Contains(body, `"poison"`) {
			return "ValidationException"
		}
		return ""
	})
	samples := readings("roof", 60)
	samples[17].Tags = map[string]string{"a": "b"}
	samples[17].Device = "poison"
	err := x.w.Write(t.Context(), samples...)
	var partly *WriteError
	if !errors.As(err, &partly) || len(partly.Unwritten) != 1 || partly.Unwritten[0] != 17 {
		t.Fatalf("got %v", err)
	}
	if got := len(all(t, x.r.Range(t.Context(), Query{Device: "roof"}))); got != 59 {
		t.Errorf("%d samples", got)
	}
}

// After a failed write of a device's latest sample, writing the samples again repairs it.
func TestLatestFailsAndIsPutRight(t *testing.T) {
	x, n := newNarrowWorld(t, Spec{})
	w := x.writer(WriterOptions{RetryFor: 20 * time.Millisecond})
	n.set(nil, func(operation, _ string) string {
		if operation == "PutItem" {
			return "InternalServerError"
		}
		return ""
	})
	samples := readings("roof", 3)
	err := w.Write(t.Context(), samples...)
	var partly *WriteError
	if !errors.As(err, &partly) || len(partly.Unwritten) != 3 {
		t.Fatalf("got %v", err)
	}
	n.set(nil, nil)
	must(t, w.Write(t.Context(), samples...))
	latest, err := x.r.Latest(t.Context(), "roof")
	must(t, err)
	if !latest["roof"].Time.Equal(start) {
		t.Errorf("the latest is %v", latest)
	}
}

// A throttled device gets more shards, which take effect when all readers must know of them;
// another device gets none.
func TestThrottledDeviceIsSpread(t *testing.T) {
	x, n := newNarrowWorld(t, Spec{CacheFor: time.Minute})
	w := x.writer(WriterOptions{ShardRate: -1, MaxShards: 4})
	w.meter.window = time.Millisecond
	taken := map[string]int{}
	n.set(func(partition string) bool { // a hot partition refuses every other item
		taken[partition]++
		return partition != "roof" || taken[partition]%2 == 0
	}, nil)
	for i := 0; ; i++ {
		must(t, w.Write(t.Context(), append(readings("roof", 200), readings("cellar", 5)...)...))
		if s, err := x.Shards(t.Context(), "roof"); err != nil || s.Next > 1 {
			must(t, err)
			break
		}
		if i > 100 {
			t.Fatal("it gets no more shards")
		}
	}
	s, err := x.Shards(t.Context(), "roof")
	must(t, err)
	if now := x.db.Clock().Now(); s.Writers(now) != 1 || s.Readers(now) != 2 {
		t.Errorf("it has %+v", s)
	}
	x.advance(2 * time.Minute)
	n.set(nil, nil)
	more := readings("roof", 40)
	for i := range more {
		more[i].Time = more[i].Time.Add(2 * time.Minute)
	}
	must(t, w.Write(t.Context(), more...))
	counts := map[string]int{}
	out, err := x.Series.db.Scan(t.Context(), &dynamodb.ScanInput{TableName: aws.String("weather")})
	must(t, err)
	for _, it := range out.Items {
		counts[attr.String(it[attrDevice])]++
	}
	if counts["roof"]+counts["roof#shard01"] != 240 || counts["roof#shard01"] < 10 || counts["cellar"] != 5 {
		t.Errorf("partitions have %v", counts)
	}
	if got := len(all(t, x.r.Range(t.Context(), Query{Device: "roof"}))); got != 240 {
		t.Errorf("%d samples", got)
	}
	if s, err := x.Shards(t.Context(), "cellar"); err != nil || s != oneShard {
		t.Errorf("a device that is not hot has %+v, %v", s, err)
	}
}

// A device above the rate of its shards gets more; their number follows from the rate, up to the
// bound.
func TestFastDeviceIsSpread(t *testing.T) {
	x := newWorld(t, Spec{})
	w := x.writer(WriterOptions{ShardRate: 1, MaxShards: 3})
	w.meter.window = time.Millisecond
	for i := 0; ; i++ {
		must(t, w.Write(t.Context(), readings("roof", 50)...))
		if s, err := x.Shards(t.Context(), "roof"); err != nil || s.Next == 3 {
			must(t, err)
			return
		}
		if i > 1000 {
			t.Fatal("it gets no more shards")
		}
	}
}

// A failing endpoint ends an ingest. The next run continues, and every sample is stored once.
func TestIngestSurvivesTheEndpoint(t *testing.T) {
	x, n := newNarrowWorld(t, Spec{})
	w := x.writer(WriterOptions{RetryFor: 10 * time.Millisecond})
	text := devicesFile(7, 30_000, start)
	rejects, err := os.Create(filepath.Join(t.TempDir(), "rejects"))
	must(t, err)
	defer rejects.Close()
	o := IngestOptions{Format: CSV, Checkpoint: "x", Rejects: rejects}
	for _, after := range []int{0, 100, 700, -1} {
		left := after
		n.set(nil, func(operation, _ string) string {
			if left--; operation == "BatchWriteItem" && after >= 0 && left < 0 {
				return "InternalServerError"
			}
			return ""
		})
		report, err := Ingest(t.Context(), w, strings.NewReader(text), o)
		if (err != nil) != (after >= 0) || report.Rejected > 0 {
			t.Fatalf("after %d calls: %+v, %v", after, report, err)
		}
	}
	count := 0
	for i := range 7 {
		count += len(all(t, x.r.Range(t.Context(), Query{Device: fmt.Sprintf("device-%04d", i)})))
	}
	latest, err := x.r.Latest(t.Context(), "device-0000", "device-0006")
	must(t, err)
	if count != 30_000 || len(latest) != 2 {
		t.Errorf("%d samples, latest %v", count, latest)
	}
}
