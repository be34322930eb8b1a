// Package audit is the safety net of the strategies: a slow scan of the whole table that finds
// overdue items which the strategy did not know of, and removes them.
//
//	scan     a pass reads the table slowly. Its position is the checkpoint of a lease: one worker at
//	         a time has it, and the next one continues from there
//	suspect  an item that is overdue by minutes, and that this worker neither has armed nor has
//	         given up
//	wait     for as long as the strategy may take to learn of a deadline
//	judge    an item that is still unknown is armed. It counts as missed if its conditional removal
//	         succeeds: then no worker removed it meanwhile, and no writer renewed it
//
// The audit does not judge while the strategy is behind: see Options.Settled. A suspect that cannot
// be judged waits, and the checkpoint stays before it.
package audit

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly/guard/internal/armed"
	"github.com/mayflydb/mayfly/guard/internal/strategy"
	"github.com/mayflydb/mayfly/guard/internal/table"
	"github.com/mayflydb/mayfly/internal/clock"
	"github.com/mayflydb/mayfly/internal/work/attr"
	"github.com/mayflydb/mayfly/internal/work/lease"
)

const (
	// Name is the name of the audit's consumer.
	Name = "audit"

	shard = "pass" // the name of its lease

	// After is the time from the start of a worker to its first audit.
	After = 10 * time.Minute

	overdueLeast = 5 * 60_000 // ms: an item that is less overdue is no suspect
	suspectsMost = 10_000     // then the scan waits until they are judged

	// silence after which another worker continues the pass
	duration  = 5 * time.Minute
	keepEvery = time.Minute // between two checkpoints, which renew the lease
	lookEvery = duration    // until the lease, or the strategy, is looked at again
	restMost  = time.Hour   // until the clock is read again
	lastLimit = 5 * time.Second
)

// Options configure an audit.
type Options struct {
	Units float64       // read units a second, above 0
	Every time.Duration // between the beginnings of two passes, at least
	// client of the table of leases
	Leases *dynamodb.Client
	// Settled reports whether the strategy has caught up, and removals are on time. Only then is an
	// unknown overdue item missed. within is how long the strategy may take to learn of an item.
	Settled func(ctx context.Context) (within time.Duration, ok bool, err error)
	// Known reports whether this worker knows an overdue item, though it has not armed it.
	Known func(e armed.Entry) bool
}

// Audit audits one table.
type Audit struct {
	*strategy.Reader
	o        Options
	leases   *lease.Leases
	suspects []suspect // in the order in which they were found
	passed   clock.Elapsed
	kept     time.Duration // time of the last checkpoint, by passed
	missed   int           // items of this worker's part of the pass
}

// suspect is an overdue item that this worker does not know.
type suspect struct {
	armed.Entry
	found time.Duration // by passed
	from  string        // the position of its page
}

// place is the position of the audit: its checkpoint.
type place struct {
	Key   string `json:"key,omitempty"`   // the last that was read, see strategy.KeyText; "": none
	Began int64  `json:"began,omitempty"` // ms: when the pass began; 0: there was none
	Ended int64  `json:"ended,omitempty"` // ms: when it ended; 0: it has not
}

// New returns an audit.
func New(e *strategy.Env, o Options) *Audit {
	a := &Audit{Reader: e.NewSlowReader(o.Units), o: o, passed: clock.Stopwatch()}
	name := Name
	if e.DryRun { // it must not count as the pass of workers that remove
		name = "dry-run/" + Name
	}
	leases := e.Leases
	leases.Duration = duration
	a.leases = lease.New(o.Leases, e.Consumer(name), leases)
	return a
}

// Run makes one pass after another until ctx is done. An error ends the audit, not guard: strategies
// meet those that matter to them.
func (a *Audit) Run(ctx context.Context) error {
	clock.Pause(After, ctx.Done())
	for ctx.Err() == nil {
		next, err := a.turn(ctx)
		switch {
		case ctx.Err() != nil:
		case a.final(err):
			return err
		case err != nil && !errors.Is(err, lease.ErrLost):
			a.Log.Warn("the audit is interrupted; trying again", "table", a.Table.Name, "error", err, "after", lookEvery)
		}
		a.rest(ctx, next)
	}
	return ctx.Err()
}

// final reports whether another attempt would fail as well.
func (a *Audit) final(err error) bool {
	p, is := errors.AsType[*table.Problem](err)
	return is && p != nil || a.Problem("Query, PutItem on "+a.Leases.TableName(), err) != nil
}

// rest waits until an instant in ms, by the endpoint's clock.
func (a *Audit) rest(ctx context.Context, until int64) {
	for ctx.Err() == nil {
		left := until - a.Now()
		if left <= 0 || left > max(a.o.Every, lookEvery).Milliseconds() { // the clock was set back
			return
		}
		clock.Pause(min(time.Duration(left)*time.Millisecond, restMost), ctx.Done())
	}
}

// turn makes a pass, or the rest of one, if it is due and no other worker makes it. It returns the
// instant of the next turn.
func (a *Audit) turn(ctx context.Context) (next int64, err error) {
	again := a.Now() + lookEvery.Milliseconds()
	rows, err := a.leases.Rows(ctx)
	if err != nil {
		return again, err
	}
	row := rows[shard]
	row.Shard = shard
	at := readPlace(row.Checkpoint)
	if due := at.due(a.o.Every); due > a.Now() && at.Began <= a.Now() {
		return due, nil
	}
	if !a.leases.Free(row) {
		return again, nil
	}
	if _, ok, err := a.o.Settled(ctx); err != nil || !ok {
		return again, err
	}
	l, err := a.leases.Take(ctx, row)
	if err != nil {
		return again, err
	}
	err = a.pass(ctx, l, &at)
	a.leave(ctx, l, at)
	if err != nil {
		return a.Now() + lookEvery.Milliseconds(), err
	}
	return at.due(a.o.Every), nil
}

// readPlace parses a checkpoint. An invalid one counts as none.
func readPlace(text string) (at place) {
	if json.Unmarshal([]byte(text), &at) != nil {
		return place{}
	}
	if _, err := strategy.ReadKeyText(at.Key); err != nil {
		at.Key = ""
	}
	return at
}

// due returns the instant of the next pass in ms; 0 if one is under way, or there was none.
func (p place) due(every time.Duration) int64 {
	if p.Ended == 0 {
		return 0
	}
	return p.Began + every.Milliseconds()
}

// pass reads the table from a place on to its end, and judges the suspects.
func (a *Audit) pass(ctx context.Context, l *lease.Lease, at *place) (err error) {
	if at.Ended != 0 || at.Began == 0 {
		*at = place{Began: a.Now()}
	}
	a.suspects, a.kept, a.missed = nil, a.passed(), 0
	read := 0
	in := dynamodb.ScanInput{TableName: &a.Table.Name}
	if in.ExclusiveStartKey, err = strategy.ReadKeyText(at.Key); err != nil {
		return err
	}
	for more, first := true, true; more; first = false {
		from := at.Key
		a.filter(&in)
		items, n, err := a.Scan(ctx, &in)
		if p := (*table.Problem)(nil); first && from != "" && errors.As(err, &p) && p.Code == table.Misconfigured {
			a.Log.Warn("the audit's checkpoint is unusable; it starts over", "table", a.Table.Name, "error", err)
			at.Key, in.ExclusiveStartKey = "", nil
			continue
		}
		if err != nil {
			return err
		}
		read += n
		a.suspect(items, from)
		if at.Key, more = strategy.KeyText(in.ExclusiveStartKey), in.ExclusiveStartKey != nil; !more {
			at.Key = ""
		}
		if err := a.judge(ctx, l, *at, suspectsMost); err != nil {
			return err
		}
	}
	if err := a.judge(ctx, l, *at, 0); err != nil {
		return err
	}
	at.Ended = a.Now()
	a.Log.Info("the audit has read the table", "table", a.Table.Name, "items", read, "missed", a.missed)
	return nil
}

// filter sets the condition of the next page. A TTL that is not a number never meets it.
func (a *Audit) filter(in *dynamodb.ScanInput) {
	overdue := a.Now() - overdueLeast
	in.FilterExpression = aws.String("#ttl <= :overdue")
	in.ExpressionAttributeNames = map[string]string{"#ttl": a.Table.Attribute}
	in.ExpressionAttributeValues = map[string]types.AttributeValue{":overdue": attr.Int(overdue / 1000)}
	a.Table.Project(&in.ProjectionExpression, in.ExpressionAttributeNames)
}

// suspect adds the unknown items of a page. It reports no bad values: the strategy does.
func (a *Audit) suspect(items []map[string]types.AttributeValue, from string) {
	now := a.Now()
	for _, item := range items {
		e, has, err := a.Table.EntryOf(item, now)
		if has && err == nil && e.At <= now-overdueLeast && !a.knows(e) {
			a.suspects = append(a.suspects, suspect{e, a.passed(), from})
		}
	}
}

// knows reports whether this worker has dealt with an item, or will.
func (a *Audit) knows(e armed.Entry) bool {
	_, is := a.Armed.Deadline(e.Key)
	return is || a.o.Known(e)
}

// judge removes the suspects whose time to be learned of is over. It waits until at most so many
// are left, and saves the position meanwhile.
func (a *Audit) judge(ctx context.Context, l *lease.Lease, at place, most int) error {
	for {
		if err := a.keep(ctx, l, at); err != nil {
			return err
		}
		if len(a.suspects) == 0 {
			return nil
		}
		if a.passed()-a.suspects[0].found >= strategy.Learning {
			if err := a.judgeOldest(ctx); err != nil {
				return err
			}
		}
		if len(a.suspects) <= most {
			return nil
		}
		if clock.Pause(keepEvery, ctx.Done()); ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

// judgeOldest removes the suspects that were found long enough ago, and waits for the outcomes. If
// the strategy is behind, or has filled most of its memory with deadlines, all suspects have to wait
// as long again.
func (a *Audit) judgeOldest(ctx context.Context) error {
	within, ok, err := a.o.Settled(ctx)
	if err != nil {
		return err
	}
	now := a.passed()
	if !ok || a.Room() < min(strategy.RoomKept, a.Armed.Most/4) {
		for i := range a.suspects {
			a.suspects[i].found = now
		}
		return nil
	}
	n := 0
	for n < len(a.suspects) && now-a.suspects[n].found >= within {
		n++
	}
	t := &trial{a: a, ends: make(chan armed.Outcome, n)}
	for _, s := range a.suspects[:n] {
		if s.Armer = t; !a.knows(s.Entry) && a.ArmNew(s.Entry) {
			t.open++
		}
	}
	for ; t.open > 0; t.open-- {
		select {
		case how := <-t.ends:
			if how == armed.Removed || how == armed.Spared {
				a.missed++
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	a.suspects = a.suspects[n:]
	return nil
}

// trial is the armer of some suspects.
type trial struct {
	a    *Audit
	open int
	ends chan armed.Outcome
}

// Finished implements armed.Armer.
func (t *trial) Finished(e armed.Entry, how armed.Outcome) {
	if how == armed.Removed || how == armed.Spared {
		t.a.Missed(e)
	}
	t.ends <- how
}

// keep writes the position now and then, which renews the lease. It returns lease.ErrLost if the
// lease is lost.
func (a *Audit) keep(ctx context.Context, l *lease.Lease, at place) error {
	if !l.Held() {
		return lease.ErrLost
	}
	if a.passed() < a.kept+keepEvery {
		return nil
	}
	a.kept = a.passed()
	if err := l.Save(ctx, a.position(at)); err != nil {
		if errors.Is(err, lease.ErrLost) || ctx.Err() != nil {
			return err
		}
		a.Log.Warn("the progress of the audit was not written", "table", a.Table.Name, "error", err)
	}
	return nil
}

// position returns the checkpoint: it stays before the first page with a suspect.
func (a *Audit) position(at place) string {
	if len(a.suspects) > 0 {
		at.Key, at.Ended = a.suspects[0].from, 0
	}
	text, _ := json.Marshal(at)
	return string(text)
}

// leave writes the last position, and frees the lease for the next worker.
func (a *Audit) leave(ctx context.Context, l *lease.Lease, at place) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastLimit)
	defer cancel()
	if l.Held() {
		a.Env.Save(ctx, l, a.position(at), "the progress of the audit was not written")
	}
	a.suspects = nil
	if err := l.Release(ctx); err != nil {
		a.Log.Warn("the lease of the audit was not released; another worker waits until it ends", "table", a.Table.Name, "error", err)
	}
}
