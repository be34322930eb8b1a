package console

import (
	"context"
	"net/url"
	"strings"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

const (
	tablesPage = 50 // tables of a page: each takes two calls
	callsMost  = 8  // at the same time
)

// listOne is the smallest question to an endpoint: does it answer, and may this visitor ask?
var listOne = &dynamodb.ListTablesInput{Limit: aws.Int32(1)}

// showTables lists the tables.
func showTables(ctx context.Context, v *visit) (*page, error) {
	from, filter := v.r.FormValue("from"), v.r.FormValue("q")
	names, next, err := v.tableNames(ctx, from, filter)
	if err != nil {
		return nil, err
	}
	described := make([]*table, len(names))
	failed := make([]error, len(names))
	parallel(len(names), func(i int) { described[i], failed[i] = v.describe(ctx, names[i]) })
	rows := make([]node, len(names))
	for i, name := range names {
		rows[i] = tableRow(name, described[i], failed[i])
	}
	body := []node{
		el("form", has("class", "filter"), has("method", "get"),
			el("label", words("Name "), el("input", has("type", "search"), has("name", "q"), has("value", filter), has("data-search"), has("placeholder", "part of the name"))),
			el("button", words("Filter")),
		),
		list([]string{"Table", "Items", "Size", "Key", "TTL", "Stream", "Indexes", "State"}, rows, "There are no tables yet. Create one, or let your program do it."),
		el("p", el("small", words("Items and sizes are from DescribeTable: Amazon updates them about every six hours."))),
	}
	if next != "" {
		body = append(body, more(v.r.URL, url.Values{"from": {next}, "q": {filter}}))
	}
	return &page{title: "Tables", area: below + "tables", above: el("a", has("class", "button"), has("href", below+"new"), words("Create a table")), body: body}, nil
}

// tableNames returns a page of the names that contain a text, and where the next page begins.
func (v *visit) tableNames(ctx context.Context, from, part string) (names []string, next string, err error) {
	in := &dynamodb.ListTablesInput{}
	if from != "" {
		in.ExclusiveStartTableName = &from
	}
	for {
		out, err := v.DynamoDB().ListTables(ctx, in)
		if err != nil {
			return nil, "", err
		}
		for _, name := range out.TableNames {
			if len(names) == tablesPage {
				return names, names[tablesPage-1], nil
			}
			if strings.Contains(strings.ToLower(name), strings.ToLower(part)) {
				names = append(names, name)
			}
		}
		if in.ExclusiveStartTableName = out.LastEvaluatedTableName; in.ExclusiveStartTableName == nil {
			return names, "", nil
		}
	}
}

// tableRow returns the row of a table.
func tableRow(name string, t *table, err error) node {
	link := el("td", el("a", has("href", tablePath(name)+"/items"), words(name)))
	if err != nil {
		text, _ := errorText(err)
		return el("tr", link, el("td", has("colspan", "7"), el("small", words(text))))
	}
	var indexes []string
	for _, x := range t.indexes() {
		indexes = append(indexes, x.name)
	}
	return el("tr", link,
		el("td", has("class", "number"), words(grouped(aws.ToInt64(t.ItemCount)))),
		el("td", has("class", "number"), words(size(aws.ToInt64(t.TableSizeBytes)))),
		el("td", words(t.schemaText(t.KeySchema))),
		el("td", words(t.ttlText())),
		el("td", words(t.streamText())),
		el("td", words(strings.Join(indexes, ", "))),
		el("td", state(string(t.TableStatus))),
	)
}

// ttlText returns the TTL attribute, with the state of a change of it.
func (t *table) ttlText() string {
	switch {
	case t.noTTL != "":
		return "none"
	case t.ttlError != nil:
		return "unknown"
	case t.ttl == "":
		return "off"
	case t.ttlState != types.TimeToLiveStatusEnabled:
		return t.ttl + " (" + strings.ToLower(string(t.ttlState)) + ")"
	}
	return t.ttl
}

// state shows a state. An unusual one has a mark besides its color.
func state(name string) node {
	kind := "usual"
	if name != string(types.TableStatusActive) && name != "ENABLED" && name != "Enabled" {
		kind = "other"
	}
	return el("span", has("class", "state "+kind), words(strings.ToLower(name)))
}

// list returns a table of rows, or a text if there are none. The keys j and k go through the rows.
func list(heads []string, rows []node, none string) node {
	if len(rows) == 0 {
		return el("p", has("class", "none"), words(none))
	}
	return el("div", has("class", "scroll"), has("tabindex", "0"), has("role", "region"), has("aria-label", listName(heads)),
		el("table", has("class", "list"), has("data-rows"),
			el("thead", el("tr", mapped(heads, columnHead))),
			el("tbody", rows...),
		))
}

// columnHead returns the head of a column. Columns of check boxes and buttons have none.
func columnHead(name string) node {
	if name == "" {
		return el("td")
	}
	return el("th", has("scope", "col"), words(name))
}

// listName names a list by its first columns: a page may have several, and screen readers list them.
func listName(heads []string) string {
	const enough = 3
	var named []string
	for _, h := range heads {
		if h != "" && len(named) < enough {
			named = append(named, h)
		}
	}
	return strings.Join(named, ", ")
}

// more returns the link to the next page of a list.
func more(u *url.URL, set url.Values) node {
	return el("p", has("class", "more"), el("a", has("rel", "next"), has("href", urlWith(u, set)), words("Next page")))
}

// urlWith returns a URL with some values set. Empty values are left out.
func urlWith(u *url.URL, set url.Values) string {
	q := u.Query()
	for name, all := range set {
		q.Del(name)
		for _, value := range all {
			if value != "" {
				q.Add(name, value)
			}
		}
	}
	return (&url.URL{Path: u.Path, RawQuery: q.Encode()}).RequestURI()
}

// parallel calls f for 0 to n-1, some at the same time.
func parallel(n int, f func(i int)) {
	var wg sync.WaitGroup
	slots := make(chan struct{}, callsMost)
	for i := range n {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			f(i)
		})
	}
	wg.Wait()
}
