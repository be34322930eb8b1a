package admin

import (
	"encoding/json"
	"fmt"
	"math/big"
	"time"

	"github.com/mayflydb/mayfly/internal/when"
)

// quantity is a member of a body that is a text or a number of seconds, which may have a fraction.
type quantity struct{ json.RawMessage }

// isSet reports whether the member is there, and not null.
func (q quantity) isSet() bool { return len(q.RawMessage) > 0 && string(q.RawMessage) != "null" }

func (q quantity) String() string { return string(q.RawMessage) }

// read returns the text, or otherwise the number in milliseconds, rounded up.
func (q quantity) read(name, forms string) (text string, millis int64, isText bool, err error) {
	if json.Unmarshal(q.RawMessage, &text) == nil {
		return text, 0, true, nil
	}
	wrong := badRequest(fmt.Sprintf("%q must be %s or a number of seconds, not %s", name, forms, shortened(q.RawMessage)))
	var number json.Number
	if len(q.RawMessage) > 40 || json.Unmarshal(q.RawMessage, &number) != nil {
		return "", 0, false, wrong
	}
	f, ok := new(big.Float).SetPrec(256).SetString(number.String())
	if !ok {
		return "", 0, false, wrong
	}
	if f.Mul(f, big.NewFloat(1000)); f.IsInf() || f.MantExp(nil) > 62 {
		return "", 0, false, badRequest(fmt.Sprintf("%q is too large: %s seconds", name, q))
	}
	whole, accuracy := f.Int(nil)
	if accuracy == big.Below && f.Sign() > 0 {
		whole.Add(whole, big.NewInt(1))
	}
	return "", whole.Int64(), false, nil
}

// instant returns an instant; "in 5m" is relative to now.
func (q quantity) instant(name string, now time.Time) (time.Time, error) {
	text, millis, isText, err := q.read(name, `a string such as "2030-01-01T00:00:00Z", "2030-01-01" or "in 5m"`)
	switch {
	case err != nil:
		return time.Time{}, err
	case !isText && millis > secondsMost*1000:
		return time.Time{}, badRequest(fmt.Sprintf(`%q is %s seconds since 1970, after the year 9999; for milliseconds use "to_ms"`, name, q))
	case !isText:
		return time.UnixMilli(millis), nil
	}
	to, err := when.Instant(text, time.UTC, func() time.Time { return now })
	if err != nil {
		return time.Time{}, badRequest(fmt.Sprintf("%q: %v", name, err))
	}
	return to, nil
}

// secondsMost is the end of the year 9999.
const secondsMost = 253402300799

// duration returns a duration.
func (q quantity) duration(name string) (time.Duration, error) {
	text, millis, isText, err := q.read(name, `a string such as "90s", "1h30m" or "2d"`)
	switch {
	case err != nil:
		return 0, err
	case !isText && (millis > maxMillis || millis < -maxMillis):
		return 0, badRequest(fmt.Sprintf("%q is too large: %s seconds", name, q))
	case !isText:
		return time.Duration(millis) * time.Millisecond, nil
	}
	d, err := when.Duration(text)
	if err != nil {
		return 0, badRequest(fmt.Sprintf("%q: %v", name, err))
	}
	return d, nil
}

// shortened returns the beginning of a JSON value, for messages.
func shortened(value []byte) string {
	const most = 40
	if len(value) > most {
		return string(value[:most]) + "…"
	}
	return string(value)
}
