package strict

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
)

// batchAt executes a batch of statements about the table t at an endpoint that answers the n-th batch
// with one of the texts, and everything else with a description of t.
func batchAt(t *testing.T, statements []string, answers ...string) (got answer, sent []string) {
	t.Helper()
	r, err := newRewriter(Rules{Tables: map[string]string{"tab": "ttl"}, Now: func() time.Time { return time.Unix(1_800_000_000, 0) }})
	if err != nil {
		t.Fatal(err)
	}
	body := object{"ReturnConsumedCapacity": quoted("TOTAL")}
	list := make([]object, len(statements))
	for i, text := range statements {
		list[i] = object{memberStatement: quoted(text)}
	}
	body[memberStatements] = listBytes(list)
	got, err = r.exchange(context.Background(), "BatchExecuteStatement", body.bytes(), func(_ context.Context, name string, body []byte) (answer, error) {
		text := `{"Table":{"KeySchema":[{"AttributeName":"pk"}]}}`
		switch name {
		case "BatchExecuteStatement":
			sent = append(sent, string(body))
			if len(sent) > len(answers) {
				t.Fatalf("batch %d: %s", len(sent), body)
			}
			text = answers[len(sent)-1]
		case "GetItem":
			text = `{}`
		}
		status := http.StatusOK
		if strings.Contains(text, "__type") {
			status = http.StatusBadRequest
		}
		return answer{status: status, header: http.Header{}, body: []byte(text)}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return got, sent
}

// Two INSERTs of one item are sent one by one.
var oneByOne = []string{`INSERT INTO tab VALUE {'pk':'a'}`, `INSERT INTO tab VALUE {'pk':'a'}`, `DELETE FROM tab WHERE pk='b'`}

// units is the capacity of an answer, with parts as INDEXES shows them.
func units(table string, n float64) string {
	return fmt.Sprintf(`{"TableName":"%s","CapacityUnits":%g,"Table":{"CapacityUnits":%g},"GlobalSecondaryIndexes":{"x":{"CapacityUnits":1}}}`, table, n, n)
}

// The capacity of statements that are sent one by one, and of repeated ones, is added up by tables.
func TestBatchCapacity(t *testing.T) {
	got, sent := batchAt(t, oneByOne,
		`{"Responses":[{}],"ConsumedCapacity":[`+units("tab", 2)+`]}`,
		`{"Responses":[{"Error":{"Code":"DuplicateItem"}}],"ConsumedCapacity":[`+units("tab", 1)+`]}`,
		`{"Responses":[{}],"ConsumedCapacity":[`+units("tab", 1.5)+`,`+units("other", 1)+`]}`, // the second again, since its item is gone
		`{"Responses":[{}]}`)
	const want = `{"ConsumedCapacity":[{"CapacityUnits":4.5,"GlobalSecondaryIndexes":{"x":{"CapacityUnits":3}},"Table":{"CapacityUnits":4.5},"TableName":"tab"},` +
		`{"CapacityUnits":1,"GlobalSecondaryIndexes":{"x":{"CapacityUnits":1}},"Table":{"CapacityUnits":1},"TableName":"other"}],"Responses":[{},{},{}]}`
	if string(got.body) != want {
		t.Errorf("got  %s\nwant %s", got.body, want)
	}
	for _, body := range sent {
		if !strings.Contains(body, `"ReturnConsumedCapacity":"TOTAL"`) {
			t.Errorf("sent without ReturnConsumedCapacity: %s", body)
		}
	}
	together, _ := batchAt(t, oneByOne[1:], `{"Responses":[{},{}],"ConsumedCapacity":[{"CapacityUnits":2.0}]}`)
	if want := `{"ConsumedCapacity":[{"CapacityUnits":2.0}],"Responses":[{},{}]}`; string(together.body) != want {
		t.Errorf("of one answer %s, want it unchanged: %s", together.body, want)
	}
}

// If the endpoint refuses a later statement, the responses to the earlier ones stay.
func TestBatchRefusedHalfway(t *testing.T) {
	const slow, wrong = `{"__type":"com.amazon.coral.availability#ThrottlingException","message":"slow down"}`, `{"__type":"com.amazon.coral.validate#ValidationException","message":"odd"}`
	for _, row := range []struct {
		name    string
		answers []string
		status  int
		want    string
	}{
		{"first", []string{slow}, http.StatusBadRequest, slow},
		{"second", []string{`{"Responses":[{"TableName":"tab"}]}`, slow, `{"Responses":[{}]}`}, http.StatusOK,
			`{"Responses":[{"TableName":"tab"},{"Error":{"Code":"ThrottlingError","Message":"slow down"},"TableName":"tab"},{}]}`},
		{"all later", []string{`{"Responses":[{}]}`, wrong, `{"__type":"x#AccessDeniedException","Message":"no"}`}, http.StatusOK,
			`{"Responses":[{},{"Error":{"Code":"ValidationError","Message":"odd"},"TableName":"tab"},{"Error":{"Code":"AccessDenied","Message":"no"},"TableName":"tab"}]}`},
		{"repeated", []string{`{"Responses":[{}]}`, `{"Responses":[{"Error":{"Code":"DuplicateItem"}}]}`, slow, `{"Responses":[{}]}`}, http.StatusOK,
			`{"Responses":[{},{"Error":{"Code":"ThrottlingError","Message":"slow down"},"TableName":"tab"},{}]}`},
	} {
		got, sent := batchAt(t, oneByOne, row.answers...)
		if got.status != row.status || string(got.body) != row.want {
			t.Errorf("%s: %d %s\nwant %s", row.name, got.status, got.body, row.want)
		}
		if len(sent) != len(row.answers) {
			t.Errorf("%s: %d batches were sent, want %d", row.name, len(sent), len(row.answers))
		}
	}
	got, _ := batchAt(t, oneByOne, `{"Responses":[{}]}`, `{"Responses":[]}`, `{"Responses":[{}]}`)
	if !strings.Contains(string(got.body), `{"Responses":[{},{"Error":{"Code":"InternalServerError","Message":"strict reads: the endpoint's answer`) {
		t.Errorf("unreadable: %s", got.body)
	}
}
