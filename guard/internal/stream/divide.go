package stream

import (
	"context"
	"slices"
	"time"

	"github.com/mayflydb/mayfly/internal/work/lease"
)

const (
	// A division without deadlines ends this long after there is a newer one. No worker that writes
	// into it has paused for so long: its records were read again by another one.
	divisionRests = 24 * time.Hour
	// between two checks whether the oldest division has ended
	divisionEvery = time.Hour
)

// divide makes these the live divisions. Those that were live before keep their partitions. It
// returns those that are new, and those that have ended.
func (s *Strategy) divide(all []*division) (begun, ended []*division) {
	before := s.store.live()
	for i, d := range all {
		if known := slices.IndexFunc(before, func(b *division) bool { return b.number == d.number }); known >= 0 {
			all[i] = before[known]
			continue
		}
		for p := range d.partitions {
			d.parts = append(d.parts, newPartition(s, d, p))
		}
		begun = append(begun, d)
	}
	s.store.divisions.Store(&all)
	for _, d := range before {
		if !slices.Contains(all, d) {
			ended = append(ended, d)
		}
	}
	return begun, ended
}

// join takes this worker's share of a division's partitions, until ctx is done or the division has
// ended.
func (s *Strategy) join(ctx context.Context, d *division) {
	ctx, d.leave = context.WithCancel(ctx)
	var names []string
	for i := range d.parts {
		names = append(names, d.leaseName(i))
	}
	s.start(ctx, func() error {
		return lease.Hold(ctx, s.leases(d.leases()), names, func(ctx context.Context, l *lease.Lease) error {
			return d.parts[slices.Index(names, l.Shard())].own(ctx, l)
		})
	})
}

// watchDivisions reads the divisions, since another worker may have added one, and ends the oldest
// one if it is empty.
func (s *Strategy) watchDivisions(ctx context.Context) {
	if s.alone && len(s.store.live()) == 1 {
		return
	}
	all, text, err := s.store.readDivisions(ctx, s.Known())
	if err == nil && len(all) > 0 && text != divisionsText(s.store.live()) && text != "" {
		s.Log.Info("the number of partitions has changed", "table", s.Table.Name, "partitions", all[len(all)-1].partitions)
		begun, ended := s.divide(all)
		for _, d := range begun {
			s.join(ctx, d)
		}
		for _, d := range ended {
			d.leave()
		}
	}
	if now := s.Now(); err == nil && len(all) > 1 && now-all[1].since > divisionRests.Milliseconds() && now-s.triedEnd >= divisionEvery.Milliseconds() {
		s.triedEnd = now
		err = s.endDivision(ctx, all, text)
	}
	if err != nil && ctx.Err() == nil {
		s.Log.Warn("the divisions of the deadline table were not read; guard will try again", "table", s.Table.Name, "error", err)
	}
}

// endDivision ends the oldest division if it has no deadlines.
func (s *Strategy) endDivision(ctx context.Context, all []*division, text string) error {
	old := all[0]
	for p := range old.partitions {
		if empty, err := s.store.isEmpty(ctx, old, p); err != nil || !empty {
			return err
		}
	}
	if old.number == 1 { // older versions no longer start
		set, ok, err := s.store.readSettings(ctx)
		if err != nil || !ok {
			return err
		}
		after := set
		after.partitions = 0
		if err := s.store.replaceSettings(ctx, set, after); err != nil {
			return unlessUnmet(err)
		}
	}
	if err := s.store.replaceDivisions(ctx, text, all[1:]); err != nil {
		return err
	}
	return lease.Clear(ctx, s.store.db, s.store.name(old.leases()), s.store.leases)
}
