package console_test

import (
	"errors"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/scheduler"
	schedulertypes "github.com/aws/aws-sdk-go-v2/service/scheduler/types"

	"github.com/mayflydb/mayfly/internal/testkit/chrome"
)

// A visitor finds a schedule, looks at its next and past firings, runs it now, pauses it and deletes
// it. A firing that fails for good is a dead letter: the visitor reads its payload, delivers it
// again, and deletes the next one.
func TestBrowserSchedules(t *testing.T) {
	b := chrome.Start(t)
	withReceiver(t, nil, func(t *testing.T, w *world, r *receiver) {
		for i, view := range w.views() {
			t.Run(view.Name, func(t *testing.T) {
				tab := b.Open(t, view)
				if w.own == nil {
					tab.Go(w.pages + "console/schedules")
					tab.WaitText("main", "This endpoint has no schedules")
					tab.Picture("none")
					tab.Go(w.pages + "console/deadletters")
					tab.WaitText("main", "There are no dead letters.")
					return
				}
				useSchedule(t, tab, w, r, string(rune('a'+i)))
			})
		}
	})
}

func useSchedule(t *testing.T, tab *chrome.Tab, w *world, r *receiver, letter string) {
	name := "greet-" + letter
	api := w.own.Scheduler()
	if _, err := api.CreateSchedule(t.Context(), &scheduler.CreateScheduleInput{
		Name: &name, ScheduleExpression: aws.String("cron(0 * * * ? *)"), FlexibleTimeWindow: &schedulertypes.FlexibleTimeWindow{Mode: schedulertypes.FlexibleTimeWindowModeOff},
		Target: &schedulertypes.Target{
			Arn: aws.String(mailFunction), RoleArn: aws.String("arn:aws:iam::000000000000:role/any"), Input: aws.String(`{"to":"` + name + `","text":"<b>Hello</b>"}`),
			RetryPolicy: &schedulertypes.RetryPolicy{MaximumRetryAttempts: aws.Int32(0)},
		},
	}); err != nil {
		t.Fatal(err)
	}
	tab.Go(w.pages)
	tab.Press("g", "s")
	tab.WaitText("h1", "Schedules")
	tab.Fill("input[name=q]", name)
	tab.FollowText("Filter")
	tab.Wait(`document.querySelectorAll("table.list > tbody > tr").length === 1`)
	tab.WaitText("table.list", "cron(0 * * * ? *)")
	tab.Wait(`document.querySelector("time.left").innerText.startsWith("in ")`)
	tab.Wait(`document.querySelector("svg[aria-label='Next firings'] circle title").textContent.startsWith("` + name + `: ")`)
	tab.Picture("list")
	tab.FollowText(name)
	tab.WaitText("h1", name)
	tab.WaitText("main", "It has not fired in the past day.")
	tab.Wait(`document.querySelectorAll("time.left").length === 10`)

	// By hand.
	tab.FollowText("Run now")
	r.await(t, name, 1)
	history := func(text string) {
		t.Helper()
		await(t, func() bool {
			tab.Go(tab.URL())
			return chrome.Eval[bool](tab, `(document.querySelector(".stacked tbody tr")?.innerText ?? "").includes("`+text+`")`)
		}, "a firing "+text)
	}
	history("delivered")
	history("by hand")

	// By time, with a failure.
	r.answer(500)
	if w.name == "mayfly" {
		w.advance(t, time.Hour)
	} else {
		tab.FollowText("Run now")
	}
	history("failed for good after 1 attempt")
	history("500")
	tab.Picture("history")
	tab.FollowText("dead letters")
	tab.WaitText("h1", "Dead letters")
	tab.WaitText("table.list", mailFunction)
	tab.Click("td summary")
	tab.WaitText("pre", `{"to":"`+name+`","text":"<b>Hello</b>"}`)
	tab.Picture("letter")
	r.answer(0)
	tab.Click("input[name=key]")
	tab.FollowText("Deliver again")
	r.await(t, name, 2)
	tab.Go(w.pages + "console/deadletters")
	tab.WaitText("main", "There are no dead letters.")

	r.answer(400)
	tab.Go(w.pages + "console/schedules?q=" + name)
	tab.FollowText("Run now")
	await(t, func() bool { return w.count(t, "mayfly.deadletters") == 1 }, "dead letters")
	tab.Go(w.pages + "console/deadletters?code=none")
	tab.WaitText("main", "There are no dead letters.")
	tab.Go(w.pages + "console/deadletters")
	tab.Click("input[data-all]")
	tab.Refuse(true)
	tab.Click("#bulk button.danger")
	if n := w.count(t, "mayfly.deadletters"); n != 1 {
		t.Errorf("%d dead letters after a refusal", n)
	}
	tab.Refuse(false)
	tab.FollowText("Delete")
	tab.WaitText("main", "There are no dead letters.")
	if n := w.count(t, "mayfly.deadletters"); n != 0 {
		t.Errorf("%d dead letters after a deletion", n)
	}
	r.answer(0)

	// Pause, resume, delete.
	tab.Go(w.pages + "console/schedules?q=" + name)
	tab.FollowText("Pause")
	tab.WaitText("table.list", "disabled")
	if state := w.stateOf(t, name); state != schedulertypes.ScheduleStateDisabled {
		t.Error(state)
	}
	tab.FollowText(name)
	tab.WaitText("main", "It is paused, so no firing is to come.")
	if w.name == "mayfly" {
		before := r.received(name)
		w.advance(t, 3*time.Hour)
		if n := r.received(name); n != before {
			t.Errorf("it fired %d times while paused", n-before)
		}
	}
	tab.FollowText("Resume")
	tab.Wait(`document.querySelectorAll("time.left").length === 10`)
	if state := w.stateOf(t, name); state != schedulertypes.ScheduleStateEnabled {
		t.Error(state)
	}
	tab.FollowText("Delete")
	tab.WaitText("h1", "Schedules")
	if state := w.stateOf(t, name); state != "" {
		t.Errorf("after its deletion the schedule is %s", state)
	}
}

// stateOf returns the state of a schedule, or "" if there is none.
func (w *world) stateOf(t *testing.T, name string) schedulertypes.ScheduleState {
	t.Helper()
	out, err := w.own.Scheduler().GetSchedule(t.Context(), &scheduler.GetScheduleInput{Name: &name})
	var none *schedulertypes.ResourceNotFoundException
	if errors.As(err, &none) {
		return ""
	}
	if err != nil {
		t.Fatal(err)
	}
	return out.State
}

// count returns the number of items of a table.
func (w *world) count(t *testing.T, table string) int32 {
	t.Helper()
	out, err := w.db.Scan(t.Context(), &dynamodb.ScanInput{TableName: &table, ConsistentRead: aws.Bool(true)})
	if err != nil {
		t.Fatal(err)
	}
	return out.Count
}
