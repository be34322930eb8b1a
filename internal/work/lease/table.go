package lease

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly/internal/work/attr"
	"github.com/mayflydb/mayfly/internal/work/ensure"
)

// TableName is the table of leases and checkpoints, unless Options.Table names another.
const TableName = "mayfly.leases"

var spec = ensure.Spec{Name: TableName, Key: attrConsumer, Sort: attrShard}

// Attributes of a row. All are written as names of an expression, since some are reserved words.
const (
	attrConsumer   = "consumer"
	attrShard      = "shard"
	attrOwner      = "owner" // absent: no owner
	attrTerm       = "term"
	attrBeat       = "beat"
	attrCheckpoint = "checkpoint" // absent: none yet
	attrOrigin     = "origin"     // absent: unknown
)

// Row is a lease as stored in the table.
type Row struct {
	Shard      string
	Owner      string // "": no owner
	Term       int64  // 0: the row does not exist
	Beat       int64
	Checkpoint string // "": none yet
	// what the consumer has noted of the shard itself; "": nothing. A worker of an older version
	// writes rows without it
	Origin string

	damage *damage // nil: none
}

// damage has the values of a row's term or beat if someone has changed them into anything but valid
// numbers. They count as 0 until the next write repairs them.
type damage struct{ term, beat types.AttributeValue }

// Damaged reports whether a row's term or beat cannot be read.
func (r Row) Damaged() bool { return r.damage != nil }

// Exists reports whether the row is in the table, damaged or not.
func (r Row) Exists() bool { return r.Term != 0 || r.Damaged() }

// isAs returns the condition that a row is unchanged since it was read.
func (r Row) isAs() (condition string, names map[string]string, all map[string]types.AttributeValue) {
	names = map[string]string{"#t": attrTerm, "#b": attrBeat}
	if r.damage == nil {
		return "#t = :t AND #b = :b", names, map[string]types.AttributeValue{":t": attr.Int(r.Term), ":b": attr.Int(r.Beat)}
	}
	is := func(name, value string, as types.AttributeValue) string {
		if as == nil {
			return "attribute_not_exists(" + name + ")"
		}
		if all == nil {
			all = map[string]types.AttributeValue{}
		}
		all[value] = as
		return name + " = " + value
	}
	return is("#t", ":t", r.damage.term) + " AND " + is("#b", ":b", r.damage.beat), names, all
}

func (r Row) item(consumer string) map[string]types.AttributeValue {
	item := map[string]types.AttributeValue{
		attrConsumer: attr.S(consumer),
		attrShard:    attr.S(r.Shard),
		attrTerm:     attr.Int(r.Term),
		attrBeat:     attr.Int(r.Beat),
	}
	if r.Owner != "" {
		item[attrOwner] = attr.S(r.Owner)
	}
	if r.Checkpoint != "" {
		item[attrCheckpoint] = attr.S(r.Checkpoint)
	}
	if r.Origin != "" {
		item[attrOrigin] = attr.S(r.Origin)
	}
	return item
}

func rowOf(item map[string]types.AttributeValue) Row {
	r := Row{Shard: attr.String(item[attrShard]), Owner: attr.String(item[attrOwner]), Checkpoint: attr.String(item[attrCheckpoint]), Origin: attr.String(item[attrOrigin])}
	var term, beat bool
	r.Term, term = count(item[attrTerm])
	r.Beat, beat = count(item[attrBeat])
	if len(item) > 0 && !(term && beat) {
		r.Term, r.Beat, r.damage = 0, 0, &damage{item[attrTerm], item[attrBeat]}
	}
	return r
}

// count returns a term or a beat: at least 1, and with room to grow.
func count(v types.AttributeValue) (n int64, ok bool) {
	n, ok = attr.AsInteger(v)
	return n, ok && n > 0 && n < math.MaxInt64/2
}

// errChanged is the error of a write whose row has changed; now is the present row.
type errChanged struct{ now Row }

func (e *errChanged) Error() string {
	return fmt.Sprintf("the lease of shard %s is in term %d of %q", e.now.Shard, e.now.Term, e.now.Owner)
}

// replace writes a row if it is still as before. A row that already has the new contents was
// written by an earlier attempt of the same write.
func (l *Leases) replace(ctx context.Context, before, after Row) error {
	in := &dynamodb.PutItemInput{
		TableName:                           aws.String(l.o.TableName()),
		Item:                                after.item(l.consumer),
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}
	if before.Term == 0 && before.damage == nil {
		in.ConditionExpression = aws.String("attribute_not_exists(#c)")
		in.ExpressionAttributeNames = map[string]string{"#c": attrConsumer}
	} else {
		var condition string
		condition, in.ExpressionAttributeNames, in.ExpressionAttributeValues = before.isAs()
		in.ConditionExpression = &condition
	}
	_, err := l.db.PutItem(ctx, in)
	if ensure.Missing(err) {
		if _, err = ensure.Table(ctx, l.db, spec.With(l.o.Table)); err == nil {
			_, err = l.db.PutItem(ctx, in)
		}
	}
	var failed *types.ConditionalCheckFailedException
	if !errors.As(err, &failed) {
		return err
	}
	now := rowOf(failed.Item)
	if failed.Item == nil { // the endpoint does not return the item
		if now, err = l.row(ctx, after.Shard); err != nil {
			return err
		}
	}
	if now == after {
		return nil
	}
	return &errChanged{now}
}

// row returns one row.
func (l *Leases) row(ctx context.Context, shard string) (Row, error) {
	out, err := l.db.GetItem(ctx, &dynamodb.GetItemInput{
		TableName:      aws.String(l.o.TableName()),
		Key:            Row{Shard: shard}.key(l.consumer),
		ConsistentRead: aws.Bool(true),
	})
	if err != nil {
		return Row{}, err
	}
	r := rowOf(out.Item)
	r.Shard = shard
	return r, nil
}

func (r Row) key(consumer string) map[string]types.AttributeValue {
	return map[string]types.AttributeValue{
		attrConsumer: attr.S(consumer),
		attrShard:    attr.S(r.Shard),
	}
}

// rows returns all rows of the consumer; none without the table.
func (l *Leases) rows(ctx context.Context) (map[string]Row, error) {
	all := map[string]Row{}
	in := &dynamodb.QueryInput{
		TableName:                 aws.String(l.o.TableName()),
		ConsistentRead:            aws.Bool(true),
		KeyConditionExpression:    aws.String("#c = :c"),
		ExpressionAttributeNames:  map[string]string{"#c": attrConsumer},
		ExpressionAttributeValues: map[string]types.AttributeValue{":c": attr.S(l.consumer)},
	}
	for {
		out, err := l.db.Query(ctx, in)
		if ensure.Missing(err) {
			return all, nil
		}
		if err != nil {
			return nil, err
		}
		for _, item := range out.Items {
			r := rowOf(item)
			all[r.Shard] = r
		}
		if in.ExclusiveStartKey = out.LastEvaluatedKey; in.ExclusiveStartKey == nil {
			return all, nil
		}
	}
}

func conditionFailed(err error) bool {
	var failed *types.ConditionalCheckFailedException
	return errors.As(err, &failed)
}

// Clear deletes all rows of a consumer that no longer runs, with its checkpoints. Of the options it
// needs the table.
func Clear(ctx context.Context, db *dynamodb.Client, consumer string, o Options) error {
	l := New(db, consumer, o)
	rows, err := l.rows(ctx) // empty without the table
	for _, r := range rows {
		if err == nil {
			_, err = db.DeleteItem(ctx, &dynamodb.DeleteItemInput{TableName: aws.String(l.o.TableName()), Key: r.key(consumer)})
		}
	}
	if err != nil {
		return fmt.Errorf("clear the leases of %q: %w", consumer, err)
	}
	return nil
}
