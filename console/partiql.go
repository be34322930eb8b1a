package console

import (
	"context"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly/internal/work/attr"
)

// statementMost is the length of the longest statement, as at Amazon.
const statementMost = 8192

// showPartiQL shows the form for a statement, and runs one that only reads: the URL has it, so that
// it can be shared.
func showPartiQL(ctx context.Context, v *visit) (*page, error) {
	if reason := v.lacks(ctx)[below+"partiql"]; reason != "" {
		return &page{title: "PartiQL", area: below + "partiql", body: []node{lacks(reason)}}, nil
	}
	statement := v.r.FormValue("statement")
	if statement == "" || !reads(statement) {
		if reason := v.lacks(ctx)[below+"partiql"]; reason != "" {
			return withoutPartiQL(reason), nil
		}
		return partiQLPage(v, statement, optional(v.r.FormValue("done") != "", el("p", has("class", "done"), has("role", "status"), words("Done.")))), nil
	}
	p, _, err := runStatement(ctx, v, statement)
	return p, err
}

// withoutPartiQL returns the page of an endpoint without PartiQL.
func withoutPartiQL(reason string) *page {
	return &page{title: "PartiQL", area: below + "partiql", body: []node{
		el("p", has("class", "missing"), words(reason)),
		el("p", words("The items of a table can be queried on its own page: "), el("a", has("href", below+"tables"), words("Tables"))),
	}}
}

// changePartiQL runs a statement that changes something.
func changePartiQL(ctx context.Context, v *visit) (string, *page, error) {
	statement := v.r.PostFormValue("statement")
	if to := statementPath(url.Values{"statement": {statement}}); reads(statement) && len(to) <= urlMost && v.r.PostFormValue("token_next") == "" {
		return to, nil, nil
	}
	p, items, err := runStatement(ctx, v, statement)
	if err == nil && p.status == 0 && items == 0 && !reads(statement) { // a reload must not run it again
		to := statementPath(url.Values{"statement": {statement}, "done": {"yes"}})
		if len(to) > urlMost {
			to = statementPath(url.Values{"done": {"yes"}})
		}
		return to, nil, nil
	}
	return "", p, err
}

// statementPath returns the URL of a statement's page.
func statementPath(values url.Values) string { return below + "partiql?" + values.Encode() }

// reads reports whether a statement changes nothing: whether it begins with SELECT.
func reads(statement string) bool {
	word := strings.TrimSpace(statement)
	return len(word) >= 6 && strings.EqualFold(word[:6], "select")
}

// partiQLPage returns the page with a statement and its result.
func partiQLPage(v *visit, statement string, result ...node) *page {
	return &page{title: "PartiQL", area: below + "partiql", body: append([]node{
		el("form", has("method", "post"), v.tokenField(),
			el("label", words("Statement "), el("textarea", has("name", "statement"), has("rows", "4"), has("required"), has("maxlength", strconv.Itoa(statementMost)), has("spellcheck", "false"), has("data-search"),
				has("placeholder", `SELECT * FROM "sessions" WHERE id = 's-1'`), words(statement))),
			el("button", has("class", "primary"), words("Run")),
		),
	}, result...)}
}

// runStatement runs a statement. It returns the page, and the number of items on it.
func runStatement(ctx context.Context, v *visit, statement string) (*page, int, error) {
	in := &dynamodb.ExecuteStatementInput{Statement: &statement, ReturnConsumedCapacity: types.ReturnConsumedCapacityTotal}
	if reads(statement) {
		in.Limit = aws.Int32(pageDefault)
	}
	if token := v.r.FormValue("token_next"); token != "" {
		in.NextToken = &token
	}
	out, err := v.DynamoDB().ExecuteStatement(ctx, in)
	if asksForKey(err) {
		return nil, 0, err
	}
	if reason := v.lacks(ctx)[below+"partiql"]; reason != "" {
		return withoutPartiQL(reason), 0, nil
	}
	if err != nil {
		return partiQLPage(v, statement).with(err), 0, nil
	}
	items := asItems(out.Items)
	var request request
	request.operation = "ExecuteStatement"
	request.add("Statement", statement)
	if in.Limit != nil {
		request.add("Limit", *in.Limit)
	}
	result := []node{
		el("p", has("role", "status"), words(counted(len(items), "item")+", "+strconv.FormatFloat(unitsOf(out.ConsumedCapacity), 'f', -1, 64)+" units")),
		plainRows(items),
	}
	if out.NextToken != nil {
		result = append(result, el("p", has("class", "more"), v.to(statementPath(url.Values{"statement": {statement}, "token_next": {*out.NextToken}}), has("rel", "next"), words("Next page"))))
	}
	return partiQLPage(v, statement, append(result, request.shown(v))...), len(items), nil
}

// plainRows shows items with all their attributes as columns.
func plainRows(items []attr.Item) node {
	names := map[string]bool{}
	for _, item := range items {
		for name := range item {
			names[name] = true
		}
	}
	columns := slices.Sorted(maps.Keys(names))
	columns = columns[:min(len(columns), 3*columnsMost)]
	rows := make([]node, len(items))
	for i, item := range items {
		rows[i] = el("tr", mapped(columns, func(name string) node { return el("td", cell(item[name])) }))
	}
	return list(columns, rows, "The statement returned no items.")
}
