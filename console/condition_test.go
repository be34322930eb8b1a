package console

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly"
	"github.com/mayflydb/mayfly/internal/testkit"
	"github.com/mayflydb/mayfly/internal/work/attr"
)

// beside returns the pages of the same database, whose first call of an operation comes after
// another client's change: after the page has read the item.
func (s *site) beside(operation string, change func()) *site {
	s.t.Helper()
	var once sync.Once
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.Header.Get("X-Amz-Target"), "."+operation) {
			once.Do(change)
		}
		s.db.Handler().ServeHTTP(w, r)
	}))
	s.t.Cleanup(api.Close)
	pages := httptest.NewServer(Handler(Options{Config: aws.Config{Region: "us-east-1"}, URL: api.URL}))
	s.t.Cleanup(pages.Close)
	return visitor(s.t, pages.URL, s.db)
}

// set sets an attribute of the item "a" of the table things.
func (s *site) set(name string, v types.AttributeValue) {
	s.t.Helper()
	_, err := s.db.DynamoDB().UpdateItem(s.t.Context(), &dynamodb.UpdateItemInput{
		TableName: aws.String("things"), Key: attr.Item{"id": attr.S("a")}, UpdateExpression: aws.String("SET #n = :v"),
		ExpressionAttributeNames: map[string]string{"#n": name}, ExpressionAttributeValues: attr.Item{":v": v},
	})
	must(s.t, err)
}

const keyOfA = `{"id":{"S":"a"}}`

// saves sends the editor's form with a text; was is the item that its page showed.
func (s *site) saves(was attr.Item, text, as string) answer {
	s.t.Helper()
	return s.post("table/things/item", url.Values{"do": {"edit"}, "as": {as}, "key": {keyOfA}, "was": {digest(was)}, "item": {text}})
}

// things returns the only item of the table things, without spaces.
func (s *site) things() string { return strings.Join(s.contents("things"), "\n") }

// TestEditKeepsWhatOthersChange: a change of another client between the page's read and its write
// stays, or the page refuses to save: an update is never lost.
func TestEditKeepsWhatOthersChange(t *testing.T) {
	was := attr.Item{"id": attr.S("a"), "n": attr.N("1"), "old": attr.S("x")}
	for name, c := range map[string]struct {
		text    string
		changes string // the other client's attribute
		refused bool
		want    string
	}{
		"another attribute is added":   {`{"id":"a","n":2,"old":"x"}`, "other", false, `{"id":{"S":"a"},"n":{"N":"2"},"old":{"S":"x"},"other":{"S":"theirs"}}`},
		"another attribute is changed": {`{"id":"a","n":2,"old":"x"}`, "old", false, `{"id":{"S":"a"},"n":{"N":"2"},"old":{"S":"theirs"}}`},
		"the same is changed":          {`{"id":"a","n":2,"old":"x"}`, "n", true, `{"id":{"S":"a"},"n":{"S":"theirs"},"old":{"S":"x"}}`},
		"the removed one is changed":   {`{"id":"a","n":1}`, "old", true, `{"id":{"S":"a"},"n":{"N":"1"},"old":{"S":"theirs"}}`},
		"the added one is added":       {`{"id":"a","n":1,"old":"x","new":1}`, "new", true, `{"id":{"S":"a"},"n":{"N":"1"},"new":{"S":"theirs"},"old":{"S":"x"}}`},
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, mayfly.Options{})
			s.table("things")
			s.put("things", was)
			a := s.beside("UpdateItem", func() { s.set(c.changes, attr.S("theirs")) }).saves(was, c.text, "edit")
			if c.refused {
				if text := a.refused(t, http.StatusConflict); !strings.Contains(text, errChanged.text) || !strings.Contains(text, "Save over the newer item") {
					t.Errorf("it is refused with %s", text)
				}
			} else if a.status != http.StatusSeeOther {
				t.Errorf("it has the status %d", a.status)
			}
			if got := s.things(); got != c.want {
				t.Errorf("the item is %s; want %s", got, c.want)
			}
		})
	}
}

// TestEditComparesEachAttribute: in an item of 300 attributes, the last one is compared too. A
// change of more attributes than one update can compare is offered as a replacement.
func TestEditComparesEachAttribute(t *testing.T) {
	s := open(t, mayfly.Options{})
	s.table("things")
	was := attr.Item{"id": attr.S("a")}
	for i := range 300 {
		was[fmt.Sprintf("v%03d", i)] = attr.Int(int64(i))
	}
	s.put("things", was)
	item := func(change func(attr.Item)) (attr.Item, string) {
		next := attr.Item{}
		for name, v := range was {
			next[name] = v
		}
		change(next)
		return next, jsonText(next)
	}
	_, text := item(func(next attr.Item) { next["v299"] = attr.S("mine") })
	s.beside("UpdateItem", func() { s.set("v299", attr.S("theirs")) }).saves(was, text, "edit").refused(t, http.StatusConflict)
	s.set("v299", was["v299"])
	if a := s.saves(was, text, "edit"); a.status != http.StatusSeeOther {
		t.Fatalf("a small change has the status %d", a.status)
	}
	s.set("v299", was["v299"])

	next, text := item(func(next attr.Item) {
		for i := range 200 {
			delete(next, fmt.Sprintf("v%03d", i))
			next[fmt.Sprintf("w%03d", i)] = attr.N("1")
		}
	})
	if got := s.saves(was, text, "edit").refused(t, http.StatusBadRequest); !strings.Contains(got, "Replace the whole item") {
		t.Errorf("a large change is refused with %.300s", got)
	}
	s.beside("PutItem", func() { s.set("v000", attr.S("theirs")) }).saves(was, text, "replace").refused(t, http.StatusConflict)
	s.set("v000", was["v000"])
	if a := s.saves(was, text, "replace"); a.status != http.StatusSeeOther {
		t.Errorf("a replacement has the status %d: %.300s", a.status, a.body)
	}
	if got := s.things(); got != jsonText(next) {
		t.Errorf("the item is %.300s", got)
	}
}

// TestDeleteChecksWhatWasShown: an item that has changed since its page was made is not deleted,
// also if it changes after the page's last read.
func TestDeleteChecksWhatWasShown(t *testing.T) {
	s := open(t, mayfly.Options{})
	s.table("things")
	was := attr.Item{"id": attr.S("a"), "n": attr.N("1")}
	s.put("things", was)
	form := url.Values{"do": {"delete"}, "key": {keyOfA}, "was": {digest(was)}, "confirmed": {"yes"}}
	s.beside("DeleteItem", func() { s.set("n", attr.N("2")) }).post("table/things/item", form).refused(t, http.StatusConflict)
	s.post("table/things/item", form).refused(t, http.StatusConflict)
	if got := s.things(); got != `{"id":{"S":"a"},"n":{"N":"2"}}` {
		t.Fatalf("the table has %q", got)
	}
	s.set("n", attr.N("1"))
	m := s.page("table/things/item", url.Values{"key": {keyOfA}})
	if !strings.Contains(m.text(), "Delete the item") {
		t.Error("the page has no button")
	}
	if a := s.post("table/things/item", form); a.status != http.StatusSeeOther || s.things() != "" {
		t.Errorf("the status is %d, and the table has %q", a.status, s.things())
	}
}

// TestChangesAreConfirmed: without the script's field, a change that cannot be undone is asked
// about on a page, whose form makes it.
func TestChangesAreConfirmed(t *testing.T) {
	s := open(t, mayfly.Options{})
	s.populate()
	before := s.world()
	for path, all := range questions() {
		for do, question := range all {
			path = strings.NewReplacer("{table}", "things", "{lifecycle}", "parcel").Replace(path)
			m := s.post(path, url.Values{"do": {do}, "key": {keyOfA}, "name": {"daily"}}).page(t, http.StatusOK)
			if !strings.Contains(m.text(), question) || field(t, m, "confirmed") != "yes" || field(t, m, "do") != do || field(t, m, "key") != keyOfA {
				t.Errorf("%s %s: %.300s", path, do, m.text())
			}
		}
	}
	if s.world() != before {
		t.Error("a change was made without a confirmation")
	}
}

// TestBulkChecksThePreview: a change of several items leaves those as they are that have changed
// since the preview, and a passed deadline moves from now.
func TestBulkChecksThePreview(t *testing.T) {
	s := open(t, mayfly.Options{Expiry: mayfly.ExpiryAWS})
	s.table("things")
	s.expires("things", "ends")
	passed := attr.N(fmt.Sprint(begin.Unix() - 100))
	for _, do := range []string{"delete", "renew", "set", "remove"} {
		for _, late := range []bool{false, true} {
			s.put("things", attr.Item{"id": attr.S("a"), "ends": passed, "v": attr.S("x")}, attr.Item{"id": attr.S("b"), "ends": passed, "v": attr.S("x")})
			form := url.Values{"do": {do}, "key": {keyOfA, `{"id":{"S":"b"}}`}, "by": {"1h"}, "name": {"v"}, "kind": {"S"}, "value": {"y"}}
			m := s.post("table/things/bulk", form).page(t, http.StatusOK)
			for _, input := range m.all("input") {
				if input.values["name"] == "was" {
					form.Add("was", input.values["value"])
				}
			}
			form.Set("confirmed", "yes")
			change := func() { s.set("v", attr.S("theirs")) }
			if do == "delete" || do == "renew" {
				change = func() { s.set("ends", attr.N("1999999999")) }
			}
			visitor := s
			if late {
				operation := "UpdateItem"
				if do == "delete" {
					operation = "DeleteItem"
				}
				visitor = s.beside(operation, change)
			} else {
				change()
			}
			text := visitor.post("table/things/bulk", form).page(t, http.StatusOK).text()
			if !strings.Contains(text, "1 item changed, 1 not") || !strings.Contains(text, errPreview.text) {
				t.Errorf("%s, late %v: %.400s", do, late, text)
			}
			want := map[string][]string{
				"delete": {`{"ends":{"N":"1999999999"},"id":{"S":"a"},"v":{"S":"x"}}`},
				"renew":  {`{"ends":{"N":"1999999999"},"id":{"S":"a"},"v":{"S":"x"}}`, fmt.Sprintf(`{"ends":{"N":"%d"},"id":{"S":"b"},"v":{"S":"x"}}`, begin.Unix()+3600)},
				"set":    {fmt.Sprintf(`{"ends":{"N":"%d"},"id":{"S":"a"},"v":{"S":"theirs"}}`, begin.Unix()-100), fmt.Sprintf(`{"ends":{"N":"%d"},"id":{"S":"b"},"v":{"S":"y"}}`, begin.Unix()-100)},
				"remove": {fmt.Sprintf(`{"ends":{"N":"%d"},"id":{"S":"a"},"v":{"S":"theirs"}}`, begin.Unix()-100), fmt.Sprintf(`{"ends":{"N":"%d"},"id":{"S":"b"}}`, begin.Unix()-100)},
			}[do]
			slices.Sort(want)
			if got := s.contents("things"); !slices.Equal(got, want) {
				t.Errorf("%s, late %v: the table has %q; want %q", do, late, got, want)
			}
		}
	}
}

// TestEditAtDynalite: dynalite compares no lists and maps, and items with them can be saved,
// renewed and deleted there all the same.
func TestEditAtDynalite(t *testing.T) {
	at := testkit.Dynalite(t)
	config := aws.Config{Region: "us-east-1", Credentials: credentials.NewStaticCredentialsProvider("any", "any", ""), BaseEndpoint: &at}
	db := dynamodb.NewFromConfig(config)
	pages := httptest.NewServer(Handler(Options{Config: aws.Config{Region: "us-east-1"}, URL: at}))
	defer pages.Close()
	s := visitor(t, pages.URL, nil)
	_, err := db.CreateTable(t.Context(), &dynamodb.CreateTableInput{
		TableName: aws.String("things"), BillingMode: types.BillingModePayPerRequest, KeySchema: keySchema("id"), AttributeDefinitions: defined("id", "S"),
	})
	must(t, err)
	must(t, dynamodb.NewTableExistsWaiter(db).Wait(t.Context(), &dynamodb.DescribeTableInput{TableName: aws.String("things")}, 60e9))
	was := attr.Item{"id": attr.S("a"), "m": attr.M(attr.Item{"x": attr.N("1")}), "l": &types.AttributeValueMemberL{Value: []types.AttributeValue{attr.M(attr.Item{})}}, "ss": &types.AttributeValueMemberSS{Value: []string{"p", "q"}}}
	_, err = db.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String("things"), Item: was})
	must(t, err)
	read := func() attr.Item {
		out, err := db.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: aws.String("things"), Key: attr.Item{"id": attr.S("a")}})
		must(t, err)
		return out.Item
	}
	if a := s.saves(read(), `{"id":"a","m":{"x":2},"l":[],"ss":["p"]}`, "edit"); a.status != http.StatusSeeOther {
		t.Errorf("an edit has the status %d: %.300s", a.status, readMarkup(t, a.body).text())
	}
	if got := jsonText(read()); got != `{"id":{"S":"a"},"l":{"L":[]},"m":{"M":{"x":{"N":"2"}}},"ss":{"SS":["p"]}}` {
		t.Errorf("the item is %s", got)
	}
	s.saves(was, `{"id":"a"}`, "edit").refused(t, http.StatusConflict)
	if a := s.post("table/things/item", url.Values{"do": {"delete"}, "key": {keyOfA}, "was": {digest(read())}, "confirmed": {"yes"}}); a.status != http.StatusSeeOther || len(read()) != 0 {
		t.Errorf("a deletion has the status %d, and the item is %s", a.status, jsonText(read()))
	}
}
