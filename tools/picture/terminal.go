package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// piece is some output of a program.
type piece struct {
	at   time.Duration // since its start
	text string
}

// style is how a cell is drawn: a set of the classes of the picture's style sheet.
type style struct {
	color string // "r", "g", "b" or "" for the text's own
	bold  bool
	dim   bool
}

type cell struct {
	char  rune
	style style
}

// line is a row of a screen, without the blank cells at its end.
type line []cell

// terminal understands as much of a terminal's language as the programs here speak: text, line
// feeds, carriage returns, cursor up, erase line, and styles. Any other sequence is an error, so
// that no picture is wrong unnoticed. It never scrolls.
type terminal struct {
	columns int
	lines   []line
	x, y    int
	style   style
	pending string // the beginning of a character or sequence
}

// write draws text.
func (t *terminal) write(text string) error {
	text = t.pending + text
	for len(text) > 0 {
		n, err := t.next(text)
		if err != nil {
			return err
		}
		if n == 0 {
			break
		}
		text = text[n:]
	}
	t.pending = text
	return nil
}

// next draws the first character or sequence of text. It returns its length, or 0 if the end is
// missing.
func (t *terminal) next(text string) (int, error) {
	switch c := text[0]; {
	case c == '\r':
		t.x = 0
		return 1, nil
	case c == '\n':
		t.y++
		return 1, nil
	case c == '\x1b':
		return t.sequence(text)
	case c < ' ':
		return 0, fmt.Errorf("unknown control character %q", c)
	}
	if !utf8.FullRuneInString(text) {
		return 0, nil
	}
	char, n := utf8.DecodeRuneInString(text)
	t.put(char)
	return n, nil
}

func (t *terminal) put(char rune) {
	if t.x == t.columns {
		t.x, t.y = 0, t.y+1
	}
	for len(t.lines) <= t.y {
		t.lines = append(t.lines, nil)
	}
	for len(t.lines[t.y]) <= t.x {
		t.lines[t.y] = append(t.lines[t.y], cell{char: ' '})
	}
	t.lines[t.y][t.x] = cell{char: char, style: t.style}
	t.x++
}

// sequence obeys a control sequence: ESC [ numbers letter.
func (t *terminal) sequence(text string) (int, error) {
	end := strings.IndexFunc(text, func(c rune) bool { return c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' })
	if end < 0 {
		return 0, nil
	}
	known := strings.HasPrefix(text, "\x1b[")
	var numbers []int
	if known {
		for field := range strings.SplitSeq(text[2:end], ";") {
			n, err := strconv.Atoi("0" + field)
			known = known && err == nil
			numbers = append(numbers, n)
		}
	}
	switch {
	case known && text[end] == 'A':
		t.y = max(0, t.y-max(1, numbers[0]))
	case known && text[end] == 'K' && numbers[0] == 2:
		if t.y < len(t.lines) {
			t.lines[t.y] = nil
		}
	case known && text[end] == 'm':
		for _, n := range numbers {
			known = t.style.set(n) && known
		}
	default:
		known = false
	}
	if !known {
		return 0, fmt.Errorf("unknown control sequence %q", text[:end+1])
	}
	return end + 1, nil
}

// set changes the style by one number of a sequence. It reports whether it knows the number.
func (s *style) set(number int) bool {
	switch number {
	case 0:
		*s = style{}
	case 1:
		s.bold = true
	case 2:
		s.dim = true
	case 31:
		s.color = "r"
	case 32:
		s.color = "g"
	case 34:
		s.color = "b"
	default:
		return false
	}
	return true
}

// screen returns a copy of the lines as they are now.
func (t *terminal) screen() []line {
	lines := make([]line, len(t.lines))
	for i, l := range t.lines {
		end := len(l)
		for end > 0 && l[end-1].char == ' ' {
			end--
		}
		lines[i] = slices.Clone(l[:end])
	}
	return lines
}

// screensOf replays the output from its first piece on. It returns the screen at each interval and
// at the end.
func screensOf(output []piece, columns int, every time.Duration) (screens [][]line, err error) {
	if len(output) == 0 {
		return nil, fmt.Errorf("the program printed nothing")
	}
	t := terminal{columns: columns}
	next := output[0].at + every
	for _, p := range output {
		for ; p.at > next; next += every {
			screens = append(screens, t.screen())
		}
		if err := t.write(p.text); err != nil {
			return nil, err
		}
	}
	return append(screens, t.screen()), nil
}

// frame is a screen and how long it stays.
type frame struct {
	lines []line
	stays time.Duration
}

// framesOf joins equal screens. The last one comes first: it is the picture where nothing moves.
func framesOf(screens [][]line, every, hold time.Duration) []frame {
	last := len(screens) - 1
	frames := []frame{{lines: screens[last], stays: hold}}
	for _, s := range screens[:last] {
		if previous := &frames[len(frames)-1]; len(frames) > 1 && slices.EqualFunc(previous.lines, s, slices.Equal) {
			previous.stays += every
			continue
		}
		frames = append(frames, frame{lines: s, stays: every})
	}
	return frames
}
