package pattern

import (
	"fmt"
	"slices"
	"sync"
)

// Limits of a pattern. The length is the limit of Lambda and EventBridge (4,096 characters); the
// number of branches is EventBridge's for combinations of "$or".
const (
	maxText     = 4096
	maxBranches = 1000
	maxDepth    = 100
)

// Error is the error for an invalid pattern.
type Error struct {
	Pattern int    // the index of the pattern among those passed to Compile
	Message string // a sentence without a full stop
}

func (e *Error) Error() string { return "invalid pattern: " + e.Message }

// Pattern is one or more patterns, one of which must match. It is safe for concurrent use.
type Pattern struct {
	branches []*node    // the expansion of "$or" and of several patterns: one of these must hold
	names    []name     // all paths in the branches, as a tree; names[0] is the event itself
	scratch  *sync.Pool // of *capture
}

// name is a place in an event that a branch names.
type name struct {
	members []member
	leaf    bool // a branch compares leaves here
}

// member is a named place below another.
type member struct {
	name string
	to   int // index in names
}

// node is the condition of a branch for a place in the event.
type node struct {
	at      int // the place's index in Pattern.names
	tests   []test
	absent  bool // {"exists": false} is one of the tests
	members []*node
}

// Compile compiles patterns. An event matches if it matches one of them; without patterns, every
// event matches. The error is an *Error.
func Compile(texts ...string) (*Pattern, error) {
	p := &Pattern{names: []name{{}}, scratch: &sync.Pool{New: func() any { return new(capture) }}}
	for i, text := range texts {
		branches, err := parse(text)
		if err != nil {
			return nil, &Error{Pattern: i, Message: err.Error()}
		}
		if p.branches = append(p.branches, branches.place(p)...); len(p.branches) > maxBranches {
			return nil, &Error{Pattern: i, Message: tooManyBranches}
		}
	}
	return p, nil
}

var tooManyBranches = fmt.Sprintf("the alternatives of $or make more than %d combinations", maxBranches)

// Match reports whether an event, a JSON object, matches. It returns an error if the part of the
// event that it reads is not valid JSON.
func (p *Pattern) Match(event []byte) (bool, error) {
	if len(p.branches) == 0 {
		return true, nil
	}
	c := p.scratch.Get().(*capture)
	defer p.scratch.Put(c)
	if err := c.read(p.names, event); err != nil {
		return false, err
	}
	return slices.ContainsFunc(p.branches, func(branch *node) bool { return c.holds(branch, root) }), nil
}

// place assigns the branch's places their indexes in the tree of names, which all branches share.
func (b branches) place(p *Pattern) (nodes []*node) {
	for _, fields := range b {
		top := &node{}
		for _, f := range fields {
			n := top
			for _, step := range f.path {
				n = n.child(p.below(n.at, step))
			}
			p.names[n.at].leaf = true
			n.tests, n.absent = f.tests, f.absent
		}
		nodes = append(nodes, top)
	}
	return nodes
}

// below returns the index of the place at a member's name.
func (p *Pattern) below(at int, step string) int {
	for _, m := range p.names[at].members {
		if m.name == step {
			return m.to
		}
	}
	p.names = append(p.names, name{})
	to := len(p.names) - 1
	p.names[at].members = append(p.names[at].members, member{step, to})
	return to
}

// child returns the branch's condition for a place below n.
func (n *node) child(at int) *node {
	for _, m := range n.members {
		if m.at == at {
			return m
		}
	}
	m := &node{at: at}
	n.members = append(n.members, m)
	return m
}
