package reminder

import (
	"context"
	"time"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"

	"github.com/mayflydb/mayfly/internal/work/attr"
	"github.com/mayflydb/mayfly/internal/work/deliver"
)

// firings is the consumer of the expiries of a rule's reminders. Each version of a rule has its own, and leaves alone what is another's: workers that have different rules
// may share the table, and a rule that one of them has not, or has otherwise, is fired by those that have it so.
func (r *rule) firings() *deliver.Consumer {
	c := &deliver.Consumer{
		Name: "reminders." + r.Name + "." + r.version, Table: TableName, Start: deliver.TrimHorizon, DB: r.o.DB, Streams: r.o.Streams, Now: r.o.Now, Leases: r.o.Leases,
		Registry: r.fires.registry(r.o.Registry),
		Logger:   r.o.Logger, Handle: r.fire, Settle: r.o.Courier.Settle,
	}
	c.Restore = c.Restorer(tableSpec)
	return c
}

// RestoreTable makes what is missing of the table again, if it is the one of reminders and there are rules, and gives the ARN of its stream.
func (m *Reminders) RestoreTable(ctx context.Context, table string) (streamARN string, err error) {
	if table != TableName || len(m.rules) == 0 {
		return "", nil
	}
	return deliver.Restore(ctx, m.o.DB, m.o.Logger, tableSpec)
}

// fire hands over what is due. A record is done when its delivery is made, parked or a dead letter.
func (r *rule) fire(ctx context.Context, _ string, records []deliver.Record) error {
	for _, record := range records {
		if !deliver.Expired(&record.Record, attrDue, r.o.Mark) {
			record.Done()
			continue
		}
		old, err := attributevalue.FromDynamoDBStreamsMap(record.Dynamodb.OldImage)
		if err != nil {
			return err
		}
		if attr.String(old[attrKind]) != kindReminder || attr.String(old[attrRule]) != r.Name || attr.String(old[attrVersion]) != r.version {
			record.Done()
			continue
		}
		first, err := r.fired(ctx, old)
		if err != nil {
			return err
		}
		if !first {
			record.Done()
			continue
		}
		r.o.Courier.Deliver(ctx, r.parcel(attr.String(old[attrKey]), dueOf(old), []byte(attr.String(old[attrInput]))), record.Done)
	}
	return nil
}

// parcel is a reminder's delivery.
func (r *rule) parcel(key string, due time.Time, input []byte) deliver.Parcel {
	return deliver.Parcel{Delivery: r.delivery(key, due, input), Policy: r.policy(), DeadLetter: r.OnFailure, Group: r.group(), First: r.o.Now()}
}

// dueOf is when a reminder is or was due.
func dueOf(it item) time.Time {
	ms, ok := attr.AsInteger(it[attrAt])
	if !ok {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}
