package service

import "github.com/mayflydb/mayfly/internal/store/dynamo"

const collectionSize = "SIZE"

// collectionMetrics returns the size estimate of the item collection that an action wrote to, in GB,
// and nil for a table without local indexes. It is a range of one if the collection was measured,
// because it may be large. Otherwise it reaches from zero to what the collection's files hold at
// most.
func (a *action) collectionMetrics() *CollectionMetrics {
	least, most, kept := a.write.Table.CollectionBytes(a.write.Key)
	if !kept {
		return nil
	}
	var key dynamo.Builder
	for _, attr := range a.desc.Key.Partition {
		key.Set(attr.Name, a.item.Get(attr.Name))
	}
	const gb = 1 << 30
	lo := least / gb
	return &CollectionMetrics{Key: key.Item(), Lo: float64(lo), Hi: float64(max(lo+1, (most+gb-1)/gb))}
}
