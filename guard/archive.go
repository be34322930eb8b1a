package guard

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"reflect"
	"time"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly/guard/internal/armed"
	"github.com/mayflydb/mayfly/guard/internal/table"
	"github.com/mayflydb/mayfly/target"
)

// The archive gets an item before its removal. An item can be written between the two with its
// deadline unchanged. Then the response to the removal shows another item than the archive has, and
// guard delivers that too, as the final one.

// typeExpiry is the type of the archive's deliveries.
const typeExpiry = "DynamoDB Item Expiry"

// Expiry is the JSON body of a delivery to the archive.
type Expiry struct {
	Table     string          `json:"table"`     // ARN, or the name if the endpoint has no ARNs
	Key       json.RawMessage `json:"key"`       // in the API's JSON
	Attribute string          `json:"attribute"` // the TTL attribute
	Value     string          `json:"value"`     // its value
	Deadline  time.Time       `json:"deadline"`
	// the item changed after its first delivery, and this is its last state
	Final bool            `json:"final"`
	Item  json.RawMessage `json:"item"` // in the API's JSON
}

// archive delivers an item to the archive once, and waits for the outcome. final marks the last
// state of an item that has changed since its first delivery.
func (g *Guard) archive(ctx context.Context, f armed.Removal, item map[string]types.AttributeValue, final bool) error {
	d, err := g.delivery(f, item, final)
	if err != nil {
		return err
	}
	results := g.o.Archive.Deliver(ctx, []target.Delivery{d})
	if len(results) != 1 {
		return fmt.Errorf("the archive returned %d results for one delivery", len(results))
	}
	if results[0] != nil {
		return &archiveError{target.AsError(results[0])}
	}
	g.observe(g.about(Archived, f.Key))
	return nil
}

// delivery returns the archive's delivery of an item. Its id follows from the table, the key and
// the deadline, so all attempts of all workers have the same one.
func (g *Guard) delivery(f armed.Removal, item map[string]types.AttributeValue, final bool) (d target.Delivery, err error) {
	image, err := attributevalue.MarshalMapJSON(item)
	if err != nil {
		return d, fmt.Errorf("item: %w", err)
	}
	k := g.table.KeyJSON(f.Key)
	at := time.UnixMilli(f.At).UTC()
	body, err := json.Marshal(Expiry{Table: g.table.Label(), Key: json.RawMessage(k), Attribute: g.o.Attribute, Value: f.Text(), Deadline: at, Final: final, Item: image})
	if err != nil {
		return d, fmt.Errorf("item: %w", err)
	}
	number, err := table.Canonical(f.Text())
	if err != nil {
		return d, err
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%d\x00%s%s", g.table.Label(), len(f.Key), f.Key, number))
	id := hex.EncodeToString(sum[:16])
	if final {
		id += "-final"
	}
	return target.Delivery{
		ID: id, Source: g.table.Label(), Type: typeExpiry, Subject: k, Time: at, Attempt: f.Tries + 1, Key: k, ContentType: "application/json", Body: body,
	}, nil
}

// archiveFinal delivers the last state of an item if that differs from the one in the archive. It
// retries until that succeeds, since the item is gone. ctx ends soon after the end of guard.
func (g *Guard) archiveFinal(ctx context.Context, f armed.Removal, had, went map[string]types.AttributeValue) {
	if went == nil || reflect.DeepEqual(had, went) {
		return
	}
	for f.Tries = 0; ; f.Tries++ {
		err := g.archive(ctx, f, went, true)
		if err == nil {
			return
		}
		if permanent(err) || ctx.Err() != nil {
			g.log.Error("an item changed just before its removal, and the archive lacks the change", "table", g.o.Table, "key", g.table.KeyJSON(f.Key), "error", err)
			failed := g.about(Failed, f.Key)
			failed.Err = err
			g.observe(failed)
			return
		}
		pauseFor(ctx, backoff(f.Tries, err))
	}
}
