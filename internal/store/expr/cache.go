package expr

import (
	"strings"
	"sync"
)

// cache stores the trees of texts that parse without a problem. Applications send few texts, with
// ever new values for the placeholders, so nearly every lookup succeeds.
//
// It has two generations. A text found in the old one moves to the young one; when the young one is
// full, it replaces the old one. So the cache is bounded, and texts in use stay.
type cache[T any] struct {
	parse func(text string) (*T, error)

	mu struct {
		sync.RWMutex
		young, old map[string]*T
		cost       int // of young, by cacheCost
	}
}

// Bounds of one generation. A tree takes at most about sixty times the bytes of its text.
const (
	cacheEntries = 1024
	cacheBytes   = 4 << 20
)

func cacheCost(text string) int { return 256 + 60*len(text) }

var (
	conditions  = cache[conditionTree]{parse: parseCondition}
	updates     = cache[updateTree]{parse: parseUpdate}
	projections = cache[projectionTree]{parse: parseProjection}
)

// tree returns the parsed form of text. Callers share it. The error is a problem, and not cached.
func (c *cache[T]) tree(text string) (*T, error) {
	c.mu.RLock()
	t := c.mu.young[text]
	c.mu.RUnlock()
	if t != nil {
		return t, nil
	}
	return c.miss(text)
}

// miss takes the tree of a text from the old generation, or parses it, and stores it in the young
// one. It copies the text first: a tree refers to its text, which may be a part of a request body.
// Texts that are too long are not copied, since the parser refuses them.
func (c *cache[T]) miss(text string) (*T, error) {
	c.mu.RLock()
	t := c.mu.old[text]
	c.mu.RUnlock()
	if len(text) <= maxExpression {
		text = strings.Clone(text)
	}
	if t == nil {
		var err error
		if t, err = c.parse(text); err != nil {
			return nil, err
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mu.young == nil || len(c.mu.young) >= cacheEntries || c.mu.cost+cacheCost(text) > cacheBytes {
		c.mu.old, c.mu.young, c.mu.cost = c.mu.young, map[string]*T{}, 0
	}
	if c.mu.young[text] == nil {
		c.mu.young[text] = t
		c.mu.cost += cacheCost(text)
	}
	return t, nil
}
