package strict

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/mayflydb/mayfly/internal/store/dynamo"
	"github.com/mayflydb/mayfly/internal/ttl"
)

// fiveYears is the age in ms from which a deadline is taken for a mistake.
const fiveYears = ttl.TooOld

// moment is the instant at which a request is judged, in ms since the epoch.
type moment int64

func momentOf(t time.Time) moment { return moment(t.UnixMilli()) }

// expired reports whether an attribute value, as JSON, is a deadline that has passed, and less than
// five years ago.
func (m moment) expired(raw json.RawMessage) bool {
	at, ok := deadlineOf(raw)
	return ok && at <= int64(m) && at > int64(m)-fiveYears
}

// deadlineOf returns the deadline in an attribute value, as JSON, in ms since the epoch, rounded
// up. ok is false if the value is missing or no number, or if its ms exceed an int64.
func deadlineOf(raw json.RawMessage) (at int64, ok bool) {
	if raw == nil {
		return 0, false
	}
	v, invalid, fatal := dynamo.NewJSON(raw).AppendValue(nil)
	if invalid != nil || fatal != nil || dynamo.Value(v).Kind() != dynamo.KindNumber {
		return 0, false
	}
	return dynamo.Value(v).Number().Millis()
}

// now and low return the bounds of the deadlines that have passed, as attribute values: low <
// deadline ≤ now.
func (m moment) now() json.RawMessage { return numberOf(int64(m)) }
func (m moment) low() json.RawMessage { return numberOf(int64(m) - fiveYears) }

// numberOf returns an instant as an attribute value.
func numberOf(ms int64) json.RawMessage { return []byte(`{"N":"` + secondsText(ms) + `"}`) }

// secondsText returns an instant as a decimal number of seconds, to the millisecond.
func secondsText(ms int64) string {
	sign := ""
	if ms < 0 {
		sign, ms = "-", -ms
	}
	return fmt.Sprintf("%s%d.%03d", sign, ms/1000, ms%1000)
}
