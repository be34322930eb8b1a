package aws

import (
	"bytes"
	"cmp"
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
// detail type come from the EventBridgeParameters, or else are ownSource and the delivery's type.
// The delivery's source becomes the event's resource.
func (s *clients) toBus(a arn) (sender, error) {
	if _, err := a.name("event-bus/"); err != nil {
		return nil, err
	}
	there := func(o *eventbridge.Options) { o.Region = s.region(a) }
	return batcher[types.PutEventsRequestEntry]{
		most: eventsMost, bytes: eventsBytes,
		entry: func(d *target.Delivery) (types.PutEventsRequestEntry, int, error) { return busEntry(a, d) },
		call: func(ctx context.Context, entries []types.PutEventsRequestEntry, results []error) error {
			out, err := s.eventbridge.PutEvents(ctx, &eventbridge.PutEventsInput{Entries: entries}, there)
			if err != nil {
				return err
			}
			return inOrder(results, out.Entries, func(e types.PutEventsResultEntry) error {
				return eventFailure(e.ErrorCode, e.ErrorMessage)
			})
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
	kind = cmp.Or(kind, d.Type)
	source = cmp.Or(source, ownSource)
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

// eventFailure returns the failure of an entry of a call to EventBridge, or nil without a code.
func eventFailure(code, message *string) error {
	return entryFailure(code, message, !slices.Contains(passingEventCodes, sdk.ToString(code)))
}
