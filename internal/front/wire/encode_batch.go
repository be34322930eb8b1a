package wire

import (
	"maps"
	"slices"

	"github.com/mayflydb/mayfly/internal/store/dynamo"
	"github.com/mayflydb/mayfly/internal/store/service"
)

func encodeBatchGetItem(w *writer, out *service.BatchGetItemOutput) {
	w.name("Responses").beginObject()
	for _, t := range out.Responses {
		w.key(t.Table)
		encodeItemList(w, t.Items)
	}
	w.endObject()
	w.name("UnprocessedKeys").beginObject()
	for i := range out.Unprocessed {
		object(w.key(out.Unprocessed[i].Table), &out.Unprocessed[i], encodeKeysAndAttributes)
	}
	w.endObject()
	encodeCapacities(w, out.Capacity)
}

// encodeKeysAndAttributes writes a table's part of the request unchanged, so that a client can send
// it again.
func encodeKeysAndAttributes(w *writer, t *service.BatchGetTable) {
	w.name("Keys").beginArray()
	for _, k := range t.Keys {
		w.item(k.Item)
	}
	w.endArray()
	if t.Projection.Set {
		w.name("ProjectionExpression").text(t.Projection.V)
	}
	if t.Names != nil {
		w.name("ExpressionAttributeNames").beginObject()
		for _, placeholder := range slices.Sorted(maps.Keys(t.Names)) {
			w.key(placeholder).text(t.Names[placeholder])
		}
		w.endObject()
	}
	if t.Legacy.AttributesToGet != nil {
		w.name("AttributesToGet").texts(t.Legacy.AttributesToGet)
	}
	if t.ConsistentRead.Set {
		w.name("ConsistentRead").boolean(t.ConsistentRead.V)
	}
}

func encodeBatchWriteItem(w *writer, out *service.BatchWriteItemOutput) {
	w.name("UnprocessedItems").beginObject()
	for _, t := range out.Unprocessed {
		objects(w.key(t.Table), t.Requests, encodeWriteRequest)
	}
	w.endObject()
	encodeCapacities(w, out.Capacity)
	encodeCollections(w, out.Collections)
}

func encodeWriteRequest(w *writer, r *service.WriteRequest) {
	if r.Put != nil {
		w.name("PutRequest").beginObject()
		w.name("Item").item(r.Put.Item)
		w.endObject()
	}
	if r.Delete != nil {
		w.name("DeleteRequest").beginObject()
		w.name("Key").item(r.Delete.Item)
		w.endObject()
	}
}

func encodeTransactGetItems(w *writer, out *service.TransactGetItemsOutput) {
	objects(w.name("Responses"), out.Responses, func(w *writer, it *dynamo.Item) { w.optionalItem("Item", *it) })
	encodeCapacities(w, out.Capacity)
}

func encodeTransactWriteItems(w *writer, out *service.TransactWriteItemsOutput) {
	encodeCapacities(w, out.Capacity)
	encodeCollections(w, out.Collections)
}
