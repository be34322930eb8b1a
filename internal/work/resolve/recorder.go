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
//	gone        N  the deadline: the TTL attribute
const RecordedTable = "mayfly.recorded"

const (
	retention     = 24 * time.Hour
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
		made bool
	}
}

// Lane returns the recorder's lane.
func (r *Recorder) Lane() *deliver.Lane {
	return &deliver.Lane{Name: "recorded", Target: r, Limits: target.Limits{Concurrency: 4, Batch: recordBatch}}
}

// Deliver records deliveries. A batch of them fails together.
func (r *Recorder) Deliver(ctx context.Context, deliveries []target.Delivery) []error {
	results := make([]error, len(deliveries))
	for first := 0; first < len(deliveries); first += recordBatch {
		batch := deliveries[first:min(first+recordBatch, len(deliveries))]
		if err := r.record(ctx, batch); err != nil {
			for i := range batch {
				results[first+i] = err
			}
		}
	}
	return results
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
			requests = append(requests, types.WriteRequest{PutRequest: &types.PutRequest{Item: recordedItem(d, now)}})
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
		"gone":     attr.Seconds(now.Add(retention)),
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
