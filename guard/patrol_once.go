package guard

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly/internal/work/lease"
)

// A single run has no time for a whole patrol, so each reads some pages of it, and the next run
// continues. When a pass is complete, the next begins an hour later.
const (
	patrolRow   = "patrol/runs" // its checkpoint is a round
	patrolPages = 4             // pages of a run, of a megabyte each at most
)

// round is the position of the runs' patrol.
type round struct {
	Key   string `json:"key,omitempty"`   // the last that was read, see keyText; "": none
	Ended int64  `json:"ended,omitempty"` // ms: when the last whole pass did
}

// patrolOnce reads some pages of the patrol, and waits until the deadlines it has armed have ended.
// It does not wait for its row: of two overlapping runs one takes it from the other, and an item
// that both find is removed only once.
func (o *oneSweep) patrolOnce(ctx context.Context, leases *lease.Leases) error {
	var rows map[string]lease.Row
	err := o.ask.again(ctx, "Query on "+lease.TableName, func() (int, *types.ConsumedCapacity, error) {
		var err error
		rows, err = leases.Rows(ctx)
		return 0, nil, err
	})
	if err != nil {
		return err
	}
	row, has := rows[patrolRow]
	if !has {
		row = lease.Row{Shard: patrolRow}
	}
	at := readRound(row.Checkpoint)
	if at.Key == "" && at.Ended > 0 && o.g.now() < at.Ended+patrolEvery.Milliseconds() {
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
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), saveLimit)
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
	if _, err := readKeyText(at.Key); err != nil {
		at.Key = ""
	}
	return at
}

// pages reads some pages on from a place, and saves after each that has ended.
func (o *oneSweep) pages(ctx context.Context, l *lease.Lease, at round) (err error) {
	in := dynamodb.ScanInput{TableName: &o.g.o.Table, IndexName: &o.index.name, ExpressionAttributeNames: map[string]string{}}
	o.g.project(&in.ProjectionExpression, in.ExpressionAttributeNames, o.index.key)
	if in.ExclusiveStartKey, err = readKeyText(at.Key); err != nil {
		return err
	}
	seen := newSightings(o.g)
	for range patrolPages {
		items, _, err := o.ask.scan(ctx, &in)
		if p := (*Problem)(nil); at.Key != "" && errors.As(err, &p) && p.Code == Misconfigured {
			o.g.log.Warn("the patrol's checkpoint is unusable; it starts over", "table", o.g.o.Table, "error", err)
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
			at.Ended = o.g.now()
		} else {
			at.Key = keyText(in.ExclusiveStartKey)
		}
		text, _ := json.Marshal(at)
		if err := l.Save(ctx, string(text)); err != nil || at.Key == "" {
			return err
		}
	}
	return nil
}
