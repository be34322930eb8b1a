package deliver

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/smithy-go"

	"github.com/mayflydb/mayfly/internal/clock"
	"github.com/mayflydb/mayfly/internal/work/attr"
	"github.com/mayflydb/mayfly/internal/work/consume"
	"github.com/mayflydb/mayfly/internal/work/ensure"
	"github.com/mayflydb/mayfly/internal/work/retry"
)

// consumerRetries is the name of the consumer of parked parcels.
const consumerRetries = "retries"

// retriesLook is the interval at which a worker checks whether another one has created the table.
const retriesLook = 10 * time.Second

func newRetries() *retries {
	return &retries{made: make(chan struct{}, 1), held: make(chan struct{})}
}

// run runs the consumer while the table exists.
func (r *retries) run(ctx context.Context, d *Courier) {
	for ctx.Err() == nil {
		exists := false
		err := retry.Until(ctx, d.o.Logger, retry.Calls, "look for parked deliveries", func() (err error) {
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
				clock.Pause(time.Second, ctx.Done())
			}
			continue
		}
		r.wait(ctx, d)
	}
}

// RestoreTable recreates the missing parts of the table of parked parcels and returns the ARN of
// its stream. It ignores other tables.
func (d *Courier) RestoreTable(ctx context.Context, table string) (streamARN string, err error) {
	if table != d.parked {
		return "", nil
	}
	streamARN, err = consume.Restore(ctx, d.o.DB, d.o.Logger, retriesSpec(table))
	nudge(d.retries.made)
	return streamARN, err
}

// exists reports whether the table exists. It sets the TTL attribute if the table's creator did not
// get to that.
func (r *retries) exists(ctx context.Context, d *Courier) (bool, error) {
	_, err := d.o.DB.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &d.parked})
	if ensure.Missing(err) {
		return false, nil
	}
	if err == nil {
		_, err = ensure.Table(ctx, d.o.DB, retriesSpec(d.parked))
	}
	var api smithy.APIError
	// the endpoint does not allow it at present
	if errors.As(err, &api) && api.ErrorCode() == "ValidationException" {
		d.o.Logger.Error("parked deliveries are retried late or not at all", "table", d.parked, "error", err)
		return true, nil
	}
	return err == nil, err
}

// wait waits until the table may exist.
func (r *retries) wait(ctx context.Context, d *Courier) {
	if !d.o.Leases.Exclusive {
		timer := clock.AfterFunc(retriesLook, func() { nudge(r.made) })
		defer timer.Stop()
	}
	select {
	case <-r.made:
	case <-ctx.Done():
	}
}

// tables creates the missing tables. It returns when the consumer of parked parcels has registered.
// After an error some tables may exist.
func (r *retries) tables(ctx context.Context, d *Courier) error {
	defer nudge(r.made)
	if _, err := ensure.Table(ctx, d.o.DB, deadLettersSpec); err != nil {
		return err
	}
	if _, err := ensure.Table(ctx, d.o.DB, retriesSpec(d.parked)); err != nil {
		return err
	}
	nudge(r.made)
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

// consumer returns the consumer of parked parcels.
func (r *retries) consumer(d *Courier) *consume.Consumer {
	name := consumerRetries
	if d.o.Name != "" {
		name += "." + d.o.Name
	}
	c := &consume.Consumer{
		Name: name, Table: d.parked, DB: d.o.DB, Streams: d.o.Streams, Now: d.o.Now, Leases: d.o.Leases, Logger: d.o.Logger, Settle: d.Settle,
		Handle: d.handleRetries,
	}
	c.Restore = c.Restorer(retriesSpec(d.parked))
	c.Registry = d.o.Registry.Notify(func() { r.once.Do(func() { close(r.held) }) })
	return c
}

// handleRetries handles a page of records of parked parcels.
func (d *Courier) handleRetries(ctx context.Context, _ string, records []consume.Record) error {
	last := map[string]int{} // index of the last record of each parcel
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

// isDue reports whether a record is the expiry of a parked parcel.
func (d *Courier) isDue(r *consume.Record) bool {
	return consume.Expired(&r.Record, attrDue, d.o.Mark) && r.Dynamodb != nil && attr.String(r.Dynamodb.Keys[attrPart]) == partParcel
}

func idOf(r *consume.Record) string { return attr.String(r.Dynamodb.Keys[attrID]) }

// carriesOn reports whether after is the same parcel's same or a later attempt. Then before was
// handled before a crash, and after is its consequence.
func carriesOn(before, after *consume.Record) bool {
	a, errA := readParked(before.Dynamodb)
	b, errB := readParked(after.Dynamodb)
	return errA == nil && errB == nil && b.parcel.Delivery.Attempt >= a.parcel.Delivery.Attempt
}

// expired handles other records. When the record of a parcel's end expires, it deletes parts that a
// crash may have left.
func (d *Courier) expired(ctx context.Context, r consume.Record) error {
	if !consume.Expired(&r.Record, attrDue, d.o.Mark) || r.Dynamodb == nil {
		return nil
	}
	generation, ended := strings.CutPrefix(attr.String(r.Dynamodb.Keys[attrPart]), partEnded)
	parts, err := partsIn(r.Dynamodb.OldImage)
	if !ended || err != nil {
		return nil
	}
	id := idOf(&r)
	return retry.Until(ctx, d.o.Logger, retry.Calls, "look for a parked delivery", func() error {
		out, err := d.o.DB.GetItem(ctx, &dynamodb.GetItemInput{TableName: &d.parked, Key: retryKey(id, partParcel), ConsistentRead: aws.Bool(true)})
		if err == nil && out.Item == nil { // otherwise the parcel was handed over again
			d.writer.add(kept{parts, generation}.removals(d.parked, id)...)
		}
		return err
	})
}
