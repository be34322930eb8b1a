package console

import (
	"container/heap"
	"context"
	"errors"
	"fmt"

	"github.com/mayflydb/mayfly/internal/clock"
	"github.com/mayflydb/mayfly/internal/work/reminder"
)

const (
	remindersShown = 200
	remindersRead  = 50_000 // the tables are read whole: the first ones may be anywhere
)

// errEnough ends the reading of reminders or of entities at its limit.
var errEnough = errors.New("the page has read enough")

// laterFirst is a heap whose first reminder is the latest.
type laterFirst []reminder.Reminder

func (l laterFirst) Len() int           { return len(l) }
func (l laterFirst) Less(i, j int) bool { return l[i].Due.After(l[j].Due) }
func (l laterFirst) Swap(i, j int)      { l[i], l[j] = l[j], l[i] }
func (l *laterFirst) Push(r any)        { *l = append(*l, r.(reminder.Reminder)) }
func (l *laterFirst) Pop() any {
	last := len(*l) - 1
	r := (*l)[last]
	*l = (*l)[:last]
	return r
}

// showReminders lists the next reminders.
func showReminders(ctx context.Context, v *visit) (*page, error) {
	f := form{v.r.Form}
	var first laterFirst
	read := 0
	passed := clock.Stopwatch()
	err := reminder.Each(ctx, v.DynamoDB(), f.get("rule"), func(r reminder.Reminder) error {
		if read++; read > remindersRead || passed() > scanFor {
			return errEnough
		}
		if heap.Push(&first, r); len(first) > remindersShown {
			heap.Pop(&first)
		}
		return nil
	})
	enough := errors.Is(err, errEnough)
	if err != nil && !enough {
		return nil, err
	}
	at := v.clock(ctx)
	rows := make([]node, len(first))
	firings := make([]firing, len(first))
	for i := len(first) - 1; i >= 0; i-- {
		r := heap.Pop(&first).(reminder.Reminder)
		rows[i] = el("tr", el("td", words(r.Rule)), el("td", el("code", words(clip(r.Key, cellMost)))), el("td", until(r.Due, at.now)), el("td", instant(r.Due)), el("td", payload(r.Input)))
		firings[i] = firing{r.Due, r.Rule + " " + clip(r.Key, cellMost)}
	}
	summary := counted(read, "reminder")
	if enough {
		summary = fmt.Sprintf("More than %s reminders; these are the first of those that were read.", grouped(int64(read-1)))
	}
	return &page{title: "Reminders", area: below + "reminders", body: []node{
		el("form", has("class", "filter"), has("method", "get"), el("label", words("Rule "), el("input", has("type", "search"), has("name", "rule"), has("value", f.get("rule")), has("data-search"))), el("button", words("Filter"))),
		el("p", has("role", "status"), words(summary)),
		firingsChart(firings, at.now),
		stacked([]string{"Rule", "Item", "Time left", "At", "Input"}, rows, "No item has a reminder. docs/reminders.md explains how to create them."),
	}}, nil
}
