package guard

import (
	"slices"
	"strings"
	"sync"

	"github.com/mayflydb/mayfly/guard/internal/strategy"
	"github.com/mayflydb/mayfly/guard/internal/table"
)

// troubles are the problems that do not end guard, since they may pass: one of a code at most.
type troubles struct {
	mu      sync.Mutex
	open    map[Code]*Problem // guarded by mu
	changed chan struct{}     // has an element when open has other codes; nil in tests
}

// troubled reports whether a problem of a code is open.
func (g *Guard) troubled(code Code) bool {
	g.troubles.mu.Lock()
	defer g.troubles.mu.Unlock()
	return g.troubles.open[code] != nil
}

// raise notes a problem that may pass. It warns only if no problem of the same code is open.
func (g *Guard) raise(p *Problem) {
	g.troubles.mu.Lock()
	_, already := g.troubles.open[p.Code]
	if g.troubles.open == nil {
		g.troubles.open = map[Code]*Problem{}
	}
	g.troubles.open[p.Code] = p
	g.troubles.mu.Unlock()
	if !already {
		strategy.Nudge(g.troubles.changed)
		g.log.Warn(p.Message, "table", g.o.Table, "problem", string(p.Code), "next", p.Next, "error", p.Err)
	}
}

// settle drops the problem of a code, if one is open.
func (g *Guard) settle(code table.Code) {
	g.troubles.mu.Lock()
	p := g.troubles.open[code]
	delete(g.troubles.open, code)
	g.troubles.mu.Unlock()
	if p != nil {
		strategy.Nudge(g.troubles.changed)
		g.log.Info("a problem has passed", "table", g.o.Table, "problem", string(code), "was", p.Message)
	}
}

// Problems returns the open problems, sorted by code. They do not end Run, but some or all removals
// wait until they pass: the endpoint's clock is not plausible, for example. A worker with open
// problems needs attention.
func (g *Guard) Problems() (open []*Problem) {
	g.troubles.mu.Lock()
	defer g.troubles.mu.Unlock()
	for _, p := range g.troubles.open {
		open = append(open, p)
	}
	slices.SortFunc(open, func(a, b *Problem) int { return strings.Compare(string(a.Code), string(b.Code)) })
	return open
}
