package console

import (
	"context"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// showNewTable shows the form for a new table.
func showNewTable(ctx context.Context, v *visit) (*page, error) {
	return newTablePage(ctx, v, nil), nil
}

func newTablePage(ctx context.Context, v *visit, err error) *page {
	f := form{v.r.Form}
	p := &page{title: "Create a table", area: below + "tables"}
	if err != nil {
		p.with(err)
	}
	kinds := []option{{"S", "String"}, {"N", "Number"}, {"B", "Binary"}}
	views := []option{{"", "Off"}}
	for _, view := range types.StreamViewType("").Values() {
		views = append(views, option{string(view), string(view)})
	}
	index := func(n string) node {
		return el("fieldset", el("legend", words("Global index "+n+" (optional)")),
			f.text("index"+n, "Name", ""),
			together("Partition key", f.text("index"+n+"pk", "Partition key", ""), f.choice("index"+n+"pkType", "Type", kinds)),
			together("Sort key", f.text("index"+n+"sk", "Sort key", ""), f.choice("index"+n+"skType", "Type", kinds)),
		)
	}
	ttl, stream := f.text("ttl", "TTL attribute (optional)", ""), f.choice("stream", "Stream", views)
	l := v.lacks(ctx)
	if reason := l[below+ttlArea]; reason != "" {
		ttl = lacks(reason)
	}
	if reason := l[below+streamsArea]; reason != "" {
		stream = lacks(reason)
	}
	p.body = append(p.body, el("form", has("method", "post"), v.tokenField(),
		el("fieldset", el("legend", words("Table")),
			f.text("name", "Name", `[a-zA-Z0-9_.\-]{3,255}`),
			together("Partition key", f.text("pk", "Partition key", ""), f.choice("pkType", "Type", kinds)),
			together("Sort key", f.text("sk", "Sort key (optional)", ""), f.choice("skType", "Type", kinds)),
		),
		el("fieldset", el("legend", words("Time and changes")),
			ttl, stream,
		),
		index("1"), index("2"),
		el("button", has("class", "primary"), words("Create the table")),
	))
	return p
}

// createTable creates a table from the form.
func createTable(ctx context.Context, v *visit) (string, *page, error) {
	in := newTable(form{v.r.PostForm})
	_, err := v.DynamoDB().CreateTable(ctx, in)
	if err != nil {
		return "", newTablePage(ctx, v, err), nil
	}
	name := aws.ToString(in.TableName)
	if ttl := v.r.PostFormValue("ttl"); ttl != "" {
		if err := v.enableTTL(ctx, name, ttl); err != nil {
			return "", nil, err
		}
	}
	return tablePath(name), nil, nil
}

// newTable returns the request of the form.
func newTable(f form) *dynamodb.CreateTableInput {
	in := &dynamodb.CreateTableInput{TableName: aws.String(f.get("name")), BillingMode: types.BillingModePayPerRequest}
	seen := map[string]bool{}
	key := func(prefix string) (schema []types.KeySchemaElement) {
		for _, part := range []struct {
			name string
			kind types.KeyType
		}{{"pk", types.KeyTypeHash}, {"sk", types.KeyTypeRange}} {
			name := f.get(prefix + part.name)
			if name == "" {
				continue
			}
			schema = append(schema, types.KeySchemaElement{AttributeName: &name, KeyType: part.kind})
			if !seen[name] {
				seen[name] = true
				in.AttributeDefinitions = append(in.AttributeDefinitions, types.AttributeDefinition{AttributeName: &name, AttributeType: types.ScalarAttributeType(f.get(prefix + part.name + "Type"))})
			}
		}
		return schema
	}
	in.KeySchema = key("")
	for _, n := range []string{"index1", "index2"} {
		if name := f.get(n); name != "" {
			in.GlobalSecondaryIndexes = append(in.GlobalSecondaryIndexes, types.GlobalSecondaryIndex{
				IndexName: &name, KeySchema: key(n), Projection: &types.Projection{ProjectionType: types.ProjectionTypeAll},
			})
		}
	}
	if view := f.get("stream"); view != "" {
		in.StreamSpecification = &types.StreamSpecification{StreamEnabled: aws.Bool(true), StreamViewType: types.StreamViewType(view)}
	}
	return in
}

// enableTTL enables the TTL of a table as soon as the table is active.
func (v *visit) enableTTL(ctx context.Context, name, attribute string) error {
	db := v.DynamoDB()
	if err := dynamodb.NewTableExistsWaiter(db, func(o *dynamodb.TableExistsWaiterOptions) { o.MinDelay = o.MaxDelay / 600 }).
		Wait(ctx, &dynamodb.DescribeTableInput{TableName: &name}, callMost); err != nil {
		return err
	}
	_, err := db.UpdateTimeToLive(ctx, &dynamodb.UpdateTimeToLiveInput{
		TableName: &name, TimeToLiveSpecification: &types.TimeToLiveSpecification{AttributeName: &attribute, Enabled: aws.Bool(true)},
	})
	return err
}

// form has the values of a form's fields.
type form struct{ values url.Values }

func (f form) get(name string) string { return strings.TrimSpace(f.values.Get(name)) }

// text returns a field for a text. pattern is a regular expression that it must match; "": any.
func (f form) text(name, label, pattern string) node {
	return el("label", words(label+" "), el("input", has("name", name), has("value", f.get(name)), has("autocomplete", "off"), optional(pattern != "", group{has("pattern", pattern), has("required")})))
}

// together returns fields that belong together, with a name that screen readers say before theirs.
func together(name string, fields ...node) node {
	return el("div", has("class", "row"), has("role", "group"), has("aria-label", name), group(fields))
}

// option is a value of a choice and its name.
type option struct{ value, name string }

// choice returns a field for one of some values.
func (f form) choice(name, label string, options []option) node {
	return el("label", words(label+" "), el("select", has("name", name), mapped(options, func(o option) node {
		return el("option", has("value", o.value), optional(o.value == f.get(name), has("selected")), words(o.name))
	})))
}

// tokenField returns the hidden field with the visitor's token.
func (v *visit) tokenField() node {
	return el("input", has("type", "hidden"), has("name", "token"), has("value", v.token))
}

// errName is the refusal of a deletion without the right name.
var errName = &pageError{http.StatusBadRequest, "Enter the name of the table exactly: deleting it cannot be undone."}

// exactly returns a pattern that matches one text.
func exactly(s string) string { return regexp.QuoteMeta(s) }
