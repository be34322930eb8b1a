package service

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"
	"time"

	"github.com/mayflydb/mayfly/internal/constraint"
	"github.com/mayflydb/mayfly/internal/store/dynamo"
	"github.com/mayflydb/mayfly/internal/store/engine"
)

// The names of streams, shards, records and positions at the API:
//
//	stream ARN       arn:aws:dynamodb:<region>:<account>:table/<table>/stream/<label>
//	shard id         shardId-<number of the shard, 20 digits>-<id of the stream, 8 hex digits>
//	sequence number  1<the engine's sequence number, 20 digits>: never shorter than the 21 digits
//	                 that SDKs insist on, and in order both as text and as a number
//	event id         16 bytes in hex: the stream's hash, the engine's sequence number
//	shard iterator   <stream ARN>|1|<base64 of shard, position, run and age>
const (
	arnLengthMin        = 37
	shardIDLengthMin    = 28
	shardIDLengthMax    = 65
	sequenceLengthMin   = 21
	sequenceLengthMax   = 40
	iteratorLengthMax   = 2048
	iteratorVersion     = "|1|"
	iteratorLife        = 15 * time.Minute
	iteratorBytes       = 24
	sequencePrefix      = "1"
	sequenceDigits      = 20
	shardIDPrefix       = "shardId-"
	msgInvalidIterator  = "Invalid ShardIterator"
	msgIteratorExpired  = "The shard iterator has expired. Shard iterators expire 15 minutes after they are issued"
	msgInvalidStreamARN = "Invalid StreamArn: "
)

// parseStreamARN returns the table and label of a stream ARN.
func parseStreamARN(arn string) (table, label string, err error) {
	if isARN(arn) {
		if resource, err := arnResource(arn); err == nil {
			parts := strings.Split(resource, "/")
			if len(parts) == 4 && parts[0] == "table" && parts[2] == "stream" && constraint.NameLetters(parts[1]) && parts[3] != "" {
				return parts[1], parts[3], nil
			}
		}
	}
	return "", "", invalid(msgInvalidStreamARN + arn)
}

func shardID(stream, shard uint32) string {
	return fmt.Sprintf("%s%020d-%08x", shardIDPrefix, shard, stream)
}

// parseShardID returns the number of a stream's shard, or false for an id of another
// stream.
func parseShardID(stream uint32, id string) (uint32, bool) {
	digits, streamID, ok := strings.Cut(strings.TrimPrefix(id, shardIDPrefix), "-")
	no, err := strconv.ParseUint(digits, 10, 32)
	return uint32(no), ok && err == nil && id == shardID(stream, uint32(no)) && streamID != ""
}

func sequenceNumber(seq uint64) string {
	// written by hand for speed: each record that is read needs two
	b := [len(sequencePrefix) + sequenceDigits]byte{sequencePrefix[0]}
	for i := len(b) - 1; i > 0; i-- {
		b[i] = '0' + byte(seq%10)
		seq /= 10
	}
	return string(b[:])
}

// parseSequence returns the engine's sequence number, or false for a text in another form.
func parseSequence(s string) (uint64, bool) {
	digits, ok := strings.CutPrefix(s, sequencePrefix)
	if !ok || len(digits) != sequenceDigits {
		return 0, false
	}
	seq, err := strconv.ParseUint(digits, 10, 64)
	return seq, err == nil
}

// eventIDs is the first half of all event ids of one stream.
type eventIDs [8]byte

func newEventIDs(d *engine.StreamDesc) eventIDs {
	h := fnv.New64a()
	h.Write([]byte(d.Table + "/" + d.Label))
	var ids eventIDs
	h.Sum(ids[:0])
	return ids
}

func (ids eventIDs) id(seq uint64) string {
	b := binary.BigEndian.AppendUint64(append(make([]byte, 0, 16), ids[:]...), seq)
	return hex.EncodeToString(b)
}

// iterator is a position in a shard. The client holds it; the server stores nothing about it.
type iterator struct {
	arn    string
	shard  uint32
	from   uint64        // the first sequence number to read
	run    uint32        // the run of the service that issued it
	issued time.Duration // the time since the start of that service
}

func (s *Service) newIterator(arn string, shard uint32, from uint64) iterator {
	return iterator{arn: arn, shard: shard, from: from, run: s.run, issued: s.elapsed() - s.began}
}

func (it iterator) String() string {
	b := make([]byte, 0, iteratorBytes)
	b = binary.BigEndian.AppendUint32(b, it.shard)
	b = binary.BigEndian.AppendUint64(b, it.from)
	b = binary.BigEndian.AppendUint32(b, it.run)
	b = binary.BigEndian.AppendUint64(b, uint64(it.issued))
	return it.arn + iteratorVersion + base64.StdEncoding.EncodeToString(b)
}

// parseIterator returns an iterator after a check of its age. An iterator from before a restart
// counts as issued when this service started: its age is unknown, and a consumer that outlived the
// restart must not lose its position.
func (s *Service) parseIterator(text string) (iterator, error) {
	arn, code, ok := strings.Cut(text, iteratorVersion)
	b, err := base64.StdEncoding.DecodeString(code)
	if !ok || err != nil || len(b) != iteratorBytes {
		return iterator{}, invalid(msgInvalidIterator)
	}
	it := iterator{
		arn:    arn,
		shard:  binary.BigEndian.Uint32(b),
		from:   binary.BigEndian.Uint64(b[4:]),
		run:    binary.BigEndian.Uint32(b[12:]),
		issued: time.Duration(binary.BigEndian.Uint64(b[16:])),
	}
	if it.run != s.run {
		it.issued = 0
	}
	if s.elapsed()-s.began-it.issued > iteratorLife {
		return iterator{}, &dynamo.Error{Code: dynamo.CodeExpiredIterator, Message: msgIteratorExpired}
	}
	return it, nil
}
