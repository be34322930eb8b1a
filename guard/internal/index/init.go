package index

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly/guard/internal/armed"
	"github.com/mayflydb/mayfly/guard/internal/strategy"
	"github.com/mayflydb/mayfly/guard/internal/table"
	"github.com/mayflydb/mayfly/internal/work/attr"
	"github.com/mayflydb/mayfly/internal/work/lease"
	"github.com/mayflydb/mayfly/internal/work/retry"
)

// InitOptions are the part of guard's InitOptions that is about the index.
type InitOptions struct {
	IndexName, Key string
	Granularity    time.Duration
	Shards         int
	MaxWCU         float64
	Progress       func(done, total int64) // may be nil
}

// InitReport is guard's InitReport.
type InitReport struct {
	Index, Key, Layout                                     string
	Created                                                bool
	Scanned, Written, Right, Without, Bad, Renewed, Failed int64
}

const (
	initWriters     = 8 // per segment
	initTries       = 5 // attempts at an item whose TTL changes each time
	initFailures    = 10
	initUnseenPolls = 7 // times that an index may be missing from the description after it was made
)

// initPolls are the pauses between two checks whether the index is active.
var initPolls = retry.Policy{First: 10 * time.Millisecond, Most: 2 * time.Second}

// initializing is one call of Init.
type initializing struct {
	*strategy.Reader
	o      InitOptions
	layout layout
	key    string
	write  *strategy.Reader
	total  int64
	mu     struct {
		sync.Mutex
		report InitReport
	}
}

// Init creates or checks the index, stores its layout, and sets the partition key of each item with
// a TTL. A dry run changes nothing, and reports the changes.
func Init(ctx context.Context, e *strategy.Env, o InitOptions) (InitReport, error) {
	if o.Progress == nil {
		o.Progress = func(int64, int64) {}
	}
	n := &initializing{
		Reader: e.NewReader(e.MaxRCU), o: o, layout: layout{Granularity: int64(o.Granularity / time.Second), Shards: o.Shards}, write: e.NewReader(o.MaxWCU),
	}
	err := n.run(ctx)
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.mu.report, err
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
	if !n.DryRun {
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
	t, o := n.Table, n.o
	var shaped []*expirationIndex
	for i := range t.Indexes {
		d := &t.Indexes[i]
		x, why := indexOf(t, d)
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
		return wanted{}, &table.Problem{Code: table.Misconfigured, Message: fmt.Sprintf("table %s has several indexes with the sort key %s", t.Name, t.Attribute), Next: "name the index to use (--index)"}
	case len(shaped) == 1 && !slices.Contains(t.Names(), shaped[0].key):
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
	w.name = cmp.Or(w.name, w.key+"Index")
	another := &table.Problem{Code: table.Misconfigured, Message: fmt.Sprintf("%s cannot be the index's partition key: guard uses it for something else", w.key), Next: "choose another attribute (--key)"}
	if w.key == t.Attribute || w.key == t.Version {
		return wanted{}, another
	}
	for attribute, kind := range map[string]types.ScalarAttributeType{w.key: types.ScalarAttributeTypeS, t.Attribute: types.ScalarAttributeTypeN} {
		if has, defined := t.Kinds[attribute]; defined && has != kind {
			return wanted{}, &table.Problem{Code: table.NoIndex, Message: fmt.Sprintf("cannot create the index: %s has the type %s in a key of table %s and would need the type %s", attribute, has, t.Name, kind),
				Next: "choose another attribute as the index's partition key (--key), or another strategy"}
		}
	}
	if slices.Contains(t.Names(), w.key) {
		return wanted{}, another
	}
	for i := range t.Indexes {
		if aws.ToString(t.Indexes[i].IndexName) == w.name {
			return wanted{}, &table.Problem{Code: table.NoIndex, Message: fmt.Sprintf("table %s has an index %s of a different shape", t.Name, w.name), Next: "choose another name (--index)"}
		}
	}
	return w, nil
}

// sample checks a page of the existing index before anything is written: it may be the
// application's.
func (n *initializing) sample(ctx context.Context, index string) error {
	items, _, err := n.Scan(ctx, &dynamodb.ScanInput{
		TableName: &n.Table.Name, IndexName: &index, ProjectionExpression: aws.String("#key"), ExpressionAttributeNames: map[string]string{"#key": n.key},
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
func (n *initializing) strange(odd string) *table.Problem {
	return &table.Problem{
		Code: table.Misconfigured, Message: fmt.Sprintf("an item of table %s has %s, which is neither a shard nor a window: the application seems to use that attribute", n.Table.Name, odd),
		Next: "choose another attribute as the index's partition key (--key), and another name (--index)",
	}
}

// create creates the index with keys only, since each write of an item also writes its projection.
func (n *initializing) create(ctx context.Context, name string) error {
	d, err := n.describe(ctx)
	if err != nil {
		return err
	}
	in := &dynamodb.UpdateTableInput{TableName: &n.Table.Name, AttributeDefinitions: d.AttributeDefinitions}
	for attribute, kind := range map[string]types.ScalarAttributeType{n.key: types.ScalarAttributeTypeS, n.Table.Attribute: types.ScalarAttributeTypeN} {
		if !slices.ContainsFunc(in.AttributeDefinitions, func(a types.AttributeDefinition) bool { return aws.ToString(a.AttributeName) == attribute }) {
			in.AttributeDefinitions = append(in.AttributeDefinitions, types.AttributeDefinition{AttributeName: &attribute, AttributeType: kind})
		}
	}
	index := &types.CreateGlobalSecondaryIndexAction{
		IndexName:  &name,
		KeySchema:  []types.KeySchemaElement{{AttributeName: &n.key, KeyType: types.KeyTypeHash}, {AttributeName: &n.Table.Attribute, KeyType: types.KeyTypeRange}},
		Projection: &types.Projection{ProjectionType: types.ProjectionTypeKeysOnly},
	}
	if n.Table.Version != "" {
		index.Projection = &types.Projection{ProjectionType: types.ProjectionTypeInclude, NonKeyAttributes: []string{n.Table.Version}}
	}
	if p := d.ProvisionedThroughput; p != nil && aws.ToInt64(p.WriteCapacityUnits) > 0 {
		index.ProvisionedThroughput = &types.ProvisionedThroughput{ReadCapacityUnits: p.ReadCapacityUnits, WriteCapacityUnits: p.WriteCapacityUnits}
	}
	in.GlobalSecondaryIndexUpdates = []types.GlobalSecondaryIndexUpdate{{Create: index}}
	err = n.updateTable(ctx, in)
	p, refused := errors.AsType[*table.Problem](err)
	if refused = refused && p.Code == table.Misconfigured; refused && index.ProvisionedThroughput == nil {
		// DynamoDB Local and dynalite want these numbers for any table, and ignore them
		index.ProvisionedThroughput = &types.ProvisionedThroughput{ReadCapacityUnits: aws.Int64(1), WriteCapacityUnits: aws.Int64(1)}
		if n.updateTable(ctx, in) == nil {
			return nil
		}
	}
	if refused {
		return &table.Problem{Code: table.NoIndex, Message: fmt.Sprintf("the endpoint refuses to create the index %s", name), Next: "create it together with the table, or choose another strategy", Err: p.Err}
	}
	return err
}

func (n *initializing) updateTable(ctx context.Context, in *dynamodb.UpdateTableInput) error {
	return n.AskOther(ctx, "UpdateTable", func() error {
		_, err := n.DB.UpdateTable(ctx, in)
		return err
	})
}

func (n *initializing) describe(ctx context.Context) (d *types.TableDescription, err error) {
	err = n.AskOther(ctx, "DescribeTable", func() error {
		d, err = table.Description(ctx, n.DB, n.Table.Name)
		return err
	})
	return d, err
}

// awaitActive waits until the index is active, which takes minutes or more at Amazon. It also
// learns the table's item count.
func (n *initializing) awaitActive(ctx context.Context, name string) error {
	unseen := 0
	for pauses := initPolls.Start(); ; {
		d, err := n.describe(ctx)
		if err != nil {
			return err
		}
		i := slices.IndexFunc(d.GlobalSecondaryIndexes, func(x types.GlobalSecondaryIndexDescription) bool { return aws.ToString(x.IndexName) == name })
		switch {
		case i < 0:
			if unseen++; unseen > initUnseenPolls {
				return &table.Problem{Code: table.NoIndex, Message: fmt.Sprintf("the endpoint accepted the request to create the index %s but did not create it", name),
					Next: "create it together with the table, or choose another strategy"}
			}
		case isActive(&d.GlobalSecondaryIndexes[i]):
			n.total = aws.ToInt64(d.ItemCount)
			return nil
		case d.GlobalSecondaryIndexes[i].IndexStatus == types.IndexStatusDeleting:
			return &table.Problem{Code: table.NoIndex, Message: fmt.Sprintf("the index %s is being deleted", name), Next: "wait until it is deleted, or choose another name (--index)"}
		}
		n.o.Progress(0, aws.ToInt64(d.ItemCount))
		if !pauses.Wait(ctx) {
			return ctx.Err()
		}
	}
}

// note stores the layout for later sweepers.
func (n *initializing) note(ctx context.Context) error {
	leases := n.Shares(Name)
	return n.AskOther(ctx, "PutItem", func() error {
		row, err := leases.Note(ctx, LayoutRow, n.layout.text())
		if err != nil || row.Checkpoint == n.layout.text() {
			return err
		}
		n.Log.Warn("the index had another layout until now: restart running guards", "table", n.Table.Name, "was", row.Checkpoint, "is", n.layout.text())
		l, err := leases.Take(ctx, row)
		if err == nil {
			err = l.Save(ctx, n.layout.text())
		}
		return err
	})
}

// backfill sets the partition key of each item with a TTL.
func (n *initializing) backfill(ctx context.Context) error {
	segments := min(n.Segments, strategy.LeasesMost)
	n.o.Progress(0, n.total)
	if n.DryRun {
		return strategy.Parallel(ctx, segments, segments, func(ctx context.Context, number int) error { return n.walk(nil, number, segments).Once(ctx) })
	}
	consumer := fmt.Sprintf("%s/%s/%s/%d/%d/%d", n.Consumer("init"), n.Table.Attribute, n.key, n.layout.Granularity, n.layout.Shards, n.Segments)
	leases := lease.New(n.DB, consumer, lease.Options{Exclusive: true, Logger: n.Log, Fatal: n.Leases.Fatal, Table: n.Leases.Table})
	err := lease.Hold(ctx, leases, n.SegmentNames(""), func(ctx context.Context, l *lease.Lease) error {
		if err := n.walk(l, strategy.NumberOf(l, ""), segments).Once(ctx); err != nil {
			return err
		}
		return n.AskOther(ctx, "PutItem", func() error { return l.Save(ctx, lease.Done) })
	})
	if err == nil {
		err = ctx.Err()
	}
	// so that another run reads everything again, including the items that could not be written
	if p := (*table.Problem)(nil); err == nil || errors.As(err, &p) && p.Code == table.Misconfigured {
		if e := lease.Clear(ctx, n.DB, consumer, n.Leases); err == nil {
			err = e
		}
	}
	return err
}

func (n *initializing) walk(l *lease.Lease, number, segments int) *strategy.Walk {
	return &strategy.Walk{
		Reader: n.Reader, Lease: l, Number: number, Shares: segments, Input: dynamodb.ScanInput{TableName: &n.Table.Name}, Extra: []string{n.key},
		Visit: func(ctx context.Context, items []map[string]types.AttributeValue, _ int64) error {
			err := strategy.Parallel(ctx, len(items), initWriters, func(ctx context.Context, i int) error { return n.item(ctx, items[i]) })
			n.count(func(r *InitReport) {
				if err == nil {
					r.Scanned += int64(len(items))
					n.o.Progress(r.Scanned, max(n.total, r.Scanned))
				}
			})
			return err
		},
	}
}

func (n *initializing) count(change func(*InitReport)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	change(&n.mu.report)
}

// item sets an item's partition key, if its TTL is still the same.
func (n *initializing) item(ctx context.Context, item map[string]types.AttributeValue) error {
	for range initTries {
		_, has := item[n.Table.Attribute]
		if !has {
			n.count(func(r *InitReport) { r.Without++ })
			return nil
		}
		e, ok := n.EntryOf(item)
		if !ok {
			n.count(func(r *InitReport) { r.Bad++ })
			return nil
		}
		if odd := stranger([]map[string]types.AttributeValue{item}, n.key); odd != "" {
			return n.strange(odd)
		}
		if v, isText := attr.AsString(item[n.key]); isText {
			if _, right := n.layout.shardOf(v, table.WholeSeconds(e.At)); right {
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
	if p := (*table.Problem)(nil); !errors.As(err, &p) || p.Code != table.Misconfigured {
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
	n.Log.Warn("an item cannot be written", "table", n.Table.Name, "key", n.Table.KeyJSON(e.Key), "error", err)
	return nil
}

// update writes the partition key. written is false if the TTL has changed, or the item is gone.
func (n *initializing) update(ctx context.Context, e armed.Entry) (written bool, err error) {
	if n.DryRun {
		return true, nil
	}
	in := &dynamodb.UpdateItemInput{
		TableName: &n.Table.Name, Key: n.Table.Attributes(e.Key), UpdateExpression: aws.String("SET #key = :place"), ConditionExpression: aws.String("#ttl = :seen"),
		ExpressionAttributeNames: map[string]string{"#key": n.key, "#ttl": n.Table.Attribute},
		ExpressionAttributeValues: map[string]types.AttributeValue{
			":place": attr.S(n.layout.place(table.WholeSeconds(e.At), shardText(n.Table, e.Key))), ":seen": attr.N(e.Text()),
		},
		ReturnConsumedCapacity: types.ReturnConsumedCapacityTotal,
	}
	err = n.write.Ask(ctx, "UpdateItem", func() (int, *types.ConsumedCapacity, error) {
		out, err := n.DB.UpdateItem(ctx, in)
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
func (n *initializing) readItem(ctx context.Context, k armed.Key) (item map[string]types.AttributeValue, err error) {
	err = n.Ask(ctx, "GetItem", func() (int, *types.ConsumedCapacity, error) {
		out, err := n.DB.GetItem(ctx, &dynamodb.GetItemInput{
			TableName: &n.Table.Name, Key: n.Table.Attributes(k), ConsistentRead: aws.Bool(true), ReturnConsumedCapacity: types.ReturnConsumedCapacityTotal,
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
func shardText(t *table.Table, k armed.Key) string {
	var parts []string
	attributes := t.Attributes(k)
	for _, name := range t.Names() {
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
