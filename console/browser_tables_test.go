package console_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly/internal/clock"
	"github.com/mayflydb/mayfly/internal/testkit/chrome"
)

func TestBrowserTables(t *testing.T) {
	b := chrome.Start(t)
	everywhere(t, func(t *testing.T, w *world) {
		for _, view := range w.views() {
			t.Run(view.Name, func(t *testing.T) {
				tab, name := b.Open(t, view), "orders-"+view.Name
				if !walks(view) {
					w.newTable(t, name)
					tab.Go(w.pages + "console/tables")
					tab.WaitText("table", name)
					tab.Picture("list")
					tab.Go(w.pages + "console/table/" + name)
					if w.own != nil {
						tab.WaitText("main", "Items expire at the time in expires")
					}
					tab.Picture("settings")
					return
				}
				createTable(t, w, tab, name)
				listTables(t, w, tab, name)
				if w.own != nil {
					changeTimeToLive(t, w, tab, name)
					changeStream(t, w, tab, name)
					changeProtection(t, w, tab, name)
				} else {
					for _, text := range []string{"has no deletion protection", "has no time to live", "has no streams"} {
						tab.WaitText("main", "This endpoint "+text)
					}
				}
				provision(t, w, tab, name)
				if w.own != nil { // dynalite accepts a new index, and makes none
					changeIndexes(t, w, tab, name)
				}
				onDemand(t, w, tab, name)
				tab.Picture("settings")
				deleteTable(t, w, tab, name)
			})
		}
	})
}

// describe returns the description of a table; nil: it does not exist.
func (w *world) describe(t *testing.T, name string) *types.TableDescription {
	t.Helper()
	out, err := w.db.DescribeTable(t.Context(), &dynamodb.DescribeTableInput{TableName: &name})
	if gone := (*types.ResourceNotFoundException)(nil); errors.As(err, &gone) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	return out.Table
}

// until waits until a table's description is as wanted. Endpoints change tables after their answer.
func (w *world) until(t *testing.T, name, want string, holds func(*types.TableDescription) bool) {
	t.Helper()
	for end := clock.Stopwatch(); ; clock.Pause(10*time.Millisecond, t.Context().Done()) {
		d := w.describe(t, name)
		if holds(d) {
			return
		}
		if end() > time.Minute {
			t.Fatalf("the table never was %s: %+v", want, d)
		}
	}
}

// ttl returns the TTL attribute; "": off.
func (w *world) ttl(t *testing.T, name string) string {
	t.Helper()
	out, err := w.db.DescribeTimeToLive(t.Context(), &dynamodb.DescribeTimeToLiveInput{TableName: &name})
	if err != nil {
		t.Fatal(err)
	}
	if s := out.TimeToLiveDescription.TimeToLiveStatus; s != types.TimeToLiveStatusEnabled && s != types.TimeToLiveStatusEnabling {
		return ""
	}
	return aws.ToString(out.TimeToLiveDescription.AttributeName)
}

func createTable(t *testing.T, w *world, tab *chrome.Tab, name string) {
	tab.Go(w.pages)
	tab.Press("g", "t")
	tab.WaitText("h1", "Tables")
	tab.FollowText("Create a table")
	tab.Fill("[name=name]", name)
	tab.Fill("[name=pk]", "id")
	tab.Fill("[name=sk]", "line")
	tab.Choose("[name=skType]", "N")
	if w.own == nil { // dynalite has neither TTL nor streams
		tab.WaitText("form", "This endpoint has no time to live")
		tab.WaitText("form", "This endpoint has no streams")
	} else {
		tab.Fill("[name=ttl]", "expires")
		tab.Choose("[name=stream]", "NEW_AND_OLD_IMAGES")
	}
	tab.Fill("[name=index1]", "by-customer")
	tab.Fill("[name=index1pk]", "customer")
	tab.Fill("[name=index1sk]", "total")
	tab.Choose("[name=index1skType]", "N")
	tab.Picture("create")
	tab.FollowText("Create the table")
	tab.WaitText("h1", name)
	tab.WaitText("main", "id (S), line (N)")
	w.waitActive(t, name)
	d := w.describe(t, name)
	if got := fmt.Sprint(keyText(d.KeySchema), " ", keyText(d.GlobalSecondaryIndexes[0].KeySchema)); got != "id HASH line RANGE  customer HASH total RANGE " {
		t.Errorf("the keys are %s", got)
	}
	if w.own == nil {
		return
	}
	if got := w.ttl(t, name); got != "expires" {
		t.Errorf("the TTL attribute is %q", got)
	}
	if d.StreamSpecification.StreamViewType != types.StreamViewTypeNewAndOldImages {
		t.Errorf("the stream is %+v", d.StreamSpecification)
	}
}

func keyText(schema []types.KeySchemaElement) (text string) {
	for _, e := range schema {
		text += aws.ToString(e.AttributeName) + " " + string(e.KeyType) + " "
	}
	return text
}

func listTables(t *testing.T, w *world, tab *chrome.Tab, name string) {
	for i := range int64(3) {
		w.putItem(t, name, map[string]types.AttributeValue{"id": text("one"), "line": number(i), "customer": text("x"), "total": number(i)})
	}
	tab.FollowText("Tables")
	tab.Press("/")
	tab.Wait(`document.activeElement.name === "q"`)
	tab.Fill("[name=q]", name[:len(name)-1])
	tab.Press(chrome.Enter)
	tab.Wait(`new URLSearchParams(location.search).get("q")`)
	row := fmt.Sprintf(`[...document.querySelectorAll("tbody tr")].find(r => r.cells[0].innerText === %q)`, name)
	tab.Wait(row)
	cells := chrome.Eval[[]string](tab, `[...`+row+`.cells].map(c => c.innerText)`)
	ttl, stream, items := "expires", "NEW_AND_OLD_IMAGES", "3"
	if w.own == nil { // it does not count
		ttl, stream, items = "none", "off", cells[1]
	}
	for i, want := range map[int]string{0: name, 1: items, 3: "id (S), line (N)", 4: ttl, 5: stream, 6: "by-customer", 7: "active"} {
		if cells[i] != want {
			t.Errorf("column %d of the list shows %q, not %q", i, cells[i], want)
		}
	}
	if w.own != nil && (cells[2] == "0 B" || cells[2] == "") {
		t.Errorf("the size is %q", cells[2])
	}
	tab.Picture("list")
	tab.FollowText(name)
	tab.WaitText("h1", name)
	tab.FollowText("Settings")
}

func changeTimeToLive(t *testing.T, w *world, tab *chrome.Tab, name string) {
	tab.FollowText("Disable TTL")
	if w.name == "aws" { // as Amazon's service, which allows a change an hour
		tab.WaitText("main", "modified multiple times within a fixed interval")
		tab.Forgive("the server responded with a status of 400")
		if got := w.ttl(t, name); got != "expires" {
			t.Errorf("the TTL attribute is %q", got)
		}
		tab.Go(w.pages + "console/table/" + name)
		return
	}
	tab.WaitText("main", "Items do not expire.")
	if got := w.ttl(t, name); got != "" {
		t.Errorf("TTL is still on: %q", got)
	}
	tab.Fill("[name=attribute]", "until")
	tab.FollowText("Enable TTL")
	tab.WaitText("main", "Items expire at the time in until")
	if got := w.ttl(t, name); got != "until" {
		t.Errorf("the TTL attribute is %q", got)
	}
}

func changeStream(t *testing.T, w *world, tab *chrome.Tab, name string) {
	tab.FollowText("Disable the stream")
	w.until(t, name, "without a stream", func(d *types.TableDescription) bool { return d.StreamSpecification == nil && d.TableStatus == "ACTIVE" })
	tab.Go(tab.URL())
	tab.Choose("[name=view]", "KEYS_ONLY")
	tab.FollowText("Enable the stream")
	tab.WaitText("main", "The stream has KEYS_ONLY.")
	w.until(t, name, "with a stream of keys", func(d *types.TableDescription) bool {
		return d.StreamSpecification != nil && d.StreamSpecification.StreamViewType == types.StreamViewTypeKeysOnly && d.TableStatus == "ACTIVE"
	})
}

func changeProtection(t *testing.T, w *world, tab *chrome.Tab, name string) {
	tab.FollowText("Protect the table")
	w.until(t, name, "protected", func(d *types.TableDescription) bool { return *d.DeletionProtectionEnabled && d.TableStatus == "ACTIVE" })
	tab.Go(w.pages + "console/table/" + name)
	tab.WaitText("main", "it cannot be deleted")
	tab.ClickText("Delete the table")
	tab.Fill("form:has(.danger) [name=name]", name)
	tab.Follow("form button.danger")
	tab.WaitText("main", "protect")
	tab.Forgive("the server responded with a status of 400")
	if w.describe(t, name) == nil {
		t.Fatal("a protected table was deleted")
	}
	tab.Go(w.pages + "console/table/" + name)
	tab.FollowText("Remove the protection")
	tab.WaitText("main", "The table can be deleted.")
	w.until(t, name, "unprotected", func(d *types.TableDescription) bool {
		return !*d.DeletionProtectionEnabled && d.TableStatus == "ACTIVE"
	})
}

func provision(t *testing.T, w *world, tab *chrome.Tab, name string) {
	capacity := func(read, write int64) func(*types.TableDescription) bool {
		same := func(p *types.ProvisionedThroughputDescription) bool {
			return p != nil && *p.ReadCapacityUnits == read && *p.WriteCapacityUnits == write
		}
		return func(d *types.TableDescription) bool {
			return d.TableStatus == "ACTIVE" && same(d.ProvisionedThroughput) && same(d.GlobalSecondaryIndexes[0].ProvisionedThroughput)
		}
	}
	tab.Go(w.pages + "console/table/" + name)
	tab.Choose("[name=billing]", "PROVISIONED")
	tab.Fill("[name=read]", "7")
	tab.Fill("[name=write]", "3")
	tab.FollowText("Change the capacity")
	w.until(t, name, "provisioned with 7 and 3 units", capacity(7, 3))
	tab.Go(w.pages + "console/table/" + name)
	if got := chrome.Eval[string](tab, `document.querySelector("[name=read]").value + " " + document.querySelector("[name=billing]").value`); got != "7 PROVISIONED" {
		t.Errorf("the settings show %q", got)
	}
	tab.Fill("[name=read]", "8")
	tab.FollowText("Change the capacity")
	w.until(t, name, "provisioned with 8 and 3 units", capacity(8, 3))
}

func onDemand(t *testing.T, w *world, tab *chrome.Tab, name string) {
	tab.Go(w.pages + "console/table/" + name)
	tab.Choose("[name=billing]", "PAY_PER_REQUEST")
	tab.FollowText("Change the capacity")
	w.until(t, name, "on demand", func(d *types.TableDescription) bool {
		return d.TableStatus == "ACTIVE" && d.BillingModeSummary != nil && d.BillingModeSummary.BillingMode == types.BillingModePayPerRequest
	})
}

func changeIndexes(t *testing.T, w *world, tab *chrome.Tab, name string) {
	indexes := func(n int) func(*types.TableDescription) bool {
		return func(d *types.TableDescription) bool {
			for _, x := range d.GlobalSecondaryIndexes {
				if x.IndexStatus != types.IndexStatusActive {
					return false
				}
			}
			return len(d.GlobalSecondaryIndexes) == n && d.TableStatus == "ACTIVE"
		}
	}
	tab.Go(w.pages + "console/table/" + name)
	tab.ClickText("Create a global index")
	tab.Fill("[name=index]:not([type=hidden])", "by-total")
	tab.Fill("form:has(> [value=index-new]) [name=pk]", "total")
	tab.Choose("form:has(> [value=index-new]) [name=pkType]", "N")
	tab.FollowText("Create the index")
	w.until(t, name, "with two indexes", indexes(2))
	tab.Go(w.pages + "console/table/" + name)
	tab.WaitText("table", "by-total")
	remove := `form:has([name=index][value="by-total"]) button`
	tab.Refuse(true)
	tab.Click(remove)
	tab.Wait(`document.querySelectorAll("main table tbody tr").length === 2`)
	tab.Refuse(false)
	tab.Follow(remove)
	w.until(t, name, "with one index", indexes(1))
	tab.Go(w.pages + "console/table/" + name)
}

func deleteTable(t *testing.T, w *world, tab *chrome.Tab, name string) {
	field := "form:has(.danger) [name=name]"
	tab.ClickText("Delete the table")
	tab.Fill(field, name+"x")
	tab.Click("form button.danger") // the browser refuses it
	if !chrome.Eval[bool](tab, fmt.Sprintf(`document.querySelector(%q).matches(":invalid")`, field)) {
		t.Error("the browser takes any name")
	}
	chrome.Eval[bool](tab, fmt.Sprintf(`(document.querySelector(%q).form.noValidate = true)`, field))
	tab.Follow("form button.danger") // the server refuses it
	tab.WaitText("main", "Enter the name of the table exactly")
	tab.Forgive("the server responded with a status of 400")
	if w.describe(t, name) == nil {
		t.Fatal("a wrong name deleted the table")
	}
	tab.Go(w.pages + "console/table/" + name)
	tab.ClickText("Delete the table")
	tab.Fill(field, name)
	tab.Follow("form button.danger")
	tab.WaitText("h1", "Tables")
	waiter := dynamodb.NewTableNotExistsWaiter(w.db, func(o *dynamodb.TableNotExistsWaiterOptions) {
		o.MinDelay, o.MaxDelay = time.Millisecond, 20*time.Millisecond
	})
	if err := waiter.Wait(context.Background(), &dynamodb.DescribeTableInput{TableName: &name}, time.Minute); err != nil {
		t.Fatal(err)
	}
}
