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

const (
	barCells    = 24
	barCellsMin = 8 // a narrower bar is left out
)

// draw redraws the bar with done of total units.
func (b bar) draw(done, total int64, text string) {
	if b.terminal == nil {
		return
	}
	cells := barCells
	if width, _, err := term.GetSize(int(b.terminal.Fd())); err == nil && width > 0 {
		cells, text = fitBar(width, text)
	}
	shown := ""
	if cells > 0 {
		full := int(int64(cells) * min(done, total) / max(total, 1))
		shown = strings.Repeat("█", full) + strings.Repeat("░", cells-full) + " "
	}
	if b.color && shown != "" {
		shown = "\x1b[" + green + "m" + shown + "\x1b[0m"
	}
	fmt.Fprintf(b.terminal, "\r\x1b[2K%s%s", shown, text)
}

// fitBar returns the cells of a bar and the text beside it for a terminal of width columns, of which
// the last one stays free. The text goes first: the bar becomes narrower, and is left out on a narrow
// terminal. A text that is still too long loses the name of its table, and then its end.
func fitBar(width int, text string) (cells int, fitting string) {
	room := max(width-1, 0)
	for cells = barCells; cells >= barCellsMin; cells -= barCellsMin { // in steps, so that a longer number rarely moves the text
		if cells+1+utf8.RuneCountInString(text) <= room {
			return cells, text
		}
	}
	if _, behind, named := strings.Cut(text, ": "); named && utf8.RuneCountInString(text) > room {
		text = behind
	}
	return 0, string([]rune(text)[:min(utf8.RuneCountInString(text), room)])
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
