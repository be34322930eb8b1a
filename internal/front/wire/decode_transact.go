package wire

import (
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"maps"
	"slices"

	"github.com/mayflydb/mayfly/internal/store/service"
)

func decodeTransactGetItems(d *decoder, in *service.TransactGetItemsInput) {
	d.read(members{
		{"TransactItems", func() { in.Items = structs(d, "TransactGetItem", decodeTransactGetItem) }},
		{"ReturnConsumedCapacity", &in.ReturnConsumedCapacity},
	})
	in.Expired = d.expired()
}

func decodeTransactGetItem(d *decoder, in *service.TransactGet) {
	d.read(members{{"Get", func() { decodeGet(d, in) }}})
}

func decodeGet(d *decoder, in *service.TransactGet) {
	if !d.Struct("Get") {
		return
	}
	in.Present = true
	d.read(members{
		{"TableName", &in.TableName},
		{"Key", &in.Key},
		{"ProjectionExpression", &in.Projection},
		{"ExpressionAttributeNames", &in.Names},
	})
}

func decodeTransactWriteItems(d *decoder, in *service.TransactWriteItemsInput) {
	d.read(members{
		{"TransactItems", func() { in.Items = structs(d, "TransactWriteItem", decodeTransactAction) }},
		{"ClientRequestToken", &in.ClientRequestToken},
		{"ReturnConsumedCapacity", &in.ReturnConsumedCapacity},
		{"ReturnItemCollectionMetrics", &in.ReturnItemCollectionMetrics},
	})
	if in.ClientRequestToken.Set && d.Err() == nil {
		in.Digest = digest(in.Items)
	}
}

func decodeTransactAction(d *decoder, in *service.TransactAction) {
	d.read(members{
		{"ConditionCheck", func() { in.Check = structure(d, "ConditionCheck", decodeConditionCheck) }},
		{"Put", func() { in.Put = structure(d, "Put", decodePutItem) }},
		{"Update", func() { in.Update = structure(d, "Update", decodeUpdateItem) }},
		{"Delete", func() { in.Delete = structure(d, "Delete", decodeDeleteItem) }},
	})
}

func decodeConditionCheck(d *decoder, in *service.WriteInput) {
	d.read(members{
		{"TableName", &in.TableName},
		{"Key", &in.Item},
		{"ConditionExpression", &in.Condition},
		{"ExpressionAttributeNames", &in.Names},
		{"ExpressionAttributeValues", &in.Values},
		{"ReturnValuesOnConditionCheckFailure", &in.ReturnValuesOnConditionFail},
	})
}

// digest returns a hash of a transaction's content, to compare requests with the same token. It
// covers the decoded content, not the request's text, because SDKs write the members of maps in any
// order: an application's retry must have the same digest.
func digest(actions []service.TransactAction) [sha256.Size]byte {
	h := digester{sha256.New()}
	for i := range actions {
		switch a := &actions[i]; {
		case a.Check != nil:
			h.action("Check", a.Check)
		case a.Put != nil:
			h.action("Put", a.Put)
		case a.Update != nil:
			h.action("Update", a.Update)
			h.optional(a.Update.Update)
		case a.Delete != nil:
			h.action("Delete", a.Delete)
		}
	}
	return [sha256.Size]byte(h.Sum(nil))
}

// digester hashes strings with their lengths, so that adjacent ones cannot be confused.
type digester struct{ hash.Hash }

func (h digester) bytes(b []byte) {
	var size [8]byte
	binary.BigEndian.PutUint64(size[:], uint64(len(b)))
	h.Write(size[:])
	h.Write(b)
}

func (h digester) optional(o service.Opt[string]) {
	if o.Set {
		h.bytes([]byte{1})
		h.bytes([]byte(o.V))
	} else {
		h.bytes([]byte{0})
	}
}

func (h digester) action(kind string, in *service.WriteInput) {
	h.bytes([]byte(kind))
	h.optional(in.TableName)
	h.bytes(in.Item.Item)
	for _, placeholder := range slices.Sorted(maps.Keys(in.Names)) {
		h.bytes([]byte(placeholder))
		h.bytes([]byte(in.Names[placeholder]))
	}
	for _, placeholder := range slices.Sorted(maps.Keys(in.Values.V)) {
		h.bytes([]byte(placeholder))
		h.bytes(in.Values.V[placeholder])
	}
	h.optional(in.ReturnValuesOnConditionFail)
	h.optional(in.Condition)
}
