package console_test

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly/internal/testkit/chrome"
	"github.com/mayflydb/mayfly/internal/work/attr"
	"github.com/mayflydb/mayfly/internal/work/transfer"
)

// Numbers of 38 digits, the most that DynamoDB keeps.
const (
	largeNumber = "12345678901234567890123456789012345678"
	smallNumber = "-0.0012345678901234567890123456789012345678"
)

// rich returns attributes of all types.
func rich() attr.Item {
	return attr.Item{
		"large": attr.N(largeNumber), "small": attr.N(smallNumber), "yes": attr.Bool(true), "none": &types.AttributeValueMemberNULL{Value: true},
		"blob":    attr.B([]byte("\x00\xffbytes")),
		"tags":    &types.AttributeValueMemberSS{Value: []string{"a", "b"}},
		"numbers": &types.AttributeValueMemberNS{Value: []string{largeNumber}},
		"blobs":   &types.AttributeValueMemberBS{Value: [][]byte{{1, 2, 3}}},
		"deep":    attr.M(attr.Item{"list": list(attr.N(largeNumber), attr.B([]byte{7}), attr.S("x"))}),
	}
}

// list returns a list.
func list(all ...types.AttributeValue) types.AttributeValue {
	return &types.AttributeValueMemberL{Value: all}
}

// typed returns an item as DynamoDB JSON.
func typed(item attr.Item) string { return string(transfer.AppendItem(nil, item)) }

const (
	itemText = "textarea[name=item]"
	alert    = "[role=alert]"
)

// edited returns the text of the editor.
func edited(tab *chrome.Tab) string {
	return chrome.Eval[string](tab, `document.querySelector("textarea[name=item]").value`)
}

func TestBrowserItem(t *testing.T) {
	b := chrome.Start(t)
	everywhere(t, func(t *testing.T, w *world) {
		for _, view := range w.views() {
			t.Run(view.Name, func(t *testing.T) {
				o := newOrders(t, w, "orders-"+view.Name)
				tab := b.Open(t, view)
				o.create(t, tab)
				if !walks(view) {
					return
				}
				o.renew(t, tab)
				o.editPlain(t, tab)
				o.duplicate(t, tab)
				o.conflict(t, tab, b.Open(t, view))
				o.delete(t, tab)
			})
		}
	})
}

// create creates an item after two mistakes.
func (o *orders) create(t *testing.T, tab *chrome.Tab) {
	tab.Go(o.page("/items"))
	tab.FollowText("Create an item")
	tab.Paste(itemText, `{"customer":`)
	tab.WaitText(".wrong", "This is not JSON")
	tab.ClickText("Create")
	tab.Wait(`document.querySelector("textarea[name=item]:invalid")`) // the browser keeps the form

	lacks := `{"customer":{"S":"c-1"}, "state":{"S":"open"}}`
	tab.Paste(itemText, lacks)
	tab.FollowText("Create")
	tab.WaitText(alert, "line")
	tab.Forgive("400")
	if got := edited(tab); got != lacks {
		t.Errorf("the text became %q", got)
	}

	item := order("c-1", 1, rich())
	if o.expires() {
		item["expires"] = attr.Seconds(o.clock().Add(90 * time.Second))
	}
	tab.Paste(itemText, typed(item))
	tab.FollowText("Create")
	tab.WaitText(".done", "Saved")
	tab.WaitText("h2", `{"customer":{"S":"c-1"},"line":{"N":"1"}}`)
	o.check("c-1", 1, item)
	for _, want := range []string{largeNumber, smallNumber, "AP9ieXRlcw==", "00ff6279746573", "7 bytes"} {
		tab.WaitText("main", want)
	}
	if o.expires() {
		tab.WaitText(".explain", "The item expires at ")
	} else {
		tab.WaitText(".explain", "The item never expires: the table's TTL is off.")
	}
	tab.Picture("item")
	tab.Reload()
	tab.WaitText("main", smallNumber)

	switch o.name {
	case "mayfly": // its clock stands
		tab.WaitText(".explain .big", "in 1m 30s")
		tab.WaitText(".explain", "removed at once")
	case "aws":
		tab.WaitText(".explain", "stays readable until the server removes it")
		at := tab.Text(".explain .big")
		tab.Wait(fmt.Sprintf(`document.querySelector(".explain .big").innerText !== %q`, at))
	}
	tab.Go(o.page("/items"))
	tab.WaitText("main tbody", "c-1")
	if o.expires() {
		tab.WaitText("main tbody tr", "then removed")
	}
	tab.Picture("list")
}

// renew gives an item one hour more, and another one whose deadline has passed.
func (o *orders) renew(t *testing.T, tab *chrome.Tab) {
	if !o.expires() {
		return
	}
	item := order("c-1", 1, rich())
	item["expires"] = attr.Seconds(o.clock().Truncate(time.Millisecond).Add(90 * time.Second))
	o.write(item)
	tab.Go(o.page("/item", "key", key("c-1", 1)))
	tab.FollowText("One hour more")
	tab.WaitText(".done", "Saved")
	at, _ := attr.AsNumber(item["expires"])
	item["expires"] = attr.N(plusHour(t, at))
	o.check("c-1", 1, item)
	tab.WaitText(".explain .big", "in 1h")
	tab.Reload()
	tab.WaitText(".explain .big", "in 1h")
	if o.name == "aws" { // an item stays for a while after its deadline
		o.write(order("late", 1, attr.Item{"expires": attr.Seconds(o.clock().Add(-5 * time.Second))}))
		tab.Go(o.page("/item", "key", key("late", 1)))
		tab.WaitText(".explain", "and is still there")
		tab.WaitText(".explain .big", "ago")
		tab.FollowText("One hour more")
		tab.WaitText(".explain .big", "in 59m") // from now on
	}
	stale := o.get("c-1", 1)
	tab.Go(o.page("/item", "key", key("c-1", 1)))
	stale["expires"] = attr.Seconds(o.clock().Add(2 * time.Hour))
	o.write(stale)
	tab.FollowText("One hour more")
	tab.WaitText(alert, "has changed")
	tab.Forgive("409")
	o.check("c-1", 1, stale)
}

// plusHour returns a number of seconds with 3,600 more.
func plusHour(t *testing.T, seconds string) string {
	t.Helper()
	whole, fraction, _ := strings.Cut(seconds, ".")
	n, err := strconv.ParseInt(whole, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSuffix(fmt.Sprintf("%d.%s", n+3600, fraction), ".")
}

// editPlain edits an item of all types as plain JSON.
func (o *orders) editPlain(t *testing.T, tab *chrome.Tab) {
	tab.Go(o.page("/item", "key", key("c-1", 1)))
	tab.FollowText("Plain JSON")
	text := edited(tab)
	for _, want := range []string{`"large": ` + largeNumber, `"small": ` + smallNumber, `"blob": "AP9ieXRlcw=="`} {
		if !strings.Contains(text, want) {
			t.Fatalf("the plain JSON lacks %s:\n%s", want, text)
		}
	}
	tab.Picture("plain")
	tab.Reload()
	if again := edited(tab); again != text {
		t.Errorf("a reload shows %s", again)
	}
	tab.Paste(itemText, strings.Replace(text, `"state": "open"`, `"state": "sent"`, 1))
	tab.FollowText("Save")
	tab.WaitText(".done", "Saved")
	want := o.get("c-1", 1)
	if got := want["state"]; !reflect.DeepEqual(got, attr.S("sent")) {
		t.Errorf("the state is %s", attr.String(got))
	}
	for name, v := range rich() {
		if !reflect.DeepEqual(want[name], v) {
			t.Errorf("%s became %s", name, attr.String(want[name]))
		}
	}
	tab.Paste(itemText, `["no item"]`)
	tab.FollowText("Save")
	tab.WaitText(alert, "it is not an object")
	tab.Forgive("400")
	o.check("c-1", 1, want)
}

// duplicate makes a new item from another.
func (o *orders) duplicate(t *testing.T, tab *chrome.Tab) {
	was := o.get("c-1", 1)
	tab.Go(o.page("/item", "key", key("c-1", 1)))
	tab.FollowText("Duplicate")
	tab.WaitText("h2", "Duplicate an item")
	tab.FollowText("Plain JSON")
	text := edited(tab)
	tab.FollowText("Create")
	tab.WaitText(alert, "has an item with this key already")
	tab.Forgive("409")
	tab.Paste(itemText, strings.Replace(text, `"line": 1`, `"line": 2`, 1))
	tab.FollowText("Create")
	tab.WaitText(".done", "Saved")
	o.check("c-1", 1, was)
	was["line"] = attr.Int(2)
	o.check("c-1", 2, was)

	tab.Paste(itemText, `{"customer":"c-1","line":9}`)
	tab.FollowText("Save")
	tab.WaitText(alert, "The key of an item cannot change")
	tab.Forgive("400")
	o.check("c-1", 9, nil)
}

// conflict edits an item in two windows.
func (o *orders) conflict(t *testing.T, first, second *chrome.Tab) {
	o.write(order("shared", 1, nil))
	at := o.page("/item", "key", key("shared", 1))
	first.Go(at)
	second.Go(at)
	first.Paste(itemText, typed(order("shared", 1, attr.Item{"by": attr.S("first")})))
	first.FollowText("Save")
	first.WaitText(".done", "Saved")
	text := typed(order("shared", 1, attr.Item{"by": attr.S("second")}))
	second.Paste(itemText, text)
	second.FollowText("Save")
	second.WaitText(alert, "The item has changed since this page was made.")
	second.Forgive("409")
	second.WaitText("main", "compare it with the item as it is now")
	second.Picture("conflict")
	o.check("shared", 1, order("shared", 1, attr.Item{"by": attr.S("first")}))
	if got := edited(second); got != text {
		t.Errorf("the second's text became %q", got)
	}
	second.FollowText("Save over the newer item")
	second.WaitText(".done", "Saved")
	o.check("shared", 1, order("shared", 1, attr.Item{"by": attr.S("second")}))

	first.Go(at)
	second.Go(at)
	first.FollowText("Delete the item")
	first.WaitText(".done", "1 item changed.")
	second.Paste(itemText, text)
	second.FollowText("Save")
	second.WaitText(alert, "The item is gone since this page was made")
	second.Forgive("409")
	second.FollowText("Save as a new item")
	second.WaitText(".done", "Saved")
	o.check("shared", 1, order("shared", 1, attr.Item{"by": attr.S("second")}))
}

// delete deletes an item, after a question.
func (o *orders) delete(t *testing.T, tab *chrome.Tab) {
	was := o.get("c-1", 2)
	at := o.page("/item", "key", key("c-1", 2))
	tab.Go(at)
	tab.Refuse(true)
	tab.ClickText("Delete the item")
	tab.WaitText("main", "Delete the item")
	o.check("c-1", 2, was)
	tab.Refuse(false)
	tab.FollowText("Delete the item")
	tab.WaitText(".done", "1 item changed.")
	o.check("c-1", 2, nil)
	tab.Go(at)
	tab.WaitText(alert, "The table has no item")
	tab.Forgive("404")
	tab.Picture("gone")
}
