package index

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/mayflydb/mayfly/guard/internal/strategy"
	"github.com/mayflydb/mayfly/guard/internal/table"
	"github.com/mayflydb/mayfly/internal/work/lease"
)

// A single run has no time for a whole patrol, so each reads some pages of it, and the next run
// continues. When a pass is complete, the next begins an hour later.
const (
	patrolRow   = "patrol/runs" // its checkpoint is a round
	patrolPages = 4             // pages of a run, of a megabyte each at most

	releaseLimit = 5 * time.Second
)

// round is the position of the runs' patrol.
type round struct {
	Key   string `json:"key,omitempty"`   // the last that was read, see strategy.KeyText; "": none
	Ended int64  `json:"ended,omitempty"` // ms: when the last whole pass did
}

// patrolOnce reads some pages of the patrol, and waits until the deadlines it has armed have ended.
// It does not wait for its row: of two overlapping runs one takes it from the other, and an item
// that both find is removed only once.
func (o *oneSweep) patrolOnce(ctx context.Context, leases *lease.Leases) error {
	rows, err := o.Rows(ctx, leases)
	if err != nil {
		return err
	}
	row, has := rows[patrolRow]
	if !has {
		row = lease.Row{Shard: patrolRow}
	}
	at := readRound(row.Checkpoint)
	if at.Key == "" && at.Ended > 0 && o.Now() < at.Ended+patrolEvery.Milliseconds() {
		return nil
	}
	l, err := leases.Take(ctx, row)
	if errors.Is(err, lease.ErrLost) {
		return nil
	}
	if err != nil {
		return err
	}
	err = o.pages(ctx, l, at)
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseLimit)
	defer cancel()
	if e := l.Release(ending); e != nil && !errors.Is(e, lease.ErrLost) && err == nil {
		err = e
	}
	if errors.Is(err, lease.ErrLost) {
		return nil
	}
	return err
}

// readRound parses a checkpoint. An invalid one counts as none.
func readRound(text string) (at round) {
	if json.Unmarshal([]byte(text), &at) != nil {
		return round{}
	}
	if _, err := strategy.ReadKeyText(at.Key); err != nil {
		at.Key = ""
	}
	return at
}

// pages reads some pages on from a place, and saves after each that has ended.
func (o *oneSweep) pages(ctx context.Context, l *lease.Lease, at round) (err error) {
	in := dynamodb.ScanInput{TableName: &o.Table.Name, IndexName: &o.index.name, ExpressionAttributeNames: map[string]string{}}
	o.Table.Project(&in.ProjectionExpression, in.ExpressionAttributeNames, o.index.key)
	if in.ExclusiveStartKey, err = strategy.ReadKeyText(at.Key); err != nil {
		return err
	}
	seen := o.NewSightings()
	for range patrolPages {
		items, _, err := o.Scan(ctx, &in)
		if p := (*table.Problem)(nil); at.Key != "" && errors.As(err, &p) && p.Code == table.Misconfigured {
			o.Log.Warn("the patrol's checkpoint is unusable; it starts over", "table", o.Table.Name, "error", err)
			at.Key, in.ExclusiveStartKey = "", nil
			continue
		}
		if err != nil {
			return err
		}
		for _, item := range items {
			if err := o.inspect(ctx, seen, item, o.at); err != nil {
				return err
			}
		}
		if err := o.awaitEnded(ctx, seen); err != nil {
			return err
		}
		if at.Key = ""; in.ExclusiveStartKey == nil {
			at.Ended = o.Now()
		} else {
			at.Key = strategy.KeyText(in.ExclusiveStartKey)
		}
		text, _ := json.Marshal(at)
		if err := l.Save(ctx, string(text)); err != nil || at.Key == "" {
			return err
		}
	}
	return nil
}
