package lifecycle

import "time"

// DueForTest returns the instant of the first transition of a definition's first state.
func DueForTest(d *Definition, since time.Time, attributes Item) (time.Time, error) {
	p, err := d.plan(nil)
	if err != nil {
		return time.Time{}, err
	}
	return p.states[d.States[0].Name].next[0].due(since, attributes)
}
