package console

import (
	"time"

	"github.com/mayflydb/mayfly/internal/ttl"
)

// deadlineOf returns the deadline in a TTL value, or why the value is none.
func deadlineOf(number string, now time.Time) (at time.Time, why string) {
	ms, reason := ttl.Deadline(number, now.UnixMilli())
	if reason != ttl.Good {
		return time.Time{}, reason.Why()
	}
	return time.UnixMilli(ms), ""
}
