package engine

import (
	"time"

	"github.com/mayflydb/mayfly/internal/store/dynamo"
)

// Instant is a point in time in whole milliseconds since the Unix epoch: the engine's only notion of time.
type Instant int64

// Never is later than every deadline.
const Never Instant = 1<<63 - 1

// minInstant is before every instant that occurs.
const minInstant Instant = -1 << 62

// Time gives the instant as a time.Time in UTC.
func (i Instant) Time() time.Time { return time.UnixMilli(int64(i)).UTC() }

// TableDesc is everything that the catalogue says of a table. A published description is never edited: Alter hands out a copy.
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
	Stream    StreamSpec // the stream to write to; ViewType empty: none
	API       APIDesc    // carried for the API; means nothing to the engine
	Units     *Units     `json:"-"` // carried for the service; one for the table's life in this process
	Version   uint64     // raised by every change
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
	ID         uint16 // 0: new, in what a change of a description hands to Alter
	Name       string
	Global     bool
	Key        KeySchema
	Projection Projection
	Read       int64 // throughput as the API shows it
	Write      int64
	Created    Instant
	Building   bool   // items of before its creation may lack their entries: nobody reads it yet
	Units      *Units `json:"-"` // as the table's
}

// Projection says what an index holds beside its own key and the table's key.
type Projection struct {
	Type   string   // ALL, KEYS_ONLY, INCLUDE
	NonKey []string // INCLUDE
}

// TTLDesc is a table's TTL setting and the generations of it that items may still carry.
type TTLDesc struct {
	Attribute  string  // empty: TTL is off
	Expiry     Expiry  `json:",omitzero"`
	Generation uint32  // raised whenever what counts as a deadline changes
	Since      Instant // when the present generation began
	Ended      []GenerationEnd
	Backfill   bool // items of earlier generations remain: ENABLING or DISABLING
	// Backfilled is what Ended was until the last backfill ended: a reader's snapshot may be older than the description that judges it.
	Backfilled []GenerationEnd `json:"-"`
}

// GenerationEnd is the instant at which an earlier TTL generation ended. A deadline of that generation at or before it stays
// expired; a later one counts as none. Never means that the generation's deadlines count as they stand: only aws expiry ended, for strict.
type GenerationEnd struct {
	Generation uint32
	At         Instant
}

// StreamSpec is the stream that a table writes to.
type StreamSpec struct {
	ViewType string // KEYS_ONLY, NEW_IMAGE, OLD_IMAGE, NEW_AND_OLD_IMAGES; empty: no stream
	ID       uint32 // set by the engine, kept after disabling: the latest stream
	Label    string // set by the engine
	Shards   int    `json:",omitzero"` // how many shards the next stream has, 1 to 64; 0: Options.StreamShards
}

// APIDesc is what the API shows of a table and the engine does not use.
type APIDesc struct {
	OnDemand           bool
	OnDemandSince      Instant
	MaxRead, MaxWrite  int64 // OnDemandThroughput; 0: not set
	Read, Write        int64
	Decreases          int64
	LastIncrease       Instant
	LastDecrease       Instant
	Definitions        []KeyAttr // AttributeDefinitions in the order given
	TableClass         string
	DeletionProtection bool
	SSEEnabled         bool
	Tags               map[string]string
}
