package console

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly/internal/when"
	"github.com/mayflydb/mayfly/internal/work/attr"
	"github.com/mayflydb/mayfly/internal/work/transfer"
)

// bulkMost is the number of items that one change of several may have.
const bulkMost = 1_000

// bulkForm returns the form of the changes of several items. The check boxes of the list belong to
// it. The style sheet hides the fields that the chosen change does not need.
func (t *table) bulkForm(v *visit) node {
	f := form{}
	field := func(use string, parts ...node) node { return el("div", has("class", use), group(parts)) }
	return el("form", has("id", "bulk"), has("class", "filter"), v.largeForm(t.path("bulk")),
		el("input", has("type", "hidden"), has("name", "back"), has("value", v.r.URL.RawQuery)),
		el("label", has("class", "check"), el("input", has("type", "checkbox"), has("data-all")), words("all of this page")),
		f.choice("do", "With the chosen items", []option{{"delete", "delete"}, {"renew", "move the deadline by"}, {"set", "set an attribute"}, {"remove", "remove an attribute"}}),
		field("named", f.text("name", "Attribute", "")),
		field("valued", f.choice("kind", "Type", []option{{"S", "string"}, {"N", "number"}, {"BOOL", "true or false"}, {"B", "binary"}}), words(" "), f.text("value", "Value", "")),
		field("timed", el("label", words("Time "), el("input", has("name", "by"), has("autocomplete", "off"), has("placeholder", "1h, 2d or -30m")))),
		el("button", words("Preview")),
	)
}

// back returns the path of the list from which a change came, with more values for its URL.
func (t *table) back(f form, set url.Values) string {
	q, _ := url.ParseQuery(f.values.Get("back")) // of a wrong one, the right part
	q.Del("changed")
	to := urlWith(&url.URL{Path: t.path("items"), RawQuery: q.Encode()}, set)
	if len(to) > urlMost {
		to = urlWith(&url.URL{Path: t.path("items")}, set)
	}
	return to
}

// bulk is a change of several items.
type bulk struct {
	form
	do, name, kind, value string
	keys                  []string
	digests               []string // of what the preview showed of each item; none: no preview yet
	shift                 time.Duration
}

// readBulk returns the change of a form.
func readBulk(t *table, r *http.Request) (*bulk, error) {
	f := form{r.PostForm}
	b := &bulk{form: f, do: f.get("do"), name: f.values.Get("name"), kind: f.get("kind"), value: f.values.Get("value"), keys: r.PostForm["key"], digests: r.PostForm["was"]}
	switch {
	case len(b.keys) == 0:
		return nil, &pageError{http.StatusBadRequest, "Choose items first."}
	case len(b.keys) > bulkMost:
		return nil, &pageError{http.StatusBadRequest, fmt.Sprintf("One change has at most %d items.", bulkMost)}
	case b.do == "renew":
		var err error
		if b.shift, err = when.Duration(f.get("by")); err != nil || b.shift%time.Second != 0 {
			return nil, &pageError{http.StatusBadRequest, fmt.Sprintf("%q is not a time in whole seconds, such as 90s, 1h30m, 2d or -1d.", clip(f.get("by"), cellMost))}
		}
		if t.ttl == "" {
			return nil, &pageError{http.StatusBadRequest, "The table's TTL is off: its items have no deadlines."}
		}
	case b.do == "set" || b.do == "remove":
		if b.name == "" {
			return nil, &pageError{http.StatusBadRequest, "Name the attribute."}
		}
		if _, err := valueOf(b.kind, b.value); b.do == "set" && err != nil {
			return nil, wrong(b.name, err)
		}
	case b.do != "delete":
		return nil, errChange
	}
	if f.get("confirmed") != "" && len(b.digests) != len(b.keys) {
		return nil, errChange
	}
	return b, nil
}

// text returns a description of the change.
func (b *bulk) text() string {
	items := counted(len(b.keys), "item")
	switch b.do {
	case "delete":
		return "Delete " + items
	case "renew":
		return "Move the deadline of " + items + " by " + when.Text(b.shift)
	case "remove":
		return "Remove the attribute " + b.name + " from " + items
	}
	return "Set the attribute " + b.name + " of " + items + " to " + clip(b.value, cellMost)
}

// changeItems previews a change of several items, or makes it if the form confirms it.
func changeItems(ctx context.Context, v *visit) (string, *page, error) {
	t, err := v.table(ctx)
	if err != nil {
		return "", nil, err
	}
	b, err := readBulk(t, v.r)
	if err != nil {
		return "", nil, err
	}
	if v.r.PostForm.Get("confirmed") == "" {
		p, err := b.preview(ctx, t, v)
		return "", p, err
	}
	items, err := b.read(ctx, t, v)
	if err != nil {
		return "", nil, err
	}
	done, failed := b.apply(ctx, t, v, items)
	if len(failed) == 0 { // a reload must not make the change again
		return t.back(b.form, url.Values{"changed": {strconv.Itoa(done)}}), nil, nil
	}
	// The reasons are in no URL, so this page answers the form itself. Browsers warn before a
	// reload, which sends the form again. The changed items are then refused, since they
	// differ from the preview, and the change of the others is tried again.
	return "", t.page("items",
		el("h2", words(b.text())), el("p", has("role", "status"), words(counted(done, "item")+" changed, "+strconv.Itoa(len(failed))+" not.")),
		list([]string{"Item", "Why not"}, failed, ""),
		el("p", el("a", has("href", t.back(b.form, nil)), words("Back to the items"))),
	), nil
}

// preview shows each item as it is and as it would be, with the button that makes the change.
func (b *bulk) preview(ctx context.Context, t *table, v *visit) (*page, error) {
	items, err := b.read(ctx, t, v)
	if err != nil {
		return nil, err
	}
	rows := make([]node, 0, len(b.keys))
	fields := []node{v.largeForm(t.path("bulk"))}
	hidden := func(name, value string) {
		fields = append(fields, el("input", has("type", "hidden"), has("name", name), has("value", value)))
	}
	for _, key := range b.keys {
		before, after := b.effect(t, items[key], v.clock(ctx))
		rows = append(rows, el("tr", el("td", el("a", has("href", t.itemPath(key)), el("code", words(clip(key, 2*cellMost))))), el("td", before), el("td", after)))
		hidden("key", key)
		hidden("was", digest(items[key]))
	}
	for _, name := range []string{"do", "name", "kind", "value", "by", "back"} {
		hidden(name, b.values.Get(name))
	}
	hidden("confirmed", "yes")
	fields = append(fields, el("button", has("class", "danger"), words(b.text())), words(" "), el("a", has("href", t.back(b.form, nil)), words("Change nothing")))
	return t.page("items", el("h2", words("Preview")), el("p", words(b.text()+"? Nothing has changed yet. An item whose values here change before you confirm is left as it is.")),
		optional(b.do == "renew", el("p", words("A deadline that has passed moves from now."))), el("form", fields...),
		list([]string{"Item", "Now", "Then"}, rows, "")), nil
}

// shown returns the attribute that the preview shows; "": only the key.
func (b *bulk) shown(t *table) string {
	if b.do == "set" || b.do == "remove" {
		return b.name
	}
	return t.ttl
}

// keysMost is the number of items that one BatchGetItem reads.
const keysMost = 100

// read returns the chosen items by their keys in the form, with the attributes that a preview shows.
func (b *bulk) read(ctx context.Context, t *table, v *visit) (map[string]attr.Item, error) {
	shown := &built{names: map[string]string{}}
	var projection []string
	for _, name := range append(t.keys(), b.shown(t)) {
		if name != "" && shown.add(name) {
			projection = append(projection, shown.name(name))
		}
	}
	found := map[string]attr.Item{}
	names := map[string]string{} // keys as the form has them, by keys as this process writes them
	for part := range slices.Chunk(b.keys, keysMost) {
		want := types.KeysAndAttributes{ConsistentRead: aws.Bool(true), ProjectionExpression: aws.String(strings.Join(projection, ", ")), ExpressionAttributeNames: shown.names}
		for _, text := range part {
			key, err := transfer.ReadKey([]byte(text))
			if err != nil {
				return nil, &pageError{http.StatusBadRequest, "The form has a key that is none: " + err.Error()}
			}
			name := keyJSON(key, t.keys())
			if _, twice := names[name]; twice {
				continue
			}
			names[name] = text
			want.Keys = append(want.Keys, key)
		}
		if len(want.Keys) == 0 {
			continue
		}
		for asked := map[string]types.KeysAndAttributes{t.name(): want}; len(asked) > 0; {
			out, err := v.DynamoDB().BatchGetItem(ctx, &dynamodb.BatchGetItemInput{RequestItems: asked})
			if err != nil {
				return nil, err
			}
			for _, item := range out.Responses[t.name()] {
				found[names[keyJSON(item, t.keys())]] = item
			}
			if asked = out.UnprocessedKeys; len(asked) > 0 && len(out.Responses[t.name()]) == 0 {
				return nil, &pageError{http.StatusServiceUnavailable, "The endpoint throttles reads of the chosen items. Try again later, or with fewer items."}
			}
		}
	}
	return found, nil
}

// effect shows an item before and after the change. A nil item is gone.
func (b *bulk) effect(t *table, item attr.Item, clock reading) (before, after node) {
	if item == nil {
		return el("span", has("class", "absent"), words("gone")), words("nothing to do")
	}
	q := &query{table: t}
	switch b.do {
	case "delete":
		if t.ttl != "" {
			before = q.deadlineCell(item, clock, fate{})
		}
		return before, el("span", has("class", "warning"), words("deleted"))
	case "renew":
		number, _ := attr.AsNumber(item[t.ttl])
		at, why := deadlineOf(number, clock.now)
		if why != "" {
			return q.deadlineCell(item, clock, fate{}), words("not changed: it has no deadline")
		}
		return until(at, clock.now), until(renewed(at, clock.now, b.shift), clock.now)
	case "remove":
		return cell(item[b.name]), cell(nil)
	}
	to, _ := valueOf(b.kind, b.value) // read already
	return cell(item[b.name]), cell(to)
}

// apply makes the change, item by item: each has a condition of its own. It returns the number of
// changed items, and a row for each other one. items are the chosen ones as they are.
func (b *bulk) apply(ctx context.Context, t *table, v *visit, items map[string]attr.Item) (done int, failed []node) {
	db, now := v.DynamoDB(), v.clock(ctx).now
	errs := make([]error, len(b.keys))
	parallel(len(b.keys), func(i int) {
		item := items[b.keys[i]]
		switch {
		case len(item) == 0:
			errs[i] = errGone
		case digest(item) != b.digests[i]:
			errs[i] = errPreview
		default:
			errs[i] = b.changeOne(ctx, db, t, item, now)
		}
	})
	for i, err := range errs {
		if err == nil {
			done++
			continue
		}
		text, _ := errorText(err)
		failed = append(failed, el("tr", el("td", el("a", has("href", t.itemPath(b.keys[i])), el("code", words(clip(b.keys[i], 2*cellMost))))), el("td", words(text))))
	}
	return done, failed
}

// Reasons for items that were not changed.
var (
	errGone     = &pageError{http.StatusConflict, "The item is gone."}
	errPreview  = &pageError{http.StatusConflict, "The item has changed since the preview."}
	errDeadline = &pageError{http.StatusConflict, "The item has no deadline."}
)

// changeOne changes an item if it still is as the preview showed it.
func (b *bulk) changeOne(ctx context.Context, db *dynamodb.Client, t *table, item attr.Item, now time.Time) error {
	var failed *types.ConditionalCheckFailedException
	err := b.write(ctx, db, t, item, now, true)
	if errors.As(err, &failed) { // perhaps the endpoint compares no lists and maps: another read shows it
		present, readErr := b.reread(ctx, db, t, item)
		switch {
		case readErr != nil:
			return readErr
		case len(present) == 0:
			return errGone
		case digest(present) == digest(item):
			err = b.write(ctx, db, t, item, now, false)
		}
	}
	if errors.As(err, &failed) {
		return errPreview
	}
	return err
}

// reread reads an item once more, with the attributes that the preview shows.
func (b *bulk) reread(ctx context.Context, db *dynamodb.Client, t *table, item attr.Item) (attr.Item, error) {
	key, now := attr.Item{}, attr.Item{}
	for _, k := range t.keys() {
		key[k] = item[k]
	}
	out, err := db.GetItem(ctx, &dynamodb.GetItemInput{TableName: aws.String(t.name()), Key: key, ConsistentRead: aws.Bool(true)})
	if err != nil {
		return nil, err
	}
	for _, name := range append(t.keys(), b.shown(t)) {
		if value, ok := out.Item[name]; ok {
			now[name] = value
		}
	}
	return now, nil
}

// write makes the change to one item, on the condition that the shown attributes are as they were.
func (b *bulk) write(ctx context.Context, db *dynamodb.Client, t *table, item attr.Item, now time.Time, documents bool) error {
	name, key, x := aws.String(t.name()), attr.Item{}, newExpressions()
	for _, k := range t.keys() {
		key[k] = item[k]
	}
	x.condition = "attribute_exists(" + x.name(t.keys()[0]) + ")"
	if shown := b.shown(t); shown != "" && key[shown] == nil {
		x.equals(shown, item[shown], documents)
	}
	switch b.do {
	case "delete":
		_, err := db.DeleteItem(ctx, &dynamodb.DeleteItemInput{TableName: name, Key: key, ConditionExpression: &x.condition, ExpressionAttributeNames: x.names, ExpressionAttributeValues: orNil(x.values)})
		return err
	case "remove":
		x.update = "REMOVE " + x.built.name(b.name)
	case "set":
		to, err := valueOf(b.kind, b.value)
		if err != nil {
			return err
		}
		x.update = "SET " + x.built.name(b.name) + " = " + x.value(to)
	case "renew":
		number, _ := attr.AsNumber(item[t.ttl])
		at, why := deadlineOf(number, now)
		if why != "" {
			return errDeadline
		}
		x.renew(t.ttl, at, now, b.shift)
	}
	_, err := db.UpdateItem(ctx, &dynamodb.UpdateItemInput{TableName: name, Key: key, UpdateExpression: &x.update, ConditionExpression: &x.condition, ExpressionAttributeNames: x.names, ExpressionAttributeValues: orNil(x.values)})
	return err
}
