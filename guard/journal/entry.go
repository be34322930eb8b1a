package journal

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"time"
)

// Kind is the kind of an entry.
type Kind string

// The kinds of entries.
const (
	Image   Kind = "image"   // the state of an item that is about to be removed
	Removed Kind = "removed" // outcome: the item was removed
	Kept    Kind = "kept"    // outcome: this attempt did not remove the item
)

// Entry is an entry of a journal.
type Entry struct {
	Kind  Kind            `json:"kind"`
	ID    string          `json:"id"`    // of the attempt: an image and its outcome have the same
	At    time.Time       `json:"at"`    // by the endpoint's clock
	Table string          `json:"table"` // ARN, or the name if the endpoint has no ARNs
	Key   json.RawMessage `json:"key"`   // in the API's JSON
	// Attribute is the TTL attribute, and Deadline its value as an instant. Entries with an item
	// have them.
	Attribute string    `json:"attribute,omitempty"`
	Deadline  time.Time `json:"deadline,omitzero"`
	// Item is the item in the API's JSON. A removal has it only if the item had changed since the
	// image.
	Item json.RawMessage `json:"item,omitempty"`
}

// lineMax is the maximum length of a line in bytes. The JSON of an item of 400 KB has less.
const lineMax = 16 << 20

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

const headBytes = 2*crc32.Size + 1 // of a line, before the JSON

// line returns the entry's line.
func (e Entry) line() ([]byte, error) {
	body, err := json.Marshal(e)
	if err != nil {
		return nil, err
	}
	if headBytes+len(body)+1 > lineMax {
		return nil, fmt.Errorf("the entry has %d bytes; the limit is %d", len(body), lineMax)
	}
	line := make([]byte, 0, headBytes+len(body)+1)
	line = hex.AppendEncode(line, binary.BigEndian.AppendUint32(nil, crc32.Checksum(body, castagnoli)))
	line = append(line, ' ')
	line = append(line, body...)
	return append(line, '\n'), nil
}

var (
	errChecksum = errors.New("the checksum is wrong")
	errEntry    = errors.New("the entry is not complete")
	errLong     = fmt.Errorf("the line has more than %d bytes", lineMax)
	errTorn     = errors.New("the last entry was cut off while it was written")
)

// parse decodes a line without its line feed.
func parse(line []byte) (e Entry, err error) {
	var sum [crc32.Size]byte
	if len(line) < headBytes || line[headBytes-1] != ' ' {
		return e, errChecksum
	}
	body := line[headBytes:]
	if _, err := hex.Decode(sum[:], line[:headBytes-1]); err != nil || binary.BigEndian.Uint32(sum[:]) != crc32.Checksum(body, castagnoli) {
		return e, errChecksum
	}
	if err := json.Unmarshal(body, &e); err != nil {
		return Entry{}, err
	}
	known := e.Kind == Image || e.Kind == Removed || e.Kind == Kept
	if !known || e.ID == "" || e.Table == "" || len(e.Key) == 0 || e.Kind == Image && len(e.Item) == 0 || bytes.Equal(e.Item, []byte("null")) {
		return Entry{}, errEntry
	}
	return e, nil
}
