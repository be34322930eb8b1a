package engine

import "github.com/mayflydb/mayfly/internal/store/kv"

// Metrics is what the store says of itself at this moment; nothing once it is closed.
func (e *Engine) Metrics() kv.Metrics {
	if e.enter() != nil {
		return kv.Metrics{}
	}
	defer e.leave()
	return e.kv.Metrics()
}

// DuePasses is how often the due queue has looked for something due: with nothing due it stays where it is.
func (e *Engine) DuePasses() int64 { return e.queue.Passes() }
