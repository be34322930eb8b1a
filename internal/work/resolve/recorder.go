package resolve

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly/internal/work/attr"
	"github.com/mayflydb/mayfly/internal/work/deliver"
	"github.com/mayflydb/mayfly/internal/work/ensure"
	"github.com/mayflydb/mayfly/target"
)

const (
	concurrencyMax         = 1000
	batchMax               = 1000
	perSecondMax           = 1e9
	timeoutMin, timeoutMax = 10 * time.Millisecond, 15 * time.Minute
)

// RecordedTable is the table of recorded deliveries. Its items have the attributes
//
//	arn         S  the ARN of the target: the partition key
//	id          S  the delivery's: the sort key. A delivery that comes twice is recorded once
//	time        S  the instant of the delivery, RFC 3339
//	source      S  ARN of the sender
//	type, subject, contentType   S  unless empty
//	body        S  the body; cut at 256 KB, and then truncated is true
//	parameters  S  JSON of the target's parameters, unless empty
//	attributes  M  of a dead letter
//	recorded    N  the instant of the recording, in epoch seconds
//	gone        N  the deadline: the TTL attribute, a day after that or, of many deliveries, a minute
const RecordedTable = "mayfly.recorded"

// Deliveries are recorded for a day. Those beyond manyMost or manyBytes in a day stay only a moment, so
// that a schedule of every 10 milliseconds does not fill the disk, or the memory of a server without one.
const (
	retention     = 24 * time.Hour
	manyMost      = 10_000
	manyBytes     = 64 << 20
	retentionMany = time.Minute
	recordBatch   = 25 // the limit of BatchWriteItem
	recordBodyMax = 256 << 10
)

var recordedSpec = ensure.Spec{Name: RecordedTable, Key: "arn", Sort: "id", TTL: "gone"}

// Recorder is a target that stores deliveries in RecordedTable. The first delivery creates the
// table.
type Recorder struct {
	DB  *dynamodb.Client
	Now func() time.Time // the database's clock

	mu struct {
		sync.Mutex
		made  bool
		day   time.Time // when the counts began
		count int
		bytes int
	}
}

// Lane returns the recorder's lane.
func (r *Recorder) Lane() *deliver.Lane {
	return &deliver.Lane{Name: "recorded", Target: r, Limits: target.Limits{Concurrency: 4, Batch: recordBatch}}
}

// Deliver records deliveries. A batch of them fails together.
func (r *Recorder) Deliver(ctx context.Context, deliveries []target.Delivery) []error {
	results := make([]error, len(deliveries))
	for first := 0; first < len(deliveries); {
		end := first + batchOf(deliveries[first:])
		if err := r.record(ctx, deliveries[first:end]); err != nil {
			for i := first; i < end; i++ {
				results[i] = err
			}
		}
		first = end
	}
	return results
}

// batchOf returns how many deliveries fit into one call. A byte of a body may become six of JSON.
func batchOf(deliveries []target.Delivery) (n int) {
	const bytesMax = 2 << 20 // the limit of a call is 16 MB
	bytes := 0
	for n < min(len(deliveries), recordBatch) {
		if bytes += min(len(deliveries[n].Body), recordBodyMax); n > 0 && bytes > bytesMax {
			break
		}
		n++
	}
	return n
}

func (r *Recorder) record(ctx context.Context, deliveries []target.Delivery) error {
	if err := r.makeTable(ctx); err != nil {
		return err
	}
	now := r.Now()
	var requests []types.WriteRequest
	seen := map[[2]string]bool{} // a key may occur once in a batch
	for i := range deliveries {
		d := &deliveries[i]
		if key := [2]string{d.TargetARN, d.ID}; !seen[key] {
			seen[key] = true
			item := recordedItem(d, now)
			item["gone"] = attr.Seconds(now.Add(r.stay(now, min(len(d.Body), recordBodyMax))))
			requests = append(requests, types.WriteRequest{PutRequest: &types.PutRequest{Item: item}})
		}
	}
	out, err := r.DB.BatchWriteItem(ctx, &dynamodb.BatchWriteItemInput{RequestItems: map[string][]types.WriteRequest{RecordedTable: requests}})
	if err != nil {
		return fmt.Errorf("record deliveries: %w", err)
	}
	if n := len(out.UnprocessedItems[RecordedTable]); n > 0 {
		return &target.Error{Code: "ThrottlingException", Message: fmt.Sprintf("%d of %d deliveries were not recorded", n, len(requests)), Throttled: true}
	}
	return nil
}

// stay returns how long a delivery with a body of so many bytes stays recorded.
func (r *Recorder) stay(now time.Time, body int) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now.Sub(r.mu.day).Abs() >= retention {
		r.mu.day, r.mu.count, r.mu.bytes = now, 0, 0
	}
	if r.mu.count >= manyMost || r.mu.bytes >= manyBytes {
		return retentionMany
	}
	r.mu.count++
	r.mu.bytes += body
	return retention
}

func (r *Recorder) makeTable(ctx context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.mu.made {
		return nil
	}
	if _, err := ensure.Table(ctx, r.DB, recordedSpec); err != nil {
		return err
	}
	r.mu.made = true
	return nil
}

func recordedItem(d *target.Delivery, now time.Time) map[string]types.AttributeValue {
	item := map[string]types.AttributeValue{
		"arn":      attr.S(d.TargetARN),
		"id":       attr.S(d.ID),
		"time":     attr.S(d.Time.UTC().Format(time.RFC3339Nano)),
		"recorded": attr.Seconds(now),
	}
	body := d.Body
	if len(body) > recordBodyMax {
		body = body[:recordBodyMax]
		item["truncated"] = attr.Bool(true)
	}
	for name, value := range map[string]string{
		"source": d.Source, "type": d.Type, "subject": d.Subject, "contentType": d.ContentType, "body": strings.ToValidUTF8(string(body), "\uFFFD"), "parameters": string(d.Parameters),
	} {
		if value != "" {
			item[name] = attr.S(value)
		}
	}
	if len(d.Attributes) > 0 {
		item["attributes"] = attr.Strings(d.Attributes)
	}
	return item
}
