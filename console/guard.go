package console

import (
	"context"
	"errors"
	"math"
	"net/url"
	"strconv"
	"time"

	"github.com/aws/smithy-go"

	"github.com/mayflydb/mayfly/guard"
)

// showGuard shows how a table is guarded: the workers, their shares and their lateness.
func showGuard(ctx context.Context, v *visit) (*page, error) {
	f := form{v.r.Form}
	name := f.get("table")
	p := &page{title: "Guard", area: below + "guard", body: []node{
		el("p", words("mayfly guard removes expired items on time where the endpoint does not. Its workers report every ten seconds.")),
		el("form", has("class", "filter"), has("method", "get"), el("label", words("Table "), el("input", has("type", "search"), has("name", "table"), has("value", name), has("required"), has("data-search"))), f.text("attribute", "Attribute (the table's own if empty)", ""), el("button", words("Show"))),
	}}
	p.body = append(p.body, v.guardedTables(ctx, f.get("attribute")))
	if name == "" {
		return p, nil
	}
	status, err := guard.Look(ctx, guard.Options{DB: v.DynamoDB(), Table: name, Attribute: f.get("attribute"), MaxSkew: time.Hour, LocalClock: v.clock(ctx).ours}, guard.LookMinutes)
	if err != nil {
		if asksForKey(err) {
			return nil, err
		}
		text := err.Error()
		var api smithy.APIError
		if errors.As(err, &api) {
			text, _ = errorText(err)
		}
		p.body = append(p.body, problem(text))
		return p, nil
	}
	p.body = append(p.body, guarded(status)...)
	return p, nil
}

// guardedTables links to the tables whose workers report.
func (v *visit) guardedTables(ctx context.Context, attribute string) node {
	names, err := guard.Guarded(ctx, v.DynamoDB(), guard.Tables{})
	if err != nil {
		return missing("The guarded tables cannot be listed.", err)
	}
	if len(names) == 0 {
		return el("p", has("class", "none"), words("No worker of guard reports at this endpoint."))
	}
	links := group{words("Guarded tables: ")}
	for i, name := range names {
		links = append(links, optional(i > 0, words(", ")), el("a", has("href", below+"guard?"+url.Values{"table": {name}, "attribute": {attribute}}.Encode()), words(name)))
	}
	return el("p", links)
}

// guarded shows the status of a guarded table.
func guarded(s *guard.Status) []node {
	var workers []node
	for _, w := range s.Workers {
		workers = append(workers, el("tr",
			el("td", words(w.Name)), el("td", words(string(w.Strategy))), el("td", instant(w.At)), el("td", has("class", "number"), words(grouped(int64(w.Armed)))), el("td", has("class", "number"), words(grouped(int64(w.Due)))),
			el("td", has("class", "number"), words(grouped(w.Counts["removed"]))), el("td", has("class", "number"), words(grouped(w.Counts["refused"]))),
			el("td", words(strconv.FormatInt(w.LateMS.P50, 10)+" ms, "+strconv.FormatInt(w.LateMS.P99, 10)+" ms, "+strconv.FormatInt(w.LateMS.Max, 10)+" ms")),
		))
	}
	var leases []node
	for _, share := range s.Shares {
		for _, l := range share.Leases {
			owner, mark := l.Owner, node(words(clip(l.Checkpoint, cellMost)))
			if owner == "" {
				owner = "free"
			}
			if !l.Watermark.IsZero() {
				mark = instant(l.Watermark)
			}
			leases = append(leases, el("tr", el("td", words(share.Of)), el("td", words(l.Name)), el("td", words(owner)), el("td", has("class", "number"), words(strconv.FormatInt(l.Term, 10))), el("td", mark)))
		}
	}
	overdue := "as the workers report"
	if b := s.Backlog; b != nil {
		overdue = counted(b.Items, "item")
	}
	u := &upcoming{from: s.At, to: s.At.Add(time.Duration(max(len(s.Upcoming), 1)) * time.Minute), counts: make([]float64, max(len(s.Upcoming), 1))}
	u.until = u.to
	for i, n := range s.Upcoming {
		u.counts[i] = math.Round(float64(n))
	}
	return []node{
		el("dl", has("class", "facts"), fact("TTL attribute", el("code", words(s.Attribute))), fact("At", instant(s.At)), fact("Overdue", words(overdue))),
		el("h2", words("Workers")), stacked([]string{"Worker", "Strategy", "Seen", "Armed", "Due", "Removed", "Refused", "Late: p50, p99, most"}, workers, "No worker reports."),
		el("h2", words("Expirations by minute")), u.chart(s.At),
		el("h2", words("Shares")), stacked([]string{"Of", "Share", "Worker", "Term", "Done up to"}, leases, "There are none."),
	}
}
