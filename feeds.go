package mayfly

import (
	"context"
	"time"

	"github.com/mayflydb/mayfly/internal/work/resolve"
	"github.com/mayflydb/mayfly/internal/work/retry"
	"github.com/mayflydb/mayfly/internal/work/trigger"
)

// A table with a Kinesis destination that has a target has a feed: a hidden stream, which the work
// delivers, and which only the work's clients find. See service.Feed.

// mapped returns the function that reports whether a Kinesis stream has a target. A database that
// makes no deliveries has none.
func (o *Options) mapped() func(streamARN string) bool {
	if o.noWork || o.DatabaseOnly {
		return nil
	}
	targets := resolve.New(o.Targets, nil, "")
	return func(streamARN string) bool {
		_, err := targets.Resolve(streamARN)
		return err == nil
	}
}

// feeds returns the feeds for the triggers.
func (w *work) feeds() trigger.Feeds {
	return trigger.Feeds{
		List: func() (list []trigger.Feed, err error) {
			feeds, err := w.db.service.Feeds()
			for _, f := range feeds {
				if !f.Waits {
					list = append(list, trigger.Feed{StreamARN: f.StreamARN, Table: f.Table, Destination: f.Destination, Finished: f.Finished})
				}
			}
			return list, err
		},
		Precision: w.db.service.FeedPrecision,
		Finish:    w.db.service.FinishFeed,
	}
}

// hasFeeds reports whether there is a feed to deliver, or one whose reader may have left checkpoints.
func (w *work) hasFeeds() bool {
	feeds, err := w.db.service.Feeds()
	return err == nil && len(feeds) > 0
}

// feedLimit is the time for which an operation waits for the readers of feeds.
const feedLimit = 5 * time.Second

// feedsChanged begins the work if it is the first, and waits until each feed has a reader. So an
// advance of the clock after the operation waits for the feed's records. A feed whose destination
// was disabled and enabled again has none until the records from before are delivered, which may
// take longer than the limit.
func (w *work) feedsChanged(ctx context.Context) {
	defer w.db.engine.HoldAll()()
	ctx, cancel := context.WithTimeout(ctx, feedLimit)
	defer cancel()
	w.beginFirst(ctx)
	w.host.FollowFeeds()
	for pauses := (retry.Policy{First: time.Millisecond, Most: 100 * time.Millisecond}).Start(); w.unread() && w.ctx.Err() == nil && pauses.Wait(ctx); {
	}
}

// beginFirst begins the work, unless it has begun.
func (w *work) beginFirst(ctx context.Context) {
	if w.begun.Load() {
		return
	}
	w.first.Lock()
	defer w.first.Unlock()
	if !w.begun.Load() {
		w.begin()
		w.await(ctx)
	}
}

// unread reports whether a feed that is not finished has no reader.
func (w *work) unread() bool {
	feeds, err := w.db.service.Feeds()
	if err != nil {
		return false
	}
	for _, f := range feeds {
		if !f.Finished && !w.db.service.HasConsumer(f.StreamARN) {
			return true
		}
	}
	return false
}
