package scheduler

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/mayflydb/mayfly/target"
)

// The history of a schedule has its firings, the newest first, with the fates of their deliveries:
// delivered, waiting for the next attempt, dead, and under way while the scheduler is not done.
func TestReadHistory(t *testing.T) {
	w := newWorld(t, "", nil)
	arn := strings.TrimSuffix(w.scheduleARN("default", "x"), "x")
	history := func() string {
		t.Helper()
		h, err := ReadHistory(t.Context(), w.db, w.streams, "default", arn, func(name string) bool { return name == "daily" }, 3)
		if err != nil {
			t.Fatal(err)
		}
		var all []string
		for _, run := range h.Runs {
			if run.At.Before(run.Due) || run.Name != "daily" || !run.Due.Equal(run.Occurrence) {
				t.Errorf("%+v", run)
			}
			text := fmt.Sprintf("%d@%s", run.Number, run.Occurrence.Format("15:04"))
			switch f := run.Fate; {
			case f != nil && f.Dead:
				text += fmt.Sprintf(" dead after %d: %s", f.Attempts, f.Last.Message)
			case f != nil:
				text += fmt.Sprintf(" waits after %d until %s: %s", f.Attempts, f.Next.Format("15:04"), f.Last.Message)
			case run.Under:
				text += " under way"
			}
			all = append(all, text)
		}
		return strings.Join(all, ", ")
	}
	want := func(want string) { // the checkpoint, which ends "under way", is saved a little later
		t.Helper()
		got := ""
		w.await("the history", func() bool { got = history(); return got == want || !strings.Contains(got, "under way") })
		if got != want {
			t.Errorf("\n got %s\nwant %s", got, want)
		}
	}
	want("")
	w.create("other", "cron(0 * * * ? *)")
	w.create("daily", "cron(0 * * * ? *)")
	want("")
	w.advance(time.Hour)
	var failure error
	w.answerWith(func(target.Delivery) error { return failure })
	failure = target.Permanent("NoBox", "no such box")
	w.advance(time.Hour)
	failure = errors.New("busy")
	w.advance(time.Hour)
	want("3@03:00 waits after 1 until 03:00: busy, 2@02:00 dead after 1: no such box, 1@01:00")
	failure = nil
	w.advance(30 * time.Minute)
	want("3@03:00, 2@02:00 dead after 1: no such box, 1@01:00")
	w.await("the checkpoint", func() bool { return !strings.Contains(history(), "under way") })
	w.halt()
	w.advance(30 * time.Minute)
	want("4@04:00 under way, 3@03:00, 2@02:00 dead after 1: no such box")
}
