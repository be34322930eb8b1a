package program

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/mayflydb/mayfly/guard"
)

const (
	barAfter = time.Second            // shorter activities have no bar
	barEvery = 200 * time.Millisecond // interval of redrawing the bar
)

// guardProgress shows scans and other long activities: a bar on a terminal, otherwise lines of the
// log, or objects with --json.
type guardProgress struct {
	lines    *guardLines
	log      *slog.Logger
	bar      *sharedBar
	now      func() time.Time
	mu       sync.Mutex
	running  []*activity // guarded by mu, with their fields
	finished []*activity // since the last redraw
}

// activity is a scan or another long run on a table.
type activity struct {
	guard.Progress
	table          string
	began, printed time.Time // printed is zero before the first line
	rate           recentRate
	timeLeft       time.Duration // when it was last shown; 0: unknown
}

// observer returns a function that records guard's progress on a table.
func (p *guardProgress) observer(table string) func(guard.Progress) {
	return func(now guard.Progress) {
		p.mu.Lock()
		defer p.mu.Unlock()
		i := slices.IndexFunc(p.running, func(a *activity) bool { return a.table == table && a.Doing == now.Doing })
		if i < 0 {
			i = len(p.running)
			p.running = append(p.running, &activity{table: table, began: p.now()})
		}
		a := p.running[i]
		a.Progress = now
		a.rate.note(p.now(), now.Done)
		if !now.Ended && !now.Left {
			return
		}
		p.running = slices.Delete(p.running, i, i+1)
		a.timeLeft = 0
		// otherwise it was too short to show
		if now.Doing == guard.FirstScan && now.Ended || !a.printed.IsZero() {
			p.finished = append(p.finished, a)
		}
	}
}

// run shows progress until ctx is done.
func (p *guardProgress) run(ctx context.Context) {
	every := time.Second
	if p.bar.terminal != nil {
		every = barEvery
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			p.redraw()
		case <-ctx.Done():
			p.redraw()
			p.bar.clear()
			return
		}
	}
}

// redraw writes the lines that are due, and redraws the bar.
func (p *guardProgress) redraw() {
	now := p.now()
	p.mu.Lock()
	due := p.finished
	p.finished = nil
	var shown *activity
	for _, a := range p.running {
		a.timeLeft = a.rate.left(now, a.Done, a.Total)
		if last := latest(a.began, a.printed); now.Sub(last) >= progressEvery {
			a.printed = now
			line := *a
			due = append(due, &line)
		}
		if shown == nil && now.Sub(a.began) >= barAfter {
			line := *a
			shown = &line
		}
	}
	p.mu.Unlock()
	for _, a := range due {
		p.printLine(a, now)
	}
	if shown == nil {
		p.bar.clear()
		return
	}
	p.bar.draw(shown.Done, max(shown.Total, shown.Done, 1), shown.text())
}

func latest(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

// guardStep is the progress of an activity as an object.
type guardStep struct {
	At       time.Time   `json:"at"`
	Table    string      `json:"table"`
	Progress guard.Doing `json:"progress"`
	Done     int64       `json:"done"`
	Total    int64       `json:"total,omitempty"` // approximate
	Unit     string      `json:"unit"`
	WithinMS int64       `json:"within_ms,omitempty"` // uncertainty of the endpoint's clock
	Ended    bool        `json:"ended,omitempty"`
	Left     bool        `json:"left,omitempty"`
	Seconds  float64     `json:"seconds"` // since the beginning
	// estimate; absent if it is unknown
	SecondsLeft float64 `json:"seconds_left,omitempty"`
}

// printLine writes a line.
func (p *guardProgress) printLine(a *activity, now time.Time) {
	seconds := math.Round(now.Sub(a.began).Seconds()*10) / 10
	if p.lines.json {
		p.lines.mu.Lock()
		defer p.lines.mu.Unlock()
		p.lines.encode(guardStep{machineNow(), a.table, a.Doing, a.Done, a.Total, a.Unit, a.Within.Milliseconds(), a.Ended, a.Left, seconds, a.timeLeft.Seconds()})
		return
	}
	if p.bar.terminal != nil && !a.Ended {
		return // the bar shows it
	}
	said := "continues"
	switch {
	case a.Ended:
		said = "is done"
	case a.Left:
		said = "is left to other workers"
	}
	about := []any{"table", a.table}
	if a.Doing == guard.BoundingTime {
		about = append(about, "within", a.Within)
	} else {
		about = append(about, a.Unit, a.Done)
		if a.Total > 0 && !a.Ended {
			about = append(about, "ofAbout", max(a.Total, a.Done))
		}
	}
	about = append(about, "seconds", seconds)
	if a.timeLeft > 0 {
		about = append(about, "timeLeft", a.timeLeft)
	}
	p.log.Info(string(a.Doing)+" "+said, about...)
}

// text returns the text next to the bar.
func (a *activity) text() string {
	switch {
	case a.Doing == guard.BoundingTime:
		return fmt.Sprintf("%s: endpoint's clock known within %v", a.table, a.Within)
	case a.timeLeft > 0:
		return fmt.Sprintf("%s: %s, %d of about %d %s, %v left", a.table, a.Doing, a.Done, max(a.Total, a.Done), a.Unit, a.timeLeft)
	case a.Total > 0:
		return fmt.Sprintf("%s: %s, %d of about %d %s", a.table, a.Doing, a.Done, max(a.Total, a.Done), a.Unit)
	}
	return fmt.Sprintf("%s: %s, %d %s", a.table, a.Doing, a.Done, a.Unit)
}

// sharedBar is a bar on a terminal with other output. Lines of other writers appear above it.
type sharedBar struct {
	bar
	mu          sync.Mutex
	done, total int64 // guarded by mu, like the fields below
	text        string
	drawn       bool
}

func (b *sharedBar) draw(done, total int64, text string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.drawn && b.done == done && b.total == total && b.text == text {
		return
	}
	b.done, b.total, b.text, b.drawn = done, total, text, true
	b.bar.draw(done, total, text)
}

func (b *sharedBar) clear() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.drawn {
		b.bar.clear()
	}
	b.drawn = false
}

// above returns a writer whose lines appear above the bar.
func (b *sharedBar) above(to io.Writer) io.Writer {
	if b.terminal == nil {
		return to
	}
	return aboveBar{b, to}
}

type aboveBar struct {
	*sharedBar
	to io.Writer
}

// Write implements io.Writer for whole lines.
func (b aboveBar) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.drawn {
		b.bar.clear()
		defer func() { b.bar.draw(b.done, b.total, b.text) }()
	}
	return b.to.Write(p)
}
