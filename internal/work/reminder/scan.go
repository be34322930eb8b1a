package reminder

import (
	"context"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly/internal/clock"
	"github.com/mayflydb/mayfly/internal/work/attr"
	"github.com/mayflydb/mayfly/internal/work/consume"
	"github.com/mayflydb/mayfly/internal/work/ensure"
)

// scanOnce finds the items that are older than the rule, its version, or the table's stream. It
// continues an interrupted scan.
func (r *rule) scanOnce(ctx context.Context, consumer *consume.Consumer, stream string) {
	r.persist(ctx, "read the table", func() error {
		state, err := r.state(ctx)
		if err != nil {
			return err
		}
		if attr.String(state[attrStream]) != stream {
			state = r.unscanned(stream, attr.Integer(state[attrLosses]))
		}
		if state[attrScanned] != nil {
			return nil
		}
		if err := begun(ctx, consumer); err != nil {
			return err
		}
		err = r.scan(ctx, stream, state)
		// the table is gone; its stream can still be read, and has the removals
		if ensure.Missing(err) {
			return nil
		}
		return err
	})
}

// scanAgain makes scanOnce scan the whole table again. A scan that is under way cannot store that it
// is complete.
func (r *rule) scanAgain(ctx context.Context, stream string) error {
	before, err := r.state(ctx)
	if err != nil {
		return err
	}
	losses := attr.Integer(before[attrLosses])
	return r.putState(ctx, r.unscanned(stream, losses+1), losses)
}

// unscanned returns the state before a scan.
func (r *rule) unscanned(stream string, losses int64) item {
	return item{attrVersion: attr.S(r.version), attrStream: attr.S(stream), attrLosses: attr.Int(losses)}
}

// begunEvery is the pause between looks for the start of a consumer.
const begunEvery = 5 * time.Millisecond

// begun waits until the consumer has saved its start. The stream has all later writes, so the scan
// needs to find the earlier ones only.
func begun(ctx context.Context, consumer *consume.Consumer) error {
	for ctx.Err() == nil {
		begun, err := consumer.Begun(ctx)
		if begun || err != nil {
			return err
		}
		clock.Pause(begunEvery, ctx.Done())
	}
	return ctx.Err()
}

// scan reads the table from the position in state.
func (r *rule) scan(ctx context.Context, stream string, state item) error {
	in := &dynamodb.ScanInput{TableName: &r.Table, ConsistentRead: aws.Bool(true)}
	if cursor, ok := state[attrCursor].(*types.AttributeValueMemberM); ok {
		in.ExclusiveStartKey = cursor.Value
	}
	keys, err := r.keys(ctx)
	if err != nil {
		return err
	}
	found, losses := 0, attr.Integer(state[attrLosses])
	for {
		page, err := r.o.DB.Scan(ctx, in)
		if err != nil {
			return err
		}
		for _, it := range page.Items {
			key := item{}
			for _, name := range keys {
				key[name] = it[name]
			}
			due, named := r.dueOrWarn(key, it)
			if !named || due.Before(r.o.Now()) && r.Past != pastFire {
				continue
			}
			if err := r.remind(ctx, key, it, due, order(stream, "")); err != nil {
				return err
			}
			found++
		}
		if in.ExclusiveStartKey = page.LastEvaluatedKey; in.ExclusiveStartKey == nil {
			break
		}
		state[attrCursor] = attr.M(in.ExclusiveStartKey)
		if err := r.putState(ctx, state, losses); err != nil {
			return err
		}
	}
	delete(state, attrCursor)
	state[attrScanned] = attr.Bool(true)
	if err := r.putState(ctx, state, losses); err != nil {
		return err
	}
	r.log.Info("all items of the table have their reminders", "table", r.Table, "found", found)
	return nil
}

// keys returns the names of the table's key attributes.
func (r *rule) keys(ctx context.Context) (names []string, err error) {
	out, err := r.o.DB.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &r.Table})
	if err != nil {
		return nil, err
	}
	for _, k := range out.Table.KeySchema {
		names = append(names, *k.AttributeName)
	}
	return names, nil
}

func (r *rule) stateName() types.AttributeValue {
	return attr.S("rule#" + r.Name + "#" + r.version)
}

// state returns the state of the rule's scan. Each version of a rule has its own, as it has its own
// checkpoints, since another worker may run another version.
func (r *rule) state(ctx context.Context) (item, error) { return r.get(ctx, r.stateName()) }

// putState writes the state. It fails if the number of losses has changed, which asks for another
// scan.
func (r *rule) putState(ctx context.Context, state item, losses int64) error {
	state[attrName], state[attrKind], state[attrRule] = r.stateName(), attr.S(kindRule), attr.S(r.Name)
	in := &dynamodb.PutItemInput{
		TableName: aws.String(TableName), Item: state,
		ConditionExpression: aws.String("attribute_not_exists(#l) OR #l = :l"), ExpressionAttributeNames: map[string]string{"#l": attrLosses},
		ExpressionAttributeValues: item{":l": attr.Int(losses)},
	}
	_, err := r.o.DB.PutItem(ctx, in)
	return err
}
