package scheduler

import (
	"crypto/sha256"
	"encoding/binary"
	"strconv"
	"time"

	"github.com/mayflydb/mayfly/internal/work/cron"
)

// timing computes the occurrences of a schedule and the deadlines of their firings. It is pure
// arithmetic.
type timing struct {
	expression cron.Expression
	anchor     time.Time     // first occurrence of a rate
	start, end time.Time     // range of the occurrences; zero: unbounded
	window     time.Duration // maximum distance of a deadline from its occurrence
}

// after returns the first occurrence strictly after from; ok is false if there is none.
func (t timing) after(from time.Time) (occurrence time.Time, ok bool) {
	if !t.start.IsZero() && from.Before(t.start) {
		from = t.start.Add(-1)
	}
	occurrence, ok = t.expression.Next(t.anchor, from)
	return occurrence, ok && t.within(occurrence)
}

// latest returns the last occurrence after from and not after upTo.
func (t timing) latest(from, upTo time.Time) (occurrence time.Time, ok bool) {
	if !t.start.IsZero() && from.Before(t.start) {
		from = t.start.Add(-1)
	}
	if !t.end.IsZero() && t.end.Before(upTo) {
		upTo = t.end
	}
	return t.expression.Last(t.anchor, from, upTo)
}

func (t timing) within(occurrence time.Time) bool { return t.end.IsZero() || !occurrence.After(t.end) }

// first returns the first occurrence of a schedule that is created now. A one-time occurrence may
// be past. A rate begins at its anchor, or, if StartDate has just passed, at the latest occurrence
// since.
func (t timing) first(now time.Time) (occurrence time.Time, ok bool) {
	switch t.expression.Kind() {
	case cron.At:
		return t.expression.Next(t.anchor, time.Time{})
	case cron.Rate:
		if occurrence, ok = t.latest(t.anchor.Add(-1), now); ok {
			return occurrence, true
		}
		return t.after(t.anchor.Add(-1))
	default:
		return t.after(now)
	}
}

// deadline returns the deadline of a firing: its occurrence, or an instant in the flexible window
// after it. A hash of incarnation and number chooses the instant, so that firings of many schedules
// spread, and computing it again has the same result.
func (t timing) deadline(occurrence time.Time, incarnation string, number int64) time.Time {
	if t.window <= 0 {
		return occurrence
	}
	h := sha256.Sum256([]byte(incarnation + "/" + strconv.FormatInt(number, 10)))
	millis := binary.BigEndian.Uint64(h[:]) % uint64(t.window.Milliseconds())
	return occurrence.Add(time.Duration(millis) * time.Millisecond)
}

// missedAfter is the lateness from which a firing counts as missed.
const missedAfter = 60 * time.Second

// decide returns whether a firing that is processed now runs, and the occurrence that it arms. more
// is false if there is none.
//
// A firing that was armed after its deadline is not missed for that reason. An occurrence that is
// not yet armed is missed if the end of its window is too old.
func (t timing) decide(f *firing, catchUp CatchUp, now time.Time) (runs bool, next time.Time, more bool) {
	waited := f.deadline // earliest time at which it could be processed
	if f.armed.After(waited) {
		waited = f.armed
	}
	missed := now.Sub(waited) > missedAfter
	horizon := now.Add(-missedAfter - t.window) // earlier occurrences are missed
	next, more = t.after(f.occurrence)
	nextMissed := more && next.Before(horizon)
	switch {
	case catchUp == CatchUpAll:
		return true, next, more
	case catchUp == CatchUpSkip && nextMissed:
		next, more = t.after(horizon.Add(-1))
		return !missed, next, more
	case catchUp == CatchUpSkip:
		return !missed, next, more
	case nextMissed: // it is not the latest missed one
		if latest, ok := t.latest(f.occurrence, horizon.Add(-1)); ok {
			next = latest
		}
		return !missed, next, more
	default:
		return true, next, more
	}
}
