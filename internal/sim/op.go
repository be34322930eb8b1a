package sim

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
)

// kind is what a request does.
type kind int

const (
	put kind = iota
	update
	remove
	get
	query       // a partition
	index       // a partition of an index
	scan        // the table
	count       // a partition, without its items
	batchPut    // writes that share a request and are otherwise alone
	batchGet    // keys that share a request; each is read by itself
	transact    // writes that happen at one instant, or none does
	transactGet // keys that are read at one instant
)

var kindNames = [...]string{"PutItem", "UpdateItem", "DeleteItem", "GetItem", "Query", "Query of an index", "Scan", "Query of the count", "BatchWriteItem", "BatchGetItem",
	"TransactWriteItems", "TransactGetItems"}

func (k kind) String() string { return kindNames[k] }

// condition is a condition of a write.
type condition int

const (
	always condition = iota
	absent
	present
)

// outcome is what the client of a request knows.
type outcome int

const (
	unknown outcome = iota // there is no answer, or one that leaves it open
	done
	failed  // a condition was false
	refused // nothing happened
)

// write is a change of one key.
type write struct {
	op        *op
	key       key
	kind      kind  // put, update or remove
	item      image // the whole item of a put, what an update sets and removes
	condition condition
	steps     []int // of the round's order that are due to it
}

// op is a request.
type op struct {
	name   string
	kind   kind
	at     time.Duration // in the round
	writes []*write
	keys   []key
	pk     string // of a query; the value of g for one of an index
	index  string // the name of that index
	moot   bool   // the index may be missing

	mishap mishap // of the network

	hurt     atomic.Bool // a server answered whose disk failed or was cut, so an error of it says nothing
	full     atomic.Bool // the server's disk was full, so a write that grows the data is refused
	outcome  outcome
	roomless bool  // it was refused for that
	conflict bool  // it was refused because of another request to one of its keys
	err      error // what the client got, if it is none of the expected failures
	inv, ret int   // the ticks at which the client called and got the answer
	end      int   // the tick after which no copy of the request can change anything: the last one has left the server, and the client has its answer
	t0, t1   int64 // the times of inv and ret, in milliseconds
	seen     map[key]image
	counted  int
	old      image // what a put or a removal returned
	next     image // what an update returned
}

func (o *op) String() string { return fmt.Sprintf("%v %s", o.kind, o.name) }

// conditionText returns the text of the condition of a write, or nil.
func (w *write) conditionText() *string {
	switch w.condition {
	case absent:
		return aws.String("attribute_not_exists(pk)")
	case present:
		return aws.String("attribute_exists(pk)")
	}
	return nil
}

// expression returns the update expression of an update.
func (w *write) expression() (text string, names map[string]string, values map[string]types.AttributeValue) {
	names, values = map[string]string{}, map[string]types.AttributeValue{":one": &types.AttributeValueMemberN{Value: "1"}}
	var set, drop []string
	for _, name := range attributes {
		v, ok := w.item[name]
		if !ok {
			continue
		}
		names["#"+name] = name
		if v == "" {
			drop = append(drop, "#"+name)
			continue
		}
		values[":"+name] = attribute(v)
		set = append(set, "#"+name+" = :"+name)
	}
	text = "SET " + strings.Join(set, ", ")
	if len(drop) > 0 {
		text += " REMOVE " + strings.Join(drop, ", ")
	}
	return text + " ADD n :one", names, values
}

// apply returns what a write makes of an item.
func (w *write) apply(old image) image {
	switch w.kind {
	case put:
		return w.item
	case remove:
		return nil
	}
	if old == nil {
		old = w.key.image()
	}
	n := 0
	_, _ = fmt.Sscan(value(old["n"]), &n)
	return old.with(w.item).with(image{"n": fmt.Sprint("N", n+1)})
}

// run makes the call and notes its outcome.
func (o *op) run(ctx context.Context, db *dynamodb.Client) {
	err := o.call(ctx, db)
	if err == nil {
		o.outcome = done
		return
	}
	var condition *types.ConditionalCheckFailedException
	var cancelled *types.TransactionCanceledException
	var answer smithy.APIError
	switch {
	case errors.As(err, &condition):
		o.outcome = failed
		o.seen = map[key]image{o.writes[0].key: fromItem(condition.Item)}
	case errors.As(err, &cancelled):
		o.outcome, o.conflict = refused, true
		for i, r := range cancelled.CancellationReasons {
			if aws.ToString(r.Code) == "ConditionalCheckFailed" {
				o.outcome, o.conflict = failed, false
				o.seen = map[key]image{o.writes[i].key: fromItem(r.Item)} // one is enough
			}
		}
	case errors.As(err, &answer) && answer.ErrorCode() == "TransactionConflictException":
		o.outcome, o.conflict = refused, true
	case o.full.Load() && len(o.writes) > 0 && o.kind != remove && isLimit(err):
		o.outcome, o.roomless = refused, true
	case errors.As(err, &answer) && answer.ErrorFault() == smithy.FaultClient:
		o.outcome, o.err = refused, err
	case o.moot && errors.As(err, &answer) && answer.ErrorCode() == "ValidationException": // there is no such index
		o.outcome = refused
	case errors.Is(err, errDown), errors.Is(err, errReset), o.hurt.Load():
		o.outcome = unknown
	default: // a whole server has no reason
		o.outcome, o.err = unknown, err
	}
	if o.outcome != unknown && o.mishap.again {
		o.outcome = unknown // the other copy may have been executed
	}
}

// isLimit reports whether a server refused a call for a limit, such as the room on its disk.
func isLimit(err error) bool {
	var answer smithy.APIError
	return errors.As(err, &answer) && answer.ErrorCode() == "LimitExceededException"
}

const tableName = "items"

var table = aws.String(tableName)

func (o *op) call(ctx context.Context, db *dynamodb.Client) error {
	switch o.kind {
	case put:
		w := o.writes[0]
		out, err := db.PutItem(ctx, &dynamodb.PutItemInput{TableName: table, Item: w.item.item(), ConditionExpression: w.conditionText(), ReturnValues: types.ReturnValueAllOld,
			ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld})
		if err == nil {
			o.old = fromItem(out.Attributes)
		}
		return err
	case update:
		w := o.writes[0]
		text, names, values := w.expression()
		out, err := db.UpdateItem(ctx, &dynamodb.UpdateItemInput{TableName: table, Key: w.key.image().item(), UpdateExpression: &text, ExpressionAttributeNames: names,
			ExpressionAttributeValues: values, ConditionExpression: w.conditionText(), ReturnValues: types.ReturnValueAllNew,
			ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld})
		if err == nil {
			o.next = fromItem(out.Attributes)
		}
		return err
	case remove:
		w := o.writes[0]
		out, err := db.DeleteItem(ctx, &dynamodb.DeleteItemInput{TableName: table, Key: w.key.image().item(), ConditionExpression: w.conditionText(), ReturnValues: types.ReturnValueAllOld,
			ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld})
		if err == nil {
			o.old = fromItem(out.Attributes)
		}
		return err
	case get:
		out, err := db.GetItem(ctx, &dynamodb.GetItemInput{TableName: table, Key: o.keys[0].image().item(), ConsistentRead: aws.Bool(true)})
		if err == nil {
			err = o.see(o.keys, out.Item)
		}
		return err
	case batchPut:
		var requests []types.WriteRequest
		for _, w := range o.writes {
			requests = append(requests, types.WriteRequest{PutRequest: &types.PutRequest{Item: w.item.item()}})
		}
		out, err := db.BatchWriteItem(ctx, &dynamodb.BatchWriteItemInput{RequestItems: map[string][]types.WriteRequest{tableName: requests}})
		if err == nil && len(out.UnprocessedItems) > 0 {
			return fmt.Errorf("%d items of a batch were not processed", len(out.UnprocessedItems[tableName]))
		}
		return err
	case batchGet:
		var keys []map[string]types.AttributeValue
		for _, k := range o.keys {
			keys = append(keys, k.image().item())
		}
		out, err := db.BatchGetItem(ctx, &dynamodb.BatchGetItemInput{RequestItems: map[string]types.KeysAndAttributes{tableName: {Keys: keys, ConsistentRead: aws.Bool(true)}}})
		if err != nil {
			return err
		}
		if len(out.UnprocessedKeys) > 0 {
			return errors.New("keys of a batch were not processed")
		}
		return o.see(o.keys, out.Responses[tableName]...)
	case transact:
		return o.transactWrite(ctx, db)
	case transactGet:
		var gets []types.TransactGetItem
		for _, k := range o.keys {
			gets = append(gets, types.TransactGetItem{Get: &types.Get{TableName: table, Key: k.image().item()}})
		}
		out, err := db.TransactGetItems(ctx, &dynamodb.TransactGetItemsInput{TransactItems: gets})
		if err != nil {
			return err
		}
		if len(out.Responses) != len(o.keys) {
			return fmt.Errorf("%d answers to %d reads", len(out.Responses), len(o.keys))
		}
		for i, r := range out.Responses {
			if err := o.see(o.keys[i:i+1], r.Item); err != nil {
				return err
			}
		}
	default:
		return o.readMany(ctx, db)
	}
	return nil
}

func (o *op) transactWrite(ctx context.Context, db *dynamodb.Client) error {
	var items []types.TransactWriteItem
	for _, w := range o.writes {
		var item types.TransactWriteItem
		if w.kind == put {
			item.Put = &types.Put{TableName: table, Item: w.item.item(), ConditionExpression: w.conditionText(),
				ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld}
		} else {
			text, names, values := w.expression()
			item.Update = &types.Update{TableName: table, Key: w.key.image().item(), UpdateExpression: &text, ExpressionAttributeNames: names, ExpressionAttributeValues: values,
				ConditionExpression: w.conditionText(), ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld}
		}
		items = append(items, item)
	}
	_, err := db.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{TransactItems: items, ClientRequestToken: aws.String(o.name)})
	return err
}

// readMany runs queries and scans. None of their answers fills a page.
func (o *op) readMany(ctx context.Context, db *dynamodb.Client) error {
	if o.kind == scan {
		out, err := db.Scan(ctx, &dynamodb.ScanInput{TableName: table, ConsistentRead: aws.Bool(true)})
		if err != nil {
			return err
		}
		if out.LastEvaluatedKey != nil {
			return errors.New("the scan has a second page")
		}
		return o.seeAll(out.Count, out.Items)
	}
	in := &dynamodb.QueryInput{TableName: table, ConsistentRead: aws.Bool(true), KeyConditionExpression: aws.String("pk = :pk"),
		ExpressionAttributeValues: map[string]types.AttributeValue{":pk": &types.AttributeValueMemberS{Value: o.pk}}}
	if o.kind == index {
		in.IndexName, in.ConsistentRead, in.KeyConditionExpression = &o.index, nil, aws.String("g = :pk")
	}
	if o.kind == count {
		in.Select = types.SelectCount
	}
	out, err := db.Query(ctx, in)
	if err != nil {
		return err
	}
	if out.LastEvaluatedKey != nil {
		return errors.New("the query has a second page")
	}
	o.counted = int(out.Count)
	if o.kind == count {
		return nil
	}
	return o.seeAll(out.Count, out.Items)
}

// seeAll notes the items of a query or a scan, which has counted them.
func (o *op) seeAll(n int32, items []map[string]types.AttributeValue) error {
	if int(n) != len(items) {
		return fmt.Errorf("%d items are counted as %d", len(items), n)
	}
	return o.see(nil, items...)
}

// see notes items that a read returned. It asked for some keys, or for all: nil.
func (o *op) see(asked []key, items ...map[string]types.AttributeValue) error {
	if o.seen == nil {
		o.seen = make(map[key]image, len(items))
	}
	for _, item := range items {
		m := fromItem(item)
		if m == nil {
			continue
		}
		k := m.key()
		if _, twice := o.seen[k]; twice {
			return fmt.Errorf("%v is in the answer twice", k)
		}
		if asked != nil && !slices.Contains(asked, k) {
			return fmt.Errorf("%v is in the answer and was not asked for", k)
		}
		o.seen[k] = m
	}
	return nil
}
