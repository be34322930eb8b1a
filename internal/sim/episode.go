package sim

import (
	"context"
	"fmt"
	"runtime/metrics"
	"sort"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"

	"github.com/mayflydb/mayfly"
	"github.com/mayflydb/mayfly/internal/store/engine"
	"github.com/mayflydb/mayfly/internal/store/kv"
)

// Result is the outcome of an episode.
type Result struct {
	Seed       uint64      `json:"seed"`
	Episode    uint64      `json:"episode"`
	Trace      string      `json:"trace"` // a hash of all that clients have seen, in order
	Counts     Counts      `json:"counts"`
	Violations []Violation `json:"violations,omitempty"`
}

// The size of an episode.
const (
	episodeRounds = 40
	episodeBulk   = 300 // items of a round that nobody touches until they expire
)

const indexName = "byG"

// slack is the time that the reaper of a server without faults may take, in virtual time. It is far
// more than it needs, since only waiting takes any.
const slack = 10 * time.Second

// episode is a minute in the life of a system. It runs in a bubble of testing/synctest.
type episode struct {
	*ledger
	seed    uint64
	rounds  int
	bulk    int
	ctx     context.Context
	server  *server
	network *network
	db      *dynamodb.Client        // of users, over the network
	plain   *dynamodb.Client        // of the judge
	records *dynamodbstreams.Client // of the judge
	stream  *follower
	model   *model
}

// databaseEpisode runs an episode of a database and its clients.
func databaseEpisode(seed, number uint64) Result {
	r := dice(seed, "episode", number)
	e := &episode{
		ledger: newLedger(), seed: r.Uint64(), rounds: episodeRounds, bulk: episodeBulk, ctx: context.Background(),
		model: newModel(),
	}
	e.server = &server{seed: e.seed, directory: directory, options: mayfly.Options{
		CacheBytes: 1 << 20, MemTableBytes: 1 << 20, Shards: 1 + r.IntN(3), ShardBytes: 8 << 10 << (3 * r.IntN(4)),
	}}
	e.millis = e.server.millis
	e.server.wentBack = func(from, to int64) {
		e.wentBack(from, to)
		e.counts.ClockBack++
	}
	e.network = &network{to: e.server, left: func(o *op) {
		tick, _ := e.tick()
		e.mu.Lock()
		defer e.mu.Unlock()
		o.end = max(o.end, tick)
	}}
	e.db, _ = clients(e.network)
	e.plain, e.records = clients(e.server)
	if err := e.run(); err != nil {
		e.broken(available, "%v", err)
	}
	return Result{Seed: seed, Episode: number, Trace: fmt.Sprintf("%016x", e.trace.Sum64()), Counts: e.counts, Violations: e.violations}
}

// run runs the rounds until a law is broken, or all are over.
func (e *episode) run() error {
	if err := e.server.start(kv.NewCrashFS()); err != nil {
		return err
	}
	defer func() {
		if l := e.server.end(); l != nil {
			_ = l.db.Close()
		}
	}()
	if err := e.prepare(); err != nil {
		return fmt.Errorf("create the table: %w", err)
	}
	for i := range e.rounds {
		if err := e.round(i); err != nil {
			return err
		}
		if e.isBroken() {
			return nil
		}
	}
	return e.finish()
}

// prepare creates the table.
func (e *episode) prepare() error {
	attribute := func(name string, kind types.ScalarAttributeType) types.AttributeDefinition {
		return types.AttributeDefinition{AttributeName: &name, AttributeType: kind}
	}
	out, err := e.plain.CreateTable(e.ctx, &dynamodb.CreateTableInput{
		TableName: table, BillingMode: types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{attribute("pk", "S"), attribute("sk", "N"), attribute("g", "S"), attribute("h", "N")},
		KeySchema:            []types.KeySchemaElement{element("pk", "HASH"), element("sk", "RANGE")},
		GlobalSecondaryIndexes: []types.GlobalSecondaryIndex{{
			IndexName: aws.String(indexName), KeySchema: []types.KeySchemaElement{element("g", "HASH"), element("h", "RANGE")}, Projection: &types.Projection{ProjectionType: types.ProjectionTypeAll},
		}},
		StreamSpecification: &types.StreamSpecification{StreamEnabled: aws.Bool(true), StreamViewType: types.StreamViewTypeNewAndOldImages},
	})
	if err != nil {
		return err
	}
	e.stream = newFollower(aws.ToString(out.TableDescription.LatestStreamArn))
	return e.setTTL(e.model.ttl, true)
}

// element is a part of a key.
func element(name string, kind types.KeyType) types.KeySchemaElement {
	return types.KeySchemaElement{AttributeName: &name, KeyType: kind}
}

// round runs and judges a round.
func (e *episode) round(n int) error {
	if err := e.changeTTL(dice(e.seed, "ttl", uint64(n))); err != nil {
		return fmt.Errorf("change TTL: %w", err)
	}
	p := planRound(e.seed, n, e.server.millis(), e.model, e.bulk)
	e.newRound()
	e.counts.Rounds++
	if err := e.server.hurry(p.rate); err != nil {
		return err
	}
	var clients, ender sync.WaitGroup
	for _, o := range p.ops {
		clients.Go(func() { e.call(o) })
	}
	var err error
	ender.Go(func() { err = e.endLife(p) })
	ender.Go(func() { e.changeIndex(p) })
	clients.Wait()
	e.network.copies.Wait()
	ender.Wait()
	if err != nil {
		return err
	}
	if p.end == restarts {
		if err := e.server.restart(); err != nil {
			return err
		}
		e.counts.Restarts++
	}
	if err := e.settleIndex(p); err != nil {
		return err
	}
	return e.settle(p.ops)
}

// settle reads the stream, and judges the round.
func (e *episode) settle(ops []*op) error {
	records, err := e.stream.drain(e.ctx, e.records)
	if err != nil {
		return err
	}
	for _, o := range ops {
		e.counts.Requests++
		o.end = max(o.end, o.ret)
		if o.outcome == unknown {
			e.counts.Unknown++
		}
		if o.roomless {
			e.counts.Roomless++
		}
		if o.mishap != (mishap{}) {
			e.counts.Mishaps++
		}
		if o.kind == transact && o.outcome == done {
			e.counts.Transactions++
		}
		e.note("%s %d %d %d %d %s %s %d", o.name, o.outcome, o.inv, o.ret, o.t1, o.old.text(), o.next.text(), o.counted)
		e.noteSeen(o)
	}
	for _, r := range records {
		e.note("%s %s %t %s %s %d", r.seq, r.event, r.service, r.key, r.new.text(), r.created.Unix())
		if !r.service && r.old != nil {
			if d := r.old.deadline(e.model.ttl); d != never && (r.new == nil || r.new.deadline(e.model.ttl) != d) {
				e.counts.Renewed++
			}
		}
	}
	e.ledger.round(e.model, ops, records, e.server.upSince().UnixMilli())
	e.overdue()
	return nil
}

// noteSeen adds the items that a request has seen to the trace.
func (e *episode) noteSeen(o *op) {
	var texts []string
	for _, m := range o.seen {
		texts = append(texts, m.text())
	}
	sort.Strings(texts)
	for _, t := range texts {
		e.note("%s", t)
	}
}

// overdue finds items that should have been removed.
func (e *episode) overdue() {
	now, up := e.server.millis(), e.server.upSince().UnixMilli()
	for _, part := range e.model.parts {
		for k, s := range part {
			if s.deadline != never && now-max(s.deadline, up, e.model.since) > slack.Milliseconds() {
				e.broken(markBelowAll, "%v was due at %d and is not removed at %d: %s", k, s.deadline, now, s.text)
				return
			}
		}
	}
}

// call makes a request at its time.
func (e *episode) call(o *op) {
	time.Sleep(o.at)
	o.inv, o.t0 = e.tick()
	o.run(withOp(e.ctx, o), e.db)
	o.ret, o.t1 = e.tick()
}

// endLife ends the server's life in the middle of a round, and begins another one.
func (e *episode) endLife(p *plan) error {
	time.Sleep(p.endAt)
	disk := e.server.now().disk
	switch p.end {
	case crashes:
		if p.endOps > 0 {
			disk.CutAfter(disk.Ops() + p.endOps)
			for range 20 {
				if disk.WasCut() {
					break
				}
				time.Sleep(5 * time.Millisecond)
			}
		}
		e.counts.Crashes++
		return e.server.crash(p.down)
	case diskFails:
		disk.fail()
		time.Sleep(100 * time.Millisecond)
		e.counts.DiskErrors++
		e.counts.Crashes++
		return e.server.crash(p.down)
	case fills:
		e.counts.DiskFull++
		e.server.fill(p.free)
		time.Sleep(p.down)
		if p.endOps > 0 {
			e.counts.Crashes++
			if err := e.server.crash(0); err != nil {
				return err
			}
		}
		return e.server.refill()
	case pauses:
		e.counts.Pauses++
		e.counts.PauseSecs += int64(p.down.Seconds())
		return e.server.pause(p.down)
	}
	return nil
}

// finish waits until all that is due has expired, and compares the whole with the model.
func (e *episode) finish() error {
	for until := e.server.millis() + 2*slack.Milliseconds(); e.server.millis() < until; { // the clock may stand still
		time.Sleep(time.Second)
	}
	ops := []*op{e.see(scan, "", "")}
	for i := range groups {
		ops = append(ops, e.see(index, fmt.Sprint("g", i), indexName))
		if e.model.extra {
			ops = append(ops, e.see(index, fmt.Sprint("g", i), extraName))
		}
	}
	if err := e.settle(ops); err != nil {
		return err
	}
	again := newFollower(e.stream.arn)
	if _, err := again.drain(e.ctx, e.records); err != nil {
		return err
	}
	if d := e.stream.differs(again); d != "" {
		e.broken(exactlyOneRecord, "the stream changed between two readings: %s", d)
	}
	e.idle()
	if e.isBroken() {
		return nil
	}
	fs, err := e.server.stop()
	if err != nil {
		return err
	}
	if err := engine.Check(e.ctx, fs, directory, nil, func(f engine.Fault) { e.broken(markBelowAll, "the files disagree: %v", f) }); err != nil {
		return fmt.Errorf("check the files: %w", err)
	}
	return e.damage(fs)
}

// see makes a request that reads, at once.
func (e *episode) see(k kind, pk, index string) *op {
	o := &op{name: "end", kind: k, pk: pk, index: index}
	o.inv, o.t0 = e.tick()
	o.run(e.ctx, e.plain)
	o.ret, o.t1 = e.tick()
	return o
}

// idle checks that a server with nothing due does nothing. Work that the end of the load has left, such
// as compactions, gets time before; the next deadline is an hour away.
func (e *episode) idle() {
	time.Sleep(idleTime)
	before := wakeups()
	time.Sleep(idleTime)
	if n := wakeups() - before; n > idleMost {
		e.broken(idleIsFree, "of the times that goroutines woke in %v with nothing due, a sample of an eighth has %d", idleTime, n)
	}
}

const (
	idleTime = 10 * time.Minute
	idleMost = 5 // a whole server makes 0 to 2, and one that looks every second 75 or more
)

// wakeups returns how often goroutines have become runnable: a sample, of an eighth.
func wakeups() (n uint64) {
	sample := []metrics.Sample{{Name: "/sched/latencies:seconds"}}
	metrics.Read(sample)
	for _, count := range sample[0].Value.Float64Histogram().Counts {
		n += count
	}
	return n
}
