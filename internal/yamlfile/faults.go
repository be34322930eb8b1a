package yamlfile

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"
)

// Fault is a fault in the values of a file.
type Fault struct {
	Line, Column int
	Text         string
	path         []int // to the node: indexes of Content
}

func (f Fault) String() string {
	return fmt.Sprintf("line %d, column %d: %s", f.Line, f.Column, f.Text)
}

// In returns the fault with its place in another tree of the same structure.
func (f Fault) In(root *yaml.Node) Fault {
	node := root
	for _, i := range f.path {
		if i < len(node.Content) {
			node = node.Content[i]
		}
	}
	f.Line, f.Column = node.Line, node.Column
	return f
}

// Faults returns the faults that the error of a decoder reports, with their places in the tree that
// it decoded, and without the names of Go types. Faults of values begin with the name of the setting.
func Faults(err error, root *yaml.Node) []Fault {
	var several *yaml.TypeError
	if !errors.As(err, &several) {
		return []Fault{{Line: root.Line, Column: root.Column, Text: strings.TrimPrefix(err.Error(), "yaml: ")}}
	}
	// The decoder's wording; compiled here, because it is needed after a mistake only.
	var (
		numbered = regexp.MustCompile(`^line (\d+): `)
		unknown  = regexp.MustCompile(`^field (\S+) not found in type .+$`)
		wrong    = regexp.MustCompile("^cannot unmarshal !!(\\w+)(?: `((?s:.*))`)? into (.+)$")
		twice    = regexp.MustCompile(`^mapping key "(.*)" already defined at line (\d+)$`)
	)
	l := locator{root: root, seen: map[*yaml.Node]bool{}}
	all := make([]Fault, len(several.Errors))
	for i, text := range several.Errors {
		line := root.Line
		if at := numbered.FindStringSubmatch(text); at != nil {
			line, _ = strconv.Atoi(at[1])
			text = text[len(at[0]):]
		}
		if name := unknown.FindStringSubmatch(text); name != nil {
			all[i] = l.fault(line, func(n *yaml.Node, key bool) bool { return key && n.Value == name[1] })
			all[i].Text = "unknown setting " + name[1]
		} else if parts := wrong.FindStringSubmatch(text); parts != nil {
			all[i] = l.fault(line, func(n *yaml.Node, key bool) bool { return !key && n.ShortTag() == "!!"+parts[1] && shows(n, parts[2]) })
			found := strconv.Quote(parts[2])
			if parts[2] == "" { // the decoder shows only scalars
				found = kinds[parts[1]]
			}
			all[i].Text += found + " is not " + wanted(parts[3])
		} else if parts := twice.FindStringSubmatch(text); parts != nil {
			same := func(n *yaml.Node, key bool) bool { return key && n.Value == parts[1] }
			if all[i] = l.fault(line, same); parts[2] == strconv.Itoa(line) { // that was the first one
				all[i] = l.fault(line, same)
			}
			all[i].Text = fmt.Sprintf("%s is given twice; the other one is in line %s", parts[1], parts[2])
		} else {
			all[i] = l.fault(line, func(*yaml.Node, bool) bool { return true })
			all[i].Text = text
		}
	}
	return all
}

// shows reports whether the decoder shows a node as text: long values end with three dots.
func shows(n *yaml.Node, text string) bool {
	head, short := strings.CutSuffix(text, "...")
	return n.Value == text || n.Kind != yaml.ScalarNode || short && strings.HasPrefix(n.Value, head)
}

// locator finds nodes in a tree. It finds each node once, so that two equal faults of a line get two
// places.
type locator struct {
	root *yaml.Node
	seen map[*yaml.Node]bool
}

// fault returns a fault at the first node of a line that matches; otherwise at the line. For a value,
// its text is the name of the setting.
func (l *locator) fault(line int, match func(n *yaml.Node, key bool) bool) Fault {
	f := Fault{Line: line, Column: 1}
	l.find(l.root, nil, "", func(n *yaml.Node, path []int, key bool, name string) bool {
		if n.Line != line || l.seen[n] || !match(n, key) {
			return false
		}
		l.seen[n] = true
		f = Fault{Line: n.Line, Column: n.Column, path: append([]int(nil), path...)}
		if !key && name != "" {
			f.Text = name + ": "
		}
		return true
	})
	return f
}

// find calls visit for a node and the nodes in it, in order, until visit returns true. name is the
// setting that the node is a value of.
func (l *locator) find(n *yaml.Node, path []int, name string, visit func(n *yaml.Node, path []int, key bool, name string) bool) bool {
	if visit(n, path, false, name) {
		return true
	}
	for i, c := range n.Content {
		below := append(path[:len(path):len(path)], i)
		if n.Kind == yaml.MappingNode {
			if i%2 == 0 {
				if visit(c, below, true, c.Value) {
					return true
				}
				continue
			}
			name = n.Content[i-1].Value
		}
		if l.find(c, below, name, visit) {
			return true
		}
	}
	return false
}

// kinds are words for YAML's kinds of values.
var kinds = map[string]string{"map": "an object", "seq": "a list", "null": "null", "str": "a text"}

// wanted returns words for the values that a Go type accepts.
func wanted(goType string) string {
	switch {
	case goType == "time.Duration":
		return "a duration such as 90s or 2d"
	case strings.HasPrefix(goType, "int"), strings.HasPrefix(goType, "uint"):
		return "a whole number"
	case strings.HasPrefix(goType, "float"):
		return "a number"
	case goType == "bool":
		return "true or false"
	case goType == "string":
		return "a text"
	case strings.HasPrefix(goType, "[]"):
		return "a list"
	}
	return "an object with settings"
}
