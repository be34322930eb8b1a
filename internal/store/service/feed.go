package service

import (
	"context"
	"errors"

	"github.com/mayflydb/mayfly/internal/store/dynamo"
	"github.com/mayflydb/mayfly/internal/store/engine"
)

// Feed is the hidden stream of a table with an enabled Kinesis destination, or of one whose
// destination was disabled and that still has records for it.
type Feed struct {
	StreamARN   string
	Table       string
	Destination string // the ARN of the Kinesis stream
	Precision   string // ApproximateCreationDateTimePrecision; empty: not set
	// The table has an earlier feed for the same destination, which comes first: so the order of an
	// item's changes is kept when a destination is disabled and enabled again.
	Waits bool
	// It has ended and all its records were delivered. Only its reader's checkpoints may be left.
	Finished bool
}

// feedsKey marks a context; see WithFeeds.
type feedsKey struct{}

// WithFeeds returns a context in which the operations of DynamoDB Streams find feeds. Only the
// database's own readers have it, and no request over the network.
func WithFeeds(ctx context.Context) context.Context { return context.WithValue(ctx, feedsKey{}, true) }

// findReadable returns the stream that an ARN names, or the feed if the context allows it.
func (s *Service) findReadable(ctx context.Context, arn string) (*engine.StreamDesc, error) {
	if ctx.Value(feedsKey{}) != nil {
		return s.findStreamOrFeed(arn)
	}
	table, label, err := parseStreamARN(arn)
	if err != nil {
		return nil, err
	}
	d, err := s.engine.StreamByLabel(namespace, table, label)
	return d, apiError(err, arn)
}

func (s *Service) findStreamOrFeed(arn string) (*engine.StreamDesc, error) {
	table, label, err := parseStreamARN(arn)
	if err != nil {
		return nil, err
	}
	d, err := s.engine.StreamByLabel(namespace, table, label)
	if errors.Is(err, engine.ErrStreamNotFound) {
		d, err = s.engine.FeedByLabel(namespace, table, label)
	}
	return d, apiError(err, arn)
}

// Feeds returns the feeds to deliver, oldest first: those whose destination has a target, and those
// that are finished, until their records have aged out.
func (s *Service) Feeds() ([]Feed, error) {
	all, err := s.engine.Feeds()
	if err != nil {
		return nil, err
	}
	type pair struct {
		table       uint32
		destination string
	}
	seen := map[pair]bool{}
	var out []Feed
	for _, d := range all {
		p := pair{d.TableID, d.Destination}
		if d.Namespace != namespace || !d.Finished && !s.isMapped(d.Destination) {
			continue
		}
		out = append(out, Feed{StreamARN: s.streamARN(d.Table, d.Label), Table: d.Table, Destination: d.Destination, Precision: d.Precision, Waits: seen[p] && !d.Finished, Finished: d.Finished})
		seen[p] = seen[p] || !d.Finished
	}
	return out, nil
}

// FeedPrecision returns the present Precision of a feed; empty if there is no such feed.
func (s *Service) FeedPrecision(streamARN string) string {
	d, err := s.findStreamOrFeed(streamARN)
	if err != nil {
		return ""
	}
	return d.Precision
}

// FinishFeed records that all records of a disabled destination's feed were delivered.
func (s *Service) FinishFeed(streamARN string) error {
	d, err := s.findStreamOrFeed(streamARN)
	switch {
	case errorCode(err) == dynamo.CodeResourceNotFound:
		return nil // the feed has aged out
	case err != nil:
		return err
	}
	return s.engine.FinishFeed(d.ID)
}

// AdoptDestinations enables the feeds of Kinesis destinations that have a target since this start
// of the database, or whose feed was lost. It logs those, and the destinations and feeds without a
// target.
func (s *Service) AdoptDestinations(ctx context.Context) error {
	for _, t := range s.engine.Tables() {
		d := t.Desc()
		k := enabledDestination(d)
		if d.Namespace != namespace || k == nil {
			continue
		}
		if !s.isMapped(k.ARN) {
			if d.Feed.Destination != k.ARN {
				s.logUnmapped(d.Name, k.ARN)
			}
			continue
		}
		if d.Feed.Destination == k.ARN {
			if s.engine.Feeding(d) {
				continue
			}
			s.log.Error("the feed of a Kinesis destination is lost, with the changes that were not delivered; those from now on are delivered", "table", d.Name, "stream", k.ARN)
		}
		_, err := s.engine.Alter(ctx, namespace, d.Name, func(d *engine.TableDesc, _ engine.Instant) error {
			s.feed(d)
			return nil
		})
		if err != nil {
			return err
		}
	}
	return s.logWaiting()
}

// logWaiting logs the feeds that have lost their target: nobody holds their records.
func (s *Service) logWaiting() error {
	feeds, err := s.engine.Feeds()
	if err != nil {
		return err
	}
	for _, d := range feeds {
		if d.Namespace == namespace && !d.Finished && !s.isMapped(d.Destination) {
			s.log.Warn("a Kinesis stream has no target any more: changes that were not delivered wait for one, and are lost after the retention of streams", "table", d.Table, "stream", d.Destination, "see", "docs/triggers.md")
		}
	}
	return nil
}

// feed makes a table's feed follow its destinations. A destination keeps the feed that it has, even
// if it has no target at present.
func (s *Service) feed(d *engine.TableDesc) {
	k := enabledDestination(d)
	switch {
	case k == nil:
		d.Feed.Destination, d.Feed.Precision = "", ""
	case d.Feed.Destination == k.ARN || s.isMapped(k.ARN):
		d.Feed.Destination, d.Feed.Precision = k.ARN, k.Precision
	}
}

// enabledDestination returns the enabled destination of a table, or nil.
func enabledDestination(d *engine.TableDesc) *engine.KinesisDestination {
	for i := range d.API.Kinesis {
		if k := &d.API.Kinesis[i]; !k.Disabled {
			return k
		}
	}
	return nil
}

func (s *Service) logUnmapped(table, stream string) {
	s.log.Warn("a Kinesis destination is stored, but its stream gets no records, since no target is mapped to it", "table", table, "stream", stream, "see", "docs/targets.md")
}
