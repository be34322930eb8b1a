package deliver

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly/internal/work/attr"
	"github.com/mayflydb/mayfly/internal/work/ensure"
	"github.com/mayflydb/mayfly/internal/work/items"
)

// Fate is the state of a delivery whose last attempt has failed.
type Fate struct {
	Dead     bool // it is a dead letter; otherwise it waits for its next attempt
	Attempts int  // that were made
	Next     time.Time
	Last     Failure
}

// Fates returns the fates of deliveries by their IDs, for couriers without a name. A delivery that
// waits for nothing and is no dead letter has none.
func Fates(ctx context.Context, db *dynamodb.Client, ids ...string) (map[string]Fate, error) {
	const most = 100 // keys in a call of BatchGetItem
	fates := map[string]Fate{}
	for batch := range slices.Chunk(ids, most) {
		if err := letterFates(ctx, db, batch, fates); err != nil {
			return nil, err
		}
		if err := parkedFates(ctx, db, batch, fates); err != nil {
			return nil, err
		}
	}
	return fates, nil
}

func letterFates(ctx context.Context, db *dynamodb.Client, ids []string, into map[string]Fate) error {
	var ask types.KeysAndAttributes
	for _, id := range ids {
		ask.Keys = append(ask.Keys, letterKey(id))
	}
	return batchGet(ctx, db, DeadLettersTable, ask, func(it attr.Item) error {
		if it[attrParcel] == nil {
			return nil // a part of a body
		}
		letter, _, _, err := readLetter(it)
		if err == nil {
			into[letter.ID] = Fate{Dead: true, Attempts: letter.Attempts, Last: Failure{letter.Code, letter.Message}}
		}
		return err
	})
}

func parkedFates(ctx context.Context, db *dynamodb.Client, ids []string, into map[string]Fate) error {
	var ask types.KeysAndAttributes
	for _, id := range ids {
		ask.Keys = append(ask.Keys, retryKey(id, partParcel))
	}
	return batchGet(ctx, db, RetriesTable, ask, func(it attr.Item) error {
		p, err := readParked(it)
		if err != nil {
			return fmt.Errorf("parked delivery %s: %w", attr.String(it[attrID]), err)
		}
		fate := Fate{Attempts: max(p.parcel.Delivery.Attempt-1, 0), Last: p.parcel.Last}
		fate.Next = instantOf(it[attrDue])
		into[p.parcel.Delivery.ID] = fate
		return nil
	})
}

// batchGet calls f for the items of a table; there are none without the table.
func batchGet(ctx context.Context, db *dynamodb.Client, table string, ask types.KeysAndAttributes, f func(attr.Item) error) error {
	if len(ask.Keys) == 0 {
		return nil
	}
	var own error // of f, and not of the call
	err := items.BatchGet(ctx, db, map[string]types.KeysAndAttributes{table: ask}, func(_ string, it attr.Item) error {
		own = f(it)
		return own
	})
	if err == nil || own != nil || !ensure.Missing(err) {
		return errors.Join(own, err)
	}
	return nil
}
