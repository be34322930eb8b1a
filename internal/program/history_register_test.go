package program

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// This file checks operations on single items for linearizability, by porcupine.

// registerOp is an operation on one item: a read, a write, or a write with a condition.
type registerOp struct {
	kind     string // get, query, put, update or delete
	key      string
	put      int   // the value that it writes; 0: none
	deadline int64 // of that value, in milliseconds since 1970; never: none
	expect   int   // the value that the condition wants; 0: no item, anyValue: there is no condition
	begun    int64 // the clock at the call, in milliseconds since 1970
}

const (
	never    = math.MaxInt64
	anyValue = -1
)

func (o registerOp) writes() bool { return o.put != 0 || o.kind == "delete" }

// registerAnswer is the result of an operation.
type registerAnswer struct {
	ended   int64 // the clock at the return
	seen    int   // the value before; 0: no item
	done    bool  // the condition held
	unknown bool  // there was no answer: the write may have happened
}

// registerState is the state of an item, as far as operations have shown it.
type registerState struct {
	value    int // 0: no item
	deadline int64
	now      int64 // the present instant is at least this
}

// expiringRegister is the model of one item under a clock that runs: an operation takes effect at
// one instant between its call and its return, and from its deadline on the item does not exist.
// An operation without an answer has happened before the server was dead, or never.
var expiringRegister = (&porcupine.NondeterministicModel{
	Init: func() []any { return []any{registerState{now: math.MinInt64}} },
	Step: func(state, input, output any) []any {
		s, in, out := state.(registerState), input.(registerOp), output.(registerAnswer)
		s.now = max(s.now, in.begun-clockSkew.Milliseconds())
		ended := out.ended + clockSkew.Milliseconds()
		if s.now > ended {
			return nil // an operation before it happened after it had returned
		}
		// gone is the state once the item has expired, if that is possible here.
		gone := func() (registerState, bool) {
			if s.value == 0 {
				return s, true
			}
			return registerState{now: max(s.now, s.deadline)}, s.deadline <= ended
		}
		written := func(s registerState) any { return registerState{in.put, in.deadline, s.now} }
		switch {
		case out.unknown:
			states := []any{s}
			if none, ok := gone(); ok && in.expect == 0 {
				states = append(states, written(none))
			}
			if in.expect == anyValue || in.expect > 0 && in.expect == s.value && s.now < s.deadline {
				states = append(states, written(s))
			}
			return states
		case in.writes() && in.expect != anyValue && out.done != (out.seen == in.expect):
			return nil // the condition was judged wrongly
		case out.seen != 0 && (out.seen != s.value || s.deadline <= s.now):
			return nil
		case out.seen == 0:
			none, ok := gone()
			if !ok {
				return nil
			}
			s = none
		}
		if in.writes() && out.done {
			return []any{written(s)}
		}
		return []any{s}
	},
}).ToModel()

func describeRegister(input, output any) string {
	in, out := input.(registerOp), output.(registerAnswer)
	text := in.kind
	if in.put != 0 {
		text += fmt.Sprintf(" %d, deadline %s", in.put, clockMillis(in.deadline))
	}
	if in.writes() && in.expect != anyValue {
		text += fmt.Sprintf(", if it is %d", in.expect)
	}
	if out.unknown {
		return text + ": no answer"
	}
	return text + fmt.Sprintf(": saw %d, done %t", out.seen, out.done)
}

func clockMillis(ms int64) string {
	if ms == never || ms == 0 {
		return "none"
	}
	return clockTime(time.UnixMilli(ms))
}

// checkRegisters returns a description of each violation in a history. A history that is not decided in time
// is a violation, too.
func checkRegisters(history []porcupine.Operation) (wrong []string) {
	byKey := map[string][]porcupine.Operation{}
	for _, op := range history {
		key := op.Input.(registerOp).key
		byKey[key] = append(byKey[key], op)
	}
	for key, ops := range byKey {
		result, info := porcupine.CheckOperationsVerbose(expiringRegister, ops, time.Minute)
		switch result {
		case porcupine.Unknown:
			wrong = append(wrong, fmt.Sprintf("%s: a minute was not enough to order %d operations", key, len(ops)))
		case porcupine.Illegal:
			wrong = append(wrong, fmt.Sprintf("%s: no order explains these operations:\n%s", key, listOperations(ops, info)))
		}
	}
	return wrong
}

// listOperations lists operations by their calls, and marks those that the longest order does not
// explain.
func listOperations(ops []porcupine.Operation, info porcupine.LinearizationInfo) string {
	var longest []int
	for _, order := range info.PartialLinearizations()[0] {
		if len(order) > len(longest) {
			longest = order
		}
	}
	places := make([]int, len(ops))
	for i := range places {
		places[i] = i
	}
	slices.SortFunc(places, func(a, b int) int { return cmp.Compare(ops[a].Call, ops[b].Call) })
	var lines []string
	for _, i := range places {
		mark := "   "
		if !slices.Contains(longest, i) {
			mark = "-> "
		}
		in, out := ops[i].Input.(registerOp), ops[i].Output.(registerAnswer)
		lines = append(lines, fmt.Sprintf("%sclient %d, %s to %s: %s", mark, ops[i].ClientId, clockMillis(in.begun), clockMillis(out.ended), describeRegister(in, out)))
	}
	return strings.Join(lines, "\n")
}

// registerClient is a client of single items.
type registerClient struct {
	*historyClient
	ops []porcupine.Operation
}

// step makes one operation, and records it. Its error has no answer.
func (c *registerClient) step(ctx context.Context, api *dynamodb.Client) error {
	in := registerOp{kind: "get", key: registerKey(c.part, c.keyNumber()), expect: anyValue}
	if kind := c.random.IntN(10); kind >= 9 {
		in.kind = "delete"
	} else if kind >= 4 {
		in.kind, in.put, in.deadline = []string{"put", "update"}[c.random.IntN(2)], c.next(), c.deadline()
	} else if kind == 3 {
		in.kind = "query"
	}
	if in.writes() && c.random.IntN(2) == 0 {
		in.expect = c.seen[in.key] // the value that it saw last; 0: no item
	}
	return c.record(ctx, api, in)
}

// record makes an operation, and records it. Its error has no answer.
func (c *registerClient) record(ctx context.Context, api *dynamodb.Client, in registerOp) error {
	call := time.Now()
	in.begun = call.UnixMilli()
	out, err := in.do(ctx, api)
	returned := time.Now()
	out.ended = returned.UnixMilli()
	if err == nil {
		if c.seen[in.key] = out.seen; in.writes() && out.done {
			c.seen[in.key] = in.put
		}
	} else if out.unknown = true; !in.writes() {
		return err // a read without an answer says nothing
	}
	c.ops = append(c.ops, porcupine.Operation{
		ClientId: c.number, Input: in, Output: out, Call: call.Sub(c.origin).Nanoseconds(), Return: returned.Sub(c.origin).Nanoseconds(),
	})
	return err
}

// died lets the last operation, if it has no answer, end when the server was dead. An operation of an
// earlier server ended with that one.
func (c *registerClient) died(began, at time.Time) {
	if len(c.ops) == 0 {
		return
	}
	last := &c.ops[len(c.ops)-1]
	if out := last.Output.(registerAnswer); out.unknown && last.Call >= began.Sub(c.origin).Nanoseconds() && last.Return < at.Sub(c.origin).Nanoseconds() {
		out.ended = at.UnixMilli()
		last.Output, last.Return = out, at.Sub(c.origin).Nanoseconds()
	}
}

const registers = "registers"

func registerKey(part, key int) string { return fmt.Sprintf("r%d-%d", part, key) }

// do makes an operation over HTTP.
func (o registerOp) do(ctx context.Context, api *dynamodb.Client) (out registerAnswer, err error) {
	table, key := aws.String(registers), map[string]types.AttributeValue{"pk": &types.AttributeValueMemberS{Value: o.key}}
	var condition *string
	var values map[string]types.AttributeValue
	refused := types.ReturnValuesOnConditionCheckFailureNone
	switch {
	case o.expect == 0:
		condition = aws.String("attribute_not_exists(pk)")
		refused = types.ReturnValuesOnConditionCheckFailureAllOld
	case o.expect > 0:
		condition = aws.String("v = :old")
		values = map[string]types.AttributeValue{":old": whole(o.expect)}
		refused = types.ReturnValuesOnConditionCheckFailureAllOld
	}
	old := map[string]types.AttributeValue{}
	switch o.kind {
	case "get":
		var answer *dynamodb.GetItemOutput
		if answer, err = api.GetItem(ctx, &dynamodb.GetItemInput{TableName: table, Key: key, ConsistentRead: aws.Bool(true)}, once); err == nil {
			old = answer.Item
		}
	case "query":
		var answer *dynamodb.QueryOutput
		answer, err = api.Query(ctx, &dynamodb.QueryInput{TableName: table, ConsistentRead: aws.Bool(true), KeyConditionExpression: aws.String("pk = :pk"),
			ExpressionAttributeValues: map[string]types.AttributeValue{":pk": key["pk"]}}, once)
		if err == nil && len(answer.Items) > 0 {
			old = answer.Items[0]
		}
	case "put":
		key["v"] = whole(o.put)
		if o.deadline != never {
			key["ttl"] = &types.AttributeValueMemberN{Value: ttlOf(time.UnixMilli(o.deadline))}
		}
		var answer *dynamodb.PutItemOutput
		answer, err = api.PutItem(ctx, &dynamodb.PutItemInput{TableName: table, Item: key, ReturnValues: types.ReturnValueAllOld, ConditionExpression: condition,
			ExpressionAttributeValues: values, ReturnValuesOnConditionCheckFailure: refused}, once)
		if err == nil {
			old = answer.Attributes
		}
	case "update":
		in := &dynamodb.UpdateItemInput{TableName: table, Key: key, ReturnValues: types.ReturnValueAllOld, ConditionExpression: condition,
			UpdateExpression: aws.String("SET v = :v REMOVE #t"), ExpressionAttributeNames: map[string]string{"#t": "ttl"},
			ExpressionAttributeValues: map[string]types.AttributeValue{":v": whole(o.put)}, ReturnValuesOnConditionCheckFailure: refused}
		for name, value := range values {
			in.ExpressionAttributeValues[name] = value
		}
		if o.deadline != never {
			in.UpdateExpression = aws.String("SET v = :v, #t = :t")
			in.ExpressionAttributeValues[":t"] = &types.AttributeValueMemberN{Value: ttlOf(time.UnixMilli(o.deadline))}
		}
		var answer *dynamodb.UpdateItemOutput
		if answer, err = api.UpdateItem(ctx, in, once); err == nil {
			old = answer.Attributes
		}
	case "delete":
		var answer *dynamodb.DeleteItemOutput
		answer, err = api.DeleteItem(ctx, &dynamodb.DeleteItemInput{TableName: table, Key: key, ReturnValues: types.ReturnValueAllOld, ConditionExpression: condition,
			ExpressionAttributeValues: values, ReturnValuesOnConditionCheckFailure: refused}, once)
		if err == nil {
			old = answer.Attributes
		}
	}
	var failed *types.ConditionalCheckFailedException
	if errors.As(err, &failed) {
		old, err = failed.Item, nil
	} else {
		out.done = err == nil
	}
	out.seen, _ = strconv.Atoi(text(old["v"]))
	return out, err
}

func whole(n int) types.AttributeValue { return &types.AttributeValueMemberN{Value: strconv.Itoa(n)} }

// historyClient is what the clients of both kinds share.
type historyClient struct {
	number int
	part   int // of the history: no part uses the keys of another
	random *rand.Rand
	origin time.Time      // the operations' times are counted from here
	total  func() int     // the number of operations of all clients so far, and one more
	next   func() int     // a new value
	seen   map[string]int // the last value that this client saw under a key
}

// keyNumber returns one of a few keys that are used at present. They change, so that no key has a
// long history, which would take long to check.
func (c *historyClient) keyNumber() int { return c.total()/150 + c.random.IntN(6) }

// deadline returns a deadline in milliseconds since 1970: soon, late, or never.
func (c *historyClient) deadline() int64 {
	switch c.random.IntN(4) {
	case 0:
		return never
	case 1:
		return time.Now().Add(time.Hour).UnixMilli()
	}
	return time.Now().UnixMilli() + c.random.Int64N(300)
}
