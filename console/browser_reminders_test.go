package console_test

import (
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	lambdatypes "github.com/aws/aws-sdk-go-v2/service/lambda/types"

	"github.com/mayflydb/mayfly"
	"github.com/mayflydb/mayfly/internal/testkit/chrome"
)

// A visitor sees the reminders of items with their instants on a line of time, and by rule, and the
// triggers of tables with their last results. A trigger is paused, resumed and deleted.
func TestBrowserRemindersAndTriggers(t *testing.T) {
	b := chrome.Start(t)
	remind := func(o *mayfly.Options) {
		o.Reminders = []mayfly.Reminder{{Name: "visit", Table: "visits", Attribute: "starts", Offset: -time.Hour, Target: mailFunction, Input: `{"visit":"<$.id>"}`}}
	}
	withReceiver(t, remind, func(t *testing.T, w *world, r *receiver) {
		var mapping string
		if w.own != nil {
			m := w.makeTable(t, "visits", "", types.StreamViewTypeNewAndOldImages)
			now := w.own.Clock().Now()
			m.put(attributes{"id": "ada", "starts": now.Add(3 * time.Hour).Unix()})
			m.put(attributes{"id": "bob", "starts": now.Add(5 * time.Hour).Unix()})
			mapping = m.trigger()
			r.await(t, "NewImage", 1)
		}
		for _, view := range w.views() {
			t.Run(view.Name, func(t *testing.T) {
				tab := b.Open(t, view)
				tab.Go(w.pages)
				tab.Press("g", "m")
				tab.WaitText("h1", "Reminders")
				if w.own == nil {
					tab.WaitText("main", "No item has a reminder.")
					tab.Go(w.pages + "console/triggers")
					tab.WaitText("main", "This endpoint has no")
					tab.Picture("none")
					return
				}
				await(t, func() bool {
					tab.Go(tab.URL())
					return chrome.Eval[bool](tab, `document.querySelector("main").innerText.includes("2 reminders")`)
				}, "two reminders")
				tab.Wait(`document.querySelectorAll("svg.wide circle").length === 2`)
				tab.WaitText("table.list tbody tr:first-child", "ada")
				tab.Wait(`/in (1h 59m|2h)/.test(document.querySelector("table.list tbody tr:first-child").innerText)`)
				tab.Click("table.list tbody tr:first-child summary")
				tab.WaitText("table.list pre", `{"visit":"ada"}`)
				tab.Picture("reminders")
				tab.Fill("input[name=rule]", "other")
				tab.FollowText("Filter")
				tab.WaitText("main", "0 reminders")

				tab.Press("g", "r")
				tab.WaitText("h1", "Triggers")
				tab.WaitText("table.list", "visits")
				tab.WaitText("table.list", mailFunction)
				tab.WaitText("table.list", "OK")
				tab.Picture("triggers")
				tab.FollowText("Pause")
				tab.WaitText("table.list", "disabled")
				out, err := w.lambda().GetEventSourceMapping(t.Context(), &lambda.GetEventSourceMappingInput{UUID: &mapping})
				if err != nil || *out.State != "Disabled" {
					t.Errorf("%v, %v", out, err)
				}
				tab.FollowText("Resume")
				tab.WaitText("table.list", "enabled")
				if i := len(chrome.Views) - 1; view != chrome.Views[i] {
					return
				}
				tab.Refuse(true)
				tab.ClickText("Delete")
				tab.Refuse(false)
				tab.FollowText("Delete")
				tab.WaitText("main", "There are no triggers yet.")
				list, err := w.lambda().ListEventSourceMappings(t.Context(), &lambda.ListEventSourceMappingsInput{})
				if err != nil || len(list.EventSourceMappings) != 0 {
					t.Errorf("%v, %v", list, err)
				}
			})
		}
		if w.name == "mayfly" {
			w.advance(t, 4*time.Hour)
			r.await(t, `{"visit":"ada"}`, 1)
			r.await(t, `{"visit":"bob"}`, 1)
		}
	})
}

// trigger makes a trigger of a table, and returns its UUID.
func (m made) trigger() string {
	m.t.Helper()
	t, w := m.t, m.w
	table, err := w.db.DescribeTable(t.Context(), &dynamodb.DescribeTableInput{TableName: &m.name})
	if err != nil {
		t.Fatal(err)
	}
	out, err := w.lambda().CreateEventSourceMapping(t.Context(), &lambda.CreateEventSourceMappingInput{
		EventSourceArn: table.Table.LatestStreamArn, FunctionName: aws.String(mailFunction), StartingPosition: lambdatypes.EventSourcePositionTrimHorizon,
	})
	if err != nil {
		t.Fatal(err)
	}
	return *out.UUID
}
