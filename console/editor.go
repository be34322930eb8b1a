package console

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly/internal/work/attr"
	"github.com/mayflydb/mayfly/internal/work/transfer"
)

// editor is the form for the JSON of an item.
type editor struct {
	*table
	text  string
	plain bool   // plain JSON and not DynamoDB JSON
	key   string // of the item that it changes; "": it makes a new one
	from  string // key of the item that a new one begins as a copy of; "": none
	was   string // digest of the changed item as the visitor knows it
	state editorState
}

// editorState is what a refusal has left in an editor.
type editorState int

const (
	editorFresh   editorState = iota
	editorRefused             // the text is the visitor's
	editorNewer               // and the item has changed since
	editorGone                // and the item is gone
	editorLarge               // and the change is too large for an update
)

// largeText is the size in bytes of JSON that is indented, and on a page without being asked for. A
// browser lays out such a text without a pause.
const largeText = 64 << 10

// editable returns the text of an item for an editor.
func editable(item attr.Item, plain bool) string {
	text := transfer.AppendItem(nil, item)
	if plain {
		text = appendPlain(nil, attr.M(item))
	}
	return pretty(string(text))
}

// form returns the editor's form.
func (e editor) form(v *visit) node {
	hidden := func(name, value string) node {
		return el("input", has("type", "hidden"), has("name", name), has("value", value))
	}
	if e.folded(v) {
		return el("p", el("a", has("class", "button"), has("href", urlWith(v.r.URL, url.Values{"edit": {"yes"}, "saved": {""}})), words("Open the JSON: "+size(int64(len(e.text))))))
	}
	format, label := "", "Item as DynamoDB JSON (plain JSON is understood too) "
	if e.plain {
		format, label = "plain", "Item as plain JSON "
	}
	rows := min(max(strings.Count(e.text, "\n")+1, 6), 24)
	do := "edit"
	if e.key == "" {
		do = "create"
	}
	parts := group{
		hidden("key", e.key), hidden("from", e.from), hidden("was", e.was), hidden("format", format),
		optionally(e.state == editorFresh, func() node { return e.formats(v) }),
		el("label", words(label), el("textarea", has("name", "item"), has("rows", strconv.Itoa(rows)), has("spellcheck", "false"), has("data-json"), words(e.text))),
		el("p", has("class", "wrong"), has("role", "status")),
		optional(e.plain, el("p", el("small", words("Sets and binary values keep their types where an attribute has one already; a new list stays a list, and a new text a string.")))),
		el("p", has("class", "actions"), e.buttons()),
	}
	return v.changeForm(do, parts)
}

// folded reports whether a link stands for the editor: the text is large, and the URL does not ask for
// it.
func (e editor) folded(v *visit) bool {
	return len(e.text) > largeText && e.state == editorFresh && v.r.FormValue("edit") == ""
}

// formats returns the links between DynamoDB JSON and plain JSON.
func (e editor) formats(v *visit) node {
	link := func(as, name string, current bool) node {
		return el("li", el("a", has("href", urlWith(v.r.URL, url.Values{"as": {as}, "saved": {""}})), optional(current, has("aria-current", "true")), words(name)))
	}
	return el("nav", has("class", "formats"), has("aria-label", "Format of the JSON"), el("ul", link("", "DynamoDB JSON", !e.plain), link("plain", "Plain JSON", e.plain)))
}

// buttons returns the buttons that save the item.
func (e editor) buttons() node {
	button := func(as, name string, first bool) node {
		return el("button", has("name", "as"), has("value", as), optional(first, has("class", "primary")), words(name))
	}
	switch {
	case e.key == "":
		return button("create", "Create", true)
	case e.state == editorGone:
		return button("create", "Save as a new item", true)
	case e.state == editorLarge:
		return group{button("replace", "Replace the whole item", false), words(" "), button("create", "Save as a new item", false)}
	case e.state == editorNewer:
		return group{button("edit", "Save over the newer item", false), words(" "), button("create", "Save as a new item", false)}
	}
	return group{button("edit", "Save", true), words(" "), button("create", "Save as a new item", false)}
}

// Refusals of an edit of an item that has changed since the page was made.
var (
	errChanged = &pageError{http.StatusConflict, "The item has changed since this page was made."}
	errMissing = &pageError{http.StatusConflict, "The item is gone since this page was made: deleted or expired."}
	errExists  = &pageError{http.StatusConflict, "The table has an item with this key already."}
	errKey     = &pageError{http.StatusBadRequest, "The key of an item cannot change: save it as a new item, then delete this one."}
)

// changed returns errChanged for a condition that failed.
func changed(err error) error {
	var failed *types.ConditionalCheckFailedException
	if errors.As(err, &failed) {
		return errChanged
	}
	return err
}

// save writes the item of the editor. If it cannot, the page has the visitor's text again.
func (t *table) save(ctx context.Context, v *visit, f form) (string, *page, error) {
	e := editor{table: t, text: f.values.Get("item"), plain: f.get("format") == "plain", key: f.get("key"), from: f.get("from"), was: f.get("was"), state: editorRefused}
	now, err := v.item(ctx, t, e.key)
	if err != nil {
		return "", nil, err
	}
	model := now
	if e.key == "" {
		if model, err = v.item(ctx, t, e.from); err != nil {
			return "", nil, err
		}
	}
	item, err := t.readItem(e.text, e.plain, model)
	if err == nil {
		err = e.write(ctx, v, f.get("as"), item)
	}
	if err == nil {
		as := ""
		if e.plain {
			as = "plain"
		}
		return t.itemPath(keyJSON(item, t.keys()), "as", as, "saved", "yes"), nil, nil
	}
	advice := node(words("Nothing was written; your text is still here."))
	switch {
	case errors.Is(err, errMissing):
		e.state, advice = editorGone, words("Nothing was written. Your text is still here: save it as a new item, or leave it.")
	case errors.Is(err, errLarge):
		e.state, advice = editorLarge, words("Nothing was written. Your text is still here: change fewer attributes at once, or replace the whole item. A replacement compares the item first, but could undo what another client changes at the same moment.")
	case errors.Is(err, errChanged):
		if now, err := v.item(ctx, t, e.key); err == nil { // as it is shown by the link
			e.was = digest(now)
		}
		e.state, advice = editorNewer, group{words("Nothing was written. Your text is still here: compare it with "), el("a", has("href", t.itemPath(e.key)), has("target", "_blank"), words("the item as it is now")), words(", then save over it, or leave it.")}
	}
	return "", t.page("items").with(err, el("p", advice), e.form(v)), nil
}

// write writes the item unless the table's item is no longer the one that the visitor knows. as is
// the name of the button.
func (e editor) write(ctx context.Context, v *visit, as string, item attr.Item) error {
	if as == "create" || e.key == "" {
		_, err := v.DynamoDB().PutItem(ctx, &dynamodb.PutItemInput{
			TableName: aws.String(e.name()), Item: item,
			ConditionExpression: aws.String("attribute_not_exists(#k)"), ExpressionAttributeNames: map[string]string{"#k": e.keys()[0]},
		})
		var failed *types.ConditionalCheckFailedException
		if errors.As(err, &failed) {
			return errExists
		}
		return err
	}
	if keyJSON(item, e.keys()) != e.key {
		return errKey
	}
	if as == "replace" {
		return e.replace(ctx, v, item)
	}
	return e.update(ctx, v, item)
}

// readItem reads the text of an editor. was is the item that it replaces; nil: none. Text that is
// not DynamoDB JSON may be plain.
func (t *table) readItem(text string, plain bool, was attr.Item) (attr.Item, error) {
	reader := t.reader()
	var typed error
	if !plain {
		var item attr.Item
		if item, _, typed = reader.Read([]byte(text)); typed == nil {
			return item, fits(reader, []byte(text))
		}
	}
	item, err := readPlain(text, t.model(was))
	switch {
	case err != nil && plain:
		return nil, &pageError{http.StatusBadRequest, fmt.Sprintf("The text is not an item: %s.", err)}
	case err != nil:
		return nil, &pageError{http.StatusBadRequest, fmt.Sprintf("The text is not an item. As DynamoDB JSON: %s. As plain JSON: %s.", typed, err)}
	}
	read := transfer.AppendItem(nil, item)
	if err := fits(reader, read); err != nil {
		return nil, err
	}
	item, _, err = reader.Read(read)
	return item, err
}

// fits returns an error unless the table would accept an item, so that an import writes nothing of a
// file that has a wrong one.
func fits(reader *transfer.Reader, text []byte) error {
	if _, err := reader.Check(text); err != nil {
		return &pageError{http.StatusBadRequest, fmt.Sprintf("The text is not an item of this table: %s.", err)}
	}
	return nil
}

// model returns an item with the types of was and of the keys of the table and its indexes, so that
// plain JSON can name binary keys.
func (t *table) model(was attr.Item) attr.Item {
	item := attr.Item{}
	for _, d := range t.AttributeDefinitions {
		if d.AttributeType == types.ScalarAttributeTypeB {
			item[aws.ToString(d.AttributeName)] = attr.B(nil)
		}
	}
	for name, v := range was {
		item[name] = v
	}
	return item
}
