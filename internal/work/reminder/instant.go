package reminder

import (
	"math/big"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// The years that an instant may lie in.
var (
	earliest = time.Date(1970, 1, 1, 0, 0, 0, 0, time.UTC)
	latest   = time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)
)

// layouts are the forms of ISO 8601 that name an instant: with a zone, with or without seconds, their fraction, and the colon of the offset.
var layouts = []string{
	"2006-01-02T15:04:05Z07:00", "2006-01-02T15:04:05Z0700", "2006-01-02T15:04:05Z07", "2006-01-02T15:04Z07:00", "2006-01-02T15:04Z0700",
	"20060102T150405Z07:00", "20060102T150405Z0700",
}

// instant reads the instant that an attribute names: epoch seconds, or ISO 8601 with a zone, rounded up to the millisecond. Anything else names none; a number of
// milliseconds, say, which would be beyond the year 9999.
func instant(v types.AttributeValue) (t time.Time, ok bool) {
	switch v := v.(type) {
	case *types.AttributeValueMemberN:
		t, ok = epoch(v.Value)
	case *types.AttributeValueMemberS:
		t, ok = iso(v.Value)
	}
	if !ok || t.Before(earliest) || t.After(latest) {
		return time.Time{}, false
	}
	return t.Add(time.Millisecond - time.Nanosecond).Truncate(time.Millisecond), true
}

// epoch reads a number of seconds.
func epoch(s string) (time.Time, bool) {
	if i := strings.IndexAny(s, "eE"); len(s) > 64 || strings.Trim(s, "0123456789.eE+-") != "" || i >= 0 && len(s)-i > 5 { // or Rat would compute what nobody asks for
		return time.Time{}, false
	}
	r, ok := new(big.Rat).SetString(s)
	if !ok || r.Sign() < 0 || r.Cmp(big.NewRat(latest.Unix(), 1)) > 0 {
		return time.Time{}, false
	}
	r.Mul(r, big.NewRat(1000, 1))
	ms, rest := new(big.Int).QuoRem(r.Num(), r.Denom(), new(big.Int))
	if rest.Sign() > 0 {
		ms.Add(ms, big.NewInt(1))
	}
	return time.UnixMilli(ms.Int64()).UTC(), true
}

// iso reads a date and a time with a zone.
func iso(s string) (time.Time, bool) {
	if len(s) > 64 {
		return time.Time{}, false
	}
	s = strings.ToUpper(strings.Replace(strings.TrimSpace(s), " ", "T", 1))
	for _, layout := range layouts {
		if t, err := time.Parse(layout, s); err == nil {
			return t.UTC(), true
		}
	}
	return time.Time{}, false
}
