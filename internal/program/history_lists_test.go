package program

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	streamtypes "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
)

// listClient is a client of transactions on lists. An item has a list l, the last writer w, and
// perhaps a deadline.
type listClient struct {
	*historyClient
	table string
	done  []transaction
	read  []listRead // by its last transaction that read
}

// step makes one transaction, and records it. Its error has no answer.
func (c *listClient) step(ctx context.Context, api *dynamodb.Client) error {
	var keys []string
	for first, n := c.keyNumber(), 1+c.random.IntN(3); len(keys) < n; first++ {
		keys = append(keys, fmt.Sprintf("l%d", first))
	}
	c.random.Shuffle(len(keys), func(a, b int) { keys[a], keys[b] = keys[b], keys[a] })
	x := transaction{id: c.next(), client: c.number, call: time.Now()}
	var err error
	switch kind := c.random.IntN(10); {
	case kind < 5:
		x.reads, err = getLists(ctx, api, c.table, keys)
	case kind < 7 || len(c.read) == 0:
		x.appends = keys
		err = c.write(ctx, api, &x)
	default: // its last read must still be true, and it appends to some of those lists
		x.reads, c.read = c.read, nil
		for i, r := range x.reads {
			if i == 0 || c.random.IntN(2) == 0 {
				x.appends = append(x.appends, r.key)
			}
		}
		err = c.write(ctx, api, &x)
	}
	x.ret = time.Now()
	if err != nil {
		err = x.failed(err)
	} else if len(x.appends) == 0 {
		c.read = x.reads
	}
	if x.outcome == committed || len(x.appends) > 0 {
		c.done = append(c.done, x)
	}
	return err
}

// failed notes what an error says about a transaction. It returns the error of one without an answer.
func (x *transaction) failed(err error) error {
	var refused *types.TransactionCanceledException
	var conflict *types.TransactionConflictException
	if errors.As(err, &refused) || errors.As(err, &conflict) {
		x.outcome, x.reads = aborted, nil // they need not have been so
		return nil
	}
	x.outcome = unanswered // its reads are the condition under which it may have happened
	return err
}

// died lets the last transaction, if it has no answer, end when the server was dead. A transaction of an
// earlier server ended with that one.
func (c *listClient) died(began, at time.Time) {
	if n := len(c.done); n > 0 && c.done[n-1].outcome == unanswered && !c.done[n-1].call.Before(began) && c.done[n-1].ret.Before(at) {
		c.done[n-1].ret = at
	}
}

// getLists reads keys in one transaction, or one key by itself.
func getLists(ctx context.Context, api *dynamodb.Client, table string, keys []string) (reads []listRead, err error) {
	key := func(k string) map[string]types.AttributeValue {
		return map[string]types.AttributeValue{"pk": &types.AttributeValueMemberS{Value: k}}
	}
	if len(keys) == 1 {
		answer, err := api.GetItem(ctx, &dynamodb.GetItemInput{TableName: &table, Key: key(keys[0]), ConsistentRead: aws.Bool(true)}, once)
		if err != nil {
			return nil, err
		}
		return []listRead{{keys[0], listIn(answer.Item)}}, nil
	}
	var gets []types.TransactGetItem
	for _, k := range keys {
		gets = append(gets, types.TransactGetItem{Get: &types.Get{TableName: &table, Key: key(k)}})
	}
	answer, err := api.TransactGetItems(ctx, &dynamodb.TransactGetItemsInput{TransactItems: gets}, once)
	if err != nil {
		return nil, err
	}
	for i, r := range answer.Responses {
		reads = append(reads, listRead{keys[i], listIn(r.Item)})
	}
	return reads, nil
}

func listIn(item map[string]types.AttributeValue) (list []int) {
	values, _ := item["l"].(*types.AttributeValueMemberL)
	if values == nil {
		return nil
	}
	for _, v := range values.Value {
		n, _ := strconv.Atoi(text(v))
		list = append(list, n)
	}
	return list
}

// write appends to lists on the condition that each list that was read is as it was.
func (c *listClient) write(ctx context.Context, api *dynamodb.Client, x *transaction) error {
	var items []types.TransactWriteItem
	conditions := map[string]*string{}
	wants := map[string]types.AttributeValue{} // the last writer
	for _, r := range x.reads {
		conditions[r.key] = aws.String("attribute_not_exists(pk)")
		if n := len(r.list); n > 0 {
			conditions[r.key], wants[r.key] = aws.String("w = :last"), whole(r.list[n-1])
		}
	}
	values := func(k string, more map[string]types.AttributeValue) map[string]types.AttributeValue {
		if v := wants[k]; v != nil {
			if more == nil {
				more = map[string]types.AttributeValue{}
			}
			more[":last"] = v
		}
		return more
	}
	for _, k := range x.appends {
		update, more := "SET l = list_append(if_not_exists(l, :none), :l), w = :w REMOVE #t", map[string]types.AttributeValue{
			":none": &types.AttributeValueMemberL{}, ":l": &types.AttributeValueMemberL{Value: []types.AttributeValue{whole(x.id)}}, ":w": whole(x.id),
		}
		if at := c.deadline(); at != never {
			update = "SET l = list_append(if_not_exists(l, :none), :l), w = :w, #t = :t"
			more[":t"] = &types.AttributeValueMemberN{Value: ttlOf(time.UnixMilli(at))}
		}
		items = append(items, types.TransactWriteItem{Update: &types.Update{
			TableName: &c.table, Key: map[string]types.AttributeValue{"pk": &types.AttributeValueMemberS{Value: k}}, UpdateExpression: &update,
			ExpressionAttributeNames: map[string]string{"#t": "ttl"}, ExpressionAttributeValues: values(k, more), ConditionExpression: conditions[k],
		}})
	}
	for _, r := range x.reads {
		if !slices.Contains(x.appends, r.key) {
			items = append(items, types.TransactWriteItem{ConditionCheck: &types.ConditionCheck{
				TableName: &c.table, Key: map[string]types.AttributeValue{"pk": &types.AttributeValueMemberS{Value: r.key}},
				ConditionExpression: conditions[r.key], ExpressionAttributeValues: values(r.key, nil),
			}})
		}
	}
	_, err := api.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{TransactItems: items}, once)
	return err
}

// listChains reads the order of each key's changes from the stream, and holds the images of the
// records against it.
func listChains(t *testing.T, streams *dynamodbstreams.Client, stream string) map[string][]listChange {
	t.Helper()
	type change struct {
		listChange
		seq      *big.Int
		old, new []int
	}
	byKey := map[string][]change{}
	eachRecord(t, streams, stream, func(r streamtypes.Record) {
		c := change{seq: new(big.Int), old: streamList(r.Dynamodb.OldImage), new: streamList(r.Dynamodb.NewImage)}
		c.seq.SetString(aws.ToString(r.Dynamodb.SequenceNumber), 10)
		if r.EventName != streamtypes.OperationTypeRemove {
			c.by, _ = strconv.Atoi(streamText(r.Dynamodb.NewImage["w"]))
			c.deadline = instant(streamText(r.Dynamodb.NewImage["ttl"]))
		} else if r.UserIdentity == nil {
			t.Errorf("a client removed %v", r.Dynamodb.Keys)
		}
		key := streamText(r.Dynamodb.Keys["pk"])
		byKey[key] = append(byKey[key], c)
	})
	chains := map[string][]listChange{}
	for key, list := range byKey {
		slices.SortFunc(list, func(a, b change) int { return a.seq.Cmp(b.seq) })
		var state []int
		for _, c := range list {
			next := []int(nil)
			if c.by != 0 {
				next = append(slices.Clip(state), c.by)
			}
			if !slices.Equal(c.old, state) || !slices.Equal(c.new, next) {
				t.Errorf("%s: a record leads from %v to %v, and the list was %v", key, c.old, c.new, state)
			}
			state = next
			chains[key] = append(chains[key], c.listChange)
		}
	}
	return chains
}

func streamList(image map[string]streamtypes.AttributeValue) (list []int) {
	values, _ := image["l"].(*streamtypes.AttributeValueMemberL)
	if values == nil {
		return nil
	}
	for _, v := range values.Value {
		n, _ := strconv.Atoi(streamText(v))
		list = append(list, n)
	}
	return list
}
