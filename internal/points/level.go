package points

import (
	"container/list"
	"math"
	"slices"
)

// stepsMost is the number of changes that are kept of one level.
const stepsMost = 1000

// level is a metric that keeps its value until it changes, such as provisioned capacity.
type level struct {
	key   Key
	steps []step        // at least one
	ended *list.Element // its place in Recorder.ended; nil: it has a value
}

// step is a change of a level.
type step struct {
	minute int64
	value  float64 // NaN: there is none any longer
}

func (l *level) last() *step { return &l.steps[len(l.steps)-1] }

// endOf returns the minute in which a level in Recorder.ended has ended.
func endOf(e *list.Element) int64 { return e.Value.(*level).last().minute }

// SetLevels notes the present levels of a table and its indexes, or the account's if table is empty.
// A level that is missing now has ended.
func (r *Recorder) SetLevels(table string, levels map[Key]float64) {
	if r == nil {
		return
	}
	at := r.minute()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.gone.remove(table)
	r.setLevels(table, levels, at)
}

// EndTable notes that a table was deleted. Its levels have ended. When the latest minute has too many
// points, deleted tables lose theirs first.
func (r *Recorder) EndTable(table string) {
	if r == nil {
		return
	}
	at := r.minute()
	r.mu.Lock()
	defer r.mu.Unlock()
	if n := len(r.minutes); n > 0 && r.minutes[n-1].tables[table] != nil {
		r.gone.add(table)
	}
	r.setLevels(table, nil, at)
}

func (r *Recorder) setLevels(table string, levels map[Key]float64, at int64) {
	for k, v := range levels {
		r.step(table, k, step{at, v})
	}
	for k, l := range r.levels[table] {
		if _, present := levels[k]; !present && l.ended == nil {
			r.step(table, k, step{at, math.NaN()})
		}
	}
	r.makeRoom(at, 0)
}

// step appends a change. A minute keeps its last value.
func (r *Recorder) step(table string, k Key, s step) {
	l := r.levels[table][k]
	if l == nil {
		if r.levels[table] == nil {
			r.levels[table] = map[Key]*level{}
		}
		l = &level{key: k}
		r.levels[table][k] = l
	}
	if l.ended != nil {
		r.total -= len(l.steps)
		r.ended.Remove(l.ended)
		l.ended = nil
	}
	l.change(s)
	if math.IsNaN(s.value) {
		r.total += len(l.steps)
		l.ended = r.ended.PushBack(l)
	}
}

func (l *level) change(s step) {
	if len(l.steps) > 0 {
		switch last := l.last(); {
		case last.value == s.value:
			return
		case last.minute == s.minute:
			last.value = s.value
			return
		}
	}
	old := 0 // the steps that nobody can ask for any longer
	for old+1 < len(l.steps) && (l.steps[old+1].minute < s.minute-Retention || len(l.steps)-old >= stepsMost) {
		old++
	}
	l.steps = append(slices.Delete(l.steps, 0, old), s)
}

// forget removes an ended level.
func (r *Recorder) forget(l *level) {
	r.total -= len(l.steps)
	r.ended.Remove(l.ended)
	of := r.levels[l.key.Table]
	delete(of, l.key)
	if len(of) == 0 {
		delete(r.levels, l.key.Table)
	}
}
