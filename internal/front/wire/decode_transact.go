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
	var name []byte
	for d.NextMember(&name) {
		switch string(name) {
		case "TransactItems":
			in.Items = structs(d, "TransactGetItem", decodeTransactGetItem)
		case "ReturnConsumedCapacity":
			in.ReturnConsumedCapacity = d.text()
		default:
			d.Skip()
		}
	}
	in.Expired = d.expired()
}

func decodeTransactGetItem(d *decoder, in *service.TransactGet) {
	var name []byte
	for d.NextMember(&name) {
		if string(name) != "Get" {
			d.Skip()
		} else if d.Struct("Get") {
			in.Present = true
			decodeGet(d, in)
		}
	}
}

func decodeGet(d *decoder, in *service.TransactGet) {
	var name []byte
	for d.NextMember(&name) {
		switch string(name) {
		case "TableName":
			in.TableName = d.text()
		case "Key":
			in.Key = d.item()
		case "ProjectionExpression":
			in.Projection = d.text()
		case "ExpressionAttributeNames":
			in.Names = d.names()
		default:
			d.Skip()
		}
	}
}

func decodeTransactWriteItems(d *decoder, in *service.TransactWriteItemsInput) {
	var name []byte
	for d.NextMember(&name) {
		switch string(name) {
		case "TransactItems":
			in.Items = structs(d, "TransactWriteItem", decodeTransactAction)
		case "ClientRequestToken":
			in.ClientRequestToken = d.text()
		case "ReturnConsumedCapacity":
			in.ReturnConsumedCapacity = d.text()
		case "ReturnItemCollectionMetrics":
			in.ReturnItemCollectionMetrics = d.text()
		default:
			d.Skip()
		}
	}
	if in.ClientRequestToken.Set && d.Err() == nil {
		in.Digest = digest(in.Items)
	}
}

func decodeTransactAction(d *decoder, in *service.TransactAction) {
	var name []byte
	for d.NextMember(&name) {
		switch string(name) {
		case "ConditionCheck":
			in.Check = structure(d, "ConditionCheck", decodeConditionCheck)
		case "Put":
			in.Put = structure(d, "Put", decodePutItem)
		case "Update":
			in.Update = structure(d, "Update", decodeUpdateItem)
		case "Delete":
			in.Delete = structure(d, "Delete", decodeDeleteItem)
		default:
			d.Skip()
		}
	}
}

func decodeConditionCheck(d *decoder, in *service.ConditionCheck) {
	var name []byte
	for d.NextMember(&name) {
		switch string(name) {
		case "TableName":
			in.TableName = d.text()
		case "Key":
			in.Key = d.item()
		case "ConditionExpression":
			in.Condition = d.text()
		case "ExpressionAttributeNames":
			in.Names = d.names()
		case "ExpressionAttributeValues":
			in.Values = d.values()
		case "ReturnValuesOnConditionCheckFailure":
			in.ReturnValuesOnConditionFail = d.text()
		default:
			d.Skip()
		}
	}
}

// digest returns a hash of a transaction's content, to compare requests with the same token. It
// covers the decoded content, not the request's text, because SDKs write the members of maps in any
// order: an application's retry must have the same digest.
func digest(actions []service.TransactAction) [sha256.Size]byte {
	h := digester{sha256.New()}
	for i := range actions {
		switch a := &actions[i]; {
		case a.Check != nil:
			h.action("Check", a.Check.TableName, a.Check.Key, a.Check.Names, a.Check.Values, a.Check.ReturnValuesOnConditionFail, a.Check.Condition)
		case a.Put != nil:
			h.action("Put", a.Put.TableName, a.Put.Item, a.Put.Names, a.Put.Values, a.Put.ReturnValuesOnConditionFail, a.Put.Condition)
		case a.Update != nil:
			h.action("Update", a.Update.TableName, a.Update.Key, a.Update.Names, a.Update.Values, a.Update.ReturnValuesOnConditionFail, a.Update.Condition)
			h.optional(a.Update.Update)
		case a.Delete != nil:
			h.action("Delete", a.Delete.TableName, a.Delete.Key, a.Delete.Names, a.Delete.Values, a.Delete.ReturnValuesOnConditionFail, a.Delete.Condition)
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

func (h digester) action(kind string, table service.Opt[string], item service.ItemArg, names service.Names, values service.Values,
	onFail, condition service.Opt[string]) {
	h.bytes([]byte(kind))
	h.optional(table)
	h.bytes(item.Item)
	for _, placeholder := range slices.Sorted(maps.Keys(names)) {
		h.bytes([]byte(placeholder))
		h.bytes([]byte(names[placeholder]))
	}
	for _, placeholder := range slices.Sorted(maps.Keys(values.V)) {
		h.bytes([]byte(placeholder))
		h.bytes(values.V[placeholder])
	}
	h.optional(onFail)
	h.optional(condition)
}
