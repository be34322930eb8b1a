package main

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"slices"
	"strings"
	"time"
)

// film is a picture to be written.
type film struct {
	command string // what ran, for the first row
	note    string // how and when the picture was made
	columns int
	rows    int // of the program's screen; the command's row comes on top
	frames  []frame
}

const (
	cellWidth  = 8.1 // in pixels, as everything here
	rowHeight  = 17
	baseline   = 13 // of a row's text, below its top
	marginX    = 10
	marginY    = 12
	blockWidth = cellWidth + 0.1 // neighbours overlap, so that no gap shines through
)

// sheet colours text by the reader's scheme, and moves only for readers who let things move.
const sheet = `
rect{fill:#1f2328}
.frame{fill:#fff;stroke:#d1d9e0}
text{fill:#1f2328;white-space:pre;font:13.4px ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace}
rect.b,text.b{fill:#0969da}rect.g,text.g{fill:#1a7f37}rect.r,text.r{fill:#cf222e}
.d{opacity:.65}rect.d{opacity:.25}.s{font-weight:700}
@media(prefers-color-scheme:dark){
rect,text{fill:#e6edf3}
.frame{fill:#0d1117;stroke:#3d444d}
rect.b,text.b{fill:#58a6ff}rect.g,text.g{fill:#3fb950}rect.r,text.r{fill:#f85149}
}
`

// svg returns the picture. The frames lie side by side, and one animation moves the next one into
// view at a time: without it the first frame is shown. Rows that never change are drawn once, and
// rows that several frames have are drawn once and referred to.
func (f film) svg() []byte {
	width := 2*marginX + float64(f.columns)*cellWidth
	height := 2*marginY + (f.rows+1)*rowHeight
	var b bytes.Buffer
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%.4g" height="%d" viewBox="0 0 %.4g %d" role="img">`+"\n", width, height, width, height)
	fmt.Fprintf(&b, "<title>%s</title>\n<desc>%s</desc>\n", escape("A run of "+f.command), escape(f.note))
	fmt.Fprintf(&b, "<style>%s%s</style>\n", sheet, f.animation(width))
	fmt.Fprintf(&b, `<rect class="frame" x=".5" y=".5" width="%.4g" height="%d" rx="6"/>`+"\n", width-1, height-1)

	standing := make([]bool, f.rows)
	fmt.Fprintf(&b, `<g transform="translate(%d %d)">`+"\n", marginX, marginY)
	writeRow(&b, 0, prompt(f.command))
	for y := range f.rows {
		first := f.row(0, y)
		standing[y] = !slices.ContainsFunc(f.frames, func(other frame) bool { return !slices.Equal(rowOf(other, y), first) })
		if standing[y] {
			writeRow(&b, y+1, first)
		}
	}
	b.WriteString("<g class=\"film\">\n")
	drawn := map[string]int{}
	for i := range f.frames {
		fmt.Fprintf(&b, `<g transform="translate(%.5g)">`, float64(i)*width)
		for y := range f.rows {
			if !standing[y] {
				f.moving(&b, i, y, drawn)
			}
		}
		b.WriteString("</g>\n")
	}
	b.WriteString("</g>\n</g>\n</svg>\n")
	return b.Bytes()
}

// moving writes a row of a frame, or a reference to an equal one at the same place.
func (f film) moving(b *bytes.Buffer, i, y int, drawn map[string]int) {
	var row bytes.Buffer
	writeRow(&row, y+1, f.row(i, y))
	if row.Len() == 0 {
		return
	}
	if n, ok := drawn[row.String()]; ok {
		fmt.Fprintf(b, `<use href="#r%d"/>`, n)
		return
	}
	n := len(drawn)
	drawn[row.String()] = n
	fmt.Fprintf(b, `<g id="r%d">%s</g>`, n, row.Bytes())
}

func (f film) row(i, y int) line { return rowOf(f.frames[i], y) }

func rowOf(f frame, y int) line {
	if y >= len(f.lines) {
		return nil
	}
	return f.lines[y]
}

// prompt returns the row that shows the command.
func prompt(command string) line {
	row := line{{char: '$', style: style{dim: true}}, {char: ' '}}
	for _, c := range command {
		row = append(row, cell{char: c, style: style{bold: true}})
	}
	return row
}

// animation returns the rules that show one frame after another.
func (f film) animation(width float64) string {
	var total time.Duration
	for _, one := range f.frames {
		total += one.stays
	}
	var b strings.Builder
	fmt.Fprintf(&b, "@media(prefers-reduced-motion:no-preference){.film{animation:play %.3gs step-end infinite}}\n@keyframes play{", total.Seconds())
	var at time.Duration
	for i, one := range f.frames {
		fmt.Fprintf(&b, "%.4g%%{transform:translateX(%.5gpx)}", 100*at.Seconds()/total.Seconds(), 0-float64(i)*width)
		at += one.stays
	}
	b.WriteString("}\n")
	return b.String()
}

// writeRow writes a row's cells: text, and rectangles for the characters that draw bars. A text
// gets the width of its cells, so that columns are straight in any font.
func writeRow(b *bytes.Buffer, y int, row line) {
	top := y * rowHeight
	for x := 0; x < len(row); {
		end := x + 1
		if share, ok := blocks[row[x].char]; ok {
			for end < len(row) && row[end] == row[x] {
				end++
			}
			height := share * rowHeight
			fmt.Fprintf(b, `<rect%s x="%.5g" y="%.5g" width="%.5g" height="%.4g"/>`, class(row[x].style, row[x].char == '░'),
				float64(x)*cellWidth, float64(top)+rowHeight-1-height, float64(end-x-1)*cellWidth+blockWidth, height)
			x = end
			continue
		}
		if row[x].char == ' ' {
			x++
			continue
		}
		for end < len(row) && row[end].style == row[x].style && !isBlock(row[end].char) {
			end++
		}
		text := strings.TrimRight(text(row[x:end]), " ")
		fmt.Fprintf(b, `<text%s x="%.5g" y="%d" textLength="%.5g">%s</text>`, class(row[x].style, false),
			float64(x)*cellWidth, top+baseline, float64(len([]rune(text)))*cellWidth, escape(text))
		x = end
	}
}

// blocks are the characters that draw bars, and how much of a row's height each of them fills.
var blocks = map[rune]float64{'█': 0.75, '░': 0.75, '▇': 0.65}

func isBlock(c rune) bool { _, ok := blocks[c]; return ok }

func text(cells []cell) string {
	var b strings.Builder
	for _, c := range cells {
		b.WriteRune(c.char)
	}
	return b.String()
}

func class(s style, shaded bool) string {
	var names []string
	if s.color != "" {
		names = append(names, s.color)
	}
	if s.bold {
		names = append(names, "s")
	}
	if s.dim || shaded {
		names = append(names, "d")
	}
	if len(names) == 0 {
		return ""
	}
	return ` class="` + strings.Join(names, " ") + `"`
}

func escape(s string) string {
	var b bytes.Buffer
	_ = xml.EscapeText(&b, []byte(s)) // a buffer takes everything
	return b.String()
}
