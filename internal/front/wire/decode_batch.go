package wire

import (
	"slices"

	"github.com/mayflydb/mayfly/internal/store/service"
)

func decodeBatchGetItem(d *decoder, in *service.BatchGetItemInput) {
	d.read(members{
		{"RequestItems", func() { in.RequestItems = d.batchGetTables() }},
		{"ReturnConsumedCapacity", &in.ReturnConsumedCapacity},
	})
	in.Expired = d.expired()
}

// batchGetTables reads the map of tables in the order of the request. Of equal names, the last
// counts.
func (d *decoder) batchGetTables() []service.BatchGetTable {
	const typ = "KeysAndAttributes"
	if !d.Map(typ) {
		return nil
	}
	tables := []service.BatchGetTable{}
	var table []byte
	for d.NextEntry(&table) {
		one := service.BatchGetTable{Table: string(table)}
		if d.StructElement(typ) {
			decodeKeysAndAttributes(d, &one)
		}
		tables = putTable(tables, one, func(t *service.BatchGetTable) bool { return t.Table == one.Table })
	}
	return tables
}

func decodeKeysAndAttributes(d *decoder, in *service.BatchGetTable) {
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
		{"RequestItems", func() { in.RequestItems = d.batchWriteTables() }},
		{"ReturnConsumedCapacity", &in.ReturnConsumedCapacity},
		{"ReturnItemCollectionMetrics", &in.ReturnItemCollectionMetrics},
	})
}

func (d *decoder) batchWriteTables() []service.BatchWriteTable {
	if !d.Map("java.util.List<com.amazonaws.dynamodb.v20120810.WriteRequest>") {
		return nil
	}
	tables := []service.BatchWriteTable{}
	var table []byte
	for d.NextEntry(&table) {
		one := service.BatchWriteTable{Table: string(table)}
		if d.ListElement() {
			one.Requests = elements(d, func(d *decoder, r *service.WriteRequest) {
				if d.StructElement("WriteRequest") {
					decodeWriteRequest(d, r)
				}
			})
		}
		tables = putTable(tables, one, func(t *service.BatchWriteTable) bool { return t.Table == one.Table })
	}
	return tables
}

// putTable adds a table's part of a batch, and drops an earlier part of the same table.
func putTable[T any](tables []T, one T, same func(*T) bool) []T {
	if len(tables) == keepMembers {
		return tables // the service refuses so many tables
	}
	for i := range tables {
		if same(&tables[i]) {
			return append(slices.Delete(tables, i, i+1), one)
		}
	}
	return append(tables, one)
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
