package console

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/mayflydb/mayfly/internal/clock"
	"github.com/mayflydb/mayfly/lifecycle"
)

const (
	entitiesShown = 100
	entitiesRead  = 20_000
	aheadMost     = 20
)

// lifecycles returns the lifecycles of the endpoint, for looking and for changes by hand. Nothing
// runs here.
func (v *visit) lifecycles(ctx context.Context) (*lifecycle.Lifecycles, error) {
	clock := v.clock(ctx)
	return lifecycle.New(lifecycle.Options{DB: v.DynamoDB(), Streams: v.Streams(), Now: func() time.Time { return clock.now }, Unmapped: true})
}

// lifecyclePath returns the path of a lifecycle's page.
func lifecyclePath(name string, more ...string) string {
	path := below + "lifecycle/" + url.PathEscape(name)
	for _, m := range more {
		path += "/" + m
	}
	return path
}

// showLifecycles lists the lifecycles.
func showLifecycles(ctx context.Context, v *visit) (*page, error) {
	l, err := v.lifecycles(ctx)
	if err != nil {
		return nil, err
	}
	names, err := l.Names(ctx)
	if err != nil {
		return nil, err
	}
	rows := make([]node, len(names))
	for i, name := range names {
		rows[i] = el("tr", el("td", el("a", has("href", lifecyclePath(name)), words(name))))
	}
	return &page{title: "Lifecycles", area: below + "lifecycles", body: []node{
		list([]string{"Lifecycle"}, rows, "There are no lifecycles. docs/lifecycle.md explains how to define one."),
	}}, nil
}

// showLifecycle shows a lifecycle with the number of entities in each state, and the next of them.
func showLifecycle(ctx context.Context, v *visit) (*page, error) {
	l, err := v.lifecycles(ctx)
	if err != nil {
		return nil, err
	}
	name := v.r.PathValue("lifecycle")
	d, _, err := l.Definition(ctx, name)
	if err != nil {
		return nil, lifecycleError(err)
	}
	counts, read := map[string]int{}, 0
	chosen := v.r.FormValue("state")
	var shown []lifecycle.Entity
	passed := clock.Stopwatch()
	err = l.Each(ctx, name, func(e lifecycle.Entity) error {
		if read++; read > entitiesRead || passed() > scanFor {
			return errEnough
		}
		counts[e.State]++
		if len(shown) < entitiesShown && (chosen == "" || e.State == chosen) {
			shown = append(shown, e)
		}
		return nil
	})
	enough := errors.Is(err, errEnough)
	if err != nil && !enough {
		return nil, err
	}
	at := v.clock(ctx)
	var states, rows []node
	drawn := url.Values{}
	for _, s := range d.States {
		drawn.Set(s.Name, strconv.Itoa(counts[s.Name]))
		states = append(states, el("tr", el("td", el("a", has("href", lifecyclePath(name)+"?"+url.Values{"state": {s.Name}}.Encode()), words(s.Name))), el("td", has("class", "number"), words(grouped(int64(counts[s.Name]))))))
	}
	for _, e := range shown {
		next := node(words("–"))
		if !e.Next.IsZero() {
			next = group{until(e.Next, at.now), words(" → " + e.NextTo)}
		}
		rows = append(rows, el("tr", el("td", el("a", has("href", entityPath(name, e.ID)), words(e.ID))), el("td", words(e.State)), el("td", instant(e.Since)), el("td", next), el("td", has("class", "warning"), words(e.Problem))))
	}
	summary := counted(read, "entity")
	if read != 1 {
		summary = grouped(int64(read)) + " entities"
	}
	if enough {
		summary = "More than " + grouped(int64(read-1)) + " entities: only these were counted."
	}
	return &page{title: "Lifecycle " + name, area: below + "lifecycles", body: []node{
		el("p", has("role", "status"), words(summary)),
		el("div", has("class", "scroll"), has("tabindex", "0"), has("role", "region"), has("aria-label", "Drawing"), el("img", has("src", lifecyclePath(name, "drawing.svg")+"?"+drawn.Encode()), has("alt", "The states of "+name+" with their entities, and the ways between them"))),
		list([]string{"State", "Entities"}, states, "It has no states."),
		el("form", has("class", "filter"), has("method", "get"), has("action", lifecyclePath(name, "entity")), el("label", words("Entity "), el("input", has("type", "search"), has("name", "id"), has("required"), has("data-search"))), el("button", words("Show"))),
		el("h2", words("Entities")), stacked([]string{"Entity", "State", "Since", "Next", "Problem"}, rows, "There are none."),
	}}, nil
}

func entityPath(name, id string) string {
	return lifecyclePath(name, "entity") + "?" + url.Values{"id": {id}}.Encode()
}

// lifecycleError returns an error of the package for the visitor.
func lifecycleError(err error) error {
	for _, known := range []error{lifecycle.ErrNoLifecycle, lifecycle.ErrNoEntity} {
		if errors.Is(err, known) {
			return &pageError{http.StatusNotFound, err.Error() + "."}
		}
	}
	for _, known := range []error{lifecycle.ErrEnded, lifecycle.ErrPaused, lifecycle.ErrNotPaused, lifecycle.ErrNothingNext, lifecycle.ErrNotAllowed, lifecycle.ErrRefused, lifecycle.ErrBusy} {
		if errors.Is(err, known) {
			return &pageError{http.StatusConflict, err.Error() + "."}
		}
	}
	return err
}

// countsIn returns the numbers of entities by state that a page has counted.
func countsIn(query url.Values) map[string]int {
	counts := map[string]int{}
	for state := range query {
		if n, err := strconv.Atoi(query.Get(state)); err == nil && n >= 0 {
			counts[state] = n
		}
	}
	return counts
}

// drawLifecycle answers with the drawing of a lifecycle. Its styles are in the image, and the page
// that shows it passes the numbers of entities on.
func (p *pages) drawLifecycle(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), callMost)
	defer cancel()
	v, err := p.visit(r)
	var l *lifecycle.Lifecycles
	if err == nil {
		l, err = v.lifecycles(ctx)
	}
	var d lifecycle.Definition
	if err == nil {
		d, _, err = l.Definition(ctx, r.PathValue("lifecycle"))
	}
	if err != nil {
		p.answer(ctx, w, v, nil, lifecycleError(err))
		return
	}
	w.Header().Set("Content-Type", "image/svg+xml")
	w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; sandbox")
	w.Header().Set("Cache-Control", "no-store")
	_, _ = w.Write([]byte(d.SVGWithCounts(countsIn(r.URL.Query())))) // an error is the visitor's: the page was left
}

// showEntity shows the path of one entity: its past states and the transitions ahead.
func showEntity(ctx context.Context, v *visit) (*page, error) {
	l, err := v.lifecycles(ctx)
	if err != nil {
		return nil, err
	}
	name, id := v.r.PathValue("lifecycle"), v.r.FormValue("id")
	e, err := l.Get(ctx, name, id)
	if err != nil {
		return nil, lifecycleError(err)
	}
	history, err := l.History(ctx, name, id)
	if err != nil {
		return nil, err
	}
	ahead, err := l.Ahead(ctx, name, id, aheadMost)
	if err != nil {
		return nil, lifecycleError(err)
	}
	clock := v.clock(ctx)
	var past, coming []node
	for _, one := range history {
		states := one.To
		if one.From != one.To {
			states = one.From + " → " + one.To
		}
		past = append(past, el("tr", el("td", instant(one.At)), el("td", words(one.Kind)), el("td", words(states)), el("td", words(one.Handler)), el("td", words(one.Outcome)), el("td", words(one.Note))))
	}
	for _, one := range ahead {
		coming = append(coming, el("tr", el("td", until(one.At, clock.now)), el("td", instant(one.At)), el("td", words(one.To)), el("td", el("code", words(one.When))), el("td", words(one.Handler))))
	}
	pause := "Pause"
	if !e.Paused.IsZero() {
		pause = "Resume"
	}
	return &page{title: id, area: below + "lifecycles", body: []node{
		el("p", words("Lifecycle "), el("a", has("href", lifecyclePath(name)), words(name)), words(", state "), el("strong", words(e.State)), words(", change "+strconv.FormatInt(e.Generation, 10))),
		pathOf(&e, history),
		optional(e.Problem != "", problem(e.Problem)),
		optional(e.Ended == "", el("form", has("class", "inline"), has("method", "post"), has("action", lifecyclePath(name, "entity")), v.tokenField(), el("input", has("type", "hidden"), has("name", "id"), has("value", id)),
			el("input", has("type", "hidden"), has("name", "generation"), has("value", strconv.FormatInt(e.Generation, 10))),
			el("button", has("name", "do"), has("value", pause), words(pause)),
			optional(!e.Next.IsZero() && e.Paused.IsZero(), el("button", has("name", "do"), has("value", "now"), words("Run the next change now"))),
			el("button", has("name", "do"), has("value", "cancel"), has("class", "danger"), has("data-confirm", "End the lifecycle of "+id+"?"), words("End")))),
		el("h2", words("Ahead")), stacked([]string{"In", "At", "To", "If", "Calls"}, coming, "Nothing is pending."),
		el("h2", words("Past")), stacked([]string{"At", "Event", "States", "Called", "Outcome", "Note"}, past, "No event is kept."),
	}}, nil
}

// pathOf shows the states that an entity came through, its present one, and the next.
func pathOf(e *lifecycle.Entity, history []lifecycle.Event) node {
	var steps []node
	last := ""
	for _, one := range history {
		if one.Kind == lifecycle.KindCreated {
			steps, last = nil, "" // an earlier entity of the same name
		}
		if one.To != "" && one.To != last {
			last = one.To
			steps = append(steps, el("li", words(one.To), el("small", words(" "), instant(one.At))))
		}
	}
	if n := len(steps); n > 0 && last == e.State {
		steps[n-1] = el("li", has("aria-current", "step"), el("strong", words(e.State)), el("small", words(" since "), instant(e.Since)))
	}
	if !e.Next.IsZero() && e.Ended == "" {
		steps = append(steps, el("li", has("class", "ahead"), words(e.NextTo), el("small", words(" "), instant(e.Next))))
	}
	return el("ol", has("class", "path"), has("aria-label", "Path"), group(steps))
}

// changeEntity pauses, resumes or ends an entity, or brings its next change forward.
func changeEntity(ctx context.Context, v *visit) (string, *page, error) {
	l, err := v.lifecycles(ctx)
	if err != nil {
		return "", nil, err
	}
	f, name := form{v.r.PostForm}, v.r.PathValue("lifecycle")
	id := f.values.Get("id")
	switch f.get("do") {
	case "Pause":
		_, err = l.Pause(ctx, name, id)
	case "Resume":
		_, err = l.Resume(ctx, name, id)
	case "now":
		err = v.changeNow(ctx, l, name, id, f.get("generation"))
	case "cancel":
		_, err = l.Cancel(ctx, name, id)
	default:
		err = errChange
	}
	return entityPath(name, id), nil, lifecycleError(err)
}

// errEntityChanged refuses to bring forward another change than the one on the visitor's page.
var errEntityChanged = &pageError{http.StatusConflict, "The entity has changed since this page was made. Nothing was done."}

// changeNow brings the next change of an entity forward. The process that runs lifecycles makes it,
// and calls its handler. A form that is sent again later must not bring forward a second change.
func (v *visit) changeNow(ctx context.Context, l *lifecycle.Lifecycles, name, id, generation string) error {
	e, err := l.Get(ctx, name, id)
	if err != nil {
		return err
	}
	if strconv.FormatInt(e.Generation, 10) != generation {
		return errEntityChanged
	}
	_, err = l.Reschedule(ctx, name, id, v.clock(ctx).now)
	return err
}
