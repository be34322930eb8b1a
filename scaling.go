package mayfly

import (
	"time"

	"github.com/mayflydb/mayfly/internal/points"
	"github.com/mayflydb/mayfly/internal/work/autoscale"
)

// unitsOf returns the units consumed in the minute that begins at an instant, for autoscaling.
func (db *DB) unitsOf(u autoscale.Use, minute time.Time) (units float64) {
	k := points.Key{Namespace: points.DynamoDB, Metric: points.ConsumedReads, Table: u.Table, Index: u.Index}
	if u.Write {
		k.Metric = points.ConsumedWrites
	}
	at := minute.Unix() / 60
	for _, p := range db.engine.Points().Points(k, at, at+1) {
		units += p.Sum
	}
	return units
}

// consumed tells autoscaling of a minute in which a table or index is used, if a policy watches it.
// The request that uses it does not wait, but an advance of the clock does.
func (w *work) consumed(k points.Key, minute int64) {
	if k.Metric != points.ConsumedReads && k.Metric != points.ConsumedWrites {
		return
	}
	use := autoscale.Use{Table: k.Table, Index: k.Index, Write: k.Metric == points.ConsumedWrites}
	if !w.host.Scaler().Watches(use) {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.mu.over {
		return
	}
	done := w.db.engine.Begin()
	w.running.Go(func() {
		defer done()
		w.host.Scaler().Consumed(w.ctx, use, time.Unix(minute*60, 0).UTC())
	})
}
