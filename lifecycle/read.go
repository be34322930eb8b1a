package lifecycle

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/mayflydb/mayfly/internal/yamlfile"
)

const (
	fileMost  = 1 << 20
	nodesMost = 100_000 // most values in a file; those behind aliases count each time
)

// Read parses a definition from YAML, which includes JSON, and checks it. Unknown members are
// faults. It returns all faults together, as Faults with line and column. known returns an error
// for an unknown handler; nil accepts every handler.
func Read(r io.Reader, known func(handler string) error) (*Definition, error) {
	file, err := io.ReadAll(io.LimitReader(r, fileMost+1))
	if err != nil {
		return nil, err
	}
	if len(file) > fileMost {
		return nil, Faults{{Text: fmt.Sprintf("the file is larger than %d bytes", fileMost)}}
	}
	root, err := yamlfile.Parse(file)
	if syntax, ok := errors.AsType[*yamlfile.SyntaxError](err); ok {
		return nil, Faults{{Line: syntax.Line, Column: syntax.Column, Text: syntax.Reason}}
	}
	if root == nil || root.Kind != yaml.MappingNode {
		return nil, Faults{{Line: 1, Column: 1, Text: `must be an object with the members "lifecycle" and "states"`}}
	}
	if left := nodesMost; !countable(root, &left, 0) {
		return nil, Faults{{Text: fmt.Sprintf("the file has more than %d values, or is nested too deep", nodesMost)}}
	}
	d := &Definition{}
	strict := yaml.NewDecoder(strings.NewReader(string(file)))
	strict.KnownFields(true)
	if err := strict.Decode(d); err != nil {
		return nil, yamlFaults(err, root)
	}
	err = d.Check(known)
	faults := FaultsOf(err)
	for _, f := range faults {
		f.Line, f.Column = placeOf(root, f.Path)
	}
	if err != nil {
		return nil, err
	}
	return d, nil
}

const deepMost = 64

// countable reports whether a node has at most *left values and is not nested too deep. It
// subtracts the values from *left. deep is the depth of the node.
func countable(node *yaml.Node, left *int, deep int) bool {
	if *left--; *left < 0 || deep > deepMost {
		return false
	}
	if node.Kind == yaml.AliasNode {
		return countable(node.Alias, left, deep+1)
	}
	for _, c := range node.Content {
		if !countable(c, left, deep+1) {
			return false
		}
	}
	return true
}

// yamlFaults converts the errors of the YAML decoder to Faults.
func yamlFaults(err error, root *yaml.Node) error {
	var all Faults
	for _, f := range yamlfile.Faults(err, root) {
		all = append(all, &Fault{Line: f.Line, Column: f.Column, Text: f.Text})
	}
	return all
}

// placeOf returns the line and column of a path. For a missing part, it returns those of the
// parent.
func placeOf(node *yaml.Node, path string) (line, column int) {
	line, column = node.Line, node.Column
	for path != "" {
		if node.Kind == yaml.AliasNode {
			node = node.Alias
		}
		var next *yaml.Node
		if tail, indexed := strings.CutPrefix(path, "["); indexed {
			number, after, _ := strings.Cut(tail, "]")
			i, _ := strconv.Atoi(number)
			if node.Kind == yaml.SequenceNode && i < len(node.Content) {
				next = node.Content[i]
			}
			path = strings.TrimPrefix(after, ".")
		} else {
			end := strings.IndexAny(path, ".[")
			if node.Kind == yaml.MappingNode {
				for i := 0; i+1 < len(node.Content); i += 2 { // a name may contain dots
					if name := node.Content[i].Value; path == name || strings.HasPrefix(path, name+".") || strings.HasPrefix(path, name+"[") {
						next, end = node.Content[i+1], len(name)
					}
				}
			}
			if end < 0 || end > len(path) {
				end = len(path)
			}
			path = strings.TrimPrefix(path[end:], ".")
		}
		if next == nil {
			return line, column
		}
		node, line, column = next, next.Line, next.Column
	}
	return line, column
}
