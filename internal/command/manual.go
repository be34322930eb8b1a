package command

import (
	"fmt"
	"strings"
	"unicode"
)

// Manual returns the command's page for man(1), in roff. It has no date, so that the pages of a
// version are always the same.
func (c *Command) Manual() string {
	c.fill()
	var m manual
	m.request(".TH", strings.ToUpper(c.page()), "1")
	m.section("NAME")
	m.text.WriteString(c.page() + ` \- ` + roff(strings.TrimSuffix(c.Help, ".")) + "\n")
	m.section("SYNOPSIS")
	m.paragraph(roff(c.usageLine()))
	m.section("DESCRIPTION")
	m.paragraph(roff(c.Help))
	if more, ok := c.self.(helper); ok {
		m.request(".PP")
		m.flow(strings.TrimSpace(more.Help()))
	}
	if len(c.arguments) > 0 {
		m.section("ARGUMENTS")
		for _, a := range c.arguments {
			m.row(row{a.word(), a.Help})
		}
	}
	m.section("OPTIONS")
	m.row(row{"-h, --help", "Show the help."})
	for _, f := range c.Flags {
		if !f.Hidden {
			m.row(f.row())
		}
	}
	if len(c.Children) == 0 {
		return m.text.String()
	}
	m.section("COMMANDS")
	for _, group := range c.groups() {
		if group[0].group != "" {
			m.request(".SS", group[0].group)
		}
		for _, child := range group {
			m.row(row{child.Name, child.Help + " See " + child.page() + "(1)."})
		}
	}
	return m.text.String()
}

// page returns the name of the command's manual page: mayfly-guard-run.
func (c *Command) page() string { return strings.ReplaceAll(c.cobra.CommandPath(), " ", "-") }

// Manuals returns the manual pages of the command and of all commands below it, by the names of their
// files: mayfly-guard-run.1.
func (c *Command) Manuals() map[string]string {
	all := map[string]string{c.page() + ".1": c.Manual()}
	for _, child := range c.Children {
		for name, text := range child.Manuals() {
			all[name] = text
		}
	}
	return all
}

// Find returns the command with a path of names below c, such as guard run. The error for an unknown
// name is of type Usage.
func (c *Command) Find(path []string) (*Command, error) {
	for _, name := range path {
		c.fill()
		child := c.child(name)
		if child == nil {
			return nil, c.noSuchCommand(name)
		}
		c = child
	}
	return c, nil
}

// manual is a page in roff.
type manual struct{ text strings.Builder }

func (m *manual) request(name string, arguments ...string) {
	m.text.WriteString(name)
	for _, a := range arguments {
		fmt.Fprintf(&m.text, ` "%s"`, strings.ReplaceAll(roff(a), `"`, `\(dq`))
	}
	m.text.WriteString("\n")
}

func (m *manual) section(name string) { m.request(".SH", name) }

// paragraph adds a text in roff.
func (m *manual) paragraph(text string) { m.text.WriteString(".PP\n" + text + "\n") }

func (m *manual) row(r row) {
	fmt.Fprintf(&m.text, ".TP\n\\fB%s\\fR\n%s\n", roff(strings.TrimSpace(r.left)), roff(r.right))
}

// flow adds a help text, in which lines that begin with a blank stay as they are.
func (m *manual) flow(text string) {
	kept := false
	for line := range strings.SplitSeq(text, "\n") {
		if indented := strings.HasPrefix(line, " "); line != "" && indented != kept {
			kept = indented
			m.text.WriteString(map[bool]string{true: ".nf\n", false: ".fi\n"}[kept])
		}
		if line == "" && !kept {
			line = ".PP"
		} else {
			line = roff(line)
		}
		m.text.WriteString(line + "\n")
	}
	if kept {
		m.text.WriteString(".fi\n")
	}
}

// roff returns a line of plain text in roff, as ASCII.
func roff(line string) string {
	var b strings.Builder
	for i, r := range line {
		switch {
		case r == '\\':
			b.WriteString(`\e`)
		case r == '-':
			b.WriteString(`\-`)
		case i == 0 && (r == '.' || r == '\''):
			b.WriteString(`\&` + string(r))
		case r > unicode.MaxASCII:
			fmt.Fprintf(&b, `\[u%04X]`, r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}
