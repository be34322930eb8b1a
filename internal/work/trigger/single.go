package trigger

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/mayflydb/mayfly/internal/work/deliver"
)

// handSingles delivers each record by itself. A round has one record of each remaining key, those
// with the fewest attempts first. So a key keeps its order no matter what the target does with the
// deliveries of a call, and a failing key does not delay the others: while one fails, further
// records of the lane join the batch. The consumer's window bounds the batch, since it counts all
// records from the first that is not done. Once it is full, the others wait too.
func (l *lane) handSingles(ctx context.Context, batch []entry) {
	left := appendParts(nil, batch)
	for ctx.Err() == nil {
		for _, p := range left {
			if l.feed == nil || p.invoked > 0 { // the change of an item has at least one attempt
				l.dropExpired(ctx, p)
			}
		}
		if left = unfinished(left); len(left) == 0 {
			return
		}
		if slices.ContainsFunc(left, func(p *part) bool { return p.invoked > 0 }) {
			left = appendParts(left, l.more())
		}
		round, next := l.firstOfKeys(left)
		if len(round) == 0 {
			l.awaitMore(ctx, next)
			continue
		}
		l.tryRound(ctx, round[:min(len(round), l.batch)])
	}
}

// appendParts appends a part for each record.
func appendParts(parts []*part, entries []entry) []*part {
	for i := range entries {
		parts = append(parts, &part{entries: entries[i : i+1]})
	}
	return parts
}

// unfinished returns the parts that have records.
func unfinished(parts []*part) []*part {
	return slices.DeleteFunc(parts, func(p *part) bool { return len(p.entries) == 0 })
}

// firstOfKeys returns the first record of each key that does not pause, those with the fewest
// attempts first, and the end of the first pause.
func (l *lane) firstOfKeys(parts []*part) (round []*part, next time.Time) {
	now, seen := l.o.Clock.Now(), map[string]bool{}
	for _, p := range parts {
		key := string(p.entries[0].key)
		if seen[key] {
			continue
		}
		seen[key] = true
		again := p.again
		if p.invoked > 0 && again.Before(l.again) {
			again = l.again
		}
		if !now.Before(again) {
			round = append(round, p)
		} else if next.IsZero() || again.Before(next) {
			next = again
		}
	}
	slices.SortStableFunc(round, func(a, b *part) int { return a.invoked - b.invoked })
	return round, next
}

// tryRound makes an attempt for records of different keys. It empties the parts that succeeded or
// were abandoned. The others pause.
func (l *lane) tryRound(ctx context.Context, round []*part) {
	parcels := make([]deliver.Parcel, len(round))
	for i, p := range round {
		parcels[i] = deliver.Parcel{Delivery: l.recordDelivery(p.entries[0], p.invoked+1), Group: l.group()}
	}
	result, failed, succeeded := resultOK, []*part(nil), false
	for i, err := range l.o.Courier.Call(ctx, parcels...) {
		p := round[i]
		if errors.Is(err, deliver.ErrHeldBack) {
			continue
		}
		if ctx.Err() != nil && err != nil {
			return
		}
		p.invoked++
		if err == nil {
			finish(p.entries)
			p.entries, succeeded = nil, true
			continue
		}
		result = l.singleFailed(ctx, p, err)
		failed = append(failed, p)
	}
	l.result(ctx, result)
	l.pauseSingles(unfinished(failed), succeeded)
}

// pauseSingles sets the pauses after a round, for the failed records that remain. Each of them
// pauses by itself. If none succeeded, the target may be down, and all records with an attempt
// pause too, longer after each such round. A record without one does not, since the target may
// refuse only the others; a target that is down gets no more such calls than one that works. An
// abandoned record needs no pause, so a target that is down for days holds up no growing backlog.
func (l *lane) pauseSingles(failed []*part, succeeded bool) {
	now := l.o.Clock.Now()
	for _, p := range failed {
		p.again = now.Add(max(l.o.Backoff.After(p.invoked, l.o.Jitter()), p.after))
	}
	if succeeded || len(failed) == 0 {
		l.failures, l.again = 0, time.Time{}
		return
	}
	l.failures++
	l.again = now.Add(l.o.Backoff.After(l.failures, l.o.Jitter()))
}

// singleFailed handles the failure of a record, and returns the trigger's result. It abandons the
// record if it has no further attempt.
func (l *lane) singleFailed(ctx context.Context, p *part, err error) string {
	p.note(err, nil)
	f := l.judge(p, err)
	p.after = f.after
	if f.counts {
		p.failed++
	}
	switch {
	case f.hopeless || l.exhausted(p):
		l.giveUp(ctx, p, conditionRetries)
		p.entries = nil
	case l.feed != nil && l.expired(p.entries[0]):
		l.giveUp(ctx, p, conditionAge)
		p.entries = nil
	}
	return f.result
}
