package conformance

import (
	"strings"
	"testing"
)

var filterExpressionChecks = []check{
	{"SameAsConditions", filterSameAsConditions},
	{"NotOnKeysOfQuery", filterNotOnKeysOfQuery},
	{"Refused", filterRefused},
}

// A filter has the operators and functions of a condition.
func filterSameAsConditions(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S sk:N")
	tb.put(t,
		item("pk", "p", "sk", 1, "tags", stringSet{"red", "big"}, "m", item("k", "v")),
		item("pk", "p", "sk", 2, "tags", stringSet{"red"}, "l", []any{item("deep", 1)}),
		item("pk", "p", "sk", 3, "tags", "red"))
	for filter, want := range map[string]string{
		"contains(tags, :red)":                            "1 2 3",
		"contains(tags, :red) AND attribute_exists(m.k)":  "1",
		"l[0].deep = :one":                                "2",
		"NOT attribute_exists(m)":                         "2 3",
		"size(tags) = :two":                               "1",
		"attribute_type(tags, :S) OR l[0].deep IN (:one)": "2 3",
	} {
		values := `":p":{"S":"p"}`
		for name, v := range map[string]string{":red": `{"S":"red"}`, ":one": `{"N":"1"}`, ":two": `{"N":"2"}`, ":S": `{"S":"S"}`} {
			if strings.Contains(filter, name) {
				values += `,"` + name + `":` + v
			}
		}
		a := tb.ok(t, "Query", `{"KeyConditionExpression":"pk = :p","FilterExpression":"`+filter+`","ProjectionExpression":"sk","ExpressionAttributeValues":{`+values+`}}`)
		got := ""
		for _, it := range a.at("Items").([]any) {
			if got != "" {
				got += " "
			}
			got += answer(it.(map[string]any)).at("sk.N").(string)
		}
		if got != want {
			t.Errorf("%s: got %q, want %q", filter, got, want)
		}
	}
}

// A query's filter may not name the key of the queried table or index; the table's key is an
// ordinary attribute of an index.
func filterNotOnKeysOfQuery(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S sk:S", global("byG", "g:S", "ALL"))
	const values = `"ExpressionAttributeValues":{":p":{"S":"p"}}}`
	tb.refuse(t, "Query", `{"KeyConditionExpression":"pk = :p","FilterExpression":"sk = :p",`+values, validation,
		"Filter Expression can only contain non-primary key attributes: Primary key attribute: sk")
	tb.refuse(t, "Query", `{"KeyConditionExpression":"pk = :p","FilterExpression":"begins_with(pk, :p)",`+values, validation,
		"Filter Expression can only contain non-primary key attributes: Primary key attribute: pk")
	tb.refuse(t, "Query", `{"IndexName":"byG","KeyConditionExpression":"g = :p","FilterExpression":"g = :p",`+values, validation,
		"Filter Expression can only contain non-primary key attributes: Primary key attribute: g")
	tb.ok(t, "Query", `{"IndexName":"byG","KeyConditionExpression":"g = :p","FilterExpression":"sk = :p",`+values)
}

func filterRefused(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S")
	for _, row := range []struct{ filter, message string }{
		{"", "The expression can not be empty;"},
		{"a =", `Syntax error; token: "<EOF>", near: "…"`},
		{"a = :nope", "An expression attribute value used in expression is not defined; attribute value: :nope"},
		{"f(a)", "Invalid function name; function: f"},
		{"size(a)", "The function is not allowed to be used this way in an expression; function: size"},
		{"name = b", "Attribute name is a reserved keyword; reserved keyword: name"},
		{"((a = b))", "The expression has redundant parentheses;"},
	} {
		t.Run(row.filter, func(t *testing.T) {
			tb.refuse(t, "Scan", `{"FilterExpression":"`+row.filter+`"}`, validation, "Invalid FilterExpression: "+row.message)
		})
	}
}
