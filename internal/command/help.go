package command

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"
)

const (
	widthDefault = 80
	widthMost    = 110
	leftMost     = 26 // width of names; a longer name has its text on the next line
)

// writeHelp prints --help.
func (c *Command) writeHelp(out io.Writer) {
	p := page{width: widthOf(out)}
	p.line("Usage: %s", c.usageLine())
	if c.Help != "" {
		p.line("")
		p.wrap("", c.Help)
	}
	if more, has := c.self.(helper); has {
		p.line("")
		for _, line := range strings.Split(strings.TrimSpace(more.Help()), "\n") {
			p.flow(line)
		}
		p.flush()
	}
	if len(c.Arguments) > 0 {
		p.line("\nArguments:")
		var rows []row
		for _, a := range c.Arguments {
			rows = append(rows, row{a.String(), a.Help})
		}
		p.table(rows)
	}
	p.line("\nFlags:")
	rows := []row{{"-h, --help", "Show this help."}, {}}
	for _, f := range c.Flags {
		if !f.Hidden {
			rows = append(rows, row{f.left(), f.right()})
		}
	}
	if len(rows) == 2 {
		rows = rows[:1]
	}
	p.table(rows)
	if len(c.Children) > 0 {
		if c.parent == nil {
			c.groups(&p)
			p.line("")
			p.wrap("", fmt.Sprintf("\"%s <command> --help\" shows a command's flags and examples. Each flag can also be set in the environment: --port is %s_PORT.", c.Name, c.program.Env))
		} else {
			p.line("\nCommands:")
			p.table(c.leaves())
		}
	}
	io.WriteString(out, p.text.String())
}

func (c *Command) usageLine() string {
	words := []string{c.fullPath()}
	if len(c.Children) > 0 {
		return strings.Join(append(words, "<command>"), " ")
	}
	var groups []string
	for _, f := range c.Flags {
		switch {
		case !f.required || slices.Contains(groups, f.xor):
		case f.xor == "":
			words = append(words, f.shown())
		default:
			groups = append(groups, f.xor)
			var all []string
			for _, other := range c.Flags {
				if other.xor == f.xor {
					all = append(all, other.shown())
				}
			}
			words = append(words, "("+strings.Join(all, " | ")+")")
		}
	}
	for _, a := range c.Arguments {
		words = append(words, a.String())
	}
	if len(c.Flags) > 0 {
		words = append(words, "[flags]")
	}
	return strings.Join(words, " ")
}

// groups prints the program's commands under the headings of their groups, in the order of the
// groups' first commands. The last group includes the command for shell completions.
func (c *Command) groups(p *page) {
	var names []string
	rows := map[string][]row{}
	for _, child := range c.Children {
		name := cmp.Or(child.Group, "Commands")
		if rows[name] == nil {
			names = append(names, name)
		}
		rows[name] = append(rows[name], row{child.Name, child.Help})
	}
	last := names[len(names)-1]
	rows[last] = append(rows[last], row{"completion", "Print a script that completes commands in bash, zsh, fish or powershell."})
	width := 0
	for _, all := range rows {
		for _, r := range all {
			width = max(width, len(r.left))
		}
	}
	for _, name := range names {
		p.line("\n%s:", name)
		for _, r := range rows[name] {
			p.table([]row{{fmt.Sprintf("%-*s", width, r.left), r.right}})
		}
	}
}

// leaves returns all commands below, with their paths.
func (c *Command) leaves() (rows []row) {
	for _, child := range c.Children {
		if len(child.Children) > 0 {
			rows = append(rows, child.leaves()...)
		} else {
			rows = append(rows, row{child.Path(), child.Help})
		}
	}
	return rows
}

func (f *Flag) left() string {
	if f.short != "" {
		return "-" + f.short + ", " + f.shown()
	}
	return "    " + f.shown()
}

// right returns the flag's help, with the default if a placeholder hides it, and the environment
// variable.
func (f *Flag) right() string {
	text, dot := strings.CutSuffix(f.Help, ".")
	if f.placeholder != "" && f.standard != "" && f.standard != f.placeholder && !strings.Contains(text, "Default: ") {
		text += ". Default: " + f.standard
	}
	text += " ($" + f.Env + ")"
	if dot {
		text += "."
	}
	return text
}

// writeForeign prints the help of a command of cobra.
func writeForeign(out io.Writer, c *cobra.Command) {
	text := c.Long
	if text == "" {
		text = c.Short
	}
	use := c.UseLine()
	if c.HasSubCommands() {
		use = c.CommandPath() + " <command>"
	}
	fmt.Fprintf(out, "Usage: %s\n\n%s\n", use, strings.TrimSpace(text))
	if flags := c.LocalFlags().FlagUsages(); flags != "" {
		fmt.Fprintf(out, "\nFlags:\n%s", flags)
	}
	for i, child := range c.Commands() {
		if i == 0 {
			fmt.Fprint(out, "\nCommands:\n")
		}
		fmt.Fprintf(out, "  %s  %s\n", child.Name(), child.Short)
	}
}

// row is a name with its description.
type row struct{ left, right string }

// page collects lines.
type page struct {
	text  strings.Builder
	width int
	words []string // of the current paragraph
}

func (p *page) line(format string, args ...any) { fmt.Fprintf(&p.text, format+"\n", args...) }

// flow adds a line of text. It keeps lines that begin with a blank, and fills the others.
func (p *page) flow(line string) {
	if line == "" || line[0] == ' ' || line[0] == '\t' {
		p.flush()
		p.line("%s", line)
		return
	}
	p.words = append(p.words, strings.Fields(line)...)
}

func (p *page) flush() {
	if len(p.words) > 0 {
		p.wrap("", strings.Join(p.words, " "))
		p.words = nil
	}
}

// wrap adds an indented paragraph.
func (p *page) wrap(indent, text string) {
	for _, line := range wrapped(text, p.width-len(indent)) {
		p.line("%s%s", indent, line)
	}
}

func wrapped(text string, width int) (lines []string) {
	line := ""
	for _, word := range strings.Fields(text) {
		switch {
		case line == "":
			line = word
		case len([]rune(line))+1+len([]rune(word)) > width:
			lines = append(lines, line)
			line = word
		default:
			line += " " + word
		}
	}
	return append(lines, line)
}

// table adds names with their descriptions.
func (p *page) table(rows []row) {
	left := 0
	for _, r := range rows {
		if n := len([]rune(r.left)); n <= leftMost {
			left = max(left, n)
		}
	}
	const indent, gap = 2, 4
	for _, r := range rows {
		if r == (row{}) {
			p.line("")
			continue
		}
		lines := wrapped(r.right, max(p.width-indent-left-gap, 20))
		if len([]rune(r.left)) > left {
			p.line("%*s%s", indent, "", r.left)
		} else {
			p.line("%s", strings.TrimRight(fmt.Sprintf("%*s%-*s%*s%s", indent, "", left, r.left, gap, "", lines[0]), " "))
			lines = lines[1:]
		}
		for _, line := range lines {
			p.line("%*s%s", indent+left+gap, "", line)
		}
	}
}

// widthOf returns the width of the output in columns.
func widthOf(out io.Writer) int {
	if f, is := out.(*os.File); is {
		if w, _, err := term.GetSize(int(f.Fd())); err == nil && w > 0 {
			return min(w, widthMost)
		}
	}
	if w, err := strconv.Atoi(os.Getenv("COLUMNS")); err == nil && w > 0 {
		return min(w, widthMost)
	}
	return widthDefault
}
