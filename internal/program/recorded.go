package program

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly/internal/when"
	"github.com/mayflydb/mayfly/internal/work/attr"
	"github.com/mayflydb/mayfly/internal/work/resolve"
)

type recordedCommand struct {
	Target string `arg:"" optional:"" help:"ARN of a target. Default: all."`
	Limit  int    `help:"Number of latest deliveries to show, 1 to 10000." default:"100"`
	Body   bool   `help:"Print only the bodies for the targets, one a line."`
	JSON   bool   `name:"json" help:"Print JSON lines with all fields."`
	endpointFlags
}

func (recordedCommand) Help() string {
	return `Examples:

    mayfly recorded
    mayfly recorded arn:aws:lambda:us-east-1:000000000000:function:tea --json

With --unmapped accept, the default in memory, mayfly serve records deliveries to unmapped targets for a day instead of
sending them. So you can try a program before its targets exist.`
}

// Run shows recorded deliveries, the oldest first.
func (c recordedCommand) Run(ctx context.Context, s streams) error {
	if err := checkLimit(c.Limit); err != nil {
		return err
	}
	e, err := c.connect(ctx, serviceDynamoDB)
	if err != nil {
		return err
	}
	latest := firstRows[recordedDelivery]{limit: c.Limit, before: recordedLater}
	if err := e.eachRecorded(ctx, c.Target, latest.add); err != nil {
		return err
	}
	shown := listing{table: table{heading: []string{"Time (UTC)", "Target", "Source", "Body"}}, plural: "recorded deliveries", json: c.JSON}
	for _, r := range slices.Backward(latest.sorted()) {
		if c.Body && !c.JSON {
			_, err = fmt.Fprintln(s.out, r.Body)
		} else {
			err = shown.show(s, r, when.UTC(r.Time.time()), r.TargetARN, lastPart(r.Source), shortened(r.Body, 80))
		}
		if err != nil {
			return err
		}
	}
	if c.Body {
		return nil
	}
	return shown.end(s)
}

// recordedLater orders recorded deliveries from the latest to the earliest.
func recordedLater(a, b *recordedDelivery) bool {
	return cmp.Or(b.Time.time().Compare(a.Time.time()), cmp.Compare(b.TargetARN, a.TargetARN), cmp.Compare(b.ID, a.ID)) < 0
}

// recordedDelivery is a delivery whose target was not mapped.
type recordedDelivery struct {
	ID          string    `json:"id"`
	Time        *wireTime `json:"time"`
	TargetARN   string    `json:"target"`
	Source      string    `json:"source"`
	Type        string    `json:"type,omitempty"`
	Subject     string    `json:"subject,omitempty"`
	ContentType string    `json:"contentType,omitempty"`
	Parameters  string    `json:"parameters,omitempty"`
	Body        string    `json:"body"`
}

// lastPart returns the end of an ARN: group and name of a schedule, or the name of a rule or a
// trigger.
func lastPart(arn string) string {
	parts := strings.SplitN(arn, ":", 6)
	_, tail, ok := strings.Cut(parts[len(parts)-1], "/")
	if !ok {
		return arn
	}
	return tail
}

// eachRecorded passes each recorded delivery to a target, or to all targets, to do.
func (e *endpoint) eachRecorded(ctx context.Context, arn string, do func(recordedDelivery)) error {
	db, name := e.DynamoDB(), aws.String(resolve.RecordedTable)
	for from := map[string]types.AttributeValue(nil); ; {
		var items []map[string]types.AttributeValue
		var err error
		if arn == "" {
			var out *dynamodb.ScanOutput
			if out, err = db.Scan(ctx, &dynamodb.ScanInput{TableName: name, ExclusiveStartKey: from}); err == nil {
				items, from = out.Items, out.LastEvaluatedKey
			}
		} else {
			var out *dynamodb.QueryOutput
			out, err = db.Query(ctx, &dynamodb.QueryInput{
				TableName: name, ExclusiveStartKey: from, KeyConditionExpression: aws.String("arn = :arn"),
				ExpressionAttributeValues: map[string]types.AttributeValue{":arn": attr.S(arn)},
			})
			if err == nil {
				items, from = out.Items, out.LastEvaluatedKey
			}
		}
		if answered(err, "ResourceNotFoundException") {
			return nil // the first recorded delivery creates the table
		}
		if err != nil {
			return e.advise(err)
		}
		for _, item := range items {
			do(readRecorded(item))
		}
		if from == nil {
			return nil
		}
	}
}

func readRecorded(item map[string]types.AttributeValue) recordedDelivery {
	text := func(name string) string { return attr.String(item[name]) }
	at, _ := time.Parse(time.RFC3339Nano, text("time"))
	return recordedDelivery{
		ID: text("id"), Time: wireTimeOf(at), TargetARN: text("arn"), Source: text("source"), Type: text("type"), Subject: text("subject"),
		ContentType: text("contentType"), Parameters: text("parameters"), Body: text("body"),
	}
}
