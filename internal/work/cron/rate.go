package cron

import (
	"math/bits"
	"time"
)

// Bounds of an interval.
const (
	minInterval = 10 * time.Millisecond
	maxInterval = 100 * 365 * 24 * time.Hour
)

func (e Expression) nextOfRate(anchor, after time.Time) (t time.Time, ok bool) {
	switch {
	case after.Before(anchor):
		t = utc(anchor)
	case after.Before(end):
		t = utc(after).Add(e.interval - remainder(anchor, after, e.interval))
	default:
		return time.Time{}, false
	}
	return t, t.Before(end)
}

// lastOfRate returns the latest occurrence not after upTo, which is not before anchor.
func (e Expression) lastOfRate(anchor, upTo time.Time) time.Time {
	if upTo.Before(end) {
		return utc(upTo).Add(-remainder(anchor, upTo, e.interval))
	}
	upTo = end.Add(-1)
	return upTo.Add(-remainder(anchor, upTo, e.interval))
}

// remainder returns the time from the latest multiple of the interval after anchor to t, which is
// not before anchor. The time from anchor to t may exceed a Duration.
func remainder(anchor, t time.Time, interval time.Duration) time.Duration {
	seconds, nanos := t.Unix()-anchor.Unix(), t.Nanosecond()-anchor.Nanosecond()
	if nanos < 0 {
		seconds, nanos = seconds-1, nanos+int(time.Second)
	}
	high, low := bits.Mul64(uint64(seconds), uint64(time.Second))
	low, carry := bits.Add64(low, uint64(nanos), 0)
	return time.Duration(bits.Rem64(high+carry, low, uint64(interval)))
}

// utc returns the same instant without its zone and monotonic reading.
func utc(t time.Time) time.Time { return time.Unix(t.Unix(), int64(t.Nanosecond())).UTC() }
