package console_test

import (
	"testing"
	"time"

	"github.com/mayflydb/mayfly"
	"github.com/mayflydb/mayfly/internal/testkit/chrome"
)

// A visitor whose key may not read the items of a table reads why the timeline and the clock do not
// list them, and also sees them pass.
func TestBrowserWithheld(t *testing.T) {
	const counts = `{"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": ["dynamodb:Describe*", "dynamodb:List*", "mayfly:*"], "Resource": "*"}]}`
	w := newWorld(t, "keys", mayfly.Options{Frozen: true, ClockControl: mayfly.ClockControlOn, Credentials: []mayfly.Credential{
		{AccessKey: "CLERK", SecretKey: "secret", Policies: []mayfly.Policy{{Name: "counts", JSON: counts}}},
	}})
	w.newTable(t, "vault")
	w.put(t, "vault", "gold", w.now().Add(30*time.Minute).Unix())
	const why = "Your key does not allow dynamodb:Scan on "
	b := chrome.Start(t)
	for _, view := range []chrome.View{chrome.Views[0], chrome.Desk} {
		tab := b.Open(t, view)
		tab.SignIn("CLERK", "secret")
		tab.Go(w.pages + "console/table/vault/timeline")
		tab.WaitText("[role=status]", "1 item expires in this range")
		tab.WaitText("main", why+"vault, so its items are not listed.")
		tab.Picture("timeline-" + view.Name)
		tab.Press("g", "c")
		tab.WaitText("#unlisted", why+"1 table, so its items are not listed.")
		tab.WaitText("#next", "No item is listed.")
		tab.Picture("clock-" + view.Name)
	}
	tab := b.Open(t, chrome.Desk)
	tab.SignIn("CLERK", "secret")
	tab.Go(w.pages + "console/clock")
	tab.FollowKey("n")
	tab.WaitText("#moved", "1 item expired. The page lists 0 of them:")
	tab.WaitText("#moved", "or are in a table that your key may not read.")
	tab.Wait(`document.querySelector("#unlisted").innerText === ""`)
	tab.Picture("moved")
}
