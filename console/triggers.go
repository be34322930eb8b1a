package console

import (
	"context"
	"net/url"
	"strings"
	"time"

	"github.com/mayflydb/mayfly/internal/clock"
	"github.com/mayflydb/mayfly/internal/sdk/mappings"
)

// mapping is what the pages show of an event source mapping: a trigger.
type mapping struct {
	UUID, State, EventSourceArn, FunctionArn, LastProcessingResult, StateTransitionReason string
	BatchSize                                                                             int64
	FilterCriteria                                                                        struct{ Filters []struct{ Pattern string } }
}

// showTriggers lists the triggers.
func showTriggers(ctx context.Context, v *visit) (*page, error) {
	p := &page{title: "Triggers", area: below + "triggers"}
	query := url.Values{}
	if from := v.r.FormValue("from"); from != "" {
		query.Set("Marker", from)
	}
	var found struct {
		EventSourceMappings []mapping
		NextMarker          string
	}
	if err := mappings.New(v.Scheduler()).List(ctx, query, &found); err != nil {
		if asksForKey(err) {
			return nil, err
		}
		p.body = []node{missing("This endpoint has no event source mappings.", err)}
		return p, nil
	}
	rows := make([]node, len(found.EventSourceMappings))
	for i, m := range found.EventSourceMappings {
		rows[i] = m.row(v)
	}
	p.body = []node{stacked([]string{"Source", "Target", "State", "Last result", "Filters", "Batch", "UUID", ""}, rows, "There are no triggers yet. docs/triggers.md explains how to create one.")}
	if found.NextMarker != "" {
		p.body = append(p.body, more(v.r.URL, url.Values{"from": {found.NextMarker}}))
	}
	return p, nil
}

// row returns the row of a trigger, with the buttons that change it.
func (m *mapping) row(v *visit) node {
	source := node(el("code", words(m.EventSourceArn)))
	if _, tail, ok := strings.Cut(m.EventSourceArn, ":table/"); ok {
		table, _, _ := strings.Cut(tail, "/")
		source = el("a", has("href", tablePath(table)+"/stream"), words(table))
	}
	var filters []string
	for _, f := range m.FilterCriteria.Filters {
		filters = append(filters, f.Pattern)
	}
	pause := "Pause"
	if m.State == "Disabled" || m.State == "Disabling" {
		pause = "Resume"
	}
	return el("tr",
		el("td", source), el("td", el("code", words(clip(m.FunctionArn, cellMost)))), el("td", state(m.State)), el("td", words(m.LastProcessingResult)),
		el("td", el("code", words(clip(strings.Join(filters, " or "), cellMost)))), el("td", has("class", "number"), words(grouped(m.BatchSize))), el("td", el("code", words(m.UUID))),
		el("td", el("form", has("method", "post"), v.tokenField(), el("input", has("type", "hidden"), has("name", "uuid"), has("value", m.UUID)),
			el("button", has("name", "do"), has("value", pause), words(pause)),
			el("button", has("name", "do"), has("value", "delete"), has("class", "danger"), has("data-confirm", "Delete the trigger "+m.UUID+"?"), words("Delete")))),
	)
}

// changeTrigger pauses, resumes or deletes a trigger.
func changeTrigger(ctx context.Context, v *visit) (string, *page, error) {
	f, client := form{v.r.PostForm}, mappings.New(v.Scheduler())
	var answer mapping
	var err error
	switch do := f.get("do"); do {
	case "Pause", "Resume":
		err = client.Update(ctx, f.get("uuid"), map[string]any{"Enabled": do == "Resume"}, &answer)
	case "delete":
		err = client.Delete(ctx, f.get("uuid"), &answer)
	default:
		err = errChange
	}
	if err == nil {
		settle(ctx, client, f.get("uuid"))
	}
	return below + "triggers", nil, err
}

// A change of a trigger is accepted before it is made. The page waits a little, so that it shows the
// result and not a state on the way.
const (
	settleMost  = 40
	settleEvery = 50 * time.Millisecond
)

// settle waits until a trigger has a lasting state, or is gone.
func settle(ctx context.Context, client *mappings.Client, uuid string) {
	for range settleMost {
		var m mapping
		if err := client.Get(ctx, uuid, &m); err != nil || !strings.HasSuffix(m.State, "ing") || ctx.Err() != nil {
			return
		}
		clock.Pause(settleEvery, ctx.Done())
	}
}
