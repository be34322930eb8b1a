package expr

import (
	"strings"
	"sync"
)

// cache keeps the trees of texts that parsed without a problem. Applications send few texts, with ever new values behind
// the placeholders, so nearly every parse is found here.
//
// It has two generations. What is found in the old one moves to the young one; when the young one is full it becomes the
// old one, and what was in the old one is forgotten. So it is bounded, and texts in use stay.
type cache[T any] struct {
	parse func(text string) (*T, error)

	mu struct {
		sync.RWMutex
		young, old map[string]*T
		cost       int // of young, as cacheCost counts
	}
}

// Bounds of one generation. A tree takes some sixty times as many bytes as its text has, at the most.
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

// tree gives the parsed form of text.
func (c *cache[T]) tree(text string) (*T, error) {
	c.mu.RLock()
	t := c.mu.young[text]
	c.mu.RUnlock()
	if t != nil {
		return t, nil
	}
	return c.miss(text)
}

// miss finds text in the old generation or parses it. The text is copied first: a tree refers to its text, which may
// be a part of a request body.
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
