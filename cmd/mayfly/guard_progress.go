package main

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
	going    []*going // guarded by mu, with their fields
	finished []*going // since the last redraw
}

// going is an activity on a table.
type going struct {
	guard.Progress
	table          string
	began, printed time.Time // printed is zero before the first line
}

// observer returns a function that records guard's progress on a table.
func (p *guardProgress) observer(table string) func(guard.Progress) {
	return func(now guard.Progress) {
		p.mu.Lock()
		defer p.mu.Unlock()
		i := slices.IndexFunc(p.going, func(g *going) bool { return g.table == table && g.Doing == now.Doing })
		if i < 0 {
			i = len(p.going)
			p.going = append(p.going, &going{table: table, began: p.now()})
		}
		g := p.going[i]
		g.Progress = now
		if !now.Ended && !now.Left {
			return
		}
		p.going = slices.Delete(p.going, i, i+1)
		// otherwise it was too short to show
		if now.Doing == guard.FirstScan && now.Ended || !g.printed.IsZero() {
			p.finished = append(p.finished, g)
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
			p.look()
		case <-ctx.Done():
			p.look()
			p.bar.clear()
			return
		}
	}
}

// look writes the lines that are due, and redraws the bar.
func (p *guardProgress) look() {
	now := p.now()
	p.mu.Lock()
	due := p.finished
	p.finished = nil
	var shown *going
	for _, g := range p.going {
		if last := latest(g.began, g.printed); now.Sub(last) >= progressEvery {
			g.printed = now
			line := *g
			due = append(due, &line)
		}
		if shown == nil && now.Sub(g.began) >= barAfter {
			line := *g
			shown = &line
		}
	}
	p.mu.Unlock()
	for _, g := range due {
		p.printLine(g, now)
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
}

// printLine writes a line.
func (p *guardProgress) printLine(g *going, now time.Time) {
	seconds := math.Round(now.Sub(g.began).Seconds()*10) / 10
	if p.lines.json {
		p.lines.mu.Lock()
		defer p.lines.mu.Unlock()
		p.lines.encode(guardStep{machineNow(), g.table, g.Doing, g.Done, g.Total, g.Unit, g.Within.Milliseconds(), g.Ended, g.Left, seconds})
		return
	}
	if p.bar.terminal != nil && !g.Ended {
		return // the bar shows it
	}
	said := "continues"
	switch {
	case g.Ended:
		said = "is done"
	case g.Left:
		said = "is left to other workers"
	}
	about := []any{"table", g.table}
	if g.Doing == guard.BoundingTime {
		about = append(about, "within", g.Within)
	} else {
		about = append(about, g.Unit, g.Done)
		if g.Total > 0 && !g.Ended {
			about = append(about, "ofAbout", max(g.Total, g.Done))
		}
	}
	p.log.Info(string(g.Doing)+" "+said, append(about, "seconds", seconds)...)
}

// text returns the text next to the bar.
func (g *going) text() string {
	switch {
	case g.Doing == guard.BoundingTime:
		return fmt.Sprintf("%s: endpoint's clock known within %v", g.table, g.Within)
	case g.Total > 0:
		return fmt.Sprintf("%s: %s, %d of about %d %s", g.table, g.Doing, g.Done, max(g.Total, g.Done), g.Unit)
	}
	return fmt.Sprintf("%s: %s, %d %s", g.table, g.Doing, g.Done, g.Unit)
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

// beside returns a writer whose lines appear above the bar.
func (b *sharedBar) beside(to io.Writer) io.Writer {
	if b.terminal == nil {
		return to
	}
	return besideBar{b, to}
}

type besideBar struct {
	*sharedBar
	to io.Writer
}

// Write implements io.Writer for whole lines.
func (b besideBar) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.drawn {
		b.bar.clear()
		defer func() { b.bar.draw(b.done, b.total, b.text) }()
	}
	return b.to.Write(p)
}
