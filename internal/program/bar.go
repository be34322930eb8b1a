package program

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"golang.org/x/term"
)

// bar is a progress bar with a text, on one line of a terminal.
type bar struct {
	terminal *os.File // nil: draw nothing
	color    bool
}

func newBar(out io.Writer) bar { return bar{asTerminal(out), colours(out)} }

const barCells = 24

// draw redraws the bar with done of total units.
func (b bar) draw(done, total int64, text string) {
	if b.terminal == nil {
		return
	}
	full := int(barCells * min(done, total) / max(total, 1))
	cells := strings.Repeat("█", full) + strings.Repeat("░", barCells-full)
	if width, _, err := term.GetSize(int(b.terminal.Fd())); err == nil && width > 0 {
		room := max(width-barCells-2, 0)
		text = string([]rune(text)[:min(utf8.RuneCountInString(text), room)])
	}
	if b.color {
		cells = "\x1b[" + green + "m" + cells + "\x1b[0m"
	}
	fmt.Fprintf(b.terminal, "\r\x1b[2K%s %s", cells, text)
}

// clear erases the bar, so that the next output begins on an empty line.
func (b bar) clear() {
	if b.terminal != nil {
		fmt.Fprint(b.terminal, "\r\x1b[2K")
	}
}

const (
	progressEvery = 10 * time.Second       // interval of lines about one activity, without a terminal
	drawEvery     = 100 * time.Millisecond // interval of redrawing the bar
)

// progress shows how far a long run is: a bar on a terminal, otherwise occasional lines. show may be
// called from any goroutine.
type progress struct {
	bar
	out   io.Writer
	began time.Time
	mu    sync.Mutex
	shown time.Time // the last time
}

func newProgress(out io.Writer) *progress {
	p := &progress{bar: newBar(out), out: out, began: time.Now()}
	if p.terminal == nil {
		p.shown = p.began
	}
	return p
}

// show shows that done of total units are finished, unless it has shown something just before.
func (p *progress) show(done, total int64, text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	every := drawEvery
	if p.terminal == nil {
		every = progressEvery
	}
	if time.Since(p.shown) < every {
		return
	}
	if p.shown = time.Now(); p.terminal == nil {
		fmt.Fprintln(p.out, text)
		return
	}
	p.draw(done, max(total, done), text)
}

// perSecond returns the average rate of n units since the beginning.
func (p *progress) perSecond(n int64) float64 {
	return float64(n) / max(time.Since(p.began).Seconds(), 1e-3)
}

// took returns the time since the beginning.
func (p *progress) took() time.Duration { return time.Since(p.began).Round(time.Millisecond) }
