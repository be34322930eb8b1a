package timeseries

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash/fnv"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// timeLayout has a fixed width, so that texts sort by time.
const timeLayout = "2006-01-02T15:04:05.000000000Z"

// fingerprintHex is the number of hexadecimal digits that distinguish samples of one instant: 48
// bits, so that two different ones collide once in 10^14 pairs.
const fingerprintHex = 12

const (
	keyFirst = "0" // below every sort key
	keyLast  = ":" // above every sort key
)

// bound returns a sort key that separates the samples before t from all others.
func bound(t time.Time) string {
	switch y := t.UTC().Year(); {
	case y < 1970:
		return keyFirst
	case y > 9999:
		return keyLast
	}
	return t.UTC().Format(timeLayout)
}

// sortKey returns a sample's sort key, which follows from the sample alone.
func sortKey(s *Sample, metadata string) string {
	b := make([]byte, 0, len(timeLayout)+1+fingerprintHex)
	b = s.Time.UTC().AppendFormat(b, timeLayout)
	b = append(b, '#')
	// an s sorts above every hexadecimal digit and distinguishes a sequence from a fingerprint
	if s.Sequence > 0 {
		return string(fmt.Appendf(b, "s%0*d", fingerprintHex-1, s.Sequence))
	}
	sum := fingerprint(s, metadata)
	return string(hex.AppendEncode(b, sum[:fingerprintHex/2]))
}

// fingerprint returns a hash of a sample's values and tags.
func fingerprint(s *Sample, metadata string) [sha256.Size]byte {
	var space [8]string
	names := space[:0]
	for name := range s.Values {
		names = append(names, name)
	}
	slices.Sort(names)
	var room [256]byte
	b := room[:0]
	for _, name := range names {
		b = binary.BigEndian.AppendUint16(b, uint16(len(name))) // a metric's name is short
		b = append(b, name...)
		// -0 and 0 are equal
		b = binary.BigEndian.AppendUint64(b, math.Float64bits(s.Values[name]+0))
	}
	return sha256.Sum256(append(b, metadata...))
}

// splitKey returns the parts of a sort key.
func splitKey(key string) (at time.Time, sequence uint32, err error) {
	if len(key) != len(timeLayout)+1+fingerprintHex || key[len(timeLayout)] != '#' {
		return time.Time{}, 0, fmt.Errorf("%q is not the sort key of a sample", key)
	}
	if at, err = time.Parse(timeLayout, key[:len(timeLayout)]); err != nil {
		return time.Time{}, 0, fmt.Errorf("%q is not the sort key of a sample: %w", key, err)
	}
	if number, ok := strings.CutPrefix(key[len(timeLayout)+1:], "s"); ok {
		n, err := strconv.ParseUint(number, 10, 32)
		if err != nil {
			return time.Time{}, 0, fmt.Errorf("%q is not the sort key of a sample: %w", key, err)
		}
		sequence = uint32(n)
	}
	return at.UTC(), sequence, nil
}

const shardMark = "#shard"

// partition returns the partition key of a device's shard. The key of the first shard is the device
// itself, as in the published pattern.
func partition(device string, shard int) string {
	if shard == 0 {
		return device
	}
	return fmt.Sprintf("%s%s%02d", device, shardMark, shard)
}

// splitPartition returns the device and the shard of a partition key.
func splitPartition(key string) (device string, shard int) {
	at := len(key) - len(shardMark) - 2
	if at < 0 || key[at:at+len(shardMark)] != shardMark {
		return key, 0
	}
	tens, ones := key[len(key)-2], key[len(key)-1]
	if tens < '0' || tens > '9' || ones < '0' || ones > '9' {
		return key, 0
	}
	return key[:at], int(tens-'0')*10 + int(ones-'0')
}

// shardOf returns the shard of a sample. It follows from the sort key, so that a sample written
// again is the same item.
func shardOf(key string, shards int) int {
	if shards <= 1 {
		return 0
	}
	h := fnv.New32a()
	h.Write([]byte(key))
	return int(h.Sum32() % uint32(shards))
}

// bucket returns a partition key of a metric's index: the metric, a day, and a shard that follows
// from the device.
func bucket(metric string, day time.Time, shard int) string {
	return fmt.Sprintf("%s#%s#%02d", metric, day.UTC().Format(time.DateOnly), shard)
}

// bucketShard returns the shard of a device in a metric's index.
func bucketShard(device string, shards int) int { return shardOf(device, shards) }
