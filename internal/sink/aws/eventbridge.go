package aws

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge/types"

	"github.com/mayflydb/mayfly/target"
)

// EventBridge's limits of a call.
const (
	eventsMost  = 10
	eventsBytes = 256 << 10
)

// ownSource is the source of an event whose delivery brings no EventBridgeParameters.
const ownSource = "mayfly"

// toBus puts events. The detail is the delivery's body, which must be a JSON object. Source and
// detail type come from the EventBridgeParameters, or else from the delivery.
func (s *clients) toBus(a arn) (sender, error) {
	if _, err := a.name("event-bus/"); err != nil {
		return nil, err
	}
	return batcher[types.PutEventsRequestEntry]{
		most: eventsMost, bytes: eventsBytes,
		entry: func(d *target.Delivery) (types.PutEventsRequestEntry, int, error) { return busEntry(a, d) },
		call: func(ctx context.Context, entries []types.PutEventsRequestEntry, results []error) error {
			return s.putEvents(ctx, a, entries, results)
		},
	}.deliver, nil
}

func busEntry(a arn, d *target.Delivery) (e types.PutEventsRequestEntry, size int, err error) {
	given, err := parametersOf(d)
	if err != nil {
		return e, 0, err
	}
	if !isObject(d.Body) {
		return e, 0, target.Permanent(codeInvalid, "The detail of an event must be a JSON object")
	}
	kind, source := given.EventBridgeParameters.DetailType, given.EventBridgeParameters.Source
	if kind == "" {
		kind = d.Type
	}
	if source == "" {
		source = ownSource
	}
	e = types.PutEventsRequestEntry{EventBusName: &a.text, Detail: sdk.String(string(d.Body)), DetailType: &kind, Source: &source}
	size = len(*e.Detail) + len(kind) + len(source)
	if !d.Time.IsZero() {
		e.Time = sdk.Time(d.Time)
		size += 14
	}
	if d.Source != "" {
		e.Resources = []string{d.Source}
		size += len(d.Source)
	}
	return e, size, nil
}

func isObject(body []byte) bool {
	return bytes.HasPrefix(bytes.TrimLeft(body, " \t\r\n"), []byte("{")) && json.Valid(body)
}

// passingEventCodes are codes of entries that another attempt can mend, besides throttling.
var passingEventCodes = []string{"InternalFailure", "InternalException", "InternalError", "ServiceUnavailable"}

func (s *clients) putEvents(ctx context.Context, a arn, entries []types.PutEventsRequestEntry, results []error) error {
	if err := s.unnamed["eventbridge"]; err != nil {
		return err
	}
	out, err := s.eventbridge.PutEvents(ctx, &eventbridge.PutEventsInput{Entries: entries}, func(o *eventbridge.Options) { o.Region = s.region(a) })
	if err != nil {
		return err
	}
	for i := range results {
		if i >= len(out.Entries) {
			results[i] = unanswered()
		} else {
			results[i] = eventFailure(out.Entries[i])
		}
	}
	return nil
}

func eventFailure(e types.PutEventsResultEntry) error {
	code := sdk.ToString(e.ErrorCode)
	if code == "" {
		return nil
	}
	return entryFailure(code, sdk.ToString(e.ErrorMessage), !slices.Contains(passingEventCodes, code))
}
