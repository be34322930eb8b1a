package wire

import (
	"slices"

	"github.com/mayflydb/mayfly/internal/store/service"
)

func decodeBatchGetItem(d *decoder, in *service.BatchGetItemInput) {
	d.read(members{
		{"RequestItems", func() {
			in.RequestItems = requestItems(d, "KeysAndAttributes", decodeBatchGetTable, func(t *service.BatchGetTable) *string { return &t.Table })
		}},
		{"ReturnConsumedCapacity", &in.ReturnConsumedCapacity},
	})
	in.Expired = d.expired()
}

func decodeBatchGetTable(d *decoder, in *service.BatchGetTable) {
	if !d.StructElement("KeysAndAttributes") {
		return
	}
	d.read(members{
		{"Keys", func() { in.Keys = list(d, func(d *decoder, key *service.ItemArg) { *key = d.itemElement() }) }},
		{"ProjectionExpression", &in.Projection},
		{"ExpressionAttributeNames", &in.Names},
		{"ConsistentRead", &in.ConsistentRead},
		{"AttributesToGet", &in.Legacy.AttributesToGet},
	})
}

func decodeBatchWriteItem(d *decoder, in *service.BatchWriteItemInput) {
	d.read(members{
		{"RequestItems", func() {
			in.RequestItems = requestItems(d, "java.util.List<com.amazonaws.dynamodb.v20120810.WriteRequest>",
				decodeBatchWriteTable, func(t *service.BatchWriteTable) *string { return &t.Table })
		}},
		{"ReturnConsumedCapacity", &in.ReturnConsumedCapacity},
		{"ReturnItemCollectionMetrics", &in.ReturnItemCollectionMetrics},
	})
}

func decodeBatchWriteTable(d *decoder, in *service.BatchWriteTable) {
	if !d.ListElement() {
		return
	}
	in.Requests = elements(d, func(d *decoder, r *service.WriteRequest) {
		if d.StructElement("WriteRequest") {
			decodeWriteRequest(d, r)
		}
	})
}

// requestItems reads a map of tables in the order of the request. Of equal names, only the last
// counts, at its own place. It returns at most keepMembers tables, and nil for null. typ is the
// type of the map's values, read reads one, and name is where its table is stored.
func requestItems[T any](d *decoder, typ string, read func(*decoder, *T), name func(*T) *string) []T {
	if !d.Map(typ) {
		return nil
	}
	tables := []T{}
	var table []byte
	for d.NextEntry(&table) {
		if len(tables) == keepMembers {
			read(d, new(T)) // the service refuses so many tables
			continue
		}
		for i := range tables {
			if *name(&tables[i]) == string(table) {
				tables = slices.Delete(tables, i, i+1)
				break
			}
		}
		var empty T
		tables = append(tables, empty)
		last := &tables[len(tables)-1]
		*name(last) = string(table)
		read(d, last)
	}
	return tables
}

func decodeWriteRequest(d *decoder, in *service.WriteRequest) {
	d.read(members{
		{"PutRequest", func() { in.Put = d.itemIn("PutRequest", "Item") }},
		{"DeleteRequest", func() { in.Delete = d.itemIn("DeleteRequest", "Key") }},
	})
}

// itemIn reads a structure with an item as its only member.
func (d *decoder) itemIn(typ, name string) *service.ItemArg {
	return structure(d, typ, func(d *decoder, item *service.ItemArg) { d.read(members{{name, item}}) })
}
