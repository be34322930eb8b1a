package mayfly

import (
	"context"

	"github.com/mayflydb/mayfly/internal/sdk"
	"github.com/mayflydb/mayfly/internal/work/resolve"
	"github.com/mayflydb/mayfly/internal/work/trigger"
)

// A table with a Kinesis destination that has a target has a feed: a hidden stream, which the work
// delivers, and which only the client of its readers finds. See service.Feed.

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
func (w *work) feeds(region string) trigger.Feeds {
	_, streams, _ := sdk.InProcess(inProcess{db: w.db, own: true, feeds: true}, region)
	return trigger.Feeds{
		Streams: streams,
		List: func() (list []trigger.Feed, err error) {
			feeds, err := w.db.service.Feeds()
			for _, f := range feeds {
				list = append(list, trigger.Feed{StreamARN: f.StreamARN, Table: f.Table, Destination: f.Destination, Waits: f.Waits, Finished: f.Finished})
			}
			return list, err
		},
		Precision: w.db.service.FeedPrecision,
		Finish:    w.db.service.FinishFeed,
	}
}

// hasFeeds reports whether there is a feed to deliver, or one whose reader may have left
// checkpoints.
func (w *work) hasFeeds() bool {
	feeds, err := w.db.service.Feeds()
	return err != nil || len(feeds) > 0 // the work reports the error
}

// feedsChanged begins the work if it is the first, and waits until each feed has a reader. So an
// advance of the clock after the operation waits for the feed's records. It waits for no delivery.
// The caller holds all streams meanwhile.
func (w *work) feedsChanged(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(w.ctx, cancel)()
	w.beginFirst(ctx)
	w.host.FollowFeeds(ctx)
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
