package scheduler

import (
	"crypto/sha256"
	"encoding/binary"
	"strconv"
	"time"

	"github.com/mayflydb/mayfly/internal/work/cron"
)

// timing is when a schedule has its occurrences, and how far from them it may fire. It is pure arithmetic.
type timing struct {
	expression cron.Expression
	anchor     time.Time     // what a rate counts from: its first occurrence
	start, end time.Time     // no occurrence lies before or after; zero: unbounded
	window     time.Duration // a firing's deadline is within this after its occurrence
}

// after gives the first occurrence strictly after t. ok is false where none follows.
func (t timing) after(from time.Time) (occurrence time.Time, ok bool) {
	if !t.start.IsZero() && from.Before(t.start) {
		from = t.start.Add(-1)
	}
	occurrence, ok = t.expression.Next(t.anchor, from)
	return occurrence, ok && t.within(occurrence)
}

// latest gives the last occurrence after from and not after upTo.
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

// first gives the first occurrence of a schedule that is created now. That of a one-time schedule may have passed. A rate begins at its anchor, and where StartDate
// has just passed with the latest occurrence since.
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

// deadline gives when the firing with a number is due. It is drawn from the incarnation and the number, so that whoever works it out
// again comes to the same.
func (t timing) deadline(occurrence time.Time, incarnation string, number int64) time.Time {
	if t.window <= 0 {
		return occurrence
	}
	h := sha256.Sum256([]byte(incarnation + "/" + strconv.FormatInt(number, 10)))
	millis := binary.BigEndian.Uint64(h[:]) % uint64(t.window.Milliseconds())
	return occurrence.Add(time.Duration(millis) * time.Millisecond)
}

// missedAfter is how late a firing must be to count as missed.
const missedAfter = 60 * time.Second

// following says what follows from a firing that is processed now: whether it runs, and which occurrence is armed next.
//
// A firing that was armed after its deadline is not missed on that account. An occurrence that is still to be armed is missed if the end of its window was too long ago.
func (t timing) following(f *firing, catchUp CatchUp, now time.Time) (runs bool, next time.Time, more bool) {
	waited := f.deadline // since when it could have been processed
	if f.armed.After(waited) {
		waited = f.armed
	}
	missed := now.Sub(waited) > missedAfter
	horizon := now.Add(-missedAfter - t.window) // occurrences before are missed
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
	case nextMissed: // this one is not the latest of those missed
		if latest, ok := t.latest(f.occurrence, horizon.Add(-1)); ok {
			next = latest
		}
		return !missed, next, more
	default:
		return true, next, more
	}
}
