package stream

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly/guard/internal/strategy"
	"github.com/mayflydb/mayfly/internal/clock"
	"github.com/mayflydb/mayfly/internal/work/consume"
	"github.com/mayflydb/mayfly/internal/work/lease"
	"github.com/mayflydb/mayfly/internal/work/retry"
)

const (
	// pause before the second look for the noted position in the stream; doubles each time
	begunFirst  = 10 * time.Millisecond
	rescanEvery = 30 * time.Second // between checks for another worker's request for a scan
	roomParts   = 20               // a scan waits while there is less room than this part of the maximum
)

// scans scans the table once the position in the stream is noted, so that no write falls between
// the two, and again whenever records may have been missed.
func (s *Strategy) scans(ctx context.Context, c *consume.Consumer) error {
	pauses := (retry.Policy{First: begunFirst, Most: afterFailure.Most}).Start()
	for begun := false; !begun && ctx.Err() == nil; {
		err := s.persist(ctx, "Query", func() (err error) {
			begun, err = c.Begun(ctx)
			return err
		})
		if err != nil && ctx.Err() == nil {
			return err
		}
		if !begun {
			pauses.Wait(ctx)
		}
	}
	for done, cleaned, waited := int64(0), int64(0), s.alone; ctx.Err() == nil; {
		var set Settings
		err := s.persist(ctx, "GetItem", func() (err error) {
			set, err = s.ReadSettings(ctx)
			return err
		})
		if err == nil {
			s.know(set)
		}
		switch {
		case err != nil:
		case set.Scans > max(done, set.scanned):
			err = s.ScanAll(ctx, set)
			if err == nil && ctx.Err() == nil {
				err = s.persist(ctx, "PutItem", func() error { return s.store.noteScanned(ctx, set.Scans) })
			}
			done, waited = set.Scans, s.alone
		default:
			if waited && cleaned < set.Scans {
				s.forgetScans(ctx, set.Scans)
				cleaned = set.Scans
			}
			s.waitForRescan(ctx)
			waited = true
		}
		if err != nil && ctx.Err() == nil {
			return err
		}
	}
	return nil
}

// ScanAll makes the last scan of the settings, together with the other workers, unless it is
// finished.
func (s *Strategy) ScanAll(ctx context.Context, set Settings) error {
	leases := s.leases("scan")
	var rows map[string]lease.Row
	err := s.persist(ctx, "Query", func() (err error) {
		rows, err = leases.Rows(ctx)
		return err
	})
	if err != nil {
		return err
	}
	all := s.newSegments(set, rows)
	err = lease.HoldListed(ctx, leases, all.list, all.scan)
	if err == nil && ctx.Err() == nil {
		all.over()
	}
	return err
}

// scanNumber returns the number of the scan that a segment's lease is part of; 0 if the lease is of
// something else.
func scanNumber(name string) (scan int64) {
	_, tail, _ := strings.Cut(name, ".")
	number, _, _ := strings.Cut(tail, "/")
	scan, _ = strconv.ParseInt(number, 10, 64)
	return scan
}

// forgetScans deletes the leases of finished scans, up to a number. It is called some time after
// their end, when the other workers have noticed it too. A worker that has not reads the settings
// before it starts again.
func (s *Strategy) forgetScans(ctx context.Context, upTo int64) {
	leases := s.leases("scan")
	rows, err := leases.Rows(ctx)
	for name, row := range rows {
		// not the leases of the scan strategy or the workers' own
		if err == nil && scanNumber(name) >= 1 && scanNumber(name) <= upTo {
			err = leases.Forget(ctx, row)
		}
	}
	if err != nil && ctx.Err() == nil {
		s.Log.Warn("leases of finished scans were not deleted; guard deletes them at its next start", "table", s.Table.Name, "error", err)
	}
}

// isScanned reports whether a scan is finished, by the settings, since its leases may be gone.
func (s *Strategy) isScanned(ctx context.Context, scan int64) (over bool, err error) {
	err = s.persist(ctx, "GetItem", func() error {
		set, err := s.ReadSettings(ctx)
		over = set.scanned >= scan
		return err
	})
	return over, err
}

func (s *Strategy) waitForRescan(ctx context.Context) {
	if !s.alone {
		timer := clock.AfterFunc(rescanEvery, func() { strategy.Nudge(s.rescan) })
		defer timer.Stop()
	}
	select {
	case <-s.rescan:
	case <-ctx.Done():
	}
}

// missed requests a scan because the stream may lack records. It retries until the request is
// written. Of several requests based on the same settings only the first counts.
func (s *Strategy) missed(ctx context.Context, why string, read func(context.Context) (Settings, error)) {
	s.Log.Warn("the table is scanned again", "table", s.Table.Name, "why", why)
	err := s.persist(ctx, "PutItem", func() error {
		set, err := read(ctx)
		if err == nil {
			err = s.store.wantScan(ctx, set)
		}
		return err
	})
	switch {
	case err == nil:
		strategy.Nudge(s.rescan)
	case ctx.Err() == nil:
		s.fail(err)
	}
}

// AwayForLong is called by owners with old watermarks. All such owners of this worker, and of
// others with the same settings, request one scan.
func (s *Strategy) AwayForLong(ctx context.Context) {
	now := s.Now()
	s.mu.Lock()
	set, asked := s.mu.known, s.mu.asked
	if again := asked == 0 || now-asked >= watermarkEvery.Milliseconds() || now < asked; !again {
		s.mu.Unlock()
		return
	}
	s.mu.asked = now
	s.mu.Unlock()
	s.missed(ctx, "no worker ran for a long time", func(context.Context) (Settings, error) { return set, nil })
}

// Known returns the settings as they were last read.
func (s *Strategy) Known() Settings {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.known
}

// CaughtUp reports whether no scan is wanted or under way, and the stream's records were read in
// time lately. within is how long the strategy may take to learn of a deadline, also while a dead
// worker's share is taken over.
func (s *Strategy) CaughtUp(context.Context) (within time.Duration, ok bool, err error) {
	within = strategy.Learning + 3*s.Leases.Duration
	set := s.Known()
	return within, set.Scans > 0 && set.scanned >= set.Scans && !s.lag.Within(within, s.Now()), nil
}

// ReadSettings reads the settings that all workers share.
func (s *Strategy) ReadSettings(ctx context.Context) (Settings, error) {
	set, _, err := s.store.readSettings(ctx)
	return set, err
}

// know keeps the settings as they were last read.
func (s *Strategy) know(set Settings) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.known = set
}

// Trimmed requests a scan, because records were trimmed before they were read, or the position in
// the stream was deleted. It fails only if ctx is done.
func (s *Strategy) Trimmed(ctx context.Context) error {
	s.missed(ctx, "records of the stream were trimmed before they were read, or its checkpoint was deleted", s.ReadSettings)
	return ctx.Err()
}

// scanSegment writes the deadlines of a segment into the table, from a key on, except for those that
// it already has. After each page it calls add with the number of items read, for the sum.
func (s *Strategy) scanSegment(ctx context.Context, l *lease.Lease, start map[string]types.AttributeValue, add func(items int) int64) error {
	var total, segment int
	_, numbers, _ := strings.Cut(l.Shard(), "/")
	if _, err := fmt.Sscanf(numbers, "%d/%d", &total, &segment); err != nil {
		return fmt.Errorf("unknown segment %q: %w", l.Shard(), err)
	}
	// the lease may be new, because a finished scan deleted its leases
	if l.Checkpoint() == "" {
		over, err := s.isScanned(ctx, scanNumber(l.Shard()))
		if err == nil && over {
			err = s.persist(ctx, "PutItem", func() error { return l.Save(ctx, lease.Done) })
		}
		if err != nil || over {
			return err
		}
	}
	if err := s.AwaitRoom(ctx, s.Armed.Most/roomParts); err != nil {
		return err
	}
	return s.Segment(ctx, segment, total, start, func(items []map[string]types.AttributeValue, read int, next map[string]types.AttributeValue) error {
		if err := s.writeFound(ctx, items); err != nil {
			return err
		}
		sum, checkpoint := add(read), lease.Done
		if next != nil {
			k, err := s.Table.KeyOf(next)
			if err != nil {
				return err
			}
			checkpoint = checkpointText(sum, k)
		}
		if err := s.persist(ctx, "PutItem", func() error { return l.Save(ctx, checkpoint) }); err != nil || next == nil {
			return err
		}
		return s.AwaitRoom(ctx, s.Armed.Most/roomParts)
	})
}

// writeFound writes the deadlines of a scan's page into the deadline table.
func (s *Strategy) writeFound(ctx context.Context, items []map[string]types.AttributeValue) error {
	now := s.Now()
	var puts []*row
	for _, item := range items {
		if e, ok := s.EntryOf(item); ok {
			puts = append(puts, rowOf(e, "", now))
		}
	}
	return s.write(ctx, puts, nil)
}
