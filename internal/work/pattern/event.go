package pattern

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// maxEventDepth is the deepest nesting of an event.
const maxEventDepth = 1000

// root is the index of the event itself in a capture.
const root = 1

// capture holds an event's values at the places that a pattern names. It skips everything else.
type capture struct {
	values []value // values[0] is unused; values[root] is the event
	seen   []bool  // by index of a name: the event has a leaf there
	names  []name
	data   []byte
	at     int
	depth  int
}

// value is a captured leaf, array or object.
type value struct {
	shape shape
	leaf  leaf
	at    int // the index of the name of an object's member
	child int // an array's first element or an object's first member; 0: none
	next  int // the next element or member; 0: none
}

type shape byte

const (
	shapeLeaf shape = iota
	shapeArray
	shapeObject
)

// read captures an event.
func (c *capture) read(names []name, event []byte) error {
	c.values = append(c.values[:0], value{}, value{})
	c.seen = append(c.seen[:0], make([]bool, len(names))...)
	c.names, c.data, c.at, c.depth = names, event, 0, 0
	c.space()
	if c.at == len(c.data) || c.data[c.at] != '{' {
		return errors.New("event: not a JSON object")
	}
	if err := c.value(root, 0); err != nil {
		return fmt.Errorf("event: byte %d: %w", c.at, err)
	}
	if c.space(); c.at < len(c.data) {
		return fmt.Errorf("event: byte %d: something follows the object", c.at)
	}
	return nil
}

var (
	errSyntax = errors.New("not JSON")
	errEnd    = errors.New("ends too early")
	errDeep   = fmt.Errorf("deeper than %d levels", maxEventDepth)
)

// value parses the value at the cursor into values[to]. name is the index of its place.
func (c *capture) value(to, name int) error {
	if c.at == len(c.data) {
		return errEnd
	}
	c.values[to].at = name
	switch c.data[c.at] {
	case '{':
		c.values[to].shape = shapeObject
		return c.object(to, name)
	case '[':
		c.values[to].shape = shapeArray
		return c.array(to, name)
	}
	l, err := c.leaf()
	if err != nil {
		return err
	}
	c.values[to].leaf = l
	c.seen[name] = true
	return nil
}

// enter steps into an object or array and reports whether it is empty.
func (c *capture) enter(closing byte) (empty bool, err error) {
	if c.depth++; c.depth > maxEventDepth {
		return false, errDeep
	}
	c.at++
	if c.space(); c.at == len(c.data) {
		return false, errEnd
	}
	if c.data[c.at] != closing {
		return false, nil
	}
	c.at++
	c.depth--
	return true, nil
}

// more steps over a comma, or out of the object or array. It reports whether an element follows.
func (c *capture) more(closing byte) (bool, error) {
	if c.space(); c.at == len(c.data) {
		return false, errEnd
	}
	b := c.data[c.at]
	c.at++
	switch b {
	case ',':
		if c.space(); c.at == len(c.data) {
			return false, errEnd
		}
		return true, nil
	case closing:
		c.depth--
		return false, nil
	}
	return false, errSyntax
}

func (c *capture) object(to, name int) error {
	empty, err := c.enter('}')
	for more := !empty; more && err == nil; more, err = c.more('}') {
		if err = c.member(to, name); err != nil {
			return err
		}
	}
	return err
}

func (c *capture) member(to, name int) error {
	if c.data[c.at] != '"' {
		return errSyntax
	}
	key, err := c.text()
	if err != nil {
		return err
	}
	if c.space(); c.at == len(c.data) {
		return errEnd
	}
	if c.data[c.at] != ':' {
		return errSyntax
	}
	c.at++
	c.space()
	for _, m := range c.names[name].members {
		if m.name == string(key) {
			return c.value(c.add(to), m.to)
		}
	}
	return c.skip()
}

func (c *capture) array(to, name int) error {
	empty, err := c.enter(']')
	for more := !empty; more && err == nil; more, err = c.more(']') {
		if err = c.value(c.add(to), name); err != nil {
			return err
		}
	}
	return err
}

// add prepends an empty value to its parent's values: the order of members and elements is
// irrelevant.
func (c *capture) add(parent int) int {
	c.values = append(c.values, value{next: c.values[parent].child})
	c.values[parent].child = len(c.values) - 1
	return len(c.values) - 1
}

// leaf parses a string, a number, true, false or null.
func (c *capture) leaf() (leaf, error) {
	switch b := c.data[c.at]; {
	case b == '"':
		s, err := c.text()
		return leaf{kindString, s}, err
	case b == 't':
		return leaf{kind: kindTrue}, c.word("true")
	case b == 'f':
		return leaf{kind: kindFalse}, c.word("false")
	case b == 'n':
		return leaf{kind: kindNull}, c.word("null")
	case b == '-' || '0' <= b && b <= '9':
		start := c.at
		for c.at < len(c.data) && numeral(c.data[c.at]) {
			c.at++
		}
		return leaf{kindNumber, c.data[start:c.at]}, nil
	}
	return leaf{}, errSyntax
}

func numeral(b byte) bool {
	return '0' <= b && b <= '9' || b == '.' || b == '-' || b == '+' || b == 'e' || b == 'E'
}

func (c *capture) word(w string) error {
	if !bytes.HasPrefix(c.data[c.at:], []byte(w)) {
		return errSyntax
	}
	c.at += len(w)
	return nil
}

// text parses and decodes a string.
func (c *capture) text() ([]byte, error) {
	start := c.at
	plain, err := c.quoted()
	if err != nil {
		return nil, err
	}
	if plain {
		return c.data[start+1 : c.at-1], nil
	}
	var s string
	if json.Unmarshal(c.data[start:c.at], &s) != nil {
		return nil, errSyntax
	}
	return []byte(s), nil
}

// quoted steps over a string. plain reports that it has no escapes.
func (c *capture) quoted() (plain bool, err error) {
	c.at++
	end := bytes.IndexByte(c.data[c.at:], '"')
	if end >= 0 && bytes.IndexByte(c.data[c.at:c.at+end], '\\') < 0 {
		c.at += end + 1
		return true, nil
	}
	for ; c.at < len(c.data); c.at++ {
		switch c.data[c.at] {
		case '"':
			c.at++
			return false, nil
		case '\\':
			c.at++
		}
	}
	c.at = len(c.data)
	return false, errEnd
}

// skip steps over a value that no pattern names. It does not distinguish braces from brackets: we
// produce the events ourselves, and skipped text only must not confuse the match.
func (c *capture) skip() error {
	depth := 0
	for c.at < len(c.data) {
		switch c.data[c.at] {
		case '"':
			if _, err := c.quoted(); err != nil {
				return err
			}
		case '{', '[':
			depth++
			c.at++
		case '}', ']':
			if depth == 0 {
				return errSyntax
			}
			depth--
			c.at++
		case ',':
			if depth == 0 {
				return errSyntax
			}
			c.at++
			continue
		default:
			for c.at++; c.at < len(c.data) && !structural[c.data[c.at]]; {
				c.at++
			}
		}
		if depth == 0 {
			return nil
		}
	}
	return errEnd
}

// structural are the bytes that skip inspects.
var structural = [256]bool{'"': true, ',': true, '{': true, '}': true, '[': true, ']': true}

// space skips white space.
func (c *capture) space() {
	for c.at < len(c.data) {
		switch c.data[c.at] {
		case ' ', '\t', '\n', '\r':
			c.at++
		default:
			return
		}
	}
}

// holds reports whether the value at index i satisfies the branch.
func (c *capture) holds(n *node, i int) bool {
	v := &c.values[i]
	if v.shape == shapeArray && v.child != 0 {
		for e := v.child; e != 0; e = c.values[e].next {
			if c.holds(n, e) {
				return true
			}
		}
		return false
	}
	if len(n.tests) > 0 || n.absent {
		if !(v.shape == shapeLeaf && passes(n.tests, v.leaf)) && !(n.absent && !c.seen[n.at]) {
			return false
		}
	}
	for _, m := range n.members {
		if !c.memberHolds(m, v) {
			return false
		}
	}
	return true
}

// memberHolds reports whether a member of that name satisfies the branch. If an event has a member
// twice, either may.
func (c *capture) memberHolds(m *node, v *value) bool {
	found := false
	if v.shape == shapeObject {
		for e := v.child; e != 0; e = c.values[e].next {
			if c.values[e].at != m.at {
				continue
			}
			if c.holds(m, e) {
				return true
			}
			found = true
		}
	}
	return !found && c.nothingHolds(m)
}

// nothingHolds reports whether the branch m holds without a member of its name: each of its places
// accepts a missing leaf, and the event has no leaf there. A leaf in another element of an array
// counts too, as in AWS's matcher.
func (c *capture) nothingHolds(m *node) bool {
	if len(m.tests) > 0 && !m.absent || m.absent && c.seen[m.at] {
		return false
	}
	for _, below := range m.members {
		if !c.nothingHolds(below) {
			return false
		}
	}
	return true
}

func passes(tests []test, l leaf) bool {
	for _, t := range tests {
		if t(l) {
			return true
		}
	}
	return false
}
