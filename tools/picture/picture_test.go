package main

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"time"
)

// TestTerminal: the terminal draws what the programs here print, and refuses what it does not know.
func TestTerminal(t *testing.T) {
	for _, c := range []struct{ name, printed, want string }{
		{"lines", "a\r\nb", "a\nb"},
		{"drawn again in place", "one\r\ntwo\r\n\x1b[2A\r\x1b[2K1\n\r\x1b[2K2\n", "1\n2"},
		{"styles", "\x1b[1mbold\x1b[0m \x1b[2;32mdim\x1b[m", "bold dim"},
		{"longer than a row", "0123456789abc", "0123456789\nabc"},
		{"blank cells at the end", "a   ", "a"},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, size := range []int{len(c.printed), 1} { // whole, and byte by byte
				term := terminal{columns: 10}
				for rest := c.printed; len(rest) > 0; rest = rest[size:] {
					if err := term.write(rest[:size]); err != nil {
						t.Fatal(err)
					}
				}
				var rows []string
				for _, l := range term.screen() {
					rows = append(rows, text(l))
				}
				if got := strings.Join(rows, "\n"); got != c.want {
					t.Errorf("got %q, want %q", got, c.want)
				}
			}
		})
	}
	for _, unknown := range []string{"\x1b[2J", "\x1b[5m", "\x1b]0;title\x07", "\x1b[1;2H", "\b"} {
		term := terminal{columns: 10}
		if err := term.write(unknown); err == nil {
			t.Errorf("%q is accepted", unknown)
		}
	}
}

// TestFrames: a film begins with its last screen, and shows the others in order, each once.
func TestFrames(t *testing.T) {
	const s = time.Second
	screens, err := screensOf([]piece{{2 * s, "a"}, {2*s + s/2, "b"}, {5 * s, "c"}, {5*s + s/2, "\r\nd"}}, 80, s)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range framesOf(screens, s, 3*s) {
		var rows []string
		for _, l := range f.lines {
			rows = append(rows, text(l))
		}
		got = append(got, strings.Join(rows, "/")+" "+f.stays.String())
	}
	if want := "abc/d 3s, ab 2s, abc 1s"; strings.Join(got, ", ") != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestEscapes: any output of a program is text in the picture.
func TestEscapes(t *testing.T) {
	const hostile = `<script>"&'</text>`
	var row line
	for _, c := range hostile {
		row = append(row, cell{char: c})
	}
	picture := film{command: hostile, note: hostile, columns: 80, rows: 2, frames: []frame{
		{lines: []line{row}, stays: time.Second}, {lines: []line{row, row}, stays: time.Second},
	}}.svg()
	seen := read(t, picture)
	// command, note and title; one row that stands and one that moves
	if seen.count["script"] > 0 || strings.Count(seen.text, hostile) != 5 {
		t.Errorf("the picture shows %q", seen.text)
	}
}

// TestCommittedPicture: docs/demo.svg is well formed, serves both colour schemes, does not need to
// move, and fits a README.
func TestCommittedPicture(t *testing.T) {
	picture, err := os.ReadFile("../../docs/demo.svg")
	if err != nil {
		t.Fatal(err)
	}
	seen := read(t, picture)
	if seen.count["script"]+seen.count["image"]+seen.count["foreignObject"] > 0 {
		t.Errorf("the picture has elements that a README does not show: %v", seen.count)
	}
	for _, want := range []string{
		"@media(prefers-color-scheme:dark)", "@media(prefers-reduced-motion:no-preference){.film{animation:", "@keyframes play{0%{transform:translateX(0px)}",
	} {
		if !strings.Contains(seen.text, want) {
			t.Errorf("the style sheet lacks %s", want)
		}
	}
	first, _, _ := strings.Cut(string(picture[strings.Index(string(picture), `class="film"`):]), "</g>\n")
	for _, want := range []string{"expirations/s", "5000 / 5000", "every law held"} {
		if !strings.Contains(first, want) {
			t.Errorf("the first frame does not show %q", want)
		}
	}
	if !strings.Contains(seen.text, "recorded on 20") || !strings.Contains(seen.text, "go run ./tools/picture ") {
		t.Error("the picture does not say how it was made")
	}
	if len(picture) > 150_000 {
		t.Errorf("the picture has %d bytes", len(picture))
	}
}

// contents is the content of a picture.
type contents struct {
	count map[string]int // elements, by name
	text  string
}

func read(t *testing.T, picture []byte) contents {
	t.Helper()
	c := contents{count: map[string]int{}}
	decoder := xml.NewDecoder(strings.NewReader(string(picture)))
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			return c
		}
		if err != nil {
			t.Fatal(err)
		}
		switch token := token.(type) {
		case xml.StartElement:
			c.count[token.Name.Local]++
			for _, a := range token.Attr {
				if strings.HasPrefix(a.Name.Local, "on") || strings.HasPrefix(a.Value, "http") && a.Name.Local != "xmlns" {
					t.Errorf("an element has %s=%q", a.Name.Local, a.Value)
				}
			}
		case xml.CharData:
			c.text += string(token)
		}
	}
}
