package console

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/mayflydb/mayfly/internal/when"
)

// showClock shows the endpoint's clock, with the moves that it allows.
func showClock(ctx context.Context, v *visit) (*page, error) {
	s, err := v.readClock(ctx)
	if asksForKey(err) {
		return nil, err
	}
	return clockPage(ctx, v, s, err, nil, nil), nil
}

// clockPage returns the page of the clock. After a move, summary describes it, and fired are the rows
// of the deadlines that it passed.
func clockPage(ctx context.Context, v *visit, s clockState, err error, summary node, fired []node) *page {
	p := &page{title: "Clock", area: below + "clock"}
	if err != nil {
		p.body = append(p.body, missing("This endpoint's clock cannot be shown.", err))
		return p
	}
	r := s.reading()
	v.read = &r
	p.body = append(p.body, clockFace(r), el("p", has("id", "clock-state"), words(s.stateText())))
	if s.Control {
		p.body = append(p.body, moves(v, s))
	} else {
		p.body = append(p.body, el("p", has("class", "missing"), words("Requests may not move this clock: start the server with --clock-control.")))
	}
	coming, err := v.due(ctx, s.NowMS+1)
	p.body = append(p.body,
		el("div", has("id", "unlisted"), coming.unlisted()),
		el("div", has("class", "clock-lists"),
			el("section", has("aria-labelledby", "fired-title"),
				el("h2", has("id", "fired-title"), words("What fired")), el("div", has("id", "moved"), has("role", "status"), summary),
				el("div", has("class", "scroll stacked"), has("tabindex", "0"), has("role", "region"), has("aria-label", "Deadlines that passed"), el("table", has("class", "list"),
					el("thead", el("tr", el("th", has("scope", "col"), words("Was due")), el("th", has("scope", "col"), words("What")))),
					el("tbody", append([]node{has("id", "fired")}, fired...)...))),
				el("p", el("small", words("Deadlines that pass while this page is open are listed here, too."))),
			),
			el("section", has("aria-labelledby", "next-title"), el("h2", has("id", "next-title"), words("What comes next")), el("div", has("id", "next"), comingList(v, s, coming, err))),
		),
	)
	p.live = below + "live/clock"
	return p
}

// clockFace shows the time in large letters: the visitor's time, its date, and UTC.
func clockFace(r reading) node {
	return el("div", has("class", "face"),
		el("p", has("class", "face-time"), el("time", has("data-clock", "time"), words(r.now.UTC().Format("15:04:05.000")))),
		el("p", el("time", has("data-clock", "date"), words(r.now.UTC().Format("Monday, 2 January 2006"))), words(" · "), el("time", has("class", "face-utc"), has("data-clock", "ms"), words(utc(r.now)))),
	)
}

// stateText says how the clock goes.
func (s clockState) stateText() string {
	text := "The clock runs like the machine's."
	switch {
	case s.Standing:
		text = "The clock waits for the machine's, which is behind an instant that was used already."
	case s.Frozen:
		text = "The clock is frozen."
	case s.Rate != 1:
		text = "The clock runs at " + strconv.FormatFloat(s.Rate, 'g', -1, 64) + " seconds for each real second."
	}
	offset := time.Duration(s.OffsetMS) * time.Millisecond
	switch {
	case offset >= time.Second:
		text += " It is " + when.Text(offset) + " ahead of the machine's."
	case offset <= -time.Second:
		text += " It is " + when.Text(-offset) + " behind the machine's."
	}
	return text
}

// quickMoves are advances by one click or one key.
var quickMoves = []struct{ key, by, name string }{
	{"s", "1s", "+1 second"}, {"m", "1m", "+1 minute"}, {"h", "1h", "+1 hour"}, {"d", "24h", "+1 day"},
}

// moves returns the forms that move the clock.
func moves(v *visit, s clockState) node {
	quick := group{v.moveForm("step", keyButton("n", "primary", "To the next deadline")), el("span", has("id", "freeze"), freezeForm(v, s))}
	for _, q := range quickMoves {
		quick = append(quick, v.moveForm("advance", el("input", has("type", "hidden"), has("name", "by"), has("value", q.by)), keyButton(q.key, "", q.name)))
	}
	field := func(do, name string, label string, attributes ...node) node {
		return v.moveForm(do, el("label", words(label+" "), el("input", append(attributes, has("required"))...)), el("button", words(name)))
	}
	return group{
		el("div", has("class", "quick"), quick),
		el("details", has("class", "moves"), el("summary", words("Other moves: by any time, to an instant, at another rate")),
			field("advance", "Advance", "By", has("name", "by"), has("value", "1h"), has("placeholder", "90s, 1h30m, 2d")),
			field("set", "Go", "To", has("name", "to"), has("placeholder", "2030-01-01T00:00:00Z or in 5m")),
			field("rate", "Set the rate", "Seconds for each real second", has("name", "rate"), has("type", "number"), has("step", "any"), has("min", "0"), has("value", "60")),
		),
	}
}

// moveForm returns a form that moves the clock. It goes to the page of the clock, also where it is
// sent to a page that follows.
func (v *visit) moveForm(do string, fields ...node) node {
	return el("form", v.largeForm(below+"clock"), el("input", has("type", "hidden"), has("name", "do"), has("value", do)), group(fields))
}

// keyButton returns a button that a key presses, too.
func keyButton(key, class, name string) node {
	return el("button", has("data-key", key), has("aria-keyshortcuts", key), optional(class != "", has("class", class)), words(name+" "), el("kbd", has("aria-hidden", "true"), words(key)))
}

// freezeForm returns the form that freezes the clock, or lets it run.
func freezeForm(v *visit, s clockState) node {
	if s.Frozen {
		return v.moveForm("run", keyButton("f", "", "Resume"))
	}
	return v.moveForm("freeze", keyButton("f", "", "Freeze"))
}

const (
	comingShown = 12
	firedShown  = 50      // items that are listed after a move
	far         = 1 << 53 // ms: later than every deadline that a page shows
)

const nothingDue = "Nothing is due: no item has a deadline to come."

// comingList lists the next deadlines, with buttons that go there.
func comingList(v *visit, s clockState, coming *upcoming, err error) node {
	if err != nil {
		return missing("The next deadlines cannot be shown.", err)
	}
	now := time.UnixMilli(s.NowMS)
	shown := coming.due[:min(len(coming.due), comingShown)]
	rows := make([]node, len(shown))
	for i, d := range shown {
		to := node(words(""))
		if s.Control {
			to = v.moveForm("set", has("class", "inline"), el("input", has("type", "hidden"), has("name", "to_ms"), has("value", millis(d.at))), el("button", words("Go there")))
		}
		rows[i] = el("tr", el("td", until(d.at, now)), el("td", has("class", "wraps"), d.deed(false)), el("td", instant(d.at)), el("td", to))
	}
	none := nothingDue
	if coming.unlisted() != nil {
		none = "No item is listed."
	}
	return stacked([]string{"In", "What", "At", ""}, rows, none)
}

// firedRows are the rows of deadlines that have passed, the last one first.
func firedRows(passed []dueItem) []node {
	rows := make([]node, 0, len(passed))
	for i := len(passed) - 1; i >= 0; i-- {
		rows = append(rows, el("tr", el("td", instant(passed[i].at)), el("td", has("class", "wraps"), passed[i].deed(true))))
	}
	return labelled([]string{"Was due", "What"}, rows)
}

// moveClock moves the clock, and lists the items whose deadlines it passed.
func moveClock(ctx context.Context, v *visit) (string, *page, error) {
	before, err := v.readClock(ctx)
	if err != nil {
		return "", nil, err
	}
	path, in, err := v.move(ctx, form{v.r.PostForm}, before)
	if err != nil {
		return refusedMove(ctx, v, before, err)
	}
	coming, unread := v.due(ctx, before.NowMS+1) // the key may not read deadlines: the move matters more
	text, err := v.ask(ctx, http.MethodPost, clockPath+path, in)
	if err != nil {
		return refusedMove(ctx, v, before, err)
	}
	var s clockState
	if err := json.Unmarshal(text, &s); err != nil {
		return "", nil, err
	}
	passed := passedBy(coming.due, s.NowMS)
	return "", clockPage(ctx, v, s, nil, moved(s, len(passed), coming.withheld > 0, unread), firedRows(passed)), nil
}

// refusedMove shows the clock with the reason for which it did not move.
func refusedMove(ctx context.Context, v *visit, s clockState, err error) (string, *page, error) {
	var refused *pageError
	if !errors.As(err, &refused) {
		return "", nil, err
	}
	return "", clockPage(ctx, v, s, nil, problem(refused.text), nil), nil
}

// passedBy returns the next items up to an instant.
func passedBy(coming []dueItem, now int64) []dueItem {
	for i, d := range coming {
		if d.at.UnixMilli() > now {
			return coming[:i]
		}
	}
	return coming
}

// move returns the path and the body of the request for a form.
func (v *visit) move(ctx context.Context, f form, s clockState) (path string, in map[string]any, err error) {
	in = map[string]any{}
	switch f.get("do") {
	case "freeze":
		return "/freeze", in, nil
	case "run":
		in["rate"] = 1
		return "/rate", in, nil
	case "rate":
		rate, err := strconv.ParseFloat(f.get("rate"), 64)
		if err != nil || math.IsNaN(rate) || math.IsInf(rate, 0) {
			return "", nil, &pageError{http.StatusBadRequest, fmt.Sprintf("The rate %q is not a number.", clip(f.get("rate"), cellMost))}
		}
		in["rate"] = rate
		return "/rate", in, nil
	case "advance":
		in["by"] = f.get("by")
		return "/advance", in, nil
	case "set":
		if ms, err := strconv.ParseInt(f.get("to_ms"), 10, 64); err == nil {
			in["to_ms"] = max(ms, s.NowMS) // it may have passed while the page was open
			return "/set", in, nil
		}
		in["to"] = f.get("to")
		return "/set", in, nil
	case "step":
		next, err := v.countedDeadlines(ctx, "", time.UnixMilli(s.NowMS+1), time.UnixMilli(far), 0, 0)
		if err != nil {
			return "", nil, err
		}
		if next.until.Before(next.to) && (next.first.IsZero() || !next.first.Before(next.until)) {
			return "", nil, &pageError{http.StatusConflict, "The next deadline is not known yet: a changed TTL is being applied to many items. Try again in a moment."}
		}
		if next.first.IsZero() {
			return "", nil, &pageError{http.StatusConflict, nothingDue}
		}
		in["to_ms"] = next.first.UnixMilli() // also of an item whose key the visitor may not read
		return "/set", in, nil
	}
	return "", nil, errChange
}

// due returns the next items of all tables from an instant on. It returns none with an error.
func (v *visit) due(ctx context.Context, from int64) (*upcoming, error) {
	u, err := v.countedDeadlines(ctx, "", time.UnixMilli(from), time.UnixMilli(far), 0, firedShown)
	if err != nil {
		return &upcoming{}, err
	}
	return u, nil
}

// moved says what a move did. listed is the number of deadlines that the page lists; withheld means
// that the visitor's key may not read all items, and unread is why the deadlines could not be read.
func moved(s clockState, listed int, withheld bool, unread error) node {
	if s.FromMS == 0 || s.FromMS == s.NowMS {
		return nil
	}
	by := time.Duration(s.NowMS-s.FromMS) * time.Millisecond
	text := "The clock moved by " + when.Text(by) + ". "
	switch more := s.Expired - int64(listed); {
	case s.Expired == 0 && listed == 0:
		text += "Nothing was due."
	case unread != nil:
		reason, _ := errorText(unread)
		text += counted(s.Expired, "item") + " expired. The page lists none of them: " + reason
	case more > 0:
		text += counted(s.Expired, "item") + " expired. The page lists " + strconv.Itoa(listed) + " of them: the others became due during the move, or are too many"
		if withheld {
			text += ", or are in a table that your key may not read"
		}
		text += "."
	default:
		text += counted(int64(listed), "deadline") + " passed."
	}
	if s.Unfinished {
		text += " Not all work that was due is done yet"
		if len(s.Busy) > 0 {
			text += ": " + strings.Join(s.Busy, ", ")
		}
		text += "."
	}
	return el("p", words(text))
}

// followClock sends the state of the clock, the next deadlines, and those that have passed since the
// last turn.
func followClock(ctx context.Context, v *visit, l *live) error {
	known := &upcoming{}
	var last reading
	return every(ctx, func() error {
		s, err := v.readClock(ctx)
		if err != nil {
			return err
		}
		now := s.reading()
		if now.rate != last.rate || now.now.Before(last.now) || now.rate == 0 && !now.now.Equal(last.now) || now.now.Sub(last.now) > clockAgain {
			if err := l.clock(now); err != nil {
				return err
			}
			last = now
		}
		if passed := passedBy(known.due, s.NowMS); len(passed) > 0 {
			if err := l.insert("fired", firedRows(passed)...); err != nil {
				return err
			}
		}
		if err := l.replace("clock-state", words(s.stateText())); err != nil {
			return err
		}
		if s.Control {
			if err := l.replace("freeze", freezeForm(v, s)); err != nil {
				return err
			}
		}
		known, err = v.due(ctx, s.NowMS+1)
		if err := l.replace("unlisted", known.unlisted()); err != nil {
			return err
		}
		return l.replace("next", comingList(v, s, known, err))
	})
}

// clockAgain is how often, by the endpoint's clock, a page hears of a clock that runs on.
const clockAgain = 10 * time.Second
