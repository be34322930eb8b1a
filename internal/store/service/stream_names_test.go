package service

import (
	"testing"
	"time"

	"github.com/mayflydb/mayfly/internal/store/dynamo"
)

// FuzzStreamNames parses any text as each of the names. An accepted text must be written back
// unchanged.
func FuzzStreamNames(f *testing.F) {
	s := &Service{region: "eu-west-1", account: "1", run: 7, elapsed: func() time.Duration { return time.Hour }}
	arn := s.streamARN("Music", "2026-01-01T00:00:00.000")
	f.Add(arn)
	f.Add(shardID(1, 2))
	f.Add(sequenceNumber(3))
	f.Add(iterator{arn: arn, shard: 1, from: 2, run: 7, issued: time.Hour}.String())
	f.Add("shardId-00000000000000000001-00000001x")
	f.Add("|1|")
	f.Fuzz(func(t *testing.T, text string) {
		if no, ok := parseShardID(1, text); ok {
			equal(t, "shard id", shardID(1, no), text)
		}
		if seq, ok := parseSequence(text); ok {
			equal(t, "sequence number", sequenceNumber(seq), text)
		}
		if table, label, err := parseStreamARN(text); err == nil {
			again, same, err := parseStreamARN(s.streamARN(table, label))
			equal(t, "table and label", again+label, table+same)
			equal(t, "read again", err, nil)
		}
		it, err := s.parseIterator(text)
		if err != nil {
			equal(t, "a code of the API", errorCode(err) == dynamo.CodeValidation || errorCode(err) == dynamo.CodeExpiredIterator, true)
			return
		}
		if it.run == s.run {
			same, err := s.parseIterator(it.String())
			equal(t, "iterator", same, it)
			equal(t, "read again", err, nil)
		}
	})
}

func TestSequenceNumbersOrder(t *testing.T) {
	last := ""
	for _, seq := range []uint64{0, 1, 9, 10, 99, 1 << 32, 1<<64 - 1} {
		n := sequenceNumber(seq)
		equal(t, "order and length", n > last && len(n) == sequenceLengthMin, true)
		got, ok := parseSequence(n)
		equal(t, "round trip", ok && got == seq, true)
		last = n
	}
}
