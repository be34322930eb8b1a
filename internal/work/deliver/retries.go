package deliver

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
	"github.com/aws/smithy-go"

	"github.com/mayflydb/mayfly/internal/clock"
	"github.com/mayflydb/mayfly/internal/work/attr"
	"github.com/mayflydb/mayfly/internal/work/ensure"
	"github.com/mayflydb/mayfly/internal/work/retry"
)

// consumerRetries is the name of the consumer that brings parked parcels back.
const consumerRetries = "retries"

// retriesLook is how often a worker among others looks whether one of them has made the table.
const retriesLook = 10 * time.Second

// retries brings parked parcels back as they are due. There is no table until a parcel is parked for the first time, and then this runs before that is written, so
// that the clock is not advanced past it.
type retries struct {
	made chan struct{} // has an element when the table was made
	held chan struct{} // closed when the consumer has registered
	once sync.Once
}

func newRetries() *retries {
	return &retries{made: make(chan struct{}, 1), held: make(chan struct{})}
}

// run runs the consumer whenever there is a table.
func (r *retries) run(ctx context.Context, d *Courier) {
	for ctx.Err() == nil {
		exists := false
		err := retry.Until(ctx, d.o.Logger, afterFailure, "look for parked deliveries", func() (err error) {
			exists, err = r.exists(ctx, d)
			return err
		})
		if err != nil {
			return
		}
		if exists {
			if err := r.consumer(d).Run(ctx); err != nil {
				d.o.Logger.Error("parked deliveries cannot be read", "error", err)
			}
			if ctx.Err() == nil {
				d.o.Logger.Warn("the table of parked deliveries or its stream is gone")
				clock.Pause(lostPause, ctx.Done())
			}
			continue
		}
		r.wait(ctx, d)
	}
}

// RestoreTable makes what is missing of the table again, if it is the one of parked parcels, and gives the ARN of its stream.
func (d *Courier) RestoreTable(ctx context.Context, table string) (streamARN string, err error) {
	if table != d.parked {
		return "", nil
	}
	streamARN, err = Restore(ctx, d.o.DB, d.o.Logger, retriesSpec(table))
	tell(d.retries.made)
	return streamARN, err
}

// exists reports whether there is a table. One that was made by somebody who did not come to set its TTL attribute gets that now.
func (r *retries) exists(ctx context.Context, d *Courier) (bool, error) {
	_, err := d.o.DB.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &d.parked})
	if gone(err) {
		return false, nil
	}
	if err == nil {
		_, err = ensure.Table(ctx, d.o.DB, retriesSpec(d.parked))
	}
	var api smithy.APIError
	if errors.As(err, &api) && api.ErrorCode() == "ValidationException" { // the endpoint does not let it be set at present
		d.o.Logger.Error("parked deliveries are retried late or not at all", "table", d.parked, "error", err)
		return true, nil
	}
	return err == nil, err
}

// wait waits until there may be a table.
func (r *retries) wait(ctx context.Context, d *Courier) {
	if !d.o.Leases.Exclusive {
		timer := clock.AfterFunc(retriesLook, func() { tell(r.made) })
		defer timer.Stop()
	}
	select {
	case <-r.made:
	case <-ctx.Done():
	}
}

// tables makes those that are missing. For that of parked parcels it returns only when they are brought back. Where it fails half-way, a table may be there for all that.
func (r *retries) tables(ctx context.Context, d *Courier) error {
	defer tell(r.made)
	if _, err := ensure.Table(ctx, d.o.DB, deadLettersSpec); err != nil {
		return err
	}
	if _, err := ensure.Table(ctx, d.o.DB, retriesSpec(d.parked)); err != nil {
		return err
	}
	tell(r.made)
	if d.o.Registry.Register == nil {
		return nil
	}
	select {
	case <-r.held:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// consumer is the one that brings parked parcels back.
func (r *retries) consumer(d *Courier) *Consumer {
	name := consumerRetries
	if d.o.Name != "" {
		name += "." + d.o.Name
	}
	c := &Consumer{
		Name: name, Table: d.parked, DB: d.o.DB, Streams: d.o.Streams, Now: d.o.Now, Leases: d.o.Leases, Logger: d.o.Logger, Settle: d.Settle,
		Handle: d.handleRetries,
	}
	c.Restore = c.Restorer(retriesSpec(d.parked))
	c.Registry = d.o.Registry.Notify(func() { r.once.Do(func() { close(r.held) }) })
	return c
}

// handleRetries takes a page of the records of parked parcels.
func (d *Courier) handleRetries(ctx context.Context, _ string, records []Record) error {
	last := map[string]int{} // the last record of each parcel
	for i := range records {
		if d.isDue(&records[i]) {
			last[idOf(&records[i])] = i
		}
	}
	for i, r := range records {
		switch {
		case !d.isDue(&r):
			if err := d.expired(ctx, r); err != nil {
				return err
			}
			r.Done()
		case last[idOf(&r)] != i && carriesOn(&r, &records[last[idOf(&r)]]):
			r.Done()
		default:
			if err := d.retry(ctx, r); err != nil {
				return err
			}
		}
	}
	return nil
}

// isDue reports whether a record says that a parked parcel is due.
func (d *Courier) isDue(r *Record) bool {
	return Expired(&r.Record, attrDue, d.o.Mark) && r.Dynamodb != nil && attr.String(r.Dynamodb.Keys[attrPart]) == partParcel
}

func idOf(r *Record) string { return attr.String(r.Dynamodb.Keys[attrID]) }

// carriesOn reports whether a record is of the same parcel in the same attempt as one before it, or in a later one. Then the one before it has come already, before a crash: what
// followed from it is this one.
func carriesOn(before, after *Record) bool {
	a, errA := readParked(before.Dynamodb)
	b, errB := readParked(after.Dynamodb)
	return errA == nil && errB == nil && b.parcel.Delivery.Attempt >= a.parcel.Delivery.Attempt
}

// expired deals with a record of anything else. The one that says that a parcel's end is forgotten has the parts deleted that a crash may have left.
func (d *Courier) expired(ctx context.Context, r Record) error {
	if !Expired(&r.Record, attrDue, d.o.Mark) || r.Dynamodb == nil {
		return nil
	}
	generation, ended := strings.CutPrefix(attr.String(r.Dynamodb.Keys[attrPart]), partEnded)
	parts, err := partsIn(r.Dynamodb.OldImage)
	if !ended || err != nil {
		return nil
	}
	id := idOf(&r)
	return retry.Until(ctx, d.o.Logger, afterFailure, "look for a parked delivery", func() error {
		out, err := d.o.DB.GetItem(ctx, &dynamodb.GetItemInput{TableName: &d.parked, Key: retryKey(id, partParcel), ConsistentRead: aws.Bool(true)})
		if err == nil && out.Item == nil { // else it was handed over once more
			d.writer.add(kept{parts, generation}.removals(d.parked, id)...)
		}
		return err
	})
}

// readParked reads a parked parcel, all but its parts. With an error it gives what is known of it.
func readParked(r *types.StreamRecord) (p parked, err error) {
	item := r.OldImage
	text := attr.String(item[attrParcel])
	if text == "" {
		err = errNoParcel
	} else {
		p.parcel, err = decodeParcel(text)
	}
	p.body = attr.Bytes(item[attrBody])
	if err != nil {
		p.parcel.Delivery.ID, p.parcel.Delivery.Body = attr.String(r.Keys[attrID]), p.body
		return p, err
	}
	p.encoding = attr.String(item[attrEncoding])
	p.kept.parts, err = partsIn(item)
	p.kept.generation = attr.String(item[attrOfParts])
	return p, err
}

// partsIn is how many parts an item has.
func partsIn(item map[string]types.AttributeValue) (int, error) {
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
