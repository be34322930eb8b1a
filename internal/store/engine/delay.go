package engine

import (
	"errors"
	"fmt"
	"math/bits"
	"strings"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/mayflydb/mayfly/internal/when"
)

// Delay is a distribution of the delays with which aws expiry removes items. It is written
//
//	observed            like Amazon's delays: half within 8 to 10 minutes, 97 % within 13, all within 30; 636 s on average
//	fixed:10m           always the same
//	uniform:8m-30m      anything between the two, ends included
//
// with durations of when.Duration in whole milliseconds, from 0 to 8784h (366 days). The zero
// value is observed.
//
// A delay is a function of a 64-bit number, the draw: the XXH64, with the table's seed, of the
// encoded key parts (FORMAT.md, "Keys").
//
//	uniform:a-b    a + ⌊draw·(b-a+1) / 2⁶⁴⌋, in milliseconds; fixed:a is uniform:a-a
//	observed       q = ⌊draw·10⁸ / 2⁶⁴⌋, the quantile in millionths of a percent; the delay lies on straight lines between
//	               (0 %, 480 s), (50 %, 600 s), (97 %, 791 s) and (100 %, 1800 s), rounded down to the millisecond
//
// All of it is integer arithmetic, so that every machine gets the same.
type Delay struct {
	spread      bool    // false: observed
	least, most Instant // ms; of a spread
}

// delayMax is the longest delay: 366 days, in ms.
const delayMax = 366 * 24 * 60 * 60 * 1000

const observed = "observed"

// quantile is a point of a cumulative distribution.
type quantile struct {
	at    uint64  // millionths of a percent
	delay Instant // ms
}

const quantileUnit = 100_000_000 // the whole, in millionths of a percent

// observedDelays follows measurements at Amazon: 485 to 791 s, 636 s on average (published in
// 2026), and 8 to 28 minutes for a table of 100,000 items
// (https://bahr.dev/2019/05/29/ddb-ttl-analysis/).
var observedDelays = [...]quantile{{0, 480_000}, {50_000_000, 600_000}, {97_000_000, 791_000}, {quantileUnit, 1_800_000}}

// draw returns the number that determines a key's delay.
func draw(seed uint64, key Key) uint64 {
	var d xxhash.Digest
	d.ResetWithSeed(seed)
	d.Write(key.suffix()[hashLen:]) // never fails
	return d.Sum64()
}

// forDraw returns the delay for a draw.
func (d Delay) forDraw(draw uint64) Instant {
	if d.spread {
		part, _ := bits.Mul64(draw, uint64(d.most-d.least+1))
		return d.least + Instant(part)
	}
	at, _ := bits.Mul64(draw, quantileUnit)
	i := 1
	for at >= observedDelays[i].at {
		i++
	}
	from, to := observedDelays[i-1], observedDelays[i]
	return from.delay + (to.delay-from.delay)*Instant(at-from.at)/Instant(to.at-from.at)
}

// ParseDelay parses a distribution in the syntax that Delay describes.
func ParseDelay(text string) (Delay, error) {
	if text == observed {
		return Delay{}, nil
	}
	name, durations, _ := strings.Cut(text, ":")
	least, most := durations, durations
	switch name {
	case "fixed":
	case "uniform":
		least, most, _ = strings.Cut(durations, "-")
	default:
		return Delay{}, fmt.Errorf("invalid distribution of delays %q; use observed, fixed:10m or uniform:8m-30m", text)
	}
	d := Delay{spread: true}
	var err error
	if d.least, err = parseDelay(least); err == nil {
		d.most, err = parseDelay(most)
	}
	switch {
	case err != nil:
		return Delay{}, fmt.Errorf("invalid distribution of delays %q: %w", text, err)
	case d.least > d.most:
		return Delay{}, fmt.Errorf("invalid distribution of delays %q: the shorter delay must come first", text)
	}
	return d, nil
}

// parseDelay parses one duration.
func parseDelay(text string) (Instant, error) {
	d, err := when.Duration(text)
	switch {
	case err != nil:
		return 0, fmt.Errorf("%q is not a duration; use 90s, 10m or 2d", text)
	case d < 0 || d.Milliseconds() > delayMax:
		return 0, fmt.Errorf("%s is not between 0s and 8784h (366 days)", text)
	case d%time.Millisecond != 0:
		return 0, errors.New(text + " is not a whole number of milliseconds")
	}
	return Instant(d.Milliseconds()), nil
}

// String returns the canonical text of the distribution, which ParseDelay accepts.
func (d Delay) String() string {
	switch {
	case !d.spread:
		return observed
	case d.least == d.most:
		return "fixed:" + d.least.duration()
	default:
		return "uniform:" + d.least.duration() + "-" + d.most.duration()
	}
}

// duration returns milliseconds as a duration without zero units at its end.
func (i Instant) duration() string {
	text := (time.Duration(i) * time.Millisecond).String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// MarshalText implements encoding.TextMarshaler.
func (d Delay) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (d *Delay) UnmarshalText(text []byte) (err error) {
	*d, err = ParseDelay(string(text))
	return err
}
