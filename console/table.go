package console

import (
	"context"
	"net/http"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// table is a description with the settings of its TTL.
type table struct {
	*types.TableDescription
	ttl      string // attribute; "": off
	ttlState types.TimeToLiveStatus
	ttlError error  // of DescribeTimeToLive
	noTTL    string // why the endpoint has no TTL; "": it has
	noStream string // why the endpoint has no streams; "": it has
}

// describe returns the description of a table.
func (v *visit) describe(ctx context.Context, name string) (*table, error) {
	db := v.DynamoDB()
	out, err := db.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &name})
	if err != nil {
		return nil, err
	}
	l := v.lacks(ctx)
	t := &table{TableDescription: out.Table, noTTL: l[below+ttlArea], noStream: l[below+streamsArea]}
	ttl, err := db.DescribeTimeToLive(ctx, &dynamodb.DescribeTimeToLiveInput{TableName: &name})
	if err != nil {
		t.ttlError = err
	} else if d := ttl.TimeToLiveDescription; d != nil {
		t.ttlState = d.TimeToLiveStatus
		if t.ttlState == types.TimeToLiveStatusEnabled || t.ttlState == types.TimeToLiveStatusEnabling {
			t.ttl = aws.ToString(d.AttributeName)
		}
	}
	return t, nil
}

// table returns the description of the table in the path.
func (v *visit) table(ctx context.Context) (*table, error) {
	return v.describe(ctx, v.r.PathValue("table"))
}

func (t *table) name() string { return aws.ToString(t.TableName) }

// path returns the path of the table's page, or of a page below it.
func (t *table) path(below ...string) string {
	return strings.Join(append([]string{tablePath(t.name())}, below...), "/")
}

// tablePath returns the path of a table's page. The names of tables need no escaping.
func tablePath(name string) string { return below + "table/" + name }

// keys returns the names of the table's key attributes: the partition key, then the sort key.
func (t *table) keys() []string { return keysOf(t.KeySchema) }

func keysOf(schema []types.KeySchemaElement) []string {
	var names []string
	for _, kind := range []types.KeyType{types.KeyTypeHash, types.KeyTypeRange} {
		for _, e := range schema {
			if e.KeyType == kind {
				names = append(names, aws.ToString(e.AttributeName))
			}
		}
	}
	return names
}

// kind returns the type of a key attribute: S, N or B.
func (t *table) kind(name string) types.ScalarAttributeType {
	for _, d := range t.AttributeDefinitions {
		if aws.ToString(d.AttributeName) == name {
			return d.AttributeType
		}
	}
	return ""
}

// index is a secondary index.
type index struct {
	name       string
	global     bool
	schema     []types.KeySchemaElement
	projection *types.Projection
	status     types.IndexStatus
	items      int64
	bytes      int64
}

func (t *table) indexes() (all []index) {
	for _, x := range t.GlobalSecondaryIndexes {
		all = append(all, index{aws.ToString(x.IndexName), true, x.KeySchema, x.Projection, x.IndexStatus, aws.ToInt64(x.ItemCount), aws.ToInt64(x.IndexSizeBytes)})
	}
	for _, x := range t.LocalSecondaryIndexes {
		all = append(all, index{aws.ToString(x.IndexName), false, x.KeySchema, x.Projection, types.IndexStatusActive, aws.ToInt64(x.ItemCount), aws.ToInt64(x.IndexSizeBytes)})
	}
	sort.Slice(all, func(i, j int) bool { return all[i].name < all[j].name })
	return all
}

// index returns an index by its name, or nil.
func (t *table) index(name string) *index {
	for _, x := range t.indexes() {
		if x.name == name {
			return &x
		}
	}
	return nil
}

// has reports whether the index has an attribute of its items: whether it is projected into it. The
// keys of the table always are.
func (x *index) has(name string) bool {
	if x.projection == nil || x.projection.ProjectionType == types.ProjectionTypeAll {
		return true
	}
	return slices.Contains(keysOf(x.schema), name) || slices.Contains(x.projection.NonKeyAttributes, name)
}

// schemaText returns a key as text: "id (S), line (N)".
func (t *table) schemaText(schema []types.KeySchemaElement) string {
	var parts []string
	for _, name := range keysOf(schema) {
		parts = append(parts, name+" ("+string(t.kind(name))+")")
	}
	return strings.Join(parts, ", ")
}

// streamText returns the view type of the table's stream, or "off".
func (t *table) streamText() string {
	if s := t.StreamSpecification; s != nil && aws.ToBool(s.StreamEnabled) {
		return string(s.StreamViewType)
	}
	return "off"
}

// tabs returns the links to the pages of a table.
func (t *table) tabs(current string) node {
	tab := func(below, name string) node {
		path, reason := t.path(), ""
		if below != "" {
			path = t.path(below)
		}
		if below == "stream" {
			reason = t.noStream
		}
		return el("li", link(path, name, below == current, reason))
	}
	return el("nav", has("class", "tabs"), has("aria-label", "Table "+t.name()), el("ul",
		tab("items", "Items"), tab("timeline", "Timeline"), tab("stream", "Stream"), tab("import", "Import"), tab("", "Settings"),
	))
}

// page returns a page of a table.
func (t *table) page(current string, body ...node) *page {
	return &page{title: t.name(), area: below + "tables", body: append([]node{t.tabs(current)}, body...)}
}

// showUnknown answers a path that has no page.
func showUnknown(context.Context, *visit) (*page, error) {
	return nil, &pageError{http.StatusNotFound, "There is no such page."}
}

// created returns when the table was created.
func (t *table) created() time.Time { return aws.ToTime(t.CreationDateTime) }
