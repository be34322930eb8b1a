package console

import (
	"bufio"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/mayflydb/mayfly"
	"github.com/mayflydb/mayfly/internal/work/attr"
)

// clerk allows the pages of deadlines, to move the clock, and to read the items of one table.
const clerk = `{"Version": "2012-10-17", "Statement": [
	{"Effect": "Allow", "Action": ["dynamodb:Describe*", "dynamodb:List*", "mayfly:*"], "Resource": "*"},
	{"Effect": "Allow", "Action": "dynamodb:Scan", "Resource": "arn:aws:dynamodb:*:*:table/open"}]}`

// TestWithheldItems: a key that may not read the items of a table sees how many expire, and why
// they are not listed.
func TestWithheldItems(t *testing.T) {
	s := open(t, mayfly.Options{Credentials: []mayfly.Credential{
		{AccessKey: "ROOT", SecretKey: "secret"},
		{AccessKey: "CLERK", SecretKey: "secret", Policies: []mayfly.Policy{{Name: "clerk", JSON: clerk}}},
	}})
	for _, table := range []string{"open", "closed", "vault"} {
		s.table(table)
		s.expires(table, "ends")
		s.put(table, attr.Item{"id": attr.S("item-of-" + table), "ends": attr.Int(begin.Add(30 * time.Minute).Unix())})
	}
	root, clerk := s.as("ROOT", "secret"), s.as("CLERK", "secret")
	see := func(where string, m markup, want, never []string) {
		t.Helper()
		for _, text := range want {
			if !strings.Contains(m.text(), text) {
				t.Errorf("%s does not show %q: %s", where, text, m.text())
			}
		}
		for _, text := range never {
			if strings.Contains(m.text(), text) {
				t.Errorf("%s shows %q: %s", where, text, m.text())
			}
		}
	}
	const (
		closed = "Your key does not allow dynamodb:Scan on closed, so its items are not listed."
		two    = "Your key does not allow dynamodb:Scan on 2 tables, so their items are not listed."
		none   = "No item is listed."
	)
	at := url.Values{"from": {millis(begin)}, "to": {millis(begin.Add(time.Hour))}, "at": {millis(begin.Add(20 * time.Minute))}}
	for _, query := range []url.Values{nil, at} {
		see("the timeline for the clerk", clerk.page("table/closed/timeline", query), []string{"1 item expires in this range", closed, none}, []string{"item-of-closed", "No item expires"})
		see("the timeline for root", root.page("table/closed/timeline", query), []string{"1 item expires in this range", "item-of-closed"}, []string{"Your key", none})
		see("the timeline of an open table", clerk.page("table/open/timeline", query), []string{"item-of-open"}, []string{"Your key", none})
	}
	later := url.Values{"from": {millis(begin.Add(time.Hour))}, "to": {millis(begin.Add(2 * time.Hour))}}
	see("the timeline of no items", clerk.page("table/closed/timeline", later), []string{"0 items expire in this range", "No item expires in this range."}, []string{"Your key", none})

	see("the clock for the clerk", clerk.page("clock", nil), []string{two, "item-of-open"}, []string{"item-of-closed", "item-of-vault"})
	see("the clock for root", root.page("clock", nil), []string{"item-of-open", "item-of-closed", "item-of-vault"}, []string{"Your key"})
	live := clerk.send(http.MethodGet, below+"live/clock", "", "")
	defer live.Body.Close()
	events := ""
	for lines := bufio.NewScanner(live.Body); lines.Scan() && lines.Text() != "data: next"; {
		events += lines.Text() + "\n"
	}
	if !strings.Contains(events, "data: unlisted\ndata: <p class=\"missing\">"+two) {
		t.Errorf("the clock that is followed does not say what it withholds: %s", events)
	}
	_, err := s.db.DynamoDB().DeleteTable(t.Context(), &dynamodb.DeleteTableInput{TableName: aws.String("open")})
	must(t, err)
	see("the clock of closed tables", clerk.page("clock", nil), []string{two, none}, []string{"Nothing is due"})
	moved := clerk.post("clock", url.Values{"do": {"step"}}).page(t, http.StatusOK)
	see("the clock after a move", moved, []string{"2 items expired. The page lists 0 of them:", "or are in a table that your key may not read.", "Nothing is due"}, []string{"item-of-closed", two})
}

// TestUnreadDeadlines: a key that may move the clock and not read deadlines sees after a move why
// nothing is listed.
func TestUnreadDeadlines(t *testing.T) {
	s := open(t, mayfly.Options{Credentials: []mayfly.Credential{
		{AccessKey: "ROOT", SecretKey: "secret"},
		{AccessKey: "MOVER", SecretKey: "secret", Policies: []mayfly.Policy{{Name: "mover", JSON: `{"Version": "2012-10-17", "Statement": [
			{"Effect": "Allow", "Action": ["mayfly:ReadClock", "mayfly:MoveClock"], "Resource": "*"}]}`}}},
	}})
	s.table("carts")
	s.expires("carts", "ends")
	s.put("carts", attr.Item{"id": attr.S("a"), "ends": attr.Int(begin.Add(30 * time.Minute).Unix())})
	text := s.as("MOVER", "secret").post("clock", url.Values{"do": {"advance"}, "by": {"1h"}}).page(t, http.StatusOK).text()
	if !strings.Contains(text, "1 item expired. The page lists none of them: ") || !strings.Contains(text, "mayfly:ReadDeadlines") || strings.Contains(text, "too many") {
		t.Errorf("the page shows %s", text)
	}
}

// A list whose deadlines are not known to its end says so.
func TestUnlisted(t *testing.T) {
	until := begin.Add(time.Hour)
	for why, c := range map[string]struct {
		upcoming
		want string
	}{
		"a changed TTL is being applied": {upcoming{until: until, to: until.Add(1)}, "2030-01-01 13:00:00 UTC</time> on, items may be missing: a changed TTL is being applied to many items."},
		"the list is complete":           {upcoming{until: until, to: until}, ""},
		"its summary has the instant":    {upcoming{until: until, to: until.Add(1), counts: []float64{1}}, ""},
		"one table of all":               {upcoming{withheld: 1}, "dynamodb:Scan on 1 table, so its items are not listed."},
	} {
		n := c.unlisted()
		if n == nil && c.want == "" {
			continue
		}
		if n == nil || c.want == "" || !strings.Contains(markupText(n), c.want) {
			t.Errorf("%s: the page says %v", why, n)
		}
	}
}
