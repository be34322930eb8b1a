package consume

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"

	"github.com/mayflydb/mayfly/internal/clock"
	"github.com/mayflydb/mayfly/internal/work/lease"
	"github.com/mayflydb/mayfly/internal/work/retry"
)

// At Amazon, an account may make ten calls of DescribeStream a second, over all streams, and each
// returns a hundred shards. So the workers of a fleet share the list. A worker that finishes a
// shard asks for the children of this shard only, and writes a row for each child that it does not
// take itself. The rows name their stream, so workers that have not listed a shard can take it too.
//
// Now and then each worker lists all shards. This also finds the children of a shard whose reader
// died after it had finished the shard. The interval grows with the numbers of workers and pages.
const (
	listEvery = 10 * time.Second // shortest interval of a worker's listings if nothing indicates new shards
	listShare = time.Second      // the same, for each worker and page: a fleet makes one call a second

	pageShards = 100                    // shards in an answer, at most
	pageBurst  = 5                      // calls of a listing that follow each other at once
	pagePause  = 200 * time.Millisecond // before each further call
	listWait   = 30 * time.Second       // that a new worker waits for others to list the shards
	// an incomplete listing that has lasted so long, and listShare for each page, begins again
	listMost = 2 * time.Minute

	// A closed shard may be listed before its children. They are asked for so often, a second apart;
	// then all shards are listed.
	childTries = 5
)

// listing is a list of the stream's shards.
type listing struct {
	shards []types.Shard
	byID   map[string]int // places in shards
	open   bool           // more shards may appear
	at     time.Duration  // time at which the listing began
	left   int            // number of unfinished shards
	pages  int            // number of calls
	after  *string        // the next page begins after this shard
}

// add adds shards that are not in the list.
func (l *listing) add(shards []types.Shard) {
	if l.byID == nil {
		l.byID = map[string]int{}
	}
	for i := range shards {
		id := aws.ToString(shards[i].ShardId)
		if _, known := l.byID[id]; !known {
			l.byID[id] = len(l.shards)
			l.shards = append(l.shards, shards[i])
		}
	}
}

// shard returns a listed shard, or the zero shard.
func (l *listing) shard(id string) (s types.Shard) {
	if i, ok := l.byID[id]; ok {
		s = l.shards[i]
	}
	return s
}

// read reads the rows, after listing the shards if that is due. fresh reports that the list is
// complete and was made now.
func (w *worker) read(ctx context.Context) (rows map[string]lease.Row, fresh bool, err error) {
	if err := w.descend(ctx); err != nil {
		return nil, false, err
	}
	due := w.mustList()
	if !due {
		if rows, err = w.leases.Rows(ctx); err != nil || !w.mustListFor(rows) {
			return rows, false, err
		}
	}
	if fresh, err = w.list(ctx); err != nil {
		return nil, false, err
	}
	rows, err = w.leases.Rows(ctx)
	return rows, fresh, err
}

// mustList reports whether to list all shards without a look at the rows.
func (w *worker) mustList() bool {
	return w.stale.Load() || w.unshared || w.vanished || w.partial != nil && w.listed.pages > 0 || w.listsAlways() || w.scheduled && w.leases.Elapsed() >= w.nextList
}

// listsAlways reports whether each look lists all shards. An exclusive worker looks only after an
// event, and a list of one page, or one from its own process, is cheap.
func (w *worker) listsAlways() bool {
	return w.leases.Exclusive() && (w.listed.pages <= 1 || w.Registry.Register != nil)
}

// census counts a consumer's rows.
type census struct {
	workers, before          int // all, and those before this worker by name
	finished, known, strange int // shards; the unfinished ones are of this stream or of another
}

func (w *worker) count(rows map[string]lease.Row) (c census) {
	for id, row := range rows {
		switch {
		case lease.IsCrew(id):
			if c.workers++; row.Owner < w.leases.Owner() && !w.leases.Free(row) {
				c.before++
			}
		case !IsShard(id):
		case row.Checkpoint == checkpointEnd:
			c.finished++
		case w.knows(row):
			c.known++
		default:
			c.strange++
		}
	}
	return c
}

// mustListFor reports whether to list all shards because of the rows.
func (w *worker) mustListFor(rows map[string]lease.Row) bool {
	c := w.count(rows)
	known := c.known + len(w.born)
	switch {
	// of a new fleet that begins at once, the first worker lists
	case known+c.strange+c.finished == 0 && c.before > 0 && w.leases.Elapsed()-w.started < listWait:
		w.partial = nil
		return false
	case known == 0 || w.Start != TrimHorizon && rows[rowStart].Term == 0:
		return true
	case !w.scheduled: // others have listed the shards
		w.partial = nil
		w.scheduleList(rows)
	}
	return c.strange > 0 && w.leases.Elapsed()-w.listed.at >= listEvery
}

// scheduleList sets the time of the next listing, at random, so that workers do not list together.
func (w *worker) scheduleList(rows map[string]lease.Row) {
	c := w.count(rows)
	pages := max(w.listed.pages, (c.finished+c.known+c.strange+pageShards-1)/pageShards, 1)
	every := max(listEvery, time.Duration(max(c.workers, 1)*pages)*listShare)
	next := every*3/4 + rand.N(every/2)
	if !w.scheduled { // it may be one of many that have just begun
		next = rand.N(every)
	}
	w.scheduled, w.nextList = true, w.leases.Elapsed()+next
}

// knows reports whether a row is of a shard of this stream.
func (w *worker) knows(row lease.Row) bool {
	label, _, _ := strings.Cut(row.Origin, " ")
	_, listed := w.listed.byID[row.Shard]
	return label == w.label || row.Origin == "" && listed
}

// list lists all shards, and reports whether the list is complete. If it has many pages, list
// returns in between, so that the leases are renewed, and continues at the next call.
func (w *worker) list(ctx context.Context) (complete bool, err error) {
	began := w.leases.Elapsed()
	if w.partial == nil || began-w.partial.at > listMost+time.Duration(w.partial.pages)*listShare {
		w.partial = &listing{at: began}
	}
	next := w.partial
	for {
		out, err := w.Streams.DescribeStream(ctx, &dynamodbstreams.DescribeStreamInput{StreamArn: &w.arn, ExclusiveStartShardId: next.after})
		if gone(err) && next.after != nil {
			// The shard was trimmed. The error is not wrapped: that would mean the end of the stream.
			w.partial = &listing{at: began}
			return false, fmt.Errorf("the list of the shards has changed, and begins again: %v", err)
		}
		if err != nil {
			if ctx.Err() == nil && !gone(err) {
				w.stalls.note(listOfShards, err)
			}
			return false, err // the next look goes on from here
		}
		next.add(out.StreamDescription.Shards)
		next.pages++
		if next.after = out.StreamDescription.LastEvaluatedShardId; next.after == nil {
			next.open = out.StreamDescription.StreamStatus != types.StreamStatusDisabled
			break
		}
		if next.pages == 1 && w.listed.pages == 0 && !w.leases.Exclusive() {
			return false, nil // by now the rows may show others that list
		}
		if next.pages < pageBurst || w.unfiltered || w.Registry.Register != nil {
			continue // also any number of calls of an endpoint that is not Amazon's
		}
		if !w.leases.Exclusive() && w.leases.Elapsed()-began+pagePause > w.leases.Duration()/(2*lookParts) {
			return false, nil
		}
		clock.Pause(pagePause, ctx.Done())
	}
	for child := range w.born { // a list may lack one that was found just now
		next.add([]types.Shard{w.listed.shard(child)})
	}
	w.listed, w.partial, w.unshared = *next, nil, true
	w.stale.Store(false)
	w.countTries()
	return true, nil
}

// descend finds the children of the shards that this worker has finished. If the endpoint does not
// answer that, or all shards can be listed with as few calls, all are listed next. A shard's children
// are looked for until they are found, or childTries are over.
func (w *worker) descend(ctx context.Context) error {
	w.mu.Lock()
	for _, shard := range w.mu.finished {
		w.childless[shard] = childTries
	}
	w.mu.finished = nil
	w.mu.Unlock()
	now := w.leases.Elapsed()
	all := w.unfiltered || w.listed.pages > 0 && len(w.childless) >= w.listed.pages
	for shard, tries := range w.childless {
		if tries < childTries && now < w.askAgain || w.bear(shard, w.listed.shards) > 0 {
			continue
		}
		w.askAgain = now + listSoon
		if !all && tries > 0 {
			w.childless[shard] = tries - 1
			err := w.ask(ctx, shard)
			if ctx.Err() != nil {
				return err
			}
			// the endpoint may have trimmed the shard meanwhile, though not the stream
			if all = w.unfiltered; !all && !gone(err) {
				continue
			}
		}
		w.stale.Store(true)
	}
	return nil
}

// countTries counts a complete listing as a try to find the children of finished shards.
func (w *worker) countTries() {
	for shard, tries := range w.childless {
		switch {
		case w.bear(shard, w.listed.shards) > 0:
		case tries == 0: // it has none, for example because the stream is disabled
			delete(w.childless, shard)
		default:
			w.childless[shard] = tries - 1
		}
	}
}

// ask asks for the children of a shard. Some endpoints refuse to, or return other shards too.
func (w *worker) ask(ctx context.Context, parent string) error {
	in := &dynamodbstreams.DescribeStreamInput{
		StreamArn: &w.arn, ShardFilter: &types.ShardFilter{Type: types.ShardFilterTypeChildShards, ShardId: &parent},
	}
	for {
		out, err := w.Streams.DescribeStream(ctx, in)
		if err != nil {
			w.unfiltered = !gone(err) && retry.Classify(err) == retry.Permanent
			return err
		}
		d := out.StreamDescription
		w.unfiltered = w.bear(parent, d.Shards) < len(d.Shards)
		if in.ExclusiveStartShardId = d.LastEvaluatedShardId; in.ExclusiveStartShardId == nil || w.unfiltered {
			return nil
		}
	}
}

// bear lists the children of a shard that are among some shards, and returns their number.
func (w *worker) bear(parent string, shards []types.Shard) (n int) {
	for i := range shards {
		if aws.ToString(shards[i].ParentShardId) == parent {
			w.listed.add(shards[i : i+1])
			w.born[aws.ToString(shards[i].ShardId)] = true
			delete(w.childless, parent)
			n++
		}
	}
	return n
}

// publish writes the row of a shard that can be read and that this worker does not take, for the
// other workers.
func (w *worker) publish(ctx context.Context, row lease.Row, rows map[string]lease.Row) error {
	row, err := w.origin(ctx, row, rows)
	if err == nil {
		_, err = w.leases.Create(ctx, row)
	}
	return err
}

// origin returns the row of a shard that has none yet, after it has noted a loss if the shard's
// parent was never read. Otherwise the row has the sequence number at which the shard begins, until
// the first checkpoint.
func (w *worker) origin(ctx context.Context, row lease.Row, rows map[string]lease.Row) (lease.Row, error) {
	shard := w.listed.shard(row.Shard)
	row.Origin = w.originOf(shard)
	if w.Lost == nil || row.Exists() || w.latest[row.Shard] != nil || w.predates(sinceOf(rows)) || !w.orphan(shard, rows) {
		return row, nil
	}
	w.log.Error("the shard before this one is gone and was never read: records may have been trimmed before they were read",
		"shard", row.Shard, "before", aws.ToString(shard.ParentShardId))
	row.Origin = w.label // that loss includes the shard's first records
	return row, w.noteLoss(ctx)
}

// originOf returns the origin of a listed shard's row: the stream's label, and the sequence number at
// which the shard begins.
func (w *worker) originOf(s types.Shard) string { return strings.TrimSpace(w.label + " " + firstOf(s)) }

// labelOf returns the label of a stream, which is unique among the streams of its table.
func labelOf(arn string) string { return arn[strings.LastIndexByte(arn, '/')+1:] }
