package reminder

import (
	"math/big"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly/internal/work/cron"
)

// The range of valid instants.
var (
	earliest = time.Date(1970, 1, 1, 0, 0, 0, 0, time.UTC)
	latest   = time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)
)

// layouts are the forms of ISO 8601 with a zone; seconds, their fraction, and the colon of the
// offset are optional.
var layouts = []string{
	"2006-01-02T15:04:05Z07:00", "2006-01-02T15:04:05Z0700", "2006-01-02T15:04:05Z07", "2006-01-02T15:04Z07:00", "2006-01-02T15:04Z0700",
	"20060102T150405Z07:00", "20060102T150405Z0700",
}

// localLayouts are the forms without a zone.
var localLayouts = []string{"2006-01-02T15:04:05", "2006-01-02T15:04", "20060102T150405"}

// instant returns the instant in an attribute, rounded up to the millisecond: epoch seconds, or ISO
// 8601. A text without a zone is a time in zone, and is refused if zone is nil. Anything else is
// refused, for example a number of milliseconds, which would lie beyond the year 9999.
func instant(v types.AttributeValue, zone *time.Location) (t time.Time, ok bool) {
	switch v := v.(type) {
	case *types.AttributeValueMemberN:
		t, ok = epoch(v.Value)
	case *types.AttributeValueMemberS:
		t, ok = iso(v.Value, zone)
	}
	if !ok || t.Before(earliest) || t.After(latest) {
		return time.Time{}, false
	}
	return t.Add(time.Millisecond - time.Nanosecond).Truncate(time.Millisecond), true
}

// epoch parses a number of seconds.
func epoch(s string) (time.Time, bool) {
	// Rat would spend memory on a huge exponent
	if i := strings.IndexAny(s, "eE"); len(s) > 64 || strings.Trim(s, "0123456789.eE+-") != "" || i >= 0 && len(s)-i > 5 {
		return time.Time{}, false
	}
	r, ok := new(big.Rat).SetString(s)
	if !ok || r.Sign() < 0 || r.Cmp(big.NewRat(latest.Unix(), 1)) > 0 {
		return time.Time{}, false
	}
	r.Mul(r, big.NewRat(1000, 1))
	ms, remainder := new(big.Int).QuoRem(r.Num(), r.Denom(), new(big.Int))
	if remainder.Sign() > 0 {
		ms.Add(ms, big.NewInt(1))
	}
	return time.UnixMilli(ms.Int64()).UTC(), true
}

// iso parses a date and a time. Without a zone in the text it is the first time at which the clocks
// in zone show it, or the instant without the clock change that skips it.
func iso(s string, zone *time.Location) (time.Time, bool) {
	if len(s) > 64 {
		return time.Time{}, false
	}
	s = strings.ToUpper(strings.Replace(strings.TrimSpace(s), " ", "T", 1))
	for _, layout := range layouts {
		if t, err := time.Parse(layout, s); err == nil {
			return t.UTC(), true
		}
	}
	if zone == nil {
		return time.Time{}, false
	}
	for _, layout := range localLayouts {
		if t, err := time.Parse(layout, s); err == nil {
			first := cron.First(zone, t.Year(), t.Month(), t.Day(), t.Hour()*3600+t.Minute()*60+t.Second())
			return first.Add(time.Duration(t.Nanosecond())), true
		}
	}
	return time.Time{}, false
}
