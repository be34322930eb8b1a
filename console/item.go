package console

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly/internal/ttl"
	"github.com/mayflydb/mayfly/internal/work/attr"
	"github.com/mayflydb/mayfly/internal/work/judge"
	"github.com/mayflydb/mayfly/internal/work/transfer"
)

// showItem shows one item, or the form for a new one, which may begin as a copy of another.
func showItem(ctx context.Context, v *visit) (*page, error) {
	t, err := v.table(ctx)
	if err != nil {
		return nil, err
	}
	key, err := t.jsonKey(v.r.FormValue("key"))
	if err != nil {
		return nil, err
	}
	from, err := t.jsonKey(v.r.FormValue("from"))
	if err != nil {
		return nil, err
	}
	plain := v.r.FormValue("as") == "plain"
	item, err := v.item(ctx, t, cmp.Or(key, from))
	if err != nil {
		return nil, err
	}
	switch {
	case key+from == "":
		return t.page("items", el("h2", words("Create an item")), editor{table: t, text: editable(exampleItem(t), plain), plain: plain}.form(v)), nil
	case len(item) == 0:
		return t.gone(ctx, v, cmp.Or(key, from)), nil
	case key == "":
		return t.page("items", el("h2", words("Duplicate an item")),
			el("p", words("This is a copy of "), el("a", has("href", t.itemPath(from)), el("code", words(clip(from, 2*cellMost)))), words(". Change its key, then create it.")),
			editor{table: t, text: editable(item, plain), plain: plain, from: from}.form(v)), nil
	}
	return t.page("items", t.item(ctx, v, keyJSON(item, t.keys()), item, plain)...), nil
}

// item reads an item. The result is nil if there is none, or if the key is "".
func (v *visit) item(ctx context.Context, t *table, key string) (attr.Item, error) {
	if key == "" {
		return nil, nil
	}
	k, err := transfer.ReadKey([]byte(key))
	if err != nil {
		return nil, &pageError{http.StatusBadRequest, "This is not the key of an item: " + err.Error()}
	}
	out, err := v.DynamoDB().GetItem(ctx, &dynamodb.GetItemInput{TableName: aws.String(t.name()), Key: k, ConsistentRead: aws.Bool(true)})
	if err != nil {
		return nil, err
	}
	return out.Item, nil
}

// gone returns the page of an item that does not exist.
func (t *table) gone(ctx context.Context, v *visit, key string) *page {
	more := group{}
	if t.ttl != "" {
		more = append(more, el("p", words(v.fate(ctx, t).long)))
	}
	if t.streamText() != "off" {
		more = append(more, el("p", el("a", has("href", t.path("stream")+"?from=oldest"), words("Look for its REMOVE record in the stream"))))
	}
	return t.page("items").with(&pageError{http.StatusNotFound, "The table has no item " + clip(key, textMost) + ". If it had one, the item was deleted or has expired."},
		append(more, el("p", el("a", has("href", t.path("items")), words("The items of the table"))))...)
}

// item shows an item with its deadline, its attributes and the forms that change it.
func (t *table) item(ctx context.Context, v *visit, key string, item attr.Item, plain bool) []node {
	names := t.keys()
	for _, name := range slices.Sorted(maps.Keys(item)) {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	var rows []node
	w := &viewer{}
	for _, name := range names[:min(len(names), elementsMost)] {
		_, kind := short(item[name])
		w.shown++
		rows = append(rows, el("div", el("dt", words(visible(clip(name, cellMost))), words(" "), el("small", has("class", "type"), words(kind))), el("dd", w.full(item[name], 1))))
	}
	get := request{operation: "GetItem"}
	get.add("TableName", t.name())
	if k, err := transfer.ReadKey([]byte(key)); err == nil {
		get.add("Key", k)
	}
	get.add("ConsistentRead", true)
	return []node{
		optional(v.r.FormValue("saved") != "", el("p", has("class", "done"), has("role", "status"), words("Saved."))),
		el("div", has("class", "heading"),
			el("h2", words("Item "), el("code", words(clip(key, 2*cellMost)))),
			el("a", has("class", "button"), has("href", t.path("item")+"?"+url.Values{"from": {urlKey(key)}}.Encode()), words("Duplicate")),
		),
		el("section", has("class", "explain"), has("aria-label", "When the item expires"), t.deadline(ctx, v, item)),
		el("dl", append([]node{has("class", "facts")}, rows...)...),
		rest(len(names) - len(rows)),
		el("p", el("small", words(size(int64(attr.Size(item)))+" of 400 KB"))),
		el("h2", words("Edit")), editor{table: t, text: editable(item, plain), plain: plain, key: key, was: digest(item)}.form(v),
		v.changeForm("delete", el("input", has("type", "hidden"), has("name", "key"), has("value", key)), el("input", has("type", "hidden"), has("name", "was"), has("value", digest(item))),
			el("button", has("class", "danger"), has("data-confirm", "Delete this item?"), words("Delete the item"))),
		get.shown(v),
	}
}

// deadline explains when the item expires or why it never does, with the buttons that renew it.
func (t *table) deadline(ctx context.Context, v *visit, item attr.Item) node {
	now := v.clock(ctx).now
	x := judge.Explain(item, t.ttl, t.ttl, now)
	class := "explained"
	if x.Outcome == judge.Never && x.Reason != ttl.Absent.String() && t.ttl != "" {
		class = "explained warning"
	}
	shown := group{el("p", has("class", class), words(sentence(x.Text)))}
	if x.Next != "" {
		shown = append(shown, el("p", el("small", words(sentence(x.Next)))))
	}
	if x.Deadline == nil || !x.TTL {
		return shown
	}
	renew := func(by, name string) node {
		return el("button", has("name", "by"), has("value", by), words(name))
	}
	number, _ := attr.AsNumber(item[t.ttl])
	return append(group{el("p", has("class", "big"), until(*x.Deadline, now)), el("p", instant(*x.Deadline))}, append(shown,
		el("p", words(v.fate(ctx, t).long)),
		v.changeForm("renew",
			el("input", has("type", "hidden"), has("name", "key"), has("value", keyJSON(item, t.keys()))), el("input", has("type", "hidden"), has("name", "was"), has("value", number)),
			renew("60", "One minute more"), words(" "), renew("3600", "One hour more"), words(" "), renew("86400", "One day more"),
			optional(!x.Deadline.After(now), el("p", el("small", words("The deadline has passed: the time counts from now.")))),
		),
	)...)
}

// sentence returns a text of package judge as a sentence.
func sentence(text string) string {
	if text == "" {
		return ""
	}
	return strings.ToUpper(text[:1]) + text[1:] + "."
}

// exampleItem returns the beginning of a new item.
func exampleItem(t *table) attr.Item {
	item := attr.Item{}
	for _, name := range t.keys() {
		switch t.kind(name) {
		case types.ScalarAttributeTypeN:
			item[name] = attr.N("1")
		case types.ScalarAttributeTypeB:
			item[name] = attr.B([]byte("a"))
		default:
			item[name] = attr.S("")
		}
	}
	return item
}

// changeItem makes a change of one item.
func changeItem(ctx context.Context, v *visit) (string, *page, error) {
	t, err := v.table(ctx)
	if err != nil {
		return "", nil, err
	}
	f := form{v.r.PostForm}
	switch do := f.get("do"); do {
	case "delete":
		err := t.remove(ctx, v, f.get("key"), f.get("was"))
		if errors.Is(err, errChanged) {
			return "", t.page("items").with(err, el("p", words("It was not deleted. "), el("a", has("href", t.itemPath(f.get("key"))), words("The item as it is now")))), nil
		}
		return t.path("items") + "?changed=1", nil, err
	case "renew":
		return t.itemPath(f.get("key"), "saved", "yes"), nil, t.renew(ctx, v, f)
	case "create", "edit":
		return t.save(ctx, v, f)
	}
	return "", nil, errChange
}

// renew moves an item's deadline, unless it has changed since the page was made.
func (t *table) renew(ctx context.Context, v *visit, f form) error {
	key, err := transfer.ReadKey([]byte(f.get("key")))
	if err != nil {
		return &pageError{http.StatusBadRequest, "The form's key is not an item's key: " + err.Error()}
	}
	by, err := strconv.ParseInt(f.get("by"), 10, 64)
	if err != nil {
		return errChange
	}
	now := v.clock(ctx).now
	at, why := deadlineOf(f.get("was"), now)
	if why != "" {
		return errChange
	}
	x := newExpressions()
	x.equals(t.ttl, attr.N(f.get("was")), true)
	x.renew(t.ttl, at, now, time.Duration(by)*time.Second)
	_, err = v.DynamoDB().UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: aws.String(t.name()), Key: key, UpdateExpression: &x.update, ConditionExpression: &x.condition,
		ExpressionAttributeNames: x.names, ExpressionAttributeValues: x.values,
	})
	return changed(err)
}

// renewed returns a deadline moved by a time. A deadline that has passed moves from now: an hour more
// than a time long past would change nothing.
func renewed(at, now time.Time, by time.Duration) time.Time {
	if at.Before(now) {
		at = now
	}
	return at.Add(by)
}

// reader returns a reader that checks items as the table does.
func (t *table) reader() *transfer.Reader {
	return transfer.Table{AttributeDefinitions: t.AttributeDefinitions, KeySchema: t.KeySchema}.NewReader()
}
