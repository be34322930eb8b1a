package engine

import (
	"time"

	"github.com/mayflydb/mayfly/internal/store/dynamo"
)

// Instant is a point in time in whole milliseconds since the Unix epoch: the engine's only notion
// of time.
type Instant int64

// Never is later than every deadline.
const Never Instant = 1<<63 - 1

// minInstant is before every instant that occurs.
const minInstant Instant = -1 << 62

// Time returns the instant as a time.Time in UTC.
func (i Instant) Time() time.Time { return time.UnixMilli(int64(i)).UTC() }

// TableDesc is a table's entry in the catalogue. A published description is never edited: Alter
// edits a copy.
type TableDesc struct {
	Namespace string
	Name      string
	ID        uint32
	UUID      string // TableId of the API
	Created   Instant
	Key       KeySchema
	Indexes   []IndexDesc
	NextIndex uint32 // the id of the next index: none is used twice in a table's life
	TTL       TTLDesc
	Stream    StreamSpec  // the stream to write to; ViewType empty: none
	Feed      FeedSpec    `json:",omitzero"` // a second stream, which the API does not show
	API       APIDesc     // carried for the API; means nothing to the engine
	Restore   RestoreDesc `json:",omitzero"`
	History   HistoryDesc `json:",omitzero"` // for point-in-time recovery
	// carried for the service; one for the table's life in this process
	Units *Units `json:"-"`
	// likewise; nil in a description that is not of a table of this process, such as a backup's
	Suspicions *Suspicions `json:"-"`
	Version    uint64      // raised by every change
}

// KeySchema names the attributes of a key: one to eight in all, at least one of them in Partition.
type KeySchema struct {
	Partition []KeyAttr
	Sort      []KeyAttr
}

// KeyAttr is one attribute of a key. Kind is KindString, KindNumber or KindBinary.
type KeyAttr struct {
	Name string
	Kind dynamo.Kind
}

// IndexDesc describes a secondary index.
type IndexDesc struct {
	ID         uint16 // 0: an index that a change hands to Alter
	Name       string
	Global     bool
	Key        KeySchema
	Projection Projection
	Read       int64 // throughput as the API shows it
	Write      int64
	MaxRead    int64    `json:",omitzero"` // OnDemandThroughput; 0: not set
	MaxWrite   int64    `json:",omitzero"`
	Warm       Warm     `json:",omitzero"`
	Insights   Insights `json:",omitzero"`
	Created    Instant
	Building   bool   // existing items may lack their entries, so reads are refused
	Units      *Units `json:"-"` // as for the table
}

// Projection selects the attributes of an index beside its own key and the table's key.
type Projection struct {
	Type   string   // ALL, KEYS_ONLY, INCLUDE
	NonKey []string // INCLUDE
}

// TTLDesc is a table's TTL setting and the generations of it that items may still carry.
type TTLDesc struct {
	Attribute  string  // empty: TTL is off
	Expiry     Expiry  `json:",omitzero"`
	Changed    Instant `json:",omitzero"` // when UpdateTimeToLive last changed it; 0: never
	Generation uint32  // raised by every change of the rules for deadlines
	Since      Instant // when the present generation began
	Ended      []GenerationEnd
	Backfill   bool // items of earlier generations exist: ENABLING or DISABLING
	// Backfilled is Ended as it was until the last backfill ended: a reader's snapshot may be older
	// than its description.
	Backfilled []GenerationEnd `json:"-"`
}

// GenerationEnd is the instant at which an earlier TTL generation ended. A deadline of that
// generation at or before the instant stays expired; a later one counts as none. Never means that
// all its deadlines count: the change was only from aws to strict expiry.
type GenerationEnd struct {
	Generation uint32
	At         Instant
}

// StreamSpec is the stream that a table writes to.
type StreamSpec struct {
	ViewType string // KEYS_ONLY, NEW_IMAGE, OLD_IMAGE, NEW_AND_OLD_IMAGES; empty: no stream
	ID       uint32 // set by the engine and not cleared by disabling: the latest stream
	Label    string // set by the engine
	// the number of shards of the next stream, 1 to 64; 0: Options.StreamShards
	Shards int `json:",omitzero"`
}

// Warm is the WarmThroughput of a table or index in units a second, as of the last change of the
// table. It only grows.
type Warm struct{ Read, Write int64 }

// APIDesc holds the settings of a table that the API shows and the engine ignores.
type APIDesc struct {
	OnDemand           bool
	OnDemandSince      Instant
	MaxRead, MaxWrite  int64 // OnDemandThroughput; 0: not set
	Read, Write        int64
	Decreases          int64
	LastIncrease       Instant
	LastDecrease       Instant
	Definitions        []KeyAttr // AttributeDefinitions in the order of the request
	TableClass         string
	DeletionProtection bool
	SSEEnabled         bool
	Tags               map[string]string
	Policy             ResourcePolicy `json:",omitzero"`
	Warm               Warm           `json:",omitzero"`
	Insights           Insights       `json:",omitzero"`
	// the latest first; at most one is enabled
	Kinesis []KinesisDestination `json:",omitempty"`
}
