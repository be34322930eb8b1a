package wire

import (
	"maps"
	"slices"

	"github.com/mayflydb/mayfly/internal/store/dynamo"
	"github.com/mayflydb/mayfly/internal/store/service"
)

func encodeWrite(w *writer, out *service.WriteOutput) {
	w.beginObject()
	if out.Attributes != nil {
		w.name("Attributes").item(out.Attributes)
	}
	encodeCapacity(w, out.Capacity)
	if out.Collection != nil {
		w.name("ItemCollectionMetrics")
		encodeCollection(w, out.Collection)
	}
	w.endObject()
}

func encodeGetItem(w *writer, out *service.GetItemOutput) {
	w.beginObject()
	if out.Item != nil {
		w.name("Item").item(out.Item)
	}
	encodeCapacity(w, out.Capacity)
	w.endObject()
}

func encodePage(w *writer, out *service.PageOutput) {
	w.beginObject()
	if !out.CountOnly {
		w.name("Items")
		encodeItemList(w, out.Items)
	}
	w.name("Count").integer(int64(out.Count))
	w.name("ScannedCount").integer(int64(out.ScannedCount))
	if out.LastEvaluatedKey != nil {
		w.name("LastEvaluatedKey").item(out.LastEvaluatedKey)
	}
	encodeCapacity(w, out.Capacity)
	w.endObject()
}

func encodeItemList(w *writer, items []dynamo.Item) {
	w.beginArray()
	for _, it := range items {
		w.item(it)
	}
	w.endArray()
}

// encodeCapacity writes the member ConsumedCapacity of a single operation, if it was requested.
func encodeCapacity(w *writer, c *service.Capacity) {
	if c != nil {
		w.name("ConsumedCapacity")
		encodeCapacityObject(w, c)
	}
}

// encodeCapacities writes the member ConsumedCapacity of a batch or a transaction: one object for
// each table.
func encodeCapacities(w *writer, list []*service.Capacity) {
	if list == nil {
		return
	}
	w.name("ConsumedCapacity").beginArray()
	for _, c := range list {
		encodeCapacityObject(w, c)
	}
	w.endArray()
}

func encodeCapacityObject(w *writer, c *service.Capacity) {
	w.beginObject()
	w.name("TableName").text(c.TableName)
	encodeUnits(w, service.CapacityPart{Units: c.Units, Read: c.Read, Write: c.Write})
	if c.Detail {
		w.name("Table")
		encodeCapacityPart(w, c.Table)
		encodeCapacityParts(w, "LocalSecondaryIndexes", c.Local)
		encodeCapacityParts(w, "GlobalSecondaryIndexes", c.Global)
	}
	w.endObject()
}

func encodeCapacityParts(w *writer, name string, parts map[string]service.CapacityPart) {
	if len(parts) == 0 {
		return
	}
	w.name(name).beginObject()
	for _, index := range slices.Sorted(maps.Keys(parts)) {
		w.key(index)
		encodeCapacityPart(w, parts[index])
	}
	w.endObject()
}

func encodeCapacityPart(w *writer, p service.CapacityPart) {
	w.beginObject()
	encodeUnits(w, p)
	w.endObject()
}

func encodeUnits(w *writer, p service.CapacityPart) {
	w.name("CapacityUnits").decimal(p.Units)
	if p.Read.Set {
		w.name("ReadCapacityUnits").decimal(p.Read.V)
	}
	if p.Write.Set {
		w.name("WriteCapacityUnits").decimal(p.Write.V)
	}
}

func encodeCollection(w *writer, m *service.CollectionMetrics) {
	w.beginObject()
	w.name("ItemCollectionKey").item(m.Key)
	w.name("SizeEstimateRangeGB").beginArray()
	w.decimal(m.Lo)
	w.decimal(m.Hi)
	w.endArray()
	w.endObject()
}

// encodeCollections writes the member ItemCollectionMetrics of a batch or a transaction: a list for
// each table.
func encodeCollections(w *writer, tables []service.TableCollections) {
	if tables == nil {
		return
	}
	w.name("ItemCollectionMetrics").beginObject()
	for _, t := range tables {
		w.key(t.Table).beginArray()
		for _, m := range t.Metrics {
			encodeCollection(w, m)
		}
		w.endArray()
	}
	w.endObject()
}
