package conformance

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// sql puts the table's name into a statement, for $T.
func (tb *table) sql(text string) string { return strings.ReplaceAll(text, "$T", `"`+tb.name+`"`) }

// statement returns the JSON of a statement with parameters, which are JSON too, as a member of a
// request: without its closing brace.
func (tb *table) statement(text string, parameters ...string) string {
	quoted, err := json.Marshal(tb.sql(text))
	if err != nil {
		panic(err) // a string is always JSON
	}
	body := `{"Statement":` + string(quoted)
	if parameters != nil {
		body += `,"Parameters":[` + strings.Join(parameters, ",") + `]`
	}
	return body
}

// execute executes a statement that must succeed. options are further members of the request, each
// after a comma.
func (tb *table) execute(t *testing.T, options, text string, parameters ...string) answer {
	t.Helper()
	return tb.Endpoint.ok(t, "ExecuteStatement", tb.statement(text, parameters...)+options+"}")
}

// refuseStatement executes a statement that must fail.
func (tb *table) refuseStatement(t *testing.T, code, message, text string, parameters ...string) {
	t.Helper()
	tb.Endpoint.refuse(t, "ExecuteStatement", tb.statement(text, parameters...)+"}", code, message)
}

// selected returns the values of an attribute in the items of all pages of a SELECT, in their order:
// "1 2 3". Limit 0 is none.
func (tb *table) selected(t *testing.T, attribute string, limit int, text string, parameters ...string) string {
	t.Helper()
	var values []string
	options := ""
	if limit > 0 {
		options = fmt.Sprintf(`,"Limit":%d`, limit)
	}
	token := ""
	for {
		a := tb.execute(t, options+token, text, parameters...)
		items, _ := a["Items"].([]any)
		for _, it := range items {
			for _, v := range it.(map[string]any)[attribute].(map[string]any) {
				values = append(values, fmt.Sprint(v))
			}
		}
		next, more := a["NextToken"]
		if !more {
			return strings.Join(values, " ")
		}
		quoted, _ := json.Marshal(next)
		token = `,"NextToken":` + string(quoted)
	}
}

// list returns the body of a batch or a transaction of statements, each from statement; member is the
// name of their list.
func list(member string, statements ...string) string {
	return `{"` + member + `":[` + strings.Join(statements, "},") + `}]`
}
