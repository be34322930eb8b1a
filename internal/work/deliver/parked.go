package deliver

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/mayflydb/mayfly/internal/work/attr"
	"github.com/mayflydb/mayfly/internal/work/ensure"
	"github.com/mayflydb/mayfly/internal/work/retry"
	"github.com/mayflydb/mayfly/internal/work/timer"
)

// RetriesTable is the table of parked parcels. A parcel is always the same item, whatever its
// attempt: parking it again overwrites the item. The item is a timer: when it expires, the next
// attempt is due.
const RetriesTable = "mayfly.retries"

// consumerRetries is the name of the consumer of parked parcels.
const consumerRetries = "retries"

// Attributes of a parked parcel.
const (
	attrID   = "id"
	attrPart = "part"
	// instant of its return: the TTL attribute, in epoch seconds with milliseconds
	attrDue    = "due"
	attrParcel = "job" // JSON of storedParcel

	partParcel = "job"
	partEnded  = "ended#" // followed by the generation of the deleted parts
)

// retriesSpec returns the table of parked parcels for couriers of a name. Couriers of other names
// lack the targets.
func retriesSpec(courier string) ensure.Spec {
	spec := ensure.Spec{Name: RetriesTable, Key: attrID, Sort: attrPart, TTL: attrDue, Stream: true, Shards: 1}
	if courier != "" {
		spec.Name += "." + courier
	}
	return spec
}

// newTimers returns the timers of parked parcels.
func (d *Courier) newTimers() *timer.Timers {
	name := consumerRetries
	if d.o.Name != "" {
		name += "." + d.o.Name
	}
	return timer.New(timer.Options{
		Name: name, Table: retriesSpec(d.o.Name), OnDemand: true, WithoutImages: true,
		DB: d.o.DB, Streams: d.o.Streams, Now: d.o.Now, Leases: d.o.Leases, Registry: d.o.Registry, Mark: d.o.Mark, Logger: d.o.Logger,
		Fire: d.fire, Settle: d.Settle,
	})
}

// makeTables creates the missing tables. It returns when the consumer of parked parcels has
// registered, so that the clock cannot be advanced beyond a parcel that is written next. After an
// error some tables may exist.
func (d *Courier) makeTables(ctx context.Context) error {
	if _, err := ensure.Table(ctx, d.o.DB, deadLettersSpec); err != nil {
		return err
	}
	return d.timers.Make(ctx)
}

// Ready returns a channel that is closed when the table of parked parcels exists, and the embedded
// database knows that they are read.
func (d *Courier) Ready() <-chan struct{} { return d.timers.Ready() }

// RestoreTable recreates the missing parts of the table of parked parcels and returns the ARN of
// its stream. It ignores other tables.
func (d *Courier) RestoreTable(ctx context.Context, table string) (streamARN string, err error) {
	return d.timers.Restore(ctx, table)
}

// parked is a parked parcel as read from the table.
type parked struct {
	parcel   Parcel
	body     []byte
	encoding string
	stored   bodyParts
}

// errNoParcel is the error for an item that is not a parked parcel.
var errNoParcel = fmt.Errorf("attribute %q is missing", attrParcel)

// readParked returns a parked parcel without its parts. With an error it returns the readable
// fields.
func readParked(item attr.Item) (p parked, err error) {
	text := attr.String(item[attrParcel])
	if text == "" {
		err = errNoParcel
	} else {
		p.parcel, err = decodeParcel(text)
	}
	p.body = attr.Bytes(item[attrBody])
	if err != nil {
		p.parcel.Delivery.ID, p.parcel.Delivery.Body = attr.String(item[attrID]), p.body
		return p, err
	}
	p.encoding = attr.String(item[attrEncoding])
	p.stored.parts, err = partsIn(item)
	p.stored.generation = attr.String(item[attrOfParts])
	return p, err
}

// partsIn returns the number of parts of an item.
func partsIn(item attr.Item) (int, error) {
	n, ok := attr.AsNumber(item[attrParts])
	if !ok {
		return 0, nil
	}
	parts, err := strconv.Atoi(n)
	if err != nil || parts < 0 || parts > partsMax {
		return 0, fmt.Errorf("attribute %q is out of range", attrParts)
	}
	return parts, nil
}

// fire delivers the parked parcels that are due. Other items that expire record the end of a
// parcel.
func (d *Courier) fire(ctx context.Context, firings []timer.Firing) error {
	last := map[string]int{} // index of the last firing of each parcel
	for i, f := range firings {
		if isParcel(f.Item) {
			last[attr.String(f.Item[attrID])] = i
		}
	}
	for i, f := range firings {
		var err error
		switch after := last[attr.String(f.Item[attrID])]; {
		case !isParcel(f.Item):
			err = d.cleanUp(ctx, f)
		case after != i && carriesOn(f.Item, firings[after].Item):
			f.Done()
		default:
			err = d.resume(ctx, f)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func isParcel(item attr.Item) bool { return attr.String(item[attrPart]) == partParcel }

// carriesOn reports whether after is the same parcel's same or a later attempt. Then before was
// handled before a crash, and after is its consequence.
func carriesOn(before, after attr.Item) bool {
	a, errA := readParked(before)
	b, errB := readParked(after)
	return errA == nil && errB == nil && b.parcel.Delivery.Attempt >= a.parcel.Delivery.Attempt
}

// cleanUp deletes parts that a crash may have left, when the record of a parcel's end expires.
func (d *Courier) cleanUp(ctx context.Context, f timer.Firing) error {
	generation, ended := strings.CutPrefix(attr.String(f.Item[attrPart]), partEnded)
	parts, err := partsIn(f.Item)
	if !ended || err != nil {
		f.Done()
		return nil
	}
	id := attr.String(f.Item[attrID])
	err = retry.Until(ctx, d.o.Logger, retry.Calls, "look for a parked delivery", func() error {
		item, err := d.item(ctx, retryKey(id, partParcel))
		if err == nil && item == nil { // otherwise the parcel was handed over again
			d.writer.add(partRemovals(d.parked, bodyParts{parts, generation}.key, id, parts)...)
		}
		return err
	})
	if err == nil {
		f.Done()
	}
	return err
}

// item returns an item of the table of parked parcels, or nil if it is missing.
func (d *Courier) item(ctx context.Context, key attr.Item) (attr.Item, error) {
	out, err := d.o.DB.GetItem(ctx, &dynamodb.GetItemInput{TableName: &d.parked, Key: key, ConsistentRead: aws.Bool(true)})
	if err != nil {
		return nil, err
	}
	return out.Item, nil
}

// resume delivers a parked parcel that is due. An unreadable parcel becomes a dead letter.
func (d *Courier) resume(ctx context.Context, f timer.Firing) error {
	p, err := readParked(f.Item)
	if err != nil {
		d.lose(p, err.Error(), f.Done)
		return nil
	}
	if d.slow.join(p.parcel.Delivery.ID, f.Done) {
		return nil // its attempt is still running: no other may begin
	}
	missing := 0
	if p.stored.parts > 0 {
		err := retry.Until(ctx, d.o.Logger, retry.Calls, "read the parts of a body", func() (err error) {
			missing, err = d.gather(ctx, &p)
			return err
		})
		switch {
		case errors.Is(err, errHandled):
			f.Done()
			return nil
		case err != nil:
			return err
		case missing > 0:
			d.lose(p, fmt.Sprintf("part %d of the %d of its body is missing", missing, p.stored.parts), f.Done)
			return nil
		}
	}
	if p.parcel.Delivery.Body, err = unpackBody(p.body, p.encoding); err != nil {
		d.lose(p, "its body cannot be unpacked: "+err.Error(), f.Done)
		return nil
	}
	d.accept(ctx, &task{parcel: p.parcel, done: f.Done, stored: p.stored})
	return nil
}

// errHandled is the final error for a firing that was handled before: its parcel is parked again,
// or has ended.
var errHandled = errors.New("the parcel was handled before")

// gather reads the parts of a parked parcel's body. missing is the number of the first missing
// part, from 1 on, or 0.
func (d *Courier) gather(ctx context.Context, p *parked) (missing int, err error) {
	id := p.parcel.Delivery.ID
	again, err := d.item(ctx, retryKey(id, partParcel))
	if err != nil {
		return 0, err
	}
	if parcel, err := decodeParcel(attr.String(again[attrParcel])); err == nil && parcel.Delivery.Attempt >= p.parcel.Delivery.Attempt {
		return 0, retry.Final(errHandled)
	}
	found := 0
	p.body, found, err = readParts(ctx, d.o.DB, d.parked, p.stored.key, id, p.stored.parts)
	if err != nil || found == p.stored.parts {
		return 0, err
	}
	p.body = nil
	ended, err := d.item(ctx, p.stored.endedKey(id))
	if err == nil && ended != nil {
		return 0, retry.Final(errHandled)
	}
	return found + 1, err
}

// codeUnreadable is the code of parked parcels whose items were changed or deleted by someone else.
const codeUnreadable = "UnreadableJob"

// lose makes a dead letter of a damaged parked parcel.
func (d *Courier) lose(p parked, message string, done func()) {
	d.o.Logger.Error("a parked delivery cannot be read and becomes a dead letter", "id", p.parcel.Delivery.ID, "error", message)
	p.parcel.Last = Failure{codeUnreadable, cutText(message, messageMax)}
	d.giveUp(&task{parcel: p.parcel, done: done, stored: p.stored}, "")
}
