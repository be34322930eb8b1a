package demo

import "time"

// Unit is the unit of the deadlines: each is a whole number of them since the epoch.
type Unit string

const (
	Seconds      Unit = "seconds"
	Milliseconds Unit = "milliseconds"
)

func (u Unit) duration() time.Duration {
	if u == Seconds {
		return time.Second
	}
	return time.Millisecond
}

// ceil returns the first whole unit at or after t.
func (u Unit) ceil(t time.Time) time.Time {
	d := u.duration()
	return t.Add(d - time.Nanosecond).Truncate(d)
}
