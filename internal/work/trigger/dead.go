package trigger

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"strings"
	"time"

	"github.com/mayflydb/mayfly/internal/work/deliver"
	"github.com/mayflydb/mayfly/internal/work/timer"
	"github.com/mayflydb/mayfly/target"
)

// The conditions of an invocation record. Lambda's text for the second is unknown.
const (
	conditionRetries = "RetryAttemptsExhausted"
	conditionAge     = "RecordAgeExceeded"
)

// invocationRecord describes abandoned records to the destination on failure.
type invocationRecord struct {
	RequestContext struct {
		RequestID              string `json:"requestId"`
		FunctionARN            string `json:"functionArn"`
		Condition              string `json:"condition"`
		ApproximateInvokeCount int    `json:"approximateInvokeCount"`
	} `json:"requestContext"`
	// absent if the function did not run in the last attempt
	ResponseContext *responseContext `json:"responseContext,omitempty"`
	Version         string           `json:"version"`
	Timestamp       string           `json:"timestamp"`
	Batch           struct {
		ShardID       string `json:"shardId"`
		StartSequence string `json:"startSequenceNumber"`
		EndSequence   string `json:"endSequenceNumber"`
		FirstArrival  string `json:"approximateArrivalOfFirstRecord"`
		LastArrival   string `json:"approximateArrivalOfLastRecord"`
		BatchSize     int    `json:"batchSize"`
		StreamARN     string `json:"streamArn"`
	} `json:"DDBStreamBatchInfo"`
	Payload string `json:"payload,omitempty"` // for a bucket only
}

type responseContext struct {
	StatusCode      int     `json:"statusCode"`
	ExecutedVersion string  `json:"executedVersion"`
	FunctionError   *string `json:"functionError"`
}

// giveUp turns records into a dead letter in the table, with all data for a redelivery. If the
// trigger has a destination on failure, it also receives an invocation record. The records are done
// when both are durable.
func (l *lane) giveUp(ctx context.Context, p *part, condition string) {
	l.log.Warn("records were abandoned", "condition", condition, "records", len(p.entries), "first", p.entries[0].sequence, "error", p.last)
	buried := make(chan struct{})
	entries := p.entries // the caller drops them if the trigger ends meanwhile
	parts := 1
	if l.onFailure != "" {
		parts++
	}
	done := timer.AfterAll(parts, func() {
		finish(entries)
		close(buried)
	})
	d := l.delivery(p.entries, max(p.invoked, 1))
	if l.single && len(entries) == 1 {
		d.ID = entries[0].id // as in the attempts
	}
	if l.onFailure != "" {
		l.o.Courier.Deliver(ctx, deliver.Parcel{Delivery: l.notice(d, p, condition), Group: l.group()}, done)
	}
	l.o.Courier.Bury(ctx, deliver.Parcel{Delivery: d, Policy: l.policy(), Group: l.group(), Last: p.reason(condition)}, exhaustedBy[condition], done)
	select {
	case <-buried: // the next batch of the lane must not overtake the dead letter
	case <-ctx.Done():
	}
}

// exhaustedBy maps conditions to the words of dead letters.
var exhaustedBy = map[string]string{conditionRetries: deliver.ExhaustedAttempts, conditionAge: deliver.ExhaustedAge}

// reason returns the failure of the last attempt for the dead letter.
func (p *part) reason(condition string) deliver.Failure {
	switch {
	case p.last != nil:
		return deliver.Failure{Code: p.last.Code, Message: p.last.Message}
	case len(p.named) > 0:
		return deliver.Failure{Code: "BatchItemFailures", Message: "the function has answered that these records failed"}
	}
	return deliver.Failure{Code: condition, Message: "the records are older than the trigger allows"}
}

// notice returns the delivery of an invocation record.
func (l *lane) notice(batch target.Delivery, p *part, condition string) target.Delivery {
	now := l.o.Clock.Now().UTC()
	id := hash(batch.ID, condition)
	raw, _ := hex.DecodeString(id)
	first, last := p.entries[0], p.entries[len(p.entries)-1]
	r := invocationRecord{Version: "1.0", Timestamp: now.Format("2006-01-02T15:04:05.000Z")}
	r.RequestContext.RequestID = uuidOf(raw)
	r.RequestContext.FunctionARN = l.target
	r.RequestContext.Condition = condition
	r.RequestContext.ApproximateInvokeCount = p.invoked
	switch {
	case p.function != nil:
		r.ResponseContext = &responseContext{200, p.function.Version, &p.function.Kind}
	case len(p.named) > 0:
		r.ResponseContext = &responseContext{StatusCode: 200, ExecutedVersion: "$LATEST"}
	}
	r.Batch.ShardID, r.Batch.StreamARN, r.Batch.BatchSize = l.name, l.reading, len(p.entries)
	r.Batch.StartSequence, r.Batch.EndSequence = first.sequence, last.sequence
	r.Batch.FirstArrival, r.Batch.LastArrival = first.written.UTC().Format(time.RFC3339), last.written.UTC().Format(time.RFC3339)
	if strings.HasPrefix(l.onFailure, "arn:aws:s3:") {
		r.Payload = string(batch.Body)
	}
	body, _ := json.Marshal(r)
	reason := p.reason(condition)
	return target.Delivery{
		ID: id, Source: l.arn, Type: "Lambda Function Invocation Result - Failure", Time: now, ContentType: contentJSON, Body: body, TargetARN: l.onFailure,
		Attributes: map[string]string{"ERROR_CODE": reason.Code, "ERROR_MESSAGE": reason.Message},
	}
}
