package strict

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"
)

// The instant of the fuzzed requests, and an item that has expired by then.
var (
	fuzzNow     = time.Unix(1_900_000_000, 0)
	fuzzExpired = `{"pk":{"S":"p"},"sk":{"N":"1"},"ttl":{"N":"1899999999.9995"}}`
)

// FuzzRewriter checks any request and answer: the rewriter sends valid requests, and its answer
// shows no expired item.
func FuzzRewriter(f *testing.F) {
	const conditional = `{"TableName":"table","Key":{"pk":{"S":"p"}},"ConditionExpression":"(a = :a) OR attribute_exists(#b)","ExpressionAttributeNames":{"#b":"b"},` +
		`"ExpressionAttributeValues":{":a":{"N":"1"}},"UpdateExpression":"SET c = :a","ReturnValues":"ALL_OLD"}`
	for _, seed := range [][3]string{
		{"GetItem", `{"TableName":"table","Key":{"pk":{"S":"p"}}}`, `{"Item":` + fuzzExpired + `}`},
		{"GetItem", `{"TableName":"arn:aws:dynamodb:r:1:table/table","Key":{},"ProjectionExpression":"a, b[1].c"}`, `{"Item":` + fuzzExpired + `}`},
		{"GetItem", `{"TableName":"table","Key":{},"AttributesToGet":["a"]}`, `{"Item":{"a":{"S":"ü<>&"}}}`},
		{"BatchGetItem", `{"RequestItems":{"table":{"Keys":[{}]}}}`, `{"Responses":{"table":[` + fuzzExpired + `]},"UnprocessedKeys":{"table":{"Keys":[{}]}}}`},
		{"TransactGetItems", `{"TransactItems":[{"Get":{"TableName":"table","Key":{}}},null]}`, `{"Responses":[{"Item":` + fuzzExpired + `},{}]}`},
		{"Query", `{"TableName":"table","KeyConditionExpression":"pk = :p","ExpressionAttributeValues":{":p":{"S":"p"}}}`, `{"Items":[{}],"Count":1}`},
		{"Query", `{"TableName":"table","KeyConditions":{},"Select":"COUNT"}`, `{"Items":[` + fuzzExpired + `],"Count":1}`},
		{"Query", `{"TableName":"table","IndexName":"keys","KeyConditionExpression":"pk = :p","ExpressionAttributeValues":{":p":{"S":"p"}}}`, `{"Items":[{"pk":{"S":"p"},"sk":{"N":"1"}}]}`},
		{"Scan", `{"TableName":"table","IndexName":"missing"}`, `{}`},
		{"PutItem", conditional, `{"Attributes":` + fuzzExpired + `}`},
		{"DeleteItem", conditional, `{"__type":"x#ConditionalCheckFailedException","Item":` + fuzzExpired + `}`},
		{"UpdateItem", conditional, `{"__type":"x#ConditionalCheckFailedException","Item":` + fuzzExpired + `}`},
		{"TransactWriteItems", `{"TransactItems":[{"Update":` + conditional + `},{"Put":{"TableName":"other"}}],"ClientRequestToken":"t"}`,
			`{"__type":"x#TransactionCanceledException","CancellationReasons":[{"Code":"ConditionalCheckFailed","Item":` + fuzzExpired + `},{"Code":"None"}]}`},
		{"TransactWriteItems", `{"TransactItems":[{"Put":` + conditional + `}],"ClientRequestToken":"t"}`, `{"__type":"x#IdempotentParameterMismatchException"}`},
		{"ExecuteTransaction", `{"TransactStatements":[{"Statement":"SELECT 1"}]}`, `{}`},
		{"ExecuteStatement", `{"Statement":"SELECT a FROM \"table\" WHERE pk = ?","Parameters":[{"S":"p"}]}`, `{"Items":[` + fuzzExpired + `]}`},
		{"ExecuteStatement", `{"Statement":"INSERT INTO \"table\" VALUE {'pk': 'p', 'sk': 1}"}`, `{"__type":"x#DuplicateItemException","Item":` + fuzzExpired + `}`},
		{"ExecuteStatement", `{"Statement":"DELETE FROM \"table\" WHERE pk = ? RETURNING ALL OLD *","Parameters":[{"S":"p"}]}`, `{"Items":[` + fuzzExpired + `]}`},
		{"BatchExecuteStatement", `{"Statements":[{"Statement":"SELECT * FROM \"table\""},{"Statement":"SELECT x"},null]}`, `{"Responses":[{"Item":` + fuzzExpired + `},{}]}`},
		{"ExecuteTransaction", `{"TransactStatements":[{"Statement":"EXISTS(SELECT * FROM \"table\" WHERE pk = 'p' AND a = 1)"},{"Statement":"UPDATE \"table\" SET a = 1 WHERE pk = 'p'"}],"ClientRequestToken":"t"}`,
			`{"__type":"x#TransactionCanceledException","CancellationReasons":[{"Code":"ConditionalCheckFailed","Item":` + fuzzExpired + `},{"Code":"None"}]}`},
		{"UpdateTable", `{"TableName":"table"}`, `{}`},
	} {
		f.Add(seed[0], []byte(seed[1]), []byte(seed[2]))
	}
	f.Fuzz(func(t *testing.T, operation string, body, response []byte) {
		if operations[operation] == nil {
			return
		}
		r, err := newRewriter(Rules{Tables: map[string]string{"table": "ttl"}, Now: func() time.Time { return fuzzNow }})
		if err != nil {
			t.Fatal(err)
		}
		sent := 0
		a, err := r.exchange(t.Context(), operation, body, func(_ context.Context, name string, body []byte) (answer, error) {
			if sent++; sent > 2000 { // the calls of a transaction with a hundred updates
				t.Fatalf("%d calls for one", sent)
			}
			if !json.Valid(body) {
				t.Fatalf("%s is sent what is no JSON: %s", name, body)
			}
			return stub(name, operation, response), nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if shows(operation, body, a.body) {
			t.Errorf("%s %s\nanswered %s\nshows an expired item: %s", operation, body, response, a.body)
		}
	})
}

// stub is an endpoint: it answers the fuzzed operation as the fuzzer says, and the rewriter's own
// calls correctly.
func stub(name, operation string, response []byte) answer {
	text := string(response)
	switch {
	case name == describe:
		text = `{"Table":{"KeySchema":[{"AttributeName":"pk"},{"AttributeName":"sk"}],"GlobalSecondaryIndexes":[{"IndexName":"keys","KeySchema":[{"AttributeName":"g"}],` +
			`"Projection":{"ProjectionType":"KEYS_ONLY"}}]}}`
	case name != operation:
		text = `{"Item":` + fuzzExpired + `,"Responses":{"table":[` + fuzzExpired + `]}}`
	}
	status := http.StatusOK
	if strings.Contains(text, "__type") {
		status = http.StatusBadRequest
	}
	return answer{status: status, body: []byte(text)}
}

// shows reports whether an answer has an expired item in a place where the API has items of a
// guarded table.
func shows(operation string, asked, response []byte) bool {
	in, _ := readObject(asked)
	out, ok := readObject(response)
	if !ok {
		return false
	}
	hit := func(item object, ok bool) bool { return ok && momentOf(fuzzNow).expired(item["ttl"]) }
	if tableName(in.text("TableName")) == "table" {
		name, may := "Attributes", operation == "PutItem" || operation == "DeleteItem"
		if failed := out.code() == "ConditionalCheckFailedException"; failed || operation == "GetItem" {
			name, may = "Item", operation != "Query" && operation != "Scan" && failed == out.has("__type")
		}
		if item, ok := out.member(name); may && hit(item, ok) {
			return true
		}
		// otherwise the endpoint filters
		if items, ok := readList(out["Items"]); ok && in.hasAny(pageLegacy...) {
			for _, item := range items {
				if hit(item, true) {
					return true
				}
			}
		}
	}
	tables, _ := in.member("RequestItems")
	if responses, ok := out.member("Responses"); ok && operation == "BatchGetItem" && tables.has("table") {
		if items, ok := readList(responses["table"]); ok {
			for _, item := range items {
				if hit(item, true) {
					return true
				}
			}
		}
	}
	return false
}

// code returns the code of an error.
func (o object) code() string {
	_, code, _ := strings.Cut(o.text("__type"), "#")
	return code
}

// TestMoment checks that a fraction of a millisecond is rounded up, and that a value more than five
// years past is no deadline.
func TestMoment(t *testing.T) {
	const now = 1_700_000_000_123
	for value, want := range map[string]bool{
		`{"N":"1700000000.123"}`: true, `{"N":"1700000000.1230001"}`: false, `{"N":"1700000000.1229999"}`: true, `{"N":"1700000001"}`: false, `{"N":"1.7e9"}`: true,
		`{"N":"1542320000.123"}`: false, `{"N":"1542320000.1230001"}`: true, `{"N":"0"}`: false, `{"N":"-1"}`: false, `{"N":"1700000000123"}`: false,
		`{"S":"1700000000"}`: false, `{"NS":["1700000000"]}`: false, `{"N":"x"}`: false, `[]`: false, ``: false,
	} {
		if got := moment(now).expired([]byte(value)); got != want {
			t.Errorf("%s: %v", value, got)
		}
	}
	for ms, want := range map[int64]string{now: `{"N":"1700000000.123"}`, 0: `{"N":"0.000"}`, -1500: `{"N":"-1.500"}`} {
		if got := string(numberOf(ms)); got != want {
			t.Errorf("%d: %s, want %s", ms, got, want)
		}
	}
}

// TestTokens checks that find returns only instants of the same transaction, and that the number of
// stored tokens is bounded.
func TestTokens(t *testing.T) {
	tokens, now := newTokens(), time.Duration(0)
	tokens.elapsed = func() time.Duration { return now }
	a, b := digestOf([]byte("a")), digestOf([]byte("b"))
	tokens.note("t", a, 1)
	tokens.note("t", b, 2)
	tokens.note("t", a, 3)
	if got := tokens.find("t", a); len(got) != 2 || got[0] != 3 || got[1] != 1 {
		t.Errorf("found %v", got)
	}
	tokens.drop("t", a, 1)
	if got := tokens.find("t", a); len(got) != 1 || got[0] != 3 {
		t.Errorf("after dropping one: %v", got)
	}
	for i := range 3 * sendingsMax {
		tokens.note("many", a, moment(i))
	}
	if got := tokens.find("many", a); len(got) != sendingsMax || got[0] != 3*sendingsMax-1 {
		t.Errorf("of many: %v", got)
	}
	now += tokenAge + 1
	tokens.note("u", a, 1)
	if len(tokens.find("t", a)) != 1 {
		t.Error("forgotten after one age")
	}
	now += tokenAge + 1
	tokens.note("v", a, 1)
	if len(tokens.find("t", a)) != 0 {
		t.Error("remembered after two")
	}
	for i := range 3 * tokensMax {
		tokens.note(strings.Repeat("x", 1+i%30)+time.Duration(i).String(), a, 1)
	}
	if n := len(tokens.mu.young) + len(tokens.mu.old); n > 2*tokensMax {
		t.Errorf("%d are remembered", n)
	}
}
