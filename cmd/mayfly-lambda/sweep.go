package main

import (
	"context"
	"fmt"
	"time"

	"github.com/mayflydb/mayfly/guard"
	"github.com/mayflydb/mayfly/internal/clock"
)

// sweep is the function that a schedule calls.
type sweep struct {
	functions *guard.Functions
	ahead     time.Duration
}

// scheduled is the event of a rule or a schedule, possibly changed by an input transformer. Only
// its nominal time matters.
type scheduled struct {
	Time time.Time `json:"time"`
}

// handle sweeps up to the event's nominal time. A sweep that could not be completed is an error, so
// that Lambda's metrics show it; the next one continues from its progress.
func (s *sweep) handle(ctx context.Context, event scheduled) (guard.SweepReport, error) {
	var at time.Time // the present
	if s.ahead > 0 {
		if at = event.Time; at.IsZero() {
			at = clock.New().Now()
		}
		at = at.Add(s.ahead)
	}
	report, err := s.functions.Sweep(ctx, at)
	if err == nil && !report.Complete {
		err = fmt.Errorf("the time was over before the sweep was: %d items were removed", report.Removed)
	}
	return report, err
}
