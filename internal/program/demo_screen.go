package program

import (
	"fmt"
	"os"
	"strings"
	"time"

	"golang.org/x/term"

	"github.com/mayflydb/mayfly/internal/demo"
)

// screen shows a run on a terminal, in a few redrawn lines.
type screen struct {
	out   *os.File
	color bool
	at    stage
	lines int // number of lines to redraw

	rate rate
}

func newScreen(out *os.File) *screen {
	return &screen{out: out, color: os.Getenv("NO_COLOR") == ""}
}

func (s *screen) begin(at stage) {
	s.at = at
	fmt.Fprintf(s.out, "%s %d real weather readings, as items with deadlines at whole %s\n\n",
		s.paint(bold, "mayfly demo"), at.items, at.unit)
	fmt.Fprintf(s.out, "  database  %s (durable: acknowledged means on disk)\n  endpoint  %s\n\n", at.dir, at.endpoint)
}

func (s *screen) progress(r demo.Report, took time.Duration) { s.draw(s.body(r, took)) }

func (s *screen) end(r demo.Report, took time.Duration) {
	s.draw(s.body(r, took))
	color := green
	if len(r.Broken()) > 0 {
		color = red
	}
	fmt.Fprintf(s.out, "\n%s\n", s.paint(color, summary(r, took)))
}

// draw replaces the lines of the previous call.
func (s *screen) draw(lines []string) {
	var b strings.Builder
	if s.lines > 0 {
		fmt.Fprintf(&b, "\x1b[%dA", s.lines)
	}
	for _, line := range lines {
		b.WriteString("\r\x1b[2K" + line + "\n")
	}
	s.lines = len(lines)
	s.out.WriteString(b.String())
}

func (s *screen) body(r demo.Report, took time.Duration) []string {
	s.rate.add(took, r.Removes)
	lines := []string{
		s.bar("written", r.Written, r.Items, blue, ""),
		s.bar("expired", r.Gone, r.Items, green, "read just after the deadline, and gone"),
		s.bar("records", r.Removes, r.Items, green, fmt.Sprintf("%.0f expirations/s", s.rate.perSecond())),
		"",
		s.clip(fmt.Sprintf("  lateness  p50 %s   p99 %s   max %s", s.ms(r.P50MS), s.ms(r.P99MS), s.ms(r.MaxMS)),
			"deadline → its record in a reader's hands"),
	}
	lines = append(lines, s.histogram(r)...)
	return append(lines, "", s.latest(r), "",
		"  "+s.law("early", r.Early)+s.law("answered late", r.Visible)+s.law("twice", r.Twice)+
			s.law("unmarked", r.Unmarked)+s.law("altered", r.Altered)+s.law("lost", r.Lost))
}

const (
	barWidth     = 32
	screenWidth  = 80 // size that the screen needs
	screenHeight = 20
)

func (s *screen) bar(name string, n, total int, color, note string) string {
	full := barWidth * n / max(total, 1)
	return s.clip(fmt.Sprintf("  %-8s  %s%s  %7d / %d  %3d %%", name, s.paint(color, strings.Repeat("█", full)),
		s.paint(dim, strings.Repeat("░", barWidth-full)), n, total, 100*n/max(total, 1)), note)
}

// clip returns a line with a note, if the terminal is wide enough for both.
func (s *screen) clip(line, note string) string {
	if width, _, err := term.GetSize(int(s.out.Fd())); note == "" || err != nil || width < screenWidth+len(note) {
		return line
	}
	return line + "  " + s.paint(dim, note)
}

func (s *screen) histogram(r demo.Report) []string {
	lines := make([]string, len(r.Lateness))
	largest := 1
	for _, b := range r.Lateness {
		largest = max(largest, b.Items)
	}
	for i, b := range r.Lateness {
		name := fmt.Sprintf("≤ %d ms", b.UpToMS)
		if i == len(r.Lateness)-1 {
			name = "later"
		}
		width := barWidth * b.Items / largest
		if b.Items > 0 {
			width = max(width, 1)
		}
		lines[i] = fmt.Sprintf("  %9s  %s %s", name, s.paint(green, strings.Repeat("▇", width)), s.paint(dim, fmt.Sprint(b.Items)))
	}
	return lines
}

// latest returns the line about a reading that has just expired.
func (s *screen) latest(r demo.Report) string {
	if r.Removes == 0 {
		return "  " + s.paint(dim, "the first deadline is about to come")
	}
	return fmt.Sprintf("  just gone %s  %s  %.1f °C  %s", r.Latest.Device, r.Latest.Time, r.Latest.Temperature,
		s.paint(dim, fmt.Sprintf("%d ms after its deadline", r.Latest.Late.Milliseconds())))
}

func (s *screen) law(name string, count int) string {
	color := green
	if count > 0 {
		color = red
	}
	return s.paint(color, fmt.Sprintf("%s %d", name, count)) + "   "
}

func (s *screen) ms(ms int) string { return s.paint(bold, fmt.Sprintf("%d ms", ms)) }

const (
	bold  = "1"
	dim   = "2"
	red   = "31"
	green = "32"
	blue  = "34"
)

func (s *screen) paint(code, text string) string {
	if !s.color || text == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

// rate measures the growth of a number during the last two seconds. With ten values a second that
// is a whole number of seconds, so that growth once a second makes a steady rate.
type rate struct {
	at    [21]time.Duration
	value [21]int
	next  int
}

func (r *rate) add(at time.Duration, value int) {
	i := r.next % len(r.at)
	r.at[i], r.value[i] = at, value
	r.next++
}

func (r *rate) perSecond() float64 {
	if r.next < 2 {
		return 0
	}
	newest, oldest := (r.next-1)%len(r.at), max(r.next-len(r.at), 0)%len(r.at)
	span := r.at[newest] - r.at[oldest]
	if span <= 0 {
		return 0
	}
	return float64(r.value[newest]-r.value[oldest]) / span.Seconds()
}
