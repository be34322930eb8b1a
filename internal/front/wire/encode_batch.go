package wire

import (
	"maps"
	"slices"

	"github.com/mayflydb/mayfly/internal/store/service"
)

func encodeBatchGetItem(w *writer, out *service.BatchGetItemOutput) {
	w.beginObject()
	w.name("Responses").beginObject()
	for _, t := range out.Responses {
		w.key(t.Table)
		encodeItemList(w, t.Items)
	}
	w.endObject()
	w.name("UnprocessedKeys").beginObject()
	for i := range out.Unprocessed {
		w.key(out.Unprocessed[i].Table)
		encodeKeysAndAttributes(w, &out.Unprocessed[i])
	}
	w.endObject()
	encodeCapacities(w, out.Capacity)
	w.endObject()
}

// encodeKeysAndAttributes writes a table's part of the request unchanged, so that a client can send
// it again.
func encodeKeysAndAttributes(w *writer, t *service.BatchGetTable) {
	w.beginObject()
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
	w.endObject()
}

func encodeBatchWriteItem(w *writer, out *service.BatchWriteItemOutput) {
	w.beginObject()
	w.name("UnprocessedItems").beginObject()
	for _, t := range out.Unprocessed {
		w.key(t.Table).beginArray()
		for _, r := range t.Requests {
			encodeWriteRequest(w, r)
		}
		w.endArray()
	}
	w.endObject()
	encodeCapacities(w, out.Capacity)
	encodeCollections(w, out.Collections)
	w.endObject()
}

func encodeWriteRequest(w *writer, r service.WriteRequest) {
	w.beginObject()
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
	w.endObject()
}

func encodeTransactGetItems(w *writer, out *service.TransactGetItemsOutput) {
	w.beginObject()
	w.name("Responses").beginArray()
	for _, it := range out.Responses {
		w.beginObject()
		if it != nil {
			w.name("Item").item(it)
		}
		w.endObject()
	}
	w.endArray()
	encodeCapacities(w, out.Capacity)
	w.endObject()
}

func encodeTransactWriteItems(w *writer, out *service.TransactWriteItemsOutput) {
	w.beginObject()
	encodeCapacities(w, out.Capacity)
	encodeCollections(w, out.Collections)
	w.endObject()
}
