package console_test

import (
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/scheduler"
	schedulertypes "github.com/aws/aws-sdk-go-v2/service/scheduler/types"

	"github.com/mayflydb/mayfly"
	"github.com/mayflydb/mayfly/internal/testkit/chrome"
)

// A visitor shows how time works: steps from deadline to deadline with a key, advances, goes to an
// instant, lets the clock run fast and freezes it. The page lists the next deadlines and those that have passed. Two of the views end after the
// first step.
func TestBrowserClock(t *testing.T) {
	b := chrome.Start(t)
	for i, view := range chrome.Views { // the clock belongs to all visitors, so each view has a world
		t.Run("mayfly/"+view.Name, func(t *testing.T) {
			w := newWorld(t, "mayfly", mayfly.Options{Frozen: true, Start: time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)})
			moveClock(t, b.Open(t, view), w, i == 0 || i == 3)
		})
		if view.Name != "desk-dark" && !*everyView {
			continue // see views
		}
		t.Run("aws/"+view.Name, func(t *testing.T) {
			options := mayfly.Options{Frozen: true, Start: time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC), Expiry: mayfly.ExpiryAWS, ExpiryDelay: "fixed:0s"}
			w := newWorld(t, "aws", options)
			moveClock(t, b.Open(t, view), w, i == 0 || i == 3)
		})
	}
	t.Run("not to be moved", func(t *testing.T) {
		w := newWorld(t, "fixed", mayfly.Options{ClockControl: mayfly.ClockControlOff})
		for _, view := range chrome.Views {
			tab := b.Open(t, view)
			tab.Go(w.pages + "console/clock")
			tab.WaitText("main", "Requests may not move this clock: start the server with --clock-control.")
			if chrome.Eval[bool](tab, `document.querySelector("main form") !== null`) {
				t.Error("there is a form to move the clock")
			}
			tab.Picture("fixed-" + view.Name)
		}
	})
	t.Run("dynalite", func(t *testing.T) {
		w := newDynalite(t)
		for _, view := range chrome.Views {
			tab := b.Open(t, view)
			tab.Go(w.pages + "console/clock")
			tab.WaitText("main", "This endpoint's clock cannot be shown.")
			tab.Picture("dynalite-" + view.Name)
		}
	})
}

func moveClock(t *testing.T, tab *chrome.Tab, w *world, whole bool) {
	late := time.Duration(0) // in the mode of Amazon's service, an item expires when its second is over
	if w.name == "aws" {
		late = time.Second
	}
	m := w.makeTable(t, "sessions", "until", types.StreamViewTypeNewAndOldImages)
	noon := w.own.Clock().Now()
	m.put(attributes{"id": "tea", "until": noon.Add(3 * time.Minute).Unix()})
	m.put(attributes{"id": "cake", "until": noon.Add(time.Hour).Unix()})
	m.put(attributes{"id": "rest", "until": noon.Add(49 * time.Hour).Unix()})
	if _, err := w.own.Scheduler().CreateSchedule(t.Context(), &scheduler.CreateScheduleInput{
		Name: aws.String("wake"), ScheduleExpression: aws.String("at(2030-01-02T07:00:00)"), FlexibleTimeWindow: &schedulertypes.FlexibleTimeWindow{Mode: schedulertypes.FlexibleTimeWindowModeOff},
		Target: &schedulertypes.Target{Arn: aws.String(mailFunction), RoleArn: aws.String("arn:aws:iam::000000000000:role/any")},
	}); err != nil {
		t.Fatal(err)
	}
	at := func(want time.Time) {
		t.Helper()
		if now := w.own.Clock().Now(); !now.Equal(want) {
			t.Errorf("the clock shows %v, want %v", now, want)
		}
	}
	tab.Go(w.pages)
	tab.Press("g", "c")
	tab.WaitText("h1", "Clock")
	tab.WaitText(".face-time", "13:00:00.000") // in Berlin
	tab.WaitText(".face-utc", "2030-01-01 12:00:00.000 UTC")
	tab.WaitText("#clock-state", "The clock is frozen.")
	tab.WaitText("#next tbody tr:first-child", "tea of sessions expires")
	tab.WaitText("#next tbody tr:first-child", "in 3m")
	tab.WaitText("#next", "schedule wake fires")
	tab.Picture("before")

	// By the key, and by the button.
	tab.FollowKey("n")
	tab.WaitText("#moved", "1 deadline passed.")
	tab.WaitText("#fired", "tea of sessions expired")
	tab.WaitText("#next tbody tr:first-child", "cake")
	at(noon.Add(3*time.Minute + late))
	if m.has("tea") || !m.has("cake") {
		t.Errorf("tea: %v, cake: %v", m.has("tea"), m.has("cake"))
	}
	tab.Picture("step")
	if !whole {
		return
	}
	tab.Follow("button.primary")
	tab.WaitText("#fired", "cake of sessions expired")
	at(noon.Add(time.Hour + late))
	tab.FollowKey("m")
	tab.WaitText("#moved", "The clock moved by 1m. Nothing was due.")
	at(noon.Add(61*time.Minute + late))
	tab.Follow("form:has(input[value='1s']) button")
	at(noon.Add(61*time.Minute + time.Second + late))

	// To one of the deadlines to come; then the links of what fired.
	tab.Follow("#next tr:nth-child(1) button")
	tab.WaitText("#fired", "schedule wake fired")
	at(time.Date(2030, 1, 2, 7, 0, 0, 0, time.UTC))
	tab.Picture("fired")

	// By any time, to an instant, at a rate.
	tab.ClickText("Other moves: by any time, to an instant, at another rate")
	tab.Fill("input[name=by]:not([type=hidden])", "2h30m")
	tab.FollowText("Advance")
	at(time.Date(2030, 1, 2, 9, 30, 0, 0, time.UTC))
	tab.ClickText("Other moves: by any time, to an instant, at another rate")
	tab.Fill("input[name=to]", "2030-01-03T12:59:00Z")
	tab.Picture("moves")
	tab.FollowText("Go")
	at(time.Date(2030, 1, 3, 12, 59, 0, 0, time.UTC))
	tab.ClickText("Other moves: by any time, to an instant, at another rate")
	tab.Fill("input[name=rate]", "60")
	tab.FollowText("Set the rate")
	tab.WaitText("#clock-state", "60 seconds for each real second")
	tab.WaitText("#fired", "rest of sessions expired") // a second later, without a step of the visitor
	tab.FollowKey("f")
	tab.WaitText("#clock-state", "The clock is frozen.")
	if !w.own.Clock().State().Frozen {
		t.Error("the clock runs")
	}
	tab.FollowKey("f")
	tab.WaitText("#clock-state", "The clock runs")
	tab.FollowKey("f")
	tab.WaitText("#clock-state", "The clock is frozen.")

	// The refusals: backwards, and no time at all.
	tab.ClickText("Other moves: by any time, to an instant, at another rate")
	tab.Fill("input[name=to]", "2029-01-01T00:00:00Z")
	tab.FollowText("Go")
	tab.WaitText("#moved", "only goes forward")
	tab.Picture("refused")
	at(w.own.Clock().Now())
	tab.FollowKey("n")
	tab.WaitText("#moved", "Nothing is due")
}
