package engine

import (
	"encoding/binary"

	"github.com/mayflydb/mayfly/internal/store/keyenc"
)

// The keyspaces, by leading byte (FORMAT.md).
const (
	spaceCatalogue = 0x01
	spaceItems     = 0x02
	spaceIndexes   = 0x03
	spaceDeadlines = 0x04
	spaceStreams   = 0x05
	spaceHistory   = 0x06
)

// Kinds of catalogue keys, by second byte.
const (
	catFormat   = 'v' // the format's version
	catClock    = 'c' // the last instant and the last stream sequence number
	catIDs      = 'i' // the last table id and stream id in use
	catTable    = 't' // namespace, name → table description
	catStream   = 's' // stream id → stream description
	catMark     = 'm' // table id → low-water mark
	catBackfill = 'b' // table id → the last key that a TTL backfill has finished
	catBuild    = 'x' // table id, index id → the last key that the build of an index has finished
	catBackup   = 'k' // backup id → backup description
	catJob      = 'j' // export or import id → its row
	catRestore  = 'r' // table id → the last key of the backup that a restore has finished
	catUndo     = 'u' // table id → the last history record that a restore to an instant has applied
)

const (
	tablePrefixLen = 5 // keyspace, table id
	hashLen        = 4
	instantLen     = 8
)

func appendTablePrefix(dst []byte, space byte, id uint32) []byte {
	return binary.BigEndian.AppendUint32(append(dst, space), id)
}

// tableSpan returns the bounds of a table's keys in a keyspace.
func tableSpan(space byte, id uint32) (lower, upper []byte) {
	return appendTablePrefix(nil, space, id), appendTablePrefix(nil, space, id+1)
}

// appendDeadlineKey appends the key of a deadline entry. Without a suffix it is the lower bound of
// all entries at or after the instant.
func appendDeadlineKey(dst []byte, table uint32, removal Instant, suffix []byte) []byte {
	dst = appendTablePrefix(dst, spaceDeadlines, table)
	dst = appendInstant(dst, removal)
	return append(dst, suffix...)
}

// appendInstant appends an instant so that byte order is time order, also before 1970.
func appendInstant(dst []byte, i Instant) []byte {
	return binary.BigEndian.AppendUint64(dst, uint64(i)^(1<<63))
}

func readInstant(b []byte) Instant { return Instant(binary.BigEndian.Uint64(b) ^ (1 << 63)) }

func catalogueKey(kind byte) []byte { return []byte{spaceCatalogue, kind} }

func tableCatalogueKey(namespace, name string) []byte {
	k := append(catalogueKey(catTable), namespace...)
	k = append(k, 0)
	return append(k, name...)
}

func idKey(kind byte, id uint32) []byte {
	return binary.BigEndian.AppendUint32(catalogueKey(kind), id)
}

// buildKey returns the key of the progress of an index under construction.
func buildKey(table uint32, index uint16) []byte {
	return binary.BigEndian.AppendUint16(idKey(catBuild, table), index)
}

func appendRecordKey(dst []byte, stream, shard uint32, seq uint64) []byte {
	dst = append(dst, spaceStreams)
	dst = binary.BigEndian.AppendUint32(dst, stream)
	dst = binary.BigEndian.AppendUint32(dst, shard)
	return binary.BigEndian.AppendUint64(dst, seq)
}

const recordKeyLen = 1 + 4 + 4 + 8

// streamSpan returns the bounds of a stream's records.
func streamSpan(id uint32) (lower, upper []byte) { return tableSpan(spaceStreams, id) }

func indexPrefix(dst []byte, table uint32, index uint16) []byte {
	dst = appendTablePrefix(dst, spaceIndexes, table)
	return binary.BigEndian.AppendUint16(dst, index)
}

// indexSpan returns the bounds of an index's entries.
func indexSpan(table uint32, index uint16) (lower, upper []byte) {
	lower = indexPrefix(nil, table, index)
	return lower, keyenc.PrefixSuccessor(lower)
}
