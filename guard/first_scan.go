package guard

import (
	"context"
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly/internal/clock"
	"github.com/mayflydb/mayfly/internal/work/consume"
	"github.com/mayflydb/mayfly/internal/work/lease"
	"github.com/mayflydb/mayfly/internal/work/retry"
)

const (
	// pause before the second look for the noted position in the stream; doubles each time
	begunFirst  = 10 * time.Millisecond
	rescanEvery = 30 * time.Second // between checks for another worker's request for a scan
	roomEvery   = 100 * time.Millisecond
	roomParts   = 20 // a scan waits while there is less room than this part of the maximum
)

// scans scans the table once the position in the stream is noted, so that no write falls between
// the two, and again whenever records may have been missed.
func (s *stream) scans(ctx context.Context, c *consume.Consumer) error {
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
		var set settings
		err := s.persist(ctx, "GetItem", func() (err error) {
			set, _, err = s.store.readSettings(ctx)
			return err
		})
		if err == nil {
			s.know(set)
		}
		switch {
		case err != nil:
		case set.scans > max(done, set.scanned):
			err = s.scanAll(ctx, set)
			if err == nil && ctx.Err() == nil {
				err = s.persist(ctx, "PutItem", func() error { return s.store.noteScanned(ctx, set.scans) })
			}
			done, waited = set.scans, s.alone
		default:
			if waited && cleaned < set.scans {
				s.forgetScans(ctx, set.scans)
				cleaned = set.scans
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

func (s *stream) scanAll(ctx context.Context, set settings) error {
	var names []string
	for i := range s.g.o.Segments {
		names = append(names, fmt.Sprintf("%d.%d/%d/%d", set.born, set.scans, s.g.o.Segments, i))
	}
	doing := FirstScan
	if set.scans > 1 {
		doing = WholeScan
	}
	all := &track{g: s.g, doing: doing, until: overIsCalled}
	err := lease.Hold(ctx, s.leases("scan"), names, func(ctx context.Context, l *lease.Lease) error {
		part := all.part(0, len(names))
		defer part.leave()
		return s.scanSegment(ctx, l, part)
	})
	if err == nil && ctx.Err() == nil {
		all.over()
	}
	return err
}

// scanNumber is which scan a segment's lease is of.
func scanNumber(name string) (scan int64) {
	_, tail, _ := strings.Cut(name, ".")
	number, _, _ := strings.Cut(tail, "/")
	scan, _ = strconv.ParseInt(number, 10, 64)
	return scan
}

// forgetScans deletes the leases of finished scans, up to a number. It is called some time after
// their end, when the other workers have noticed it too. A worker that has not reads the settings
// before it starts again.
func (s *stream) forgetScans(ctx context.Context, upTo int64) {
	leases := s.leases("scan")
	rows, err := leases.Rows(ctx)
	for name, row := range rows {
		// not the leases of the scan strategy or the workers' own
		if err == nil && scanNumber(name) >= 1 && scanNumber(name) <= upTo {
			err = leases.Forget(ctx, row)
		}
	}
	if err != nil && ctx.Err() == nil {
		s.g.log.Warn("leases of finished scans were not deleted; guard deletes them at its next start", "table", s.g.o.Table, "error", err)
	}
}

// isScanned reports whether a scan is finished, by the settings, since its leases may be gone.
func (s *stream) isScanned(ctx context.Context, scan int64) (over bool, err error) {
	err = s.persist(ctx, "GetItem", func() error {
		set, _, err := s.store.readSettings(ctx)
		over = set.scanned >= scan
		return err
	})
	return over, err
}

func (s *stream) waitForRescan(ctx context.Context) {
	if !s.alone {
		timer := clock.AfterFunc(rescanEvery, s.nudgeScan)
		defer timer.Stop()
	}
	select {
	case <-s.rescan:
	case <-ctx.Done():
	}
}

func (s *stream) nudgeScan() {
	select {
	case s.rescan <- struct{}{}:
	default:
	}
}

// missed requests a scan because the stream may lack records. It retries until the request is
// written. Of several requests based on the same settings only the first counts.
func (s *stream) missed(ctx context.Context, why string, read func(context.Context) (settings, error)) {
	s.g.log.Warn("the table is scanned again", "table", s.g.o.Table, "why", why)
	err := s.persist(ctx, "PutItem", func() error {
		set, err := read(ctx)
		if err == nil {
			err = s.store.wantScan(ctx, set)
		}
		return err
	})
	switch {
	case err == nil:
		s.nudgeScan()
	case ctx.Err() == nil:
		s.fail(err)
	}
}

// awayForLong is called by owners with old watermarks. All such owners of this worker, and of
// others with the same settings, request one scan.
func (s *stream) awayForLong(ctx context.Context) {
	now := s.g.now()
	s.mu.Lock()
	set, asked := s.mu.known, s.mu.asked
	if again := asked == 0 || now-asked >= watermarkEvery.Milliseconds() || now < asked; !again {
		s.mu.Unlock()
		return
	}
	s.mu.asked = now
	s.mu.Unlock()
	s.missed(ctx, "no worker ran for a long time", func(context.Context) (settings, error) { return set, nil })
}

// know keeps the settings as they were last read.
func (s *stream) know(set settings) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.known = set
}

// trimmed is called when records were trimmed before they were read, or the position in the stream
// is gone.
func (s *stream) trimmed(ctx context.Context, shard string) {
	why := "records of shard " + shard + " were trimmed before they were read"
	if shard == "" {
		why = "the place in the stream was deleted"
	}
	s.missed(ctx, why, func(ctx context.Context) (settings, error) {
		set, _, err := s.store.readSettings(ctx)
		return set, err
	})
}

// scanSegment writes the deadlines of a segment into the table, except for those that it already
// has. The checkpoint is the last key of the last page.
func (s *stream) scanSegment(ctx context.Context, l *lease.Lease, part *trackPart) error {
	in, err := s.scanInput(l.Shard())
	if err != nil {
		return err
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
	if text, ok := strings.CutPrefix(l.Checkpoint(), "key:"); ok {
		k, err := base64.RawURLEncoding.DecodeString(text)
		if err != nil {
			return fmt.Errorf("the checkpoint of the scan of %s is not a key: %w", l.Shard(), err)
		}
		in.ExclusiveStartKey = s.g.attributes(key(k))
	}
	for {
		for s.g.room() < s.g.armed.Most/roomParts && ctx.Err() == nil {
			clock.Pause(roomEvery, ctx.Done())
		}
		items, read, err := s.ask.scan(ctx, in)
		if err == nil {
			err = s.writeFound(ctx, items)
		}
		if err != nil {
			return err
		}
		part.add(read)
		checkpoint := lease.Done
		if in.ExclusiveStartKey != nil {
			k, err := s.g.keyOf(in.ExclusiveStartKey)
			if err != nil {
				return err
			}
			checkpoint = "key:" + base64.RawURLEncoding.EncodeToString([]byte(k))
		}
		err = s.persist(ctx, "PutItem", func() error { return l.Save(ctx, checkpoint) })
		if err == nil && checkpoint == lease.Done {
			part.end()
		}
		if err != nil || checkpoint == lease.Done {
			return err
		}
	}
}

// scanInput returns a scan that reads the attributes of a deadline. Its reads are consistent,
// because it has to find all writes from before the noted position in the stream.
func (s *stream) scanInput(name string) (*dynamodb.ScanInput, error) {
	parts := strings.Split(name, "/")
	var total, segment int32
	if _, err := fmt.Sscanf(strings.Join(parts[1:], " "), "%d %d", &total, &segment); err != nil {
		return nil, fmt.Errorf("unknown segment %q: %w", name, err)
	}
	names := map[string]string{"#ttl": s.g.o.Attribute}
	projection := "#ttl"
	for i, name := range append(s.g.table.names(), s.g.o.Version) {
		if name != "" {
			alias := fmt.Sprintf("#a%d", i)
			names[alias] = name
			projection += ", " + alias
		}
	}
	return &dynamodb.ScanInput{
		TableName: &s.g.o.Table, Segment: &segment, TotalSegments: &total, ConsistentRead: aws.Bool(true),
		FilterExpression: aws.String("attribute_exists(#ttl)"), ProjectionExpression: &projection, ExpressionAttributeNames: names,
	}, nil
}

// writeFound writes the deadlines of a scan's page into the deadline table.
func (s *stream) writeFound(ctx context.Context, items []map[string]types.AttributeValue) error {
	now := s.g.now()
	var puts []*row
	for _, item := range items {
		if e, ok := s.g.entryOf(item); ok {
			puts = append(puts, rowOf(e, "", now))
		}
	}
	return s.write(ctx, puts, nil)
}
