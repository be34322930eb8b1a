package points

import (
	"math"
	"slices"
)

// Points returns the points of a metric from one minute to before another, by minute.
func (r *Recorder) Points(k Key, from, to int64) (found []Point) {
	now := r.minute()
	r.mu.RLock()
	defer r.mu.RUnlock()
	if l := r.levels[k.Table][k]; l != nil {
		return levelPoints(l.steps, max(from, now-Retention), min(to, now+1))
	}
	i, _ := r.find(from)
	for ; i < len(r.minutes) && r.minutes[i].at < to; i++ {
		if b := r.minutes[i].tables[k.Table][k]; b != nil && b.count.Load() > 0 {
			found = append(found, b.point())
		}
	}
	return found
}

// levelPoints returns a point for each minute in which a level existed.
func levelPoints(steps []step, from, to int64) (found []Point) {
	for i, s := range steps {
		end := to
		if i+1 < len(steps) {
			end = min(to, steps[i+1].minute)
		}
		if math.IsNaN(s.value) {
			continue
		}
		for m := max(from, s.minute); m < end; m++ {
			found = append(found, Point{m, 1, s.value, s.value, s.value})
		}
	}
	return found
}

// Keys returns the metrics that have a point at or after a minute, in order.
func (r *Recorder) Keys(since int64) []Key {
	r.mu.RLock()
	defer r.mu.RUnlock()
	seen := map[Key]bool{}
	for i := len(r.minutes) - 1; i >= 0 && r.minutes[i].at >= since; i-- {
		for _, buckets := range r.minutes[i].tables {
			for k := range buckets {
				seen[k] = true
			}
		}
	}
	for _, levels := range r.levels {
		for k, l := range levels {
			if l.ended == nil || l.last().minute > since {
				seen[k] = true
			}
		}
	}
	keys := make([]Key, 0, len(seen))
	for k := range seen {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, Key.Compare)
	return keys
}
