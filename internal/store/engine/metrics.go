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

// DuePasses returns the number of passes of the due queue. It does not grow while nothing is due.
func (e *Engine) DuePasses() int64 { return e.queue.Passes() }
