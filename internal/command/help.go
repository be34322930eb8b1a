package command

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

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
		p.wrap(c.Help)
	}
	if more, ok := c.self.(helper); ok {
		p.line("")
		p.flow(strings.TrimSpace(more.Help()))
	}
	if len(c.arguments) > 0 {
		p.line("\nArguments:")
		var rows []row
		for _, a := range c.arguments {
			rows = append(rows, row{a.word(), a.Help})
		}
		p.table(rows)
	}
	isRoot := !c.cobra.HasParent()
	switch {
	case len(c.Children) > 0 && isRoot:
		c.writeGroups(&p)
	case len(c.Children) > 0:
		p.line("\nCommands:")
		p.table(c.leaves())
	}
	p.line("\nFlags:")
	rows := []row{{"-h, --help", "Show this help."}, {}}
	for _, f := range c.Flags {
		if !f.Hidden {
			rows = append(rows, f.row())
		}
	}
	if len(rows) == 2 {
		rows = rows[:1]
	}
	p.table(rows)
	if len(c.Children) > 0 && isRoot {
		p.line("")
		p.wrap(fmt.Sprintf(`"%s <command> --help" shows a command's flags and examples. `+
			`Each flag can also be set in the environment; the flag's help names the variable.`, c.Name))
	}
	io.WriteString(out, p.text.String())
}

func (c *Command) usageLine() string {
	words := []string{c.cobra.CommandPath()}
	if len(c.Children) > 0 {
		return words[0] + " <command>"
	}
	for _, group := range c.alternatives() {
		if !has(group[0].tag, "required") {
			continue
		}
		var shown []string
		for _, f := range group {
			shown = append(shown, f.shown())
		}
		word := strings.Join(shown, " | ")
		if len(group) > 1 {
			word = "(" + word + ")"
		}
		words = append(words, word)
	}
	for _, a := range c.arguments {
		words = append(words, a.word())
	}
	if len(c.Flags) > 0 {
		words = append(words, "[flags]")
	}
	return strings.Join(words, " ")
}

// writeGroups prints the program's commands under the headings of their groups, in the order of the
// groups' first commands. The last group includes the command for shell completions.
func (c *Command) writeGroups(p *page) {
	const completion = "completion"
	width := len(completion)
	for _, child := range c.Children {
		width = max(width, len(child.Name))
	}
	groups := c.groups()
	for i, group := range groups {
		p.line("\n%s:", cmp.Or(group[0].group, "Commands"))
		var rows []row
		for _, child := range group {
			rows = append(rows, row{fmt.Sprintf("%-*s", width, child.Name), child.Help})
		}
		if i == len(groups)-1 {
			rows = append(rows, row{fmt.Sprintf("%-*s", width, completion), "Print a script that completes commands in a shell."})
		}
		p.table(rows)
	}
}

// groups returns the commands by their headings, in the order of the groups' first commands.
func (c *Command) groups() (groups [][]*Command) {
	for _, child := range c.Children {
		i := slices.IndexFunc(groups, func(group []*Command) bool { return group[0].group == child.group })
		if i < 0 {
			groups = append(groups, []*Command{child})
		} else {
			groups[i] = append(groups[i], child)
		}
	}
	return groups
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

// row returns the flag with its help, the default if a placeholder hides it, and the environment
// variable.
func (p *Parameter) row() row {
	left := "    "
	if short := p.tag.Get("short"); short != "" {
		left = "-" + short + ", "
	}
	text, dot := strings.CutSuffix(p.Help, ".")
	placeholder, standard := p.tag.Get("placeholder"), p.standard()
	if placeholder != "" && standard != "" && standard != placeholder &&
		!strings.Contains(text, "Default: ") {
		text += ". Default: " + standard
	}
	text += " ($" + p.env + ")"
	if dot {
		text += "."
	}
	return row{left + p.shown(), text}
}

// writeForeign prints the help of a command of cobra.
func writeForeign(out io.Writer, c *cobra.Command) {
	use := c.UseLine()
	if c.HasSubCommands() {
		use = c.CommandPath() + " <command>"
	}
	fmt.Fprintf(out, "Usage: %s\n\n%s\n", use, strings.TrimSpace(cmp.Or(c.Long, c.Short)))
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
}

func (p *page) line(format string, args ...any) { fmt.Fprintf(&p.text, format+"\n", args...) }

// flow adds a text. It keeps lines that begin with a blank, and fills the paragraphs between them.
func (p *page) flow(text string) {
	paragraph := ""
	fill := func() {
		if paragraph != "" {
			p.wrap(paragraph)
		}
		paragraph = ""
	}
	for line := range strings.SplitSeq(text, "\n") {
		if line != "" && line[0] != ' ' {
			paragraph += line + " "
			continue
		}
		fill()
		p.line("%s", line)
	}
	fill()
}

// wrap adds a paragraph.
func (p *page) wrap(text string) {
	for _, line := range wrapped(text, p.width) {
		p.line("%s", line)
	}
}

func wrapped(text string, width int) (lines []string) {
	line := ""
	for word := range strings.FieldsSeq(text) {
		switch {
		case line == "":
			line = word
		case utf8.RuneCountInString(line+" "+word) > width:
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
		if n := utf8.RuneCountInString(r.left); n <= leftMost {
			left = max(left, n)
		}
	}
	const indent, gap = 2, 4
	for _, r := range rows {
		if utf8.RuneCountInString(r.left) > left {
			p.line("%*s%s", indent, "", r.left)
			r.left = ""
		}
		for _, line := range wrapped(r.right, max(p.width-indent-left-gap, 20)) {
			line = fmt.Sprintf("%*s%-*s%*s%s", indent, "", left, r.left, gap, "", line)
			p.line("%s", strings.TrimRight(line, " "))
			r.left = ""
		}
	}
}

// widthOf returns the width of the output in columns.
func widthOf(out io.Writer) int {
	if f, ok := out.(*os.File); ok {
		if w, _, err := term.GetSize(int(f.Fd())); err == nil && w > 0 {
			return min(w, widthMost)
		}
	}
	if w, err := strconv.Atoi(os.Getenv("COLUMNS")); err == nil && w > 0 {
		return min(w, widthMost)
	}
	return widthDefault
}
