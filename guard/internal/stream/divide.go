package stream

import (
	"context"
	"slices"
	"time"

	"github.com/mayflydb/mayfly/internal/work/lease"
)

const (
	// A division without deadlines ends this long after there is a newer one. If a worker has paused
	// for so long while it wrote into the old one, another worker has read its records again.
	divisionRests = 24 * time.Hour
	// between two checks whether the oldest division has ended
	divisionEvery = time.Hour
)

// divide makes these the live divisions. Divisions that were live before keep their partitions. It
// returns the new divisions and the ended ones.
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

// watchDivisions reads the divisions, since another worker may have added one, and now and then ends
// the oldest one if it is empty.
func (s *Strategy) watchDivisions(ctx context.Context) {
	live := s.store.live()
	if s.alone && len(live) == 1 && len(s.gone) == 0 {
		return
	}
	all, text, err := s.store.readDivisions(ctx, s.Known())
	switch {
	case err != nil:
	case text == "" && live[len(live)-1].number > 1: // the item was deleted, so nobody else knows the divisions
		err = s.store.replaceDivisions(ctx, "", live)
	case text != "" && text != divisionsText(live):
		s.redivide(ctx, all)
	case s.Now()-s.triedEnd >= divisionEvery.Milliseconds():
		s.triedEnd = s.Now()
		if err = s.forgetEnded(ctx); err == nil && len(all) > 1 && s.triedEnd-all[1].since > divisionRests.Milliseconds() {
			err = s.endDivision(ctx, all, text)
		}
	}
	if err != nil && ctx.Err() == nil {
		s.Log.Warn("the divisions of the deadline table were not read or changed; guard will try again", "table", s.Table.Name, "error", err)
	}
}

// redivide takes part in new divisions, and no longer in those that have ended.
func (s *Strategy) redivide(ctx context.Context, all []*division) {
	s.Log.Info("the number of partitions has changed", "table", s.Table.Name, "partitions", all[len(all)-1].partitions)
	begun, ended := s.divide(all)
	for _, d := range begun {
		s.join(ctx, d)
	}
	for _, d := range ended {
		d.leave()
	}
	s.gone = append(s.gone, ended...)
	s.triedEnd = s.Now()
}

// forgetEnded deletes the leases of ended divisions. They ended long enough ago that no worker holds
// these leases. A worker that does would take them again, begin where the division began, and request
// a scan because that is long ago.
func (s *Strategy) forgetEnded(ctx context.Context) error {
	for ; len(s.gone) > 0; s.gone = s.gone[1:] {
		if err := lease.Clear(ctx, s.store.db, s.store.name(s.gone[0].leases()), s.store.leases); err != nil {
			return err
		}
	}
	return nil
}

// endDivision ends the oldest division if it has no deadlines, and all its workers know a newer one.
func (s *Strategy) endDivision(ctx context.Context, all []*division, text string) error {
	old := all[0]
	if aware, err := s.areAware(ctx, old, all[len(all)-1]); err != nil || !aware {
		return err
	}
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
		s.know(after)
	}
	return s.store.replaceDivisions(ctx, text, all[1:])
}

// areAware reports whether all workers that share the old division also share the new one. One of an
// older version does not: it writes its deadlines into division 1 as long as it runs.
func (s *Strategy) areAware(ctx context.Context, old, newest *division) (aware bool, err error) {
	before, err := s.leases(old.leases()).Rows(ctx)
	if err != nil {
		return false, err
	}
	now, err := s.leases(newest.leases()).Rows(ctx)
	aware = err == nil
	for name := range before {
		if _, known := now[name]; lease.IsCrew(name) && !known {
			aware = false
		}
	}
	return aware, err
}
