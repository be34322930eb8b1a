package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly/internal/work/resolve"
)

type recordedCommand struct {
	Target string `arg:"" optional:"" help:"ARN of a target. Default: all."`
	Limit  int    `help:"Number of latest deliveries to show, 1 to 10000." default:"100"`
	Body   bool   `help:"Print only the bodies for the targets, one a line."`
	JSON   bool   `name:"json" help:"Print JSON lines with all fields."`
	endpointFlags
}

// Help is the part of --help behind the flags.
func (recordedCommand) Help() string {
	return `Examples:

    mayfly recorded
    mayfly recorded arn:aws:lambda:us-east-1:000000000000:function:tea --json

With --unmapped accept, the default in memory, mayfly serve records deliveries to unmapped targets for a day instead of
sending them. So you can try a program before its targets exist.`
}

const recordedMax = 10_000

// Run shows recorded deliveries, the oldest first.
func (c recordedCommand) Run(ctx context.Context, s streams) error {
	if c.Limit < 1 || c.Limit > recordedMax {
		return misused(fmt.Errorf("--limit %d is not between 1 and %d", c.Limit, recordedMax), "for example --limit 100")
	}
	e, err := c.connect(ctx, serviceDynamoDB)
	if err != nil {
		return err
	}
	all, err := e.recorded(ctx, c.Target)
	if err != nil {
		return err
	}
	all = all[max(len(all)-c.Limit, 0):]
	shown := table{heading: []string{"Time (UTC)", "Target", "Source", "Body"}}
	for _, r := range all {
		switch {
		case c.JSON:
			if err := writeJSON(s.out, r); err != nil {
				return err
			}
		case c.Body:
			if _, err := fmt.Fprintln(s.out, r.Body); err != nil {
				return err
			}
		default:
			shown.add(utcText(r.Time.time()), r.TargetARN, lastPart(r.Source), shortened(r.Body, 80))
		}
	}
	switch {
	case c.JSON || c.Body:
		return nil
	case len(all) == 0:
		fmt.Fprintln(s.out, "no recorded deliveries")
		return nil
	}
	return shown.write(s.out)
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

// lastPart is what an ARN ends with: group and name of a schedule, the name of a rule or a trigger.
func lastPart(arn string) string {
	parts := strings.SplitN(arn, ":", 6)
	_, rest, ok := strings.Cut(parts[len(parts)-1], "/")
	if !ok {
		return arn
	}
	return rest
}

// recorded reads the recorded deliveries of a target, or of all, in the order of their times.
func (e *endpoint) recorded(ctx context.Context, arn string) ([]recordedDelivery, error) {
	db, name := e.dynamodb(), aws.String(resolve.RecordedTable)
	var all []recordedDelivery
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
				ExpressionAttributeValues: map[string]types.AttributeValue{":arn": &types.AttributeValueMemberS{Value: arn}},
			})
			if err == nil {
				items, from = out.Items, out.LastEvaluatedKey
			}
		}
		if answered(err, "ResourceNotFoundException") {
			return nil, nil // nothing ever was
		}
		if err != nil {
			return nil, e.advise(err)
		}
		for _, item := range items {
			all = append(all, readRecorded(item))
		}
		if len(all) > 2*recordedMax || from == nil { // no more is kept than can be shown
			sort.Slice(all, func(i, j int) bool {
				a, b := &all[i], &all[j]
				return cmp.Or(a.Time.time().Compare(b.Time.time()), cmp.Compare(a.TargetARN, b.TargetARN), cmp.Compare(a.ID, b.ID)) < 0
			})
			all = slices.Clone(all[max(len(all)-recordedMax, 0):])
		}
		if from == nil {
			return all, nil
		}
	}
}

func readRecorded(item map[string]types.AttributeValue) recordedDelivery {
	text := func(name string) string {
		if s, ok := item[name].(*types.AttributeValueMemberS); ok {
			return s.Value
		}
		return ""
	}
	at, _ := time.Parse(time.RFC3339Nano, text("time"))
	return recordedDelivery{
		ID: text("id"), Time: wireTimeOf(at), TargetARN: text("arn"), Source: text("source"), Type: text("type"), Subject: text("subject"),
		ContentType: text("contentType"), Parameters: text("parameters"), Body: text("body"),
	}
}
