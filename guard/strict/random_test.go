package strict_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

type item = map[string]types.AttributeValue

func str(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }
func num(n string) types.AttributeValue { return &types.AttributeValueMemberN{Value: n} }

func (p *pair) one(choices ...string) string { return choices[p.r.IntN(len(choices))] }

func (p *pair) chance(percent int) bool { return p.r.IntN(100) < percent }

func (p *pair) table() string { return p.one("plain", "plain", "keyed", "keyed", "other") }

func (p *pair) key() item {
	return item{"pk": str(p.one("p", "q")), "sk": num(strconv.Itoa(p.r.IntN(4)))}
}

// ttl returns a deadline around now in one of its possible forms; nil: none.
func (p *pair) ttl(table string) types.AttributeValue {
	now := p.strict.Clock().Now().UnixMilli()
	switch n := p.r.IntN(20); {
	case n < 8:
		return num(strconv.FormatInt(now/1000+int64(p.r.IntN(8))-3, 10))
	case n < 11:
		return num(fmt.Sprintf("%d.%03d", now/1000+int64(p.r.IntN(3))-1, p.r.IntN(1000)))
	case n < 12:
		// a fraction of a millisecond in the future
		return num(fmt.Sprintf("%d.%03d4", now/1000, now%1000))
	case n < 13:
		// so old that it is taken for a mistake
		return num(strconv.FormatInt(now/1000-6*365*24*3600, 10))
	case n < 14:
		return num(p.one("0", "-5", "1e30", "1e-30", strconv.FormatInt(now, 10)))
	case n < 16 && table != "keyed": // in that table, it is a key and so a number
		return []types.AttributeValue{str(strconv.FormatInt(now/1000-5, 10)), &types.AttributeValueMemberBOOL{Value: true},
			&types.AttributeValueMemberM{Value: item{"x": num("1")}}, &types.AttributeValueMemberNS{Value: []string{"1"}}}[p.r.IntN(4)]
	default:
		return nil
	}
}

func (p *pair) item(table string) item {
	it := p.key()
	if v := p.ttl(table); v != nil {
		it["ttl"] = v
	}
	if p.chance(70) {
		it["a"] = num(strconv.Itoa(p.r.IntN(5)))
	}
	if p.chance(60) {
		it["g"] = str(p.one("x", "y"))
	}
	if p.chance(50) {
		it["b"] = str(p.one("", "<b>", "über & mehr", `"quoted\`))
	}
	if p.chance(20) {
		it["d"] = &types.AttributeValueMemberM{Value: item{"e": num("1"), "l": &types.AttributeValueMemberL{Value: []types.AttributeValue{num("1"), str("2")}}}}
	}
	return it
}

// expression is an expression with the names and values of its placeholders.
type expression struct {
	text   *string
	names  map[string]string
	values item
}

// conditions are conditions of writes. Some are true for a missing item, others are not.
var conditions = []string{
	"attribute_exists(pk)", "attribute_not_exists(pk)", "attribute_not_exists(a)", "attribute_exists(#t)", "attribute_not_exists(#t)", "a > :two", "a <> :two", "NOT a = :two",
	"(a = :two)", "(attribute_not_exists(pk))", "attribute_not_exists(a) OR a < :two", "(attribute_exists(a) AND a < :two) OR attribute_not_exists(pk)",
	"#t > :now", "attribute_not_exists(pk) OR #t > :now", "size(b) > :two", "a BETWEEN :zero AND :two", "NOT (a IN (:zero, :two))", "begins_with(b, :text) OR d.e = :two",
	"((a = :two))", "a = ", "a = :undefined", "ttl > :now",
}

// condition returns a random condition, in rare cases an invalid one.
func (p *pair) condition(kinds []string) expression {
	n := len(kinds) - 4
	if p.chance(5) {
		n = len(kinds)
	}
	e := expression{text: aws.String(kinds[p.r.IntN(n)])}
	e.use(p, *e.text)
	return e
}

var nameTerms = map[string]string{"#t": "ttl", "#mayfly0": "b"}

// use adds the names and values of the placeholders that a text mentions.
func (e *expression) use(p *pair, text string) {
	for key, name := range nameTerms {
		if mentions(text, key) {
			if e.names == nil {
				e.names = map[string]string{}
			}
			e.names[key] = name
		}
	}
	now := p.strict.Clock().Now().UnixMilli()
	values := item{":zero": num("0"), ":one": num("1"), ":two": num("2"), ":text": str("<"), ":mayfly0": str("x"),
		":now": num(fmt.Sprintf("%d.%03d", now/1000, now%1000)), ":x": str(p.one("x", "y")), ":pk": str(p.one("p", "q"))}
	for _, key := range slices.Sorted(maps.Keys(values)) {
		v := values[key]
		if mentions(text, key) {
			if e.values == nil {
				e.values = item{}
			}
			e.values[key] = v
		}
	}
	if p.chance(2) {
		if e.values == nil {
			e.values = item{}
		}
		e.values[":unused"] = str("x")
	}
}

// mentions reports whether a text has a placeholder.
func mentions(text, key string) bool {
	for i := 0; i+len(key) <= len(text); i++ {
		if text[i:i+len(key)] != key {
			continue
		}
		end := i + len(key)
		if end == len(text) || !(text[end] >= 'a' && text[end] <= 'z' || text[end] >= '0' && text[end] <= '9') {
			return true
		}
	}
	return false
}

func (p *pair) onFailure() types.ReturnValuesOnConditionCheckFailure {
	return types.ReturnValuesOnConditionCheckFailure(p.one("", "ALL_OLD", "NONE"))
}

// maybe returns a condition, or none.
func (p *pair) maybe() expression {
	if p.chance(40) {
		return expression{}
	}
	return p.condition(conditions)
}

type do = func(context.Context, *dynamodb.Client) (any, error)

func (p *pair) put() (any, do) {
	table, c := p.table(), p.maybe()
	in := &dynamodb.PutItemInput{TableName: &table, Item: p.item(table), ConditionExpression: c.text, ExpressionAttributeNames: c.names, ExpressionAttributeValues: c.values,
		ReturnValues: types.ReturnValue(p.one("", "ALL_OLD")), ReturnValuesOnConditionCheckFailure: p.onFailure()}
	return in, func(ctx context.Context, c *dynamodb.Client) (any, error) { return c.PutItem(ctx, in) }
}

func (p *pair) delete() (any, do) {
	table, c := p.table(), p.maybe()
	in := &dynamodb.DeleteItemInput{TableName: &table, Key: p.key(), ConditionExpression: c.text, ExpressionAttributeNames: c.names, ExpressionAttributeValues: c.values,
		ReturnValues: types.ReturnValue(p.one("", "ALL_OLD")), ReturnValuesOnConditionCheckFailure: p.onFailure()}
	return in, func(ctx context.Context, c *dynamodb.Client) (any, error) { return c.DeleteItem(ctx, in) }
}

// updates are update expressions. Some of them fail for a missing item.
var updates = []string{
	"SET a = :two", "SET a = if_not_exists(a, :zero) + :one", "SET a = a + :one", "ADD a :one", "REMOVE a, b", "SET b = :text, g = :x", "REMOVE #t", "SET d.e = :one", "SET #t = :now",
	"SET #mayfly0 = :mayfly0", "DELETE b :two", "SET a = :one SET b = :two",
}

func (p *pair) updateTerms(table string) (text string, e expression) {
	text = updates[p.r.IntN(len(updates))]
	e = p.maybe()
	e.use(p, text)
	if v := p.ttl(table); v != nil && p.chance(40) {
		text = "SET #t = :ttl"
		e.names, e.values = map[string]string{"#t": "ttl"}, item{":ttl": v}
		if e.text != nil {
			e.use(p, *e.text)
		}
	}
	return text, e
}

func (p *pair) update() (any, do) {
	table := p.table()
	text, e := p.updateTerms(table)
	in := &dynamodb.UpdateItemInput{TableName: &table, Key: p.key(), UpdateExpression: &text, ConditionExpression: e.text, ExpressionAttributeNames: e.names,
		ExpressionAttributeValues: e.values, ReturnValues: types.ReturnValue(p.one("", "ALL_OLD", "ALL_NEW", "UPDATED_OLD", "UPDATED_NEW")), ReturnValuesOnConditionCheckFailure: p.onFailure()}
	if p.chance(5) {
		in.UpdateExpression = nil
	}
	return in, func(ctx context.Context, c *dynamodb.Client) (any, error) { return c.UpdateItem(ctx, in) }
}

var projections = []string{"a", "pk, b", "#t", "a, #t", "d.e, d.l[1]", "#mayfly0", "sk", "nothing", "a, a", "#undefined"}

// projection returns a projection, or none.
func (p *pair) projection() expression {
	if p.chance(40) {
		return expression{}
	}
	n := len(projections) - 2
	if p.chance(5) {
		n += 2
	}
	e := expression{text: aws.String(projections[p.r.IntN(n)])}
	e.use(p, *e.text)
	e.values = nil
	return e
}

func (p *pair) get() (any, do) {
	table, e := p.table(), p.projection()
	in := &dynamodb.GetItemInput{TableName: &table, Key: p.key(), ProjectionExpression: e.text, ExpressionAttributeNames: e.names}
	if e.text == nil && p.chance(20) {
		in.AttributesToGet = []string{p.one("a", "ttl", "b"), "pk"}
	}
	return in, func(ctx context.Context, c *dynamodb.Client) (any, error) { return c.GetItem(ctx, in) }
}

// keys returns different keys.
func (p *pair) keys() (keys []item) {
	seen := map[string]bool{}
	for range 1 + p.r.IntN(4) {
		k := p.key()
		if text := printed(k); !seen[text] {
			seen[text] = true
			keys = append(keys, k)
		}
	}
	return keys
}

func (p *pair) batchGet() (any, do) {
	in := &dynamodb.BatchGetItemInput{RequestItems: map[string]types.KeysAndAttributes{}}
	for range 1 + p.r.IntN(2) {
		e := p.projection()
		in.RequestItems[p.table()] = types.KeysAndAttributes{Keys: p.keys(), ProjectionExpression: e.text, ExpressionAttributeNames: e.names}
	}
	return in, func(ctx context.Context, c *dynamodb.Client) (any, error) { return c.BatchGetItem(ctx, in) }
}

func (p *pair) batchWrite() (any, do) {
	in := &dynamodb.BatchWriteItemInput{RequestItems: map[string][]types.WriteRequest{}}
	table := p.table()
	for _, key := range p.keys() {
		w := types.WriteRequest{DeleteRequest: &types.DeleteRequest{Key: key}}
		if p.chance(70) {
			it := p.item(table)
			it["pk"], it["sk"] = key["pk"], key["sk"]
			w = types.WriteRequest{PutRequest: &types.PutRequest{Item: it}}
		}
		in.RequestItems[table] = append(in.RequestItems[table], w)
	}
	return in, func(ctx context.Context, c *dynamodb.Client) (any, error) { return c.BatchWriteItem(ctx, in) }
}

func (p *pair) transactGet() (any, do) {
	in := &dynamodb.TransactGetItemsInput{}
	table := p.table()
	for _, key := range p.keys() {
		e := p.projection()
		in.TransactItems = append(in.TransactItems, types.TransactGetItem{Get: &types.Get{TableName: &table, Key: key, ProjectionExpression: e.text, ExpressionAttributeNames: e.names}})
	}
	return in, func(ctx context.Context, c *dynamodb.Client) (any, error) { return c.TransactGetItems(ctx, in) }
}

func (p *pair) transactWrite() (any, do) {
	in := &dynamodb.TransactWriteItemsInput{}
	for _, key := range p.keys() {
		table := p.table()
		in.TransactItems = append(in.TransactItems, p.action(table, key))
	}
	if p.chance(30) {
		token := fmt.Sprintf("token-%d", p.r.IntN(1_000_000))
		in.ClientRequestToken = &token
		again := p.chance(50)
		return in, func(ctx context.Context, c *dynamodb.Client) (any, error) {
			out, err := c.TransactWriteItems(ctx, in)
			if err != nil || !again {
				return out, err
			}
			return c.TransactWriteItems(ctx, in)
		}
	}
	return in, func(ctx context.Context, c *dynamodb.Client) (any, error) { return c.TransactWriteItems(ctx, in) }
}

func (p *pair) action(table string, key item) types.TransactWriteItem {
	c := p.maybe()
	switch p.r.IntN(4) {
	case 0:
		it := p.item(table)
		it["pk"], it["sk"] = key["pk"], key["sk"]
		return types.TransactWriteItem{Put: &types.Put{TableName: &table, Item: it, ConditionExpression: c.text, ExpressionAttributeNames: c.names,
			ExpressionAttributeValues: c.values, ReturnValuesOnConditionCheckFailure: p.onFailure()}}
	case 1:
		return types.TransactWriteItem{Delete: &types.Delete{TableName: &table, Key: key, ConditionExpression: c.text, ExpressionAttributeNames: c.names,
			ExpressionAttributeValues: c.values, ReturnValuesOnConditionCheckFailure: p.onFailure()}}
	case 2:
		c = p.condition(conditions)
		return types.TransactWriteItem{ConditionCheck: &types.ConditionCheck{TableName: &table, Key: key, ConditionExpression: c.text, ExpressionAttributeNames: c.names,
			ExpressionAttributeValues: c.values, ReturnValuesOnConditionCheckFailure: p.onFailure()}}
	default:
		text, e := p.updateTerms(table)
		return types.TransactWriteItem{Update: &types.Update{TableName: &table, Key: key, UpdateExpression: &text, ConditionExpression: e.text, ExpressionAttributeNames: e.names,
			ExpressionAttributeValues: e.values, ReturnValuesOnConditionCheckFailure: p.onFailure()}}
	}
}

// filters are conditions that name no key.
var filters = []string{"attribute_exists(a)", "a > :one", "(b = :text)", "NOT a = :two OR attribute_exists(d)", "#t > :now", "attribute_not_exists(#t)", "((a = :two))", "a = ", "a = :undefined", "ttl > :now"}

func (p *pair) filter() expression {
	if p.chance(60) {
		return expression{}
	}
	return p.condition(filters)
}

func (p *pair) query() (any, do) {
	table := p.table()
	in := &dynamodb.QueryInput{TableName: &table}
	key := "pk = :pk"
	if p.chance(30) {
		key = "pk = :pk AND sk > :zero"
	}
	if p.chance(70) {
		indexes := []string{"all", "keys", "some", "timed", "local", "missing"}
		if table == "keyed" {
			indexes = append(indexes, "windows", "windows")
		}
		in.IndexName = aws.String(p.one(indexes...))
		key = "g = :x"
		switch *in.IndexName {
		case "windows":
			key = p.one("g = :x", "g = :x AND #t < :now", "g = :x AND #t > :now")
		case "local":
			key = p.one("pk = :pk", "pk = :pk AND a > :zero")
		}
	}
	f, pr := p.filter(), p.projection()
	in.KeyConditionExpression, in.FilterExpression, in.ProjectionExpression = &key, f.text, pr.text
	e := expression{}
	for _, text := range []*string{&key, f.text, pr.text} {
		if text != nil {
			e.use(p, *text)
		}
	}
	in.ExpressionAttributeNames, in.ExpressionAttributeValues = e.names, e.values
	in.Select = types.Select(p.choose(pr.text == nil, in.IndexName != nil))
	in.ScanIndexForward = aws.Bool(p.chance(50))
	if p.chance(30) {
		in.Limit = aws.Int32(1 + p.r.Int32N(3))
	}
	return in, func(ctx context.Context, c *dynamodb.Client) (any, error) { return queryAll(ctx, c, *in) }
}

// choose returns a valid Select.
func (p *pair) choose(whole, index bool) string {
	switch {
	case whole && p.chance(25):
		return "COUNT"
	case whole && index && p.chance(10):
		return "ALL_PROJECTED_ATTRIBUTES"
	case whole && p.chance(10):
		return "ALL_ATTRIBUTES"
	}
	return ""
}

// queryAll returns all pages as one, since their number may differ.
func queryAll(ctx context.Context, c *dynamodb.Client, in dynamodb.QueryInput) (any, error) {
	all := &dynamodb.QueryOutput{}
	for {
		out, err := c.Query(ctx, &in)
		if err != nil {
			return nil, err
		}
		all.Items, all.Count = append(all.Items, out.Items...), all.Count+out.Count
		if in.ExclusiveStartKey = out.LastEvaluatedKey; in.ExclusiveStartKey == nil {
			return all, nil
		}
	}
}

func (p *pair) scan() (any, do) {
	table := p.table()
	in := &dynamodb.ScanInput{TableName: &table}
	if p.chance(50) {
		in.IndexName = aws.String(p.one("all", "keys", "some", "timed", "local", "missing"))
	}
	f, pr := p.filter(), p.projection()
	in.FilterExpression, in.ProjectionExpression = f.text, pr.text
	e := expression{}
	for _, text := range []*string{f.text, pr.text} {
		if text != nil {
			e.use(p, *text)
		}
	}
	in.ExpressionAttributeNames, in.ExpressionAttributeValues = e.names, e.values
	in.Select = types.Select(p.choose(pr.text == nil, in.IndexName != nil))
	if p.chance(30) {
		in.Limit = aws.Int32(1 + p.r.Int32N(3))
	}
	return in, func(ctx context.Context, c *dynamodb.Client) (any, error) { return scanAll(ctx, c, *in) }
}

func scanAll(ctx context.Context, c *dynamodb.Client, in dynamodb.ScanInput) (any, error) {
	all := &dynamodb.ScanOutput{}
	for {
		out, err := c.Scan(ctx, &in)
		if err != nil {
			return nil, err
		}
		all.Items, all.Count = append(all.Items, out.Items...), all.Count+out.Count
		if in.ExclusiveStartKey = out.LastEvaluatedKey; in.ExclusiveStartKey == nil {
			return all, nil
		}
	}
}
