package wire

import (
	"maps"
	"slices"

	"github.com/mayflydb/mayfly/internal/store/dynamo"
	"github.com/mayflydb/mayfly/internal/store/service"
)

func encodeWrite(w *writer, out *service.WriteOutput) {
	w.optionalItem("Attributes", out.Attributes)
	encodeCapacity(w, out.Capacity)
	if out.Collection != nil {
		object(w.name("ItemCollectionMetrics"), out.Collection, encodeCollection)
	}
}

func encodeGetItem(w *writer, out *service.GetItemOutput) {
	w.optionalItem("Item", out.Item)
	encodeCapacity(w, out.Capacity)
}

func encodePage(w *writer, out *service.PageOutput) {
	if !out.CountOnly {
		w.name("Items")
		encodeItemList(w, out.Items)
	}
	w.name("Count").integer(int64(out.Count))
	w.name("ScannedCount").integer(int64(out.ScannedCount))
	w.optionalItem("LastEvaluatedKey", out.LastEvaluatedKey)
	encodeCapacity(w, out.Capacity)
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
		object(w.name("ConsumedCapacity"), c, encodeCapacityMembers)
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
		object(w, c, encodeCapacityMembers)
	}
	w.endArray()
}

func encodeCapacityMembers(w *writer, c *service.Capacity) {
	w.name("TableName").text(c.TableName)
	encodeUnits(w, &service.CapacityPart{Units: c.Units, Read: c.Read, Write: c.Write})
	if c.Detail {
		object(w.name("Table"), &c.Table, encodeUnits)
		encodeCapacityParts(w, "LocalSecondaryIndexes", c.Local)
		encodeCapacityParts(w, "GlobalSecondaryIndexes", c.Global)
	}
}

func encodeCapacityParts(w *writer, name string, parts map[string]service.CapacityPart) {
	if len(parts) == 0 {
		return
	}
	w.name(name).beginObject()
	for _, index := range slices.Sorted(maps.Keys(parts)) {
		part := parts[index]
		object(w.key(index), &part, encodeUnits)
	}
	w.endObject()
}

func encodeUnits(w *writer, p *service.CapacityPart) {
	w.name("CapacityUnits").decimal(p.Units)
	if p.Read.Set {
		w.name("ReadCapacityUnits").decimal(p.Read.V)
	}
	if p.Write.Set {
		w.name("WriteCapacityUnits").decimal(p.Write.V)
	}
}

func encodeCollection(w *writer, m *service.CollectionMetrics) {
	w.name("ItemCollectionKey").item(m.Key)
	w.name("SizeEstimateRangeGB").beginArray()
	w.decimal(m.Lo)
	w.decimal(m.Hi)
	w.endArray()
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
			object(w, m, encodeCollection)
		}
		w.endArray()
	}
	w.endObject()
}
