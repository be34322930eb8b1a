package reminder

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	streamtypes "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"

	"github.com/mayflydb/mayfly/internal/work/attr"
	"github.com/mayflydb/mayfly/internal/work/consume"
	"github.com/mayflydb/mayfly/internal/work/deliver"
	"github.com/mayflydb/mayfly/internal/work/ensure"
	"github.com/mayflydb/mayfly/internal/work/items"
	"github.com/mayflydb/mayfly/internal/work/retry"
	"github.com/mayflydb/mayfly/internal/work/template"
	"github.com/mayflydb/mayfly/target"
)

// run follows the streams of the table, one after another, until ctx is done.
func (r *rule) run(ctx context.Context) {
	stopWaiting := func() {
		r.registered.set()
		r.scanned.set()
	}
	defer stopWaiting()
	for stream := ""; ; {
		var looked func()
		stream, looked = consume.AwaitStream(ctx, r.o.DB, r.o.Registry, r.Table, stream, func(err error) {
			stopWaiting()
			consume.LogNoStream(r.log, r.Table, err)
		})
		if stream == "" {
			return
		}
		if !r.readable(ctx, stream) {
			stopWaiting()
			looked()
			continue // the view of a stream is fixed, but the next stream may have another one
		}
		r.read(ctx, stream, looked)
		if ctx.Err() != nil {
			return
		}
		r.log.Warn("the stream has ended", "stream", stream)
	}
}

// readable reports whether a stream has old images: the old instant shows which reminder has fired.
func (r *rule) readable(ctx context.Context, stream string) (readable bool) {
	r.persist(ctx, "describe the stream", func() error {
		out, err := r.o.Streams.DescribeStream(ctx, &dynamodbstreams.DescribeStreamInput{StreamArn: &stream})
		if _, ok := errors.AsType[*streamtypes.ResourceNotFoundException](err); ok {
			return nil
		}
		if err != nil {
			return err
		}
		view := out.StreamDescription.StreamViewType
		if readable = view == streamtypes.StreamViewTypeNewAndOldImages; !readable {
			r.log.Error("the rule does not run: the table needs a stream with NEW_AND_OLD_IMAGES", "table", r.Table, "has", view)
		}
		return nil
	})
	return readable
}

// read follows one stream. Once the consumer misses no later write, a scan adds the older items. read
// calls looked when the consumer has registered and the first scan is complete.
func (r *rule) read(ctx context.Context, stream string, looked func()) {
	ctx, cancel := context.WithCancel(ctx)
	registered := newEvent()
	var consumer *consume.Consumer
	consumer = &consume.Consumer{
		Name: "reminder." + r.Name + "." + r.version, StreamARN: stream, Start: consume.Latest, DB: r.o.DB, Streams: r.o.Streams, Now: r.o.Now,
		Leases: r.o.Leases, Registry: r.o.Registry.Notify(registered.set), Logger: r.o.Logger,
		Handle: func(ctx context.Context, _ string, records []consume.Record) error {
			return r.handle(ctx, stream, records)
		},
		Lost: func(ctx context.Context) error {
			r.log.Error("changes were trimmed before they were read; all items of the table are read again")
			if err := r.scanAgain(ctx, stream); err != nil {
				return err
			}
			r.scanOnce(ctx, consumer, stream)
			return ctx.Err()
		},
	}
	scanned := make(chan struct{})
	go func() {
		defer close(scanned)
		registered.wait(ctx)
		r.registered.set()
		r.scanOnce(ctx, consumer, stream)
		r.scanned.set()
		looked()
	}()
	if err := consumer.Run(ctx); err != nil {
		r.log.Error("the rule has stopped", "error", err)
	}
	cancel()
	<-scanned
}

// handle follows the changes in a page of records.
func (r *rule) handle(ctx context.Context, stream string, records []consume.Record) error {
	for _, record := range records {
		c, err := readChange(&record.Record, stream)
		if err != nil { // another attempt would read the same
			r.log.Error("a record cannot be read and is skipped", "sequence", record.Sequence(), "error", err)
		} else if err := r.follow(ctx, c); err != nil {
			return fmt.Errorf("reminder %q: %w", r.Name, err)
		}
		record.Done()
	}
	return nil
}

// change is the contents of a record.
type change struct {
	key      item
	old, new item // nil if there is no such image
	order    string
	written  time.Time // rounded down to the second
}

func readChange(r *streamtypes.Record, stream string) (c change, err error) {
	d := r.Dynamodb
	if d == nil || d.SequenceNumber == nil || d.ApproximateCreationDateTime == nil {
		return c, fmt.Errorf("a record of %s contains no change", stream)
	}
	c.order, c.written = order(stream, *d.SequenceNumber), *d.ApproximateCreationDateTime
	if c.key, err = attributevalue.FromDynamoDBStreamsMap(d.Keys); err != nil {
		return c, err
	}
	if d.OldImage != nil {
		if c.old, err = attributevalue.FromDynamoDBStreamsMap(d.OldImage); err != nil {
			return c, err
		}
	}
	if d.NewImage != nil && r.EventName != streamtypes.OperationTypeRemove {
		c.new, err = attributevalue.FromDynamoDBStreamsMap(d.NewImage)
	}
	return c, err
}

// due returns the instant of an item's reminder; ok is false if the item names no instant.
func (r *rule) due(it item) (due time.Time, ok bool) {
	v := r.path.Of(it)
	if it == nil || v == nil {
		return due, false
	}
	at, ok := instant(v, r.zone)
	return at.Add(r.Offset), ok
}

// dueOrWarn is due for an item that was written. It logs a warning if the attribute is not a time.
func (r *rule) dueOrWarn(key, it item) (due time.Time, ok bool) {
	due, ok = r.due(it)
	if v := r.path.Of(it); !ok && it != nil && v != nil {
		form := "ISO 8601 with a zone, or set the rule's zone"
		if r.zone != nil {
			form = "ISO 8601"
		}
		r.log.Warn("an attribute is not a time: use epoch seconds or "+form, "table", r.Table, "key", keyText(key), "attribute", r.Attribute, "value", template.Text(v))
	}
	return due, ok
}

// follow writes the reminder that a change asks for.
func (r *rule) follow(ctx context.Context, c change) error {
	due, named := r.dueOrWarn(c.key, c.new)
	before, wasNamed := r.due(c.old)
	switch {
	case !named && !wasNamed:
		return nil
	case named && wasNamed && due.Equal(before):
		if !due.After(r.o.Now()) || bytes.Equal(r.fill(c.key, c.new, due), r.fill(c.key, c.old, due)) {
			return nil // it has fired or was past, or the change does not concern it
		}
		return r.remind(ctx, c.key, c.new, due, c.order)
	}
	if wasNamed {
		if err := r.fireSkipped(ctx, c, before); err != nil {
			return err
		}
	}
	// records have the second of the write, so an instant within that second is not past
	if past := due.Before(c.written); !named || past && r.Past != pastFire {
		if !wasNamed {
			return nil
		}
		return r.cancel(ctx, c)
	}
	if skipped, err := r.skip(ctx, c, due); skipped || err != nil {
		return err
	}
	return r.remind(ctx, c.key, c.new, due, c.order)
}

// A worker that was down reads changes late. A later record may cancel or move a reminder that is
// already due, before or after its instant. So if the item now names another instant, follow skips
// the reminder. When the later record comes, fireSkipped fires the reminder if it was due before
// that change.

// skip marks a reminder as skipped if a later change of its item is yet to come, and reports
// whether it did.
func (r *rule) skip(ctx context.Context, c change, due time.Time) (bool, error) {
	if due.After(r.o.Now()) {
		return false, nil
	}
	it, err := items.Get(ctx, r.o.DB, r.Table, c.key)
	switch {
	case ensure.Missing(err): // the table and its items are gone
	case err != nil:
		return false, err
	default:
		if now, named := r.due(it); named && now.Equal(due) {
			return false, nil
		}
	}
	_, err = r.put(ctx, reminder{kind: kindSkipped, order: c.order, key: c.key, due: due})
	return true, err
}

// fireSkipped fires a skipped reminder that was due before the change that ends it.
func (r *rule) fireSkipped(ctx context.Context, c change, due time.Time) error {
	if !due.Before(c.written.Add(time.Second)) {
		return nil
	}
	known, err := r.get(ctx, attr.S(r.name(c.key)))
	if err != nil || attr.String(known[attrKind]) != kindSkipped || !dueOf(known).Equal(due) {
		return err
	}
	input := r.fill(c.key, c.old, due)
	if len(input) > inputMax {
		return r.refuse(ctx, c.key, due, len(input))
	}
	return r.settle(ctx, func(done func()) { r.o.Courier.Deliver(ctx, r.parcel(keyText(c.key), due, input), done) })
}

// settle waits until the courier has made a parcel durable.
func (r *rule) settle(ctx context.Context, hand func(done func())) error {
	settled := make(chan struct{})
	hand(func() { close(settled) })
	select {
	case <-settled:
		return nil
	case <-ctx.Done():
	}
	r.o.Courier.Settle(context.WithoutCancel(ctx), "")
	select {
	case <-settled: // within the grace period, so the record need not come again
		return nil
	default:
		return ctx.Err()
	}
}

// remind writes the reminder of an item.
func (r *rule) remind(ctx context.Context, key, it item, due time.Time, order string) error {
	input := r.fill(key, it, due)
	if len(input) > inputMax {
		return r.refuse(ctx, key, due, len(input))
	}
	_, err := r.put(ctx, reminder{kind: kindReminder, order: order, key: key, due: due, input: input})
	return err
}

// cancel cancels the reminder of an item.
func (r *rule) cancel(ctx context.Context, c change) error {
	_, err := r.put(ctx, reminder{kind: kindCancelled, order: c.order, key: c.key})
	return err
}

// refuse makes a dead letter of a reminder whose input is too large.
func (r *rule) refuse(ctx context.Context, key item, due time.Time, size int) error {
	parcel := r.parcel(keyText(key), due, nil)
	parcel.Last = deliver.Failure{Code: "InputTooLarge", Message: fmt.Sprintf("the template has at least %d bytes; the limit is %d", size, inputMax)}
	return r.settle(ctx, func(done func()) { r.o.Courier.Bury(ctx, parcel, "", done) })
}

// delivery returns the delivery that the target receives for a reminder.
func (r *rule) delivery(key string, due time.Time, input []byte) target.Delivery {
	d := target.Delivery{
		ID: r.id(key, due), Source: r.arn(), Type: "Reminder", Subject: key, Time: due, Key: hash(r.Table, key), ContentType: "application/json", Body: input, TargetARN: r.Target,
	}
	if !r.input.JSON() {
		d.ContentType = "text/plain"
	}
	return d
}

// again is the policy of calls to a failing endpoint.
var again = retry.Policy{First: 50 * time.Millisecond, Most: 10 * time.Second}

// persist calls do until it succeeds or ctx is done.
func (r *rule) persist(ctx context.Context, action string, do func() error) {
	_ = retry.Until(ctx, r.log, again, action, do) // an error is that of ctx
}
