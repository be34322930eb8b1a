package console_test

import (
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	lambdatypes "github.com/aws/aws-sdk-go-v2/service/lambda/types"

	"github.com/mayflydb/mayfly/internal/testkit/chrome"
)

// A visitor follows a stream: changes appear as they are made, with what changed; filters choose
// among them; consumers show how far they are behind. Two of the views end before the filters.
func TestBrowserStream(t *testing.T) {
	b := chrome.Start(t)
	for name, open := range worlds {
		for i, view := range (&world{name: name}).views() {
			t.Run(name+"/"+view.Name, func(t *testing.T) {
				t.Parallel() // it mostly waits for the next second, in which the page gets its events
				w, tab := open(t), b.Open(t, view)
				if w.own == nil {
					lookAtTableWithoutStream(t, tab, w, i)
					return
				}
				followStream(t, tab, w, i, i == 0 || i == 3)
			})
		}
	}
}

// recordsShown counts the rows of records.
const recordsShown = `document.querySelectorAll("#records > tr").length`

func followStream(t *testing.T, tab *chrome.Tab, w *world, i int, whole bool) {
	m := w.makeTable(t, "orders"+string(rune('a'+i)), "until", "")
	tab.Go(w.pages + "console/table/" + m.name + "/stream")
	tab.WaitText("main", "The table has no stream")
	tab.WaitText("main", "aws dynamodb update-table --table-name "+m.name)
	tab.FollowText("settings of the table")
	tab.Choose("select[name=view]", "NEW_AND_OLD_IMAGES")
	tab.Follow("form:has(select[name=view]) button")
	tab.WaitText("main", "The stream has NEW_AND_OLD_IMAGES")
	tab.FollowText("Stream")
	tab.WaitText("#position", "At the end of")

	now := w.own.Clock().Now()
	m.put(attributes{"id": "box-1", "state": "packed", "weight": int64(12)})
	tab.WaitText("#records", "box-1")
	m.put(attributes{"id": "box-1", "state": "sent", "weight": int64(12)})
	m.put(attributes{"id": "pen-1", "until": now.Add(time.Hour).Unix()})
	m.delete("box-1")
	tab.Wait(recordsShown + " === 4")
	change := chrome.Eval[string](tab, `[...document.querySelectorAll("#records > tr")].find(r => r.innerText.includes("MODIFY")).querySelector(".difference").innerText`)
	if change != "state: packed → sent" {
		t.Errorf("the change is shown as %q; the weight is the same", change)
	}
	if old := chrome.Eval[string](tab, `document.querySelector("#records del").innerText + "/" + document.querySelector("#records ins").innerText`); old == "/" {
		t.Error("old and new values are not marked")
	}
	tab.WaitText("#position", "4 records read")
	tab.WaitText("#position", "at the end. Last sequence number: 1")
	if w.name == "mayfly" {
		w.advance(t, 2*time.Hour)
		tab.WaitText("#records tr.expired", "REMOVE by its deadline")
		tab.WaitText("#records tr.expired", "pen-1")
		tab.Wait(`document.querySelectorAll("#records tr.expired").length === 1`)
	}
	tab.Picture("records")
	if !whole {
		return
	}

	// A reader from the oldest record on, with filters.
	tab.Choose("select[name=from]", "oldest")
	tab.Choose("select[name=event]", "REMOVE")
	tab.Fill("input[name=q]", "BOX")
	tab.FollowText("Follow")
	tab.Wait(recordsShown + " === 1")
	tab.WaitText("#records", "box-1")
	tab.WaitText("#position", "1 of them shown")
	if w.name == "mayfly" {
		tab.Choose("select[name=event]", "expired")
		tab.Fill("input[name=q]", "")
		tab.FollowText("Follow")
		tab.Wait(recordsShown + " === 1")
		tab.WaitText("#records", "pen-1")
	}

	// A trigger is a consumer of the stream.
	tab.WaitText("#consumers", "No consumer has a checkpoint")
	out, err := w.db.DescribeTable(t.Context(), &dynamodb.DescribeTableInput{TableName: &m.name})
	if err != nil {
		t.Fatal(err)
	}
	made, err := w.lambda().CreateEventSourceMapping(t.Context(), &lambda.CreateEventSourceMappingInput{
		EventSourceArn: out.Table.LatestStreamArn, FunctionName: aws.String("pack"), StartingPosition: lambdatypes.EventSourcePositionTrimHorizon,
	})
	if err != nil {
		t.Fatal(err)
	}
	tab.WaitText("#consumers", "trigger "+*made.UUID)
	tab.WaitText("#consumers", "at the end")
	tab.Click("#consumers a")
	tab.WaitText("h1", "Triggers")
	tab.Follow("tr:has(input[value='" + *made.UUID + "']) button[value=Pause]")
	tab.WaitText("tr:has(input[value='"+*made.UUID+"'])", "disabled")
	m.put(attributes{"id": "box-2"})
	m.put(attributes{"id": "box-3"})
	m.put(attributes{"id": "box-4"})
	if w.name == "mayfly" {
		w.advance(t, 5*time.Minute)
	}
	tab.Follow("tr:has(input[value='" + *made.UUID + "']) a")
	tab.WaitText("#consumers", "3 behind")
	if w.name == "mayfly" {
		tab.WaitText("#consumers", "5m")
	}
	tab.Picture("consumers")
	if _, err := w.lambda().UpdateEventSourceMapping(t.Context(), &lambda.UpdateEventSourceMappingInput{UUID: made.UUID, Enabled: aws.Bool(true)}); err != nil {
		t.Fatal(err)
	}
	tab.WaitText("#consumers", "at the end")
}

// lookAtTableWithoutStream looks at an endpoint without streams: the page has its reason.
func lookAtTableWithoutStream(t *testing.T, tab *chrome.Tab, w *world, i int) {
	m := w.makeTable(t, "plain"+string(rune('a'+i)), "", "")
	tab.Go(w.pages + "console/table/" + m.name + "/stream")
	tab.WaitText("h1", m.name)
	tab.WaitText("main", "This endpoint has no streams.")
	tab.Picture("none")
}
