package engine

import (
	"github.com/mayflydb/mayfly/internal/points"
	"github.com/mayflydb/mayfly/internal/store/kv"
)

// Metrics returns the store's present metrics, or zeros once it is closed.
func (e *Engine) Metrics() kv.Metrics {
	if e.enter() != nil {
		return kv.Metrics{}
	}
	defer e.leave()
	return e.kv.Metrics()
}

// Points returns what happened in each minute.
func (e *Engine) Points() *points.Recorder { return e.points }

// Begin notes work in flight, for which an advance of the clock waits until done is called.
func (e *Engine) Begin() (done func()) { return e.activity.Begin() }

// DuePasses returns the number of passes of the due queue. It does not grow while nothing is due.
func (e *Engine) DuePasses() int64 { return e.queue.Passes() }
