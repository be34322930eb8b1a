package guard

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly/guard/internal/armed"
	"github.com/mayflydb/mayfly/guard/internal/pace"
	"github.com/mayflydb/mayfly/internal/clock"
	"github.com/mayflydb/mayfly/internal/work/attr"
	"github.com/mayflydb/mayfly/internal/work/lease"
	"github.com/mayflydb/mayfly/internal/work/retry"
)

// InitOptions describe the index that a table needs for the index strategy. DB and Table must be
// set.
type InitOptions struct {
	DB        *dynamodb.Client
	Table     string
	Attribute string // the TTL attribute. Default: the attribute of its native TTL
	Version   string // of Options, if it is used: the index has to have it, too

	// IndexName is the name of the index. Default: an existing index of the right shape, else the
	// partition key's name and "Index".
	IndexName string
	// Key is the index's partition key. Default: the key of an existing index, else
	// "expirationWindow" or "expirationShard".
	Key string
	// Granularity is the length of the windows in the partition key: whole seconds up to a day.
	// Default: none, so it holds only shards. That is the better choice: an item with a new TTL
	// needs no other window, and one query finds all missed items.
	Granularity time.Duration
	// Shards is the number of shards. Default: 4 without windows, else 1. Range: 1 to 10,000.
	Shards int

	Segments int     // into how many parts the scan is divided. Default: 4. Range: 1 to 1,000,000
	MaxRCU   float64 // read units a second that the scan consumes at most. Default: 100
	// write units a second that the backfill consumes at most, over table and index. Default: 500
	MaxWCU float64
	DryRun bool // make and write nothing, and report the changes

	// is called with events about consumption, throttling and bad values. Default: none
	Observe func(Event)
	Logger  *slog.Logger // Default: nothing is logged

	clock *clock.Clock // as in Options
	trust bool
}

// InitReport is the result of Init, or in a dry run its plan. It counts only this run, even if that
// continues an earlier one.
type InitReport struct {
	Index   string // its name
	Key     string // its partition key
	Layout  string // layout of the partition key, in words
	Created bool   // the index was made
	Scanned int64  // items that were read
	Written int64  // items that got the partition key, or another value of it
	Right   int64  // items that had the right one
	Without int64  // items without TTL: they belong in no index
	Bad     int64  // items whose TTL is not epoch seconds: they are left unchanged
	Renewed int64  // items whose TTL changed before the write, and which were read again
	// items that the endpoint refuses to write, for example because they have the maximum size
	Failed int64
}

const (
	initShards      = 4
	initUnitsRead   = 100
	initUnitsWrite  = 500
	initWriters     = 8 // per segment
	initTries       = 5 // attempts at an item whose TTL changes each time
	initFailures    = 10
	initPollFirst   = 10 * time.Millisecond
	initPollMost    = 2 * time.Second
	initUnseenPolls = 7 // times that an index may be missing from the description after it was made
)

// Init prepares a table for the index strategy. It creates or checks the index, waits until it is
// active, stores its layout for the sweepers, and sets the partition key of each item with a TTL,
// unless it is right. It may run beside guard and beside the table's writers, which should set the
// attribute themselves by then (Window, Shard). An interrupted run continues from its checkpoint.
// progress, if not nil, is called by one goroutine at a time; total is the endpoint's own count.
//
// The error is a *Problem if a person has to act.
func Init(ctx context.Context, o InitOptions, progress func(done, total int64)) (InitReport, error) {
	n, err := newInitializing(o, progress)
	if err != nil {
		return InitReport{}, err
	}
	if err := n.g.prepare(ctx); err != nil {
		return InitReport{}, err
	}
	err = n.run(ctx)
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.mu.report, err
}

// initializing is one call of Init.
type initializing struct {
	g        *Guard
	o        InitOptions
	layout   layout
	key      string
	ask      *asker
	write    *asker
	progress func(done, total int64)
	total    int64
	mu       struct {
		sync.Mutex
		report InitReport
	}
}

func newInitializing(o InitOptions, progress func(done, total int64)) (*initializing, error) {
	if o.Shards == 0 && o.Granularity == 0 {
		o.Shards = initShards
	}
	setDefault(&o.Shards, 1)
	setDefault(&o.MaxRCU, initUnitsRead)
	setDefault(&o.MaxWCU, initUnitsWrite)
	g, err := New(Options{
		DB: o.DB, Table: o.Table, Attribute: o.Attribute, Version: o.Version, IndexName: o.IndexName, Granularity: o.Granularity, Shards: o.Shards, Segments: o.Segments,
		MaxRCU: o.MaxRCU, MaxWCU: o.MaxWCU, Alone: true, MaxSkew: time.Hour, Observe: o.Observe, Logger: o.Logger, clock: o.clock, trust: o.trust,
	})
	if err != nil {
		return nil, err
	}
	if progress == nil {
		progress = func(int64, int64) {}
	}
	n := &initializing{
		g: g, o: o, layout: layout{Granularity: int64(o.Granularity / time.Second), Shards: o.Shards}, ask: &asker{g, pace.NewBudget(o.MaxRCU)}, write: &asker{g, pace.NewBudget(o.MaxWCU)},
		progress: progress,
	}
	return n, nil
}

func (n *initializing) run(ctx context.Context) error {
	index, err := n.find()
	if err != nil {
		return err
	}
	n.mu.Lock()
	n.mu.report = InitReport{Index: index.name, Key: index.key, Layout: n.layout.String(), Created: index.missing}
	n.mu.Unlock()
	n.key = index.key
	if !index.missing {
		if err := n.sample(ctx, index.name); err != nil {
			return err
		}
	}
	if !n.o.DryRun {
		if index.missing {
			if err := n.create(ctx, index.name); err != nil {
				return err
			}
		}
		if err := n.awaitActive(ctx, index.name); err != nil {
			return err
		}
		if err := n.note(ctx); err != nil {
			return err
		}
	}
	return n.backfill(ctx)
}

// wanted is the index that is there, or has to be made.
type wanted struct {
	name, key string
	missing   bool
}

func (n *initializing) find() (wanted, error) {
	t, o := n.g.table, n.g.o
	var shaped []*expirationIndex
	for i := range t.indexes {
		d := &t.indexes[i]
		x, why := t.indexOf(d, o)
		if name := aws.ToString(d.IndexName); name == o.IndexName && why != nil {
			return wanted{}, why
		}
		named := x != nil && (x.name == o.IndexName || x.key == n.o.Key)
		// an unnamed one may be the application's
		if why == nil && (o.IndexName == "" || x.name == o.IndexName) && (n.o.Key == "" || x.key == n.o.Key) && (named || x.known()) {
			shaped = append(shaped, x)
		}
	}
	if only := onlyKnown(shaped); only != nil {
		shaped = []*expirationIndex{only}
	}
	switch {
	case len(shaped) > 1:
		return wanted{}, &Problem{Code: Misconfigured, Message: fmt.Sprintf("table %s has several indexes with the sort key %s", o.Table, o.Attribute), Next: "name the index to use (--index)"}
	case len(shaped) == 1 && !slices.Contains(t.names(), shaped[0].key):
		return wanted{name: shaped[0].name, key: shaped[0].key}, nil
	}
	w := wanted{name: o.IndexName, key: n.o.Key, missing: true}
	if len(shaped) == 1 {
		w.key = shaped[0].key
	}
	if w.key == "" {
		if w.key = shardKeyDefault; n.layout.windows() {
			w.key = windowKeyDefault
		}
	}
	if w.name == "" {
		w.name = w.key + "Index"
	}
	another := &Problem{Code: Misconfigured, Message: fmt.Sprintf("%s cannot be the index's partition key: guard uses it for something else", w.key), Next: "choose another attribute (--key)"}
	if w.key == o.Attribute || w.key == o.Version {
		return wanted{}, another
	}
	for attribute, kind := range map[string]types.ScalarAttributeType{w.key: types.ScalarAttributeTypeS, o.Attribute: types.ScalarAttributeTypeN} {
		if has, defined := t.kinds[attribute]; defined && has != kind {
			return wanted{}, &Problem{Code: NoIndex, Message: fmt.Sprintf("cannot create the index: %s has the type %s in a key of table %s and would need the type %s", attribute, has, o.Table, kind),
				Next: "choose another attribute as the index's partition key (--key), or another strategy"}
		}
	}
	if slices.Contains(t.names(), w.key) {
		return wanted{}, another
	}
	for i := range t.indexes {
		if aws.ToString(t.indexes[i].IndexName) == w.name {
			return wanted{}, &Problem{Code: NoIndex, Message: fmt.Sprintf("table %s has an index %s of a different shape", o.Table, w.name), Next: "choose another name (--index)"}
		}
	}
	return w, nil
}

// sample checks a page of the existing index before anything is written: it may be the
// application's.
func (n *initializing) sample(ctx context.Context, index string) error {
	items, _, err := n.ask.scan(ctx, &dynamodb.ScanInput{
		TableName: &n.o.Table, IndexName: &index, ProjectionExpression: aws.String("#key"), ExpressionAttributeNames: map[string]string{"#key": n.key},
	})
	if err != nil {
		return err
	}
	if odd := stranger(items, n.key); odd != "" {
		return n.strange(odd)
	}
	return nil
}

// strange returns the problem with an item that has another value in place of the index's partition
// key.
func (n *initializing) strange(odd string) *Problem {
	return &Problem{
		Code: Misconfigured, Message: fmt.Sprintf("an item of table %s has %s, which is neither a shard nor a window: the application seems to use that attribute", n.o.Table, odd),
		Next: "choose another attribute as the index's partition key (--key), and another name (--index)",
	}
}

// create creates the index with keys only, since each write of an item also writes its projection.
func (n *initializing) create(ctx context.Context, name string) error {
	d, err := n.describe(ctx)
	if err != nil {
		return err
	}
	in := &dynamodb.UpdateTableInput{TableName: &n.o.Table, AttributeDefinitions: d.AttributeDefinitions}
	for attribute, kind := range map[string]types.ScalarAttributeType{n.key: types.ScalarAttributeTypeS, n.g.o.Attribute: types.ScalarAttributeTypeN} {
		if !slices.ContainsFunc(in.AttributeDefinitions, func(a types.AttributeDefinition) bool { return aws.ToString(a.AttributeName) == attribute }) {
			in.AttributeDefinitions = append(in.AttributeDefinitions, types.AttributeDefinition{AttributeName: &attribute, AttributeType: kind})
		}
	}
	index := &types.CreateGlobalSecondaryIndexAction{
		IndexName:  &name,
		KeySchema:  []types.KeySchemaElement{{AttributeName: &n.key, KeyType: types.KeyTypeHash}, {AttributeName: &n.g.o.Attribute, KeyType: types.KeyTypeRange}},
		Projection: &types.Projection{ProjectionType: types.ProjectionTypeKeysOnly},
	}
	if n.o.Version != "" {
		index.Projection = &types.Projection{ProjectionType: types.ProjectionTypeInclude, NonKeyAttributes: []string{n.o.Version}}
	}
	if p := d.ProvisionedThroughput; p != nil && aws.ToInt64(p.WriteCapacityUnits) > 0 {
		index.ProvisionedThroughput = &types.ProvisionedThroughput{ReadCapacityUnits: p.ReadCapacityUnits, WriteCapacityUnits: p.WriteCapacityUnits}
	}
	in.GlobalSecondaryIndexUpdates = []types.GlobalSecondaryIndexUpdate{{Create: index}}
	err = n.ask.again(ctx, "UpdateTable", func() (int, *types.ConsumedCapacity, error) {
		_, err := n.g.db.UpdateTable(ctx, in)
		return 0, nil, err
	})
	if p := (*Problem)(nil); errors.As(err, &p) && p.Code == Misconfigured {
		return &Problem{Code: NoIndex, Message: fmt.Sprintf("the endpoint refuses to create the index %s", name), Next: "create it together with the table, or choose another strategy", Err: p.Err}
	}
	return err
}

func (n *initializing) describe(ctx context.Context) (d *types.TableDescription, err error) {
	err = n.ask.again(ctx, "DescribeTable", func() (int, *types.ConsumedCapacity, error) {
		out, err := n.g.db.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &n.o.Table})
		if err == nil {
			d = out.Table
		}
		if err == nil && d == nil {
			err = errors.New("the endpoint's answer to DescribeTable has no table")
		}
		return 0, nil, err
	})
	return d, err
}

// awaitActive waits until the index is active, which takes minutes or more at Amazon. It also
// learns the table's item count.
func (n *initializing) awaitActive(ctx context.Context, name string) error {
	unseen := 0
	for pauses := (retry.Policy{First: initPollFirst, Most: initPollMost}).Start(); ; {
		d, err := n.describe(ctx)
		if err != nil {
			return err
		}
		i := slices.IndexFunc(d.GlobalSecondaryIndexes, func(x types.GlobalSecondaryIndexDescription) bool { return aws.ToString(x.IndexName) == name })
		switch {
		case i < 0:
			if unseen++; unseen > initUnseenPolls {
				return &Problem{Code: NoIndex, Message: fmt.Sprintf("the endpoint accepted the request to create the index %s but did not create it", name),
					Next: "create it together with the table, or choose another strategy"}
			}
		case d.GlobalSecondaryIndexes[i].IndexStatus == types.IndexStatusActive:
			n.total = aws.ToInt64(d.ItemCount)
			return nil
		case d.GlobalSecondaryIndexes[i].IndexStatus == types.IndexStatusDeleting:
			return &Problem{Code: NoIndex, Message: fmt.Sprintf("the index %s is being deleted", name), Next: "wait until it is deleted, or choose another name (--index)"}
		}
		n.progress(0, aws.ToInt64(d.ItemCount))
		if !pauses.Wait(ctx) {
			return ctx.Err()
		}
	}
}

// note stores the layout for later sweepers.
func (n *initializing) note(ctx context.Context) error {
	leases := n.g.shares(Index)
	return n.ask.again(ctx, "PutItem", func() (int, *types.ConsumedCapacity, error) {
		row, err := leases.Note(ctx, layoutName, n.layout.text())
		if err != nil || row.Checkpoint == n.layout.text() {
			return 0, nil, err
		}
		n.g.log.Warn("the index had another layout until now: restart running guards", "table", n.o.Table, "was", row.Checkpoint, "is", n.layout.text())
		l, err := leases.Take(ctx, row)
		if err == nil {
			err = l.Save(ctx, n.layout.text())
		}
		return 0, nil, err
	})
}

// backfill sets the partition key of each item with a TTL.
func (n *initializing) backfill(ctx context.Context) error {
	segments := min(n.g.o.Segments, leasesMost)
	n.progress(0, n.total)
	if n.o.DryRun {
		return n.each(ctx, segments, func(ctx context.Context, number int) error {
			w := n.walk(nil, number, segments)
			at := w.resume()
			return w.pass(ctx, &at, n.g.now())
		})
	}
	consumer := fmt.Sprintf("%s/%s/%s/%d/%d/%d", consumerName(n.g.table, "init"), n.g.o.Attribute, n.key, n.layout.Granularity, n.layout.Shards, n.g.o.Segments)
	leases := lease.New(n.g.db, consumer, lease.Options{Exclusive: true, Logger: n.g.log, Fatal: func(err error) bool { return n.g.problem("GetItem", err) != nil }})
	var names []string
	for i := range segments {
		names = append(names, strconv.Itoa(i))
	}
	err := lease.Hold(ctx, leases, names, func(ctx context.Context, l *lease.Lease) error {
		w := n.walk(l, numberOf(l, ""), segments)
		at := w.resume()
		if err := w.pass(ctx, &at, n.g.now()); err != nil {
			w.save(context.WithoutCancel(ctx), at)
			return err
		}
		return n.ask.again(ctx, "PutItem", func() (int, *types.ConsumedCapacity, error) { return 0, nil, l.Save(ctx, lease.Done) })
	})
	if err == nil {
		err = ctx.Err()
	}
	// so that another run reads everything again, including the items that could not be written
	if p := (*Problem)(nil); err == nil || errors.As(err, &p) && p.Code == Misconfigured {
		if e := lease.Clear(ctx, n.g.db, consumer); err == nil {
			err = e
		}
	}
	return err
}

func (n *initializing) walk(l *lease.Lease, number, segments int) *walk {
	return &walk{
		g: n.g, ask: n.ask, lease: l, number: number, leases: segments, scan: dynamodb.ScanInput{TableName: &n.o.Table}, extra: []string{n.key},
		visit: func(ctx context.Context, items []map[string]types.AttributeValue, _ int64) error {
			err := n.each(ctx, initWriters, func(ctx context.Context, number int) error {
				for i := number; i < len(items); i += initWriters {
					if err := n.item(ctx, items[i]); err != nil {
						return err
					}
				}
				return nil
			})
			n.count(func(r *InitReport) {
				if err == nil {
					r.Scanned += int64(len(items))
					n.progress(r.Scanned, max(n.total, r.Scanned))
				}
			})
			return err
		},
	}
}

// each calls f for each number below times, concurrently. It returns the first error, which ends
// the other calls.
func (n *initializing) each(ctx context.Context, times int, f func(ctx context.Context, number int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var all sync.WaitGroup
	for number := range times {
		all.Go(func() {
			if err := f(ctx, number); err != nil {
				cancel(err)
			}
		})
	}
	all.Wait()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

func (n *initializing) count(change func(*InitReport)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	change(&n.mu.report)
}

// item sets an item's partition key, if its TTL is still the same.
func (n *initializing) item(ctx context.Context, item map[string]types.AttributeValue) error {
	for range initTries {
		_, has := item[n.g.o.Attribute]
		if !has {
			n.count(func(r *InitReport) { r.Without++ })
			return nil
		}
		e, ok := n.g.entryOf(item)
		if !ok {
			n.count(func(r *InitReport) { r.Bad++ })
			return nil
		}
		if odd := stranger([]map[string]types.AttributeValue{item}, n.key); odd != "" {
			return n.strange(odd)
		}
		if v, isText := attr.AsString(item[n.key]); isText {
			if _, right := n.layout.shardOf(v, wholeSeconds(e.At)); right {
				n.count(func(r *InitReport) { r.Right++ })
				return nil
			}
		}
		written, err := n.update(ctx, e)
		if err != nil {
			return n.failure(e, err)
		}
		if written {
			n.count(func(r *InitReport) { r.Written++ })
			return nil
		}
		n.count(func(r *InitReport) { r.Renewed++ })
		if item, err = n.readItem(ctx, e.Key); err != nil || item == nil {
			return err
		}
	}
	// a writer that changes it so often also sets the attribute, or the patrol finds the item
	return nil
}

// failure counts an item that cannot be written. If many fail and none succeeds, the run fails.
func (n *initializing) failure(e armed.Entry, err error) error {
	if p := (*Problem)(nil); !errors.As(err, &p) || p.Code != Misconfigured {
		return err
	}
	all := false
	n.count(func(r *InitReport) {
		r.Failed++
		all = r.Failed >= initFailures && r.Written == 0
	})
	if all {
		return err
	}
	n.g.log.Warn("an item cannot be written", "table", n.o.Table, "key", n.g.keyJSON(e.Key), "error", err)
	return nil
}

// update writes the partition key. written is false if the TTL has changed, or the item is gone.
func (n *initializing) update(ctx context.Context, e armed.Entry) (written bool, err error) {
	if n.o.DryRun {
		return true, nil
	}
	in := &dynamodb.UpdateItemInput{
		TableName: &n.o.Table, Key: n.g.attributes(e.Key), UpdateExpression: aws.String("SET #key = :place"), ConditionExpression: aws.String("#ttl = :seen"),
		ExpressionAttributeNames: map[string]string{"#key": n.key, "#ttl": n.g.o.Attribute},
		ExpressionAttributeValues: map[string]types.AttributeValue{
			":place": attr.S(n.layout.place(wholeSeconds(e.At), n.g.shardText(e.Key))), ":seen": attr.N(e.Text()),
		},
		ReturnConsumedCapacity: types.ReturnConsumedCapacityTotal,
	}
	err = n.write.again(ctx, "UpdateItem", func() (int, *types.ConsumedCapacity, error) {
		out, err := n.g.db.UpdateItem(ctx, in)
		var unmet *types.ConditionalCheckFailedException
		switch {
		case errors.As(err, &unmet):
			return 2, nil, nil
		case err != nil:
			return 0, nil, err
		}
		written = true
		// without a reported consumption: two units, of table and index
		return 4, out.ConsumedCapacity, nil
	})
	return written, err
}

// readItem reads an item; it returns nil if the item is gone.
func (n *initializing) readItem(ctx context.Context, k key) (item map[string]types.AttributeValue, err error) {
	err = n.ask.again(ctx, "GetItem", func() (int, *types.ConsumedCapacity, error) {
		out, err := n.g.db.GetItem(ctx, &dynamodb.GetItemInput{
			TableName: &n.o.Table, Key: n.g.attributes(k), ConsistentRead: aws.Bool(true), ReturnConsumedCapacity: types.ReturnConsumedCapacityTotal,
		})
		if err != nil {
			return 0, nil, err
		}
		item = out.Item
		return 1, out.ConsumedCapacity, nil
	})
	return item, err
}

// shardText returns the text from which Init computes an item's shard: the values of the partition
// key and the sort key, numbers in plain digits, with "/" between.
func (g *Guard) shardText(k key) string {
	var parts []string
	attributes := g.attributes(k)
	for _, name := range g.table.names() {
		switch v := attributes[name].(type) {
		case *types.AttributeValueMemberS:
			parts = append(parts, v.Value)
		case *types.AttributeValueMemberN:
			parts = append(parts, v.Value)
		case *types.AttributeValueMemberB:
			parts = append(parts, string(v.Value))
		}
	}
	return strings.Join(parts, "/")
}
