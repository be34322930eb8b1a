package deliver

import (
	"github.com/mayflydb/mayfly/internal/work/ensure"
)

// RetriesTable is the table of parked parcels. A parcel is always the same item, whatever its
// attempt: parking it again overwrites the item.
const RetriesTable = "mayfly.retries"

// retriesOf returns the table of parked parcels for couriers of a name. Couriers of other names
// lack the targets.
func retriesOf(name string) string {
	if name == "" {
		return RetriesTable
	}
	return RetriesTable + "." + name
}

// Attributes of a parked parcel.
const (
	attrID   = "id"
	attrPart = "part"
	// instant of its return: the TTL attribute, in epoch seconds with milliseconds
	attrDue    = "due"
	attrParcel = "job" // JSON of storedParcel

	partParcel = "job"
	partEnded  = "ended#" // followed by the generation of the deleted parts
)

func retriesSpec(table string) ensure.Spec {
	return ensure.Spec{Name: table, Key: attrID, Sort: attrPart, TTL: attrDue, Stream: true, Shards: 1}
}
