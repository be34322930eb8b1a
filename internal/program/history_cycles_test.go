package program

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// This file checks transactions for strict serializability, as Elle does. Transactions read lists
// and append to them, so a list shows which appends came before its read. The stream has the order
// of all appends to a key. The expiry of an item is an operation too, which no client calls and
// which happens at the item's deadline. An edge leads from an operation to one that must come after
// it. A cycle of edges means that no order of the operations explains the answers.

// transaction is a call on lists, by one client.
type transaction struct {
	id        int // also the element that it appends to lists
	client    int
	call, ret time.Time // ret without an answer: when the server was dead
	reads     []listRead
	appends   []string // keys
	outcome   outcome
}

type outcome int

const (
	committed outcome = iota
	aborted           // refused: no append may ever be seen
	unanswered
)

// listRead is the list that a transaction saw under a key; empty: no item.
type listRead struct {
	key  string
	list []int
}

// listChange is a stream record of a key: an append, or an expiry.
type listChange struct {
	by       int       // the transaction; 0: the service removed the item
	deadline time.Time // of the item after an append; zero: none
}

// clockSkew is how far the clocks of two processes on one machine may disagree.
const clockSkew = time.Millisecond

// node is an operation of the graph: a transaction, an expiry, or an instant between operations,
// which stands for the order of real time.
type node struct {
	transaction *transaction
	expires     string // the key, for an expiry
	last        int    // for an expiry: the last element
	call, ret   time.Time
	edges       []edge
}

// edge says that its node comes before another one.
type edge struct {
	to     int
	reason string // "": real time
}

type listGraph struct {
	nodes  []node
	wrong  []string
	places map[int]int // transactions by id
}

// checkLists returns a description of each violation of strict serializability in a history.
func checkLists(all []transaction, chains map[string][]listChange) []string {
	g := &listGraph{places: map[int]int{}}
	for i := range all {
		x := &all[i]
		if x.outcome == aborted {
			continue
		}
		g.places[x.id] = len(g.nodes)
		g.nodes = append(g.nodes, node{transaction: x, call: x.call, ret: x.ret})
	}
	transactions := len(g.nodes)
	found := map[appended]int{} // records
	keys := map[string]*listVersions{}
	for key, chain := range chains {
		keys[key] = g.versions(key, chain, found)
	}
	for _, n := range g.nodes[:transactions] {
		switch x := n.transaction; {
		case x.outcome == committed && x.found(found) != len(x.appends):
			g.complain("an acknowledged append is lost: %d records of %s", x.found(found), x)
		case x.outcome == unanswered && x.found(found) != 0 && x.found(found) != len(x.appends):
			g.complain("a transaction happened by half: %d records of %s", x.found(found), x)
		}
	}
	for i := range transactions {
		x := g.nodes[i].transaction
		if x.outcome == unanswered && x.found(found) == 0 {
			continue // it has not happened, so its condition need not have held
		}
		for _, read := range x.reads {
			v := keys[read.key]
			if v == nil {
				v = new(listVersions)
			}
			g.read(i, read, v)
		}
	}
	g.realTime()
	return append(g.wrong, g.cycles()...)
}

// appended is the element that a transaction appends to the list of a key.
type appended struct {
	id  int
	key string
}

// found returns how many of its appends have a record.
func (x *transaction) found(records map[appended]int) (n int) {
	for _, key := range x.appends {
		n += records[appended{x.id, key}]
	}
	return n
}

func (g *listGraph) complain(format string, args ...any) {
	g.wrong = append(g.wrong, fmt.Sprintf(format, args...))
}

func (g *listGraph) before(a, b int, reason string, args ...any) {
	if a != b {
		g.nodes[a].edges = append(g.nodes[a].edges, edge{b, fmt.Sprintf(reason, args...)})
	}
}

// listVersions is the history of one key: the version after each change.
type listVersions struct {
	nodes []int   // the operation that made it
	lists [][]int // nil: no item
}

// versions adds the expiries of a key to the graph, and the order of its changes.
func (g *listGraph) versions(key string, chain []listChange, found map[appended]int) *listVersions {
	v := new(listVersions)
	if n := len(chain); n > 0 && !chain[n-1].deadline.IsZero() {
		chain = append(slices.Clip(chain), listChange{}) // it expires, if it has not been removed yet
	}
	for i, c := range chain {
		made, list := 0, []int(nil)
		if i > 0 {
			list = v.lists[i-1]
		}
		if c.by == 0 {
			if i == 0 || chain[i-1].deadline.IsZero() {
				g.complain("%s: the service removed an item without a deadline; changes: %v", key, chain[:i+1])
				return v
			}
			at, written := chain[i-1].deadline, g.nodes[v.nodes[i-1]].ret
			made = len(g.nodes)
			g.nodes = append(g.nodes, node{expires: key, last: chain[i-1].by, call: at.Add(-clockSkew), ret: later(at, written).Add(clockSkew)})
			list = nil
		} else {
			place, ok := g.places[c.by]
			if !ok || !slices.Contains(g.nodes[place].transaction.appends, key) || found[appended{c.by, key}] > 0 {
				g.complain("%s: the append of %d was refused, repeated or never asked for", key, c.by)
				return v
			}
			if i > 0 && !chain[i-1].deadline.IsZero() { // also an item that did not expire was replaced before its deadline
				at := chain[i-1].deadline
				g.nodes = append(g.nodes, node{expires: key, last: chain[i-1].by, call: at.Add(-clockSkew), ret: at.Add(clockSkew)})
				g.before(place, len(g.nodes)-1, "the deadline of %s that it has replaced", key)
			}
			found[appended{c.by, key}]++
			made, list = place, append(slices.Clip(list), c.by)
		}
		if i > 0 {
			g.before(v.nodes[i-1], made, "the next change of %s", key)
		}
		v.nodes, v.lists = append(v.nodes, made), append(v.lists, list)
	}
	return v
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// read orders a read after the change that it saw and before the one that it did not see.
func (g *listGraph) read(reader int, read listRead, v *listVersions) {
	first, last := -2, -2 // the versions that it may have seen; -1: before all changes
	if len(read.list) > 0 {
		for i, list := range v.lists {
			if slices.Equal(list, read.list) {
				first, last = i, i
			}
		}
	} else {
		x := g.nodes[reader]
		for i := -1; i < len(v.lists); i++ {
			began, ended := true, true // whether real time lets the version exist during the read
			if i >= 0 {
				began = v.lists[i] == nil && !x.ret.Before(g.nodes[v.nodes[i]].call)
			}
			if i+1 < len(v.nodes) {
				ended = !g.nodes[v.nodes[i+1]].ret.Before(x.call)
			}
			if began && ended {
				if first == -2 {
					first = i
				}
				last = i
			}
		}
	}
	if first == -2 {
		g.complain("%s never was %v at a time of %s; versions: %v", read.key, read.list, g.nodes[reader].transaction, v.lists)
		return
	}
	if first >= 0 {
		g.before(v.nodes[first], reader, "which saw this change of %s", read.key)
	}
	if last+1 < len(v.nodes) {
		g.before(reader, v.nodes[last+1], "a change of %s that the read did not see", read.key)
	}
}

// realTime adds the edges of operations that returned before others were called. Instants stand
// between the two, so that there are few edges.
func (g *listGraph) realTime() {
	type moment struct {
		at   time.Time
		ends bool
		node int
	}
	var all []moment
	for i, n := range g.nodes {
		all = append(all, moment{n.call, false, i}, moment{n.ret, true, i})
	}
	slices.SortFunc(all, func(a, b moment) int {
		if c := a.at.Compare(b.at); c != 0 || a.ends == b.ends {
			return c
		}
		if a.ends {
			return 1 // what returns when another is called has not returned before it
		}
		return -1
	})
	instant := -1
	for _, m := range all {
		if !m.ends {
			if instant >= 0 {
				g.before(instant, m.node, "")
			}
			continue
		}
		g.nodes = append(g.nodes, node{})
		if instant >= 0 {
			g.before(instant, len(g.nodes)-1, "")
		}
		instant = len(g.nodes) - 1
		g.before(m.node, instant, "")
	}
}

// cycles describes a short cycle of each strongly connected component.
func (g *listGraph) cycles() (all []string) {
	for _, component := range g.components() {
		if len(component) > 1 {
			all = append(all, g.describe(component))
		}
	}
	return all
}

// components returns the strongly connected components, by Tarjan's algorithm without recursion.
func (g *listGraph) components() (all [][]int) {
	index, low := make([]int, len(g.nodes)), make([]int, len(g.nodes)) // from 1 on
	on := make([]bool, len(g.nodes))
	var stack []int
	type frame struct{ node, edge int }
	for root, next := 0, 1; root < len(g.nodes); root++ {
		if index[root] != 0 {
			continue
		}
		frames := []frame{{root, 0}}
		for len(frames) > 0 {
			f := &frames[len(frames)-1]
			if f.edge == 0 {
				index[f.node], low[f.node] = next, next
				next++
				stack, on[f.node] = append(stack, f.node), true
			}
			if f.edge < len(g.nodes[f.node].edges) {
				to := g.nodes[f.node].edges[f.edge].to
				f.edge++
				if index[to] == 0 {
					frames = append(frames, frame{to, 0})
				} else if on[to] {
					low[f.node] = min(low[f.node], index[to])
				}
				continue
			}
			n := f.node
			frames = frames[:len(frames)-1]
			if len(frames) > 0 {
				parent := frames[len(frames)-1].node
				low[parent] = min(low[parent], low[n])
			}
			if low[n] == index[n] {
				at := slices.Index(stack, n)
				all = append(all, slices.Clone(stack[at:]))
				for _, m := range stack[at:] {
					on[m] = false
				}
				stack = stack[:at]
			}
		}
	}
	return all
}

// describe returns the operations of a short cycle in a component.
func (g *listGraph) describe(component []int) string {
	inside := map[int]bool{}
	for _, n := range component {
		inside[n] = true
	}
	type step struct {
		from int
		edge edge
	}
	var shortest []step
	const starts = 200 // from so many operations a cycle is looked for
	tried := 0
	for _, start := range component {
		if g.nodes[start].instant() || tried == starts {
			continue
		}
		tried++
		// Operations cost one, and instants nothing: breadth first, with instants at the front.
		came, queue := map[int]step{}, []int{start}
		for len(queue) > 0 && came[start] == (step{}) {
			n := queue[0]
			queue = queue[1:]
			for _, e := range g.nodes[n].edges {
				if _, seen := came[e.to]; seen || !inside[e.to] {
					continue
				}
				came[e.to] = step{n, e}
				if g.nodes[e.to].instant() {
					queue = slices.Insert(queue, 0, e.to)
				} else {
					queue = append(queue, e.to)
				}
			}
		}
		var cycle []step
		for n := start; ; {
			s := came[n]
			cycle = append(cycle, s)
			if n = s.from; n == start {
				break
			}
		}
		slices.Reverse(cycle)
		if shortest == nil || operations(cycle, func(s step) bool { return !g.nodes[s.from].instant() }) <
			operations(shortest, func(s step) bool { return !g.nodes[s.from].instant() }) {
			shortest = cycle
		}
	}
	var text strings.Builder
	fmt.Fprintf(&text, "no order explains these operations, each of which comes before the next, and the last before the first:")
	for _, s := range shortest {
		if from := g.nodes[s.from]; !from.instant() {
			fmt.Fprintf(&text, "\n  %s\n    then %s", from, cmp.Or(s.edge.reason, "in real time: it had returned before the call of"))
		}
	}
	return text.String()
}

func operations[T any](all []T, is func(T) bool) (n int) {
	for _, one := range all {
		if is(one) {
			n++
		}
	}
	return n
}

func (n node) instant() bool { return n.transaction == nil && n.expires == "" }

func (n node) String() string {
	if n.transaction != nil {
		return n.transaction.String()
	}
	return fmt.Sprintf("%s expires with last element %d, or would, between %s and %s", n.expires, n.last, clockTime(n.call), clockTime(n.ret))
}

// clockTime shows a time of day to the microsecond.
func clockTime(t time.Time) string { return t.UTC().Format("15:04:05.000000") }

func (x *transaction) String() string {
	var does []string
	for _, r := range x.reads {
		does = append(does, fmt.Sprintf("reads %s %v", r.key, r.list))
	}
	for _, key := range x.appends {
		does = append(does, fmt.Sprintf("appends %d to %s", x.id, key))
	}
	return fmt.Sprintf("client %d, %s to %s, %s: %s", x.client, clockTime(x.call), clockTime(x.ret),
		[]string{"committed", "refused", "unanswered"}[x.outcome], strings.Join(does, ", "))
}
