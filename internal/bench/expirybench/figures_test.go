package expirybench

import (
	"testing"
	"time"
)

// An item that stays counts as later than all others, and an early one is early by both clocks only if it is so early.
func TestMethodOf(t *testing.T) {
	deadline := time.Unix(1_800_000_000, 0)
	after := func(ms int) time.Time { return deadline.Add(time.Duration(ms) * time.Millisecond) }
	m := methodOf("any", []sighting{
		{deadline: deadline, seen: after(-10), gone: after(5)},
		{deadline: deadline, seen: after(20), gone: after(30), returned: true},
		{deadline: deadline, gone: after(-50)},
		{deadline: deadline, seen: after(-300), gone: after(-200)},
		{deadline: deadline, seen: after(90)},
	}, []time.Duration{3 * time.Millisecond, time.Millisecond, 2 * time.Millisecond}, 100*time.Millisecond)
	if m.Items != 5 || m.NotRemoved != 1 || m.EarlyHere != 2 || m.Early != 1 || m.Returned != 1 || m.PollMS != 2 {
		t.Errorf("%+v", m)
	}
	if m.Most.P50 == nil || *m.Most.P50 != 5 || m.Most.Max != nil || m.Least.P50 == nil || *m.Least.P50 != 0 {
		t.Errorf("%+v", m)
	}
}

// The idle use is subtracted in proportion, and a disk that the kernel does not count is unknown.
func TestCostOf(t *testing.T) {
	start := time.Unix(1_800_000_000, 0)
	at := func(s, cpuMS int, written int64) use {
		return use{start.Add(time.Duration(s) * time.Second), time.Duration(cpuMS) * time.Millisecond, written}
	}
	c := costOf(1000, at(0, 0, 0), at(2, 20, 1000), at(10, 100, 5000), at(14, 240, 57_000))
	if c.CPUUS != 100 || c.DiskBytes == nil || *c.DiskBytes != 50 || c.OverS != 4 || c.IdleCPUPercent != 1 {
		t.Errorf("%+v", c)
	}
	if c := costOf(1000, at(0, 0, -1), at(2, 20, -1), at(10, 100, -1), at(14, 240, -1)); c.DiskBytes != nil {
		t.Errorf("%+v", c)
	}
}
