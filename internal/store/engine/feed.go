package engine

import "github.com/mayflydb/mayfly/internal/store/kv"

// A feed is a second stream of a table. It has both images of every change, for a reader in this
// process that delivers them to the destination in its description. The API does not show feeds, so
// a feed and the table's own stream are enabled and disabled independently.

// FeedSpec is the feed that a table writes to.
type FeedSpec struct {
	Destination string // its ARN; empty: no feed
	Precision   string // for the reader, of times at the destination
	ID          uint32 // set by the engine and not cleared by disabling: the latest feed
	Label       string // set by the engine
}

const feedView = "NEW_AND_OLD_IMAGES"

// Feed reports whether the stream is a feed.
func (d *StreamDesc) Feed() bool { return d.Destination != "" }

// streams returns the number of streams that a change of an item is recorded in.
func (d *TableDesc) streams() (n int) {
	if d.Stream.ViewType != "" {
		n++
	}
	if d.Feed.Destination != "" {
		n++
	}
	return n
}

// feedOf returns the feed that a table writes to, or nil.
func (e *Engine) feedOf(d *TableDesc) *stream {
	if d.Feed.Destination == "" {
		return nil
	}
	return e.streamByID(d.Feed.ID)
}

// Feeds returns every feed, enabled or with records for its reader, oldest first.
func (e *Engine) Feeds() ([]*StreamDesc, error) { return e.listStreams(feedStream) }

// FeedByLabel returns the feed with a table's name and a label, or ErrStreamNotFound.
func (e *Engine) FeedByLabel(namespace, table, label string) (*StreamDesc, error) {
	return e.streamByLabel(feedStream, namespace, table, label)
}

// Feeding reports whether the changes of a table are recorded in its feed. They are not if the
// feed's description was lost, is of another feed, or is disabled.
func (e *Engine) Feeding(d *TableDesc) bool {
	st := e.feedOf(d)
	return st != nil && d.writesTo(feedStream, st.desc.Load())
}

// changeFeed makes the feeds follow a change from old to d. A new destination has a new feed, and
// so has one whose feed does not work. The caller is inside the commit section.
func (e *Engine) changeFeed(b *kv.Batch, old, d *TableDesc, next *ids, now Instant) {
	switch {
	case d.Feed.Destination != old.Feed.Destination || d.Feed.Destination != "" && !e.Feeding(old):
		e.endFeeds(b, old, now)
		if d.Feed.Destination != "" {
			next.Stream++
			e.startStream(b, feedStream, d, next.Stream, now)
		}
	case d.Feed.Destination != "" && d.Feed.Precision != old.Feed.Precision:
		if st := e.streamByID(d.Feed.ID); st != nil {
			s := st.desc.Load().clone()
			s.Precision = d.Feed.Precision
			e.publishStream(b, st, s)
		}
	}
}

// endFeeds disables every enabled feed of a table, also one that its description does not name: the
// reader of the next feed waits for its end. The caller is inside the commit section.
func (e *Engine) endFeeds(b *kv.Batch, d *TableDesc, now Instant) {
	var enabled []uint32
	e.streams.mu.RLock()
	for id, st := range e.streams.byID {
		if s := st.desc.Load(); s.TableID == d.ID && s.Feed() && s.Disabled == 0 {
			enabled = append(enabled, id)
		}
	}
	e.streams.mu.RUnlock()
	for _, id := range enabled {
		e.disableStream(b, id, now)
	}
}

// FinishFeed records that the reader of a disabled feed is done with it. Like any disabled stream
// it goes when its records have aged out. FinishFeed does nothing if there is no such feed, or if
// it is enabled.
func (e *Engine) FinishFeed(id uint32) error {
	if err := e.enter(); err != nil {
		return err
	}
	defer e.leave()
	return e.commitNew(func(c *commit) error {
		st := e.streamByID(id)
		if st == nil {
			return nil
		}
		d := st.desc.Load().clone()
		if !d.Feed() || d.Disabled == 0 {
			return nil
		}
		d.Finished = true
		e.publishStream(c.batch, st, d)
		return nil
	}, nil)
}

// feed checks the feed of one table's description.
func (c *checker) feed(d *TableDesc) {
	if d.Feed.Destination == "" {
		return
	}
	s := c.streamByID(d.Feed.ID)
	switch {
	case s == nil:
		c.fault(d.Name, "its feed %d has no description", d.Feed.ID)
	case !d.writesTo(feedStream, s):
		c.fault(d.Name, "the description of its feed %d is of another stream: table id %d, label %s, for %q, disabled at %d", s.ID, s.TableID, s.Label, s.Destination, s.Disabled)
	}
}
