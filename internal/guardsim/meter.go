package guardsim

import "time"

// meter is a limit with a bucket of a second, which is less than the five minutes of unused capacity
// that Amazon may lend: a plan must not depend on these. It also counts, while the run measures.
type meter struct {
	rate    float64 // a second
	have    float64
	at      time.Time
	used    float64 // in the measured time
	taken   int     // requests, in the measured time
	refused int
}

func newMeter(rate float64, now time.Time) *meter {
	return &meter{rate: rate, have: rate, at: now}
}

// refill adds what has become free.
func (m *meter) refill(now time.Time) {
	m.have = min(m.have+now.Sub(m.at).Seconds()*m.rate, max(m.rate, 1))
	m.at = now
}

// take takes n from the bucket, or reports that it is empty. The last taker may take more than there
// is, as it is for a partition of Amazon's.
func (m *meter) take(now time.Time, n float64, measured bool) bool {
	if m.refill(now); m.have <= 0 {
		if measured {
			m.refused++
		}
		return false
	}
	m.force(now, n, measured)
	return true
}

// force takes n in any case.
func (m *meter) force(now time.Time, n float64, measured bool) {
	m.refill(now)
	if m.have -= n; measured {
		m.used += n
		m.taken++
	}
}
