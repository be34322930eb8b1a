package httploop

import (
	"context"
	"net"
	"slices"
	"sync"
	"sync/atomic"
)

// Connections limits the connections of the servers that share it. When there are as many as may
// be, a new one takes the place of the longest idle. Without an idle one it waits. A client's address
// has at most three quarters of the places, so that others can connect.
type Connections struct {
	limit   int
	closed  atomic.Int64 // idle ones, for the place
	refused atomic.Int64 // because of their address's share
	crowded atomic.Bool  // a new connection waits for a place
	freed   chan struct{}

	mu struct {
		sync.Mutex
		peers     map[*peer]struct{}
		addresses map[string]int     // connections by the client's address
		tls       map[net.Conn]*peer // those that net/http knows by another name
	}
}

// NewConnections returns a limit of so many connections, at least one.
func NewConnections(limit int) *Connections {
	c := &Connections{limit: max(limit, 1), freed: make(chan struct{}, 1)}
	c.mu.peers, c.mu.addresses, c.mu.tls = map[*peer]struct{}{}, map[string]int{}, map[net.Conn]*peer{}
	return c
}

// Limit returns the most connections at once.
func (c *Connections) Limit() int { return c.limit }

// Open returns the number of connections at present.
func (c *Connections) Open() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.mu.peers)
}

// ClosedIdle returns the number of idle connections that were closed for the places of others.
func (c *Connections) ClosedIdle() int64 { return c.closed.Load() }

// Refused returns the number of connections that were closed at once because their client had too
// many.
func (c *Connections) Refused() int64 { return c.refused.Load() }

// The states of a connection.
const (
	waiting int32 = iota // for the first byte of a request: the server may close it at any moment
	busy                 // with a request
	closed               // while waiting, by the server
)

// peer is an accepted connection with its place. Closing it frees the place.
type peer struct {
	net.Conn
	of     *Connections
	server *server
	from   string // the client's address, without its port
	state  atomic.Int32
	since  atomic.Int64 // when it was accepted or last answered, in Unix nanoseconds
	ended  sync.Once
}

func newPeer(s *server, nc net.Conn) *peer {
	p := &peer{Conn: nc, of: s.Connections, server: s}
	if at := nc.RemoteAddr(); at != nil {
		if p.from, _, _ = net.SplitHostPort(at.String()); p.from == "" {
			p.from = at.String()
		}
	}
	return p
}

// Close closes the connection and frees its place.
func (p *peer) Close() error {
	p.leave()
	return p.Conn.Close()
}

func (p *peer) leave() { p.ended.Do(func() { p.of.remove(p) }) }

// rest marks the connection as waiting for a request.
func (p *peer) rest() {
	p.state.Store(waiting)
	if p.of.crowded.Load() {
		p.of.signal()
	}
}

// closeIdle closes the connection if it waits for a request.
func (p *peer) closeIdle() bool {
	idle := p.state.CompareAndSwap(waiting, closed)
	if idle {
		p.Close()
	}
	return idle
}

// place finds a place for a connection. It reports false if the connection's address has too many, or
// if ctx is done before there is a place.
func (c *Connections) place(ctx context.Context, p *peer) bool {
	for {
		placed, tooMany := c.tryPlace(p)
		if placed {
			return true
		}
		among := ""
		if tooMany {
			among = p.from
		}
		switch {
		case c.closeLongestIdle(among) > 0:
			continue
		case tooMany:
			c.refused.Add(1)
			return false
		}
		c.crowded.Store(true)
		if placed, _ = c.tryPlace(p); placed { // freed before crowded was set
			c.crowded.Store(false)
			return true
		}
		select {
		case <-c.freed:
			c.crowded.Store(false)
		case <-ctx.Done():
			return false
		}
	}
}

// tryPlace puts a connection in a free place. tooMany reports that its address has used up its share.
func (c *Connections) tryPlace(p *peer) (placed, tooMany bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mu.addresses[p.from] >= c.limit-c.limit/4 {
		return false, true
	}
	if len(c.mu.peers) >= c.limit {
		return false, false
	}
	c.mu.peers[p] = struct{}{}
	c.mu.addresses[p.from]++
	return true, false
}

// closeLongestIdle closes the connections that have been idle longest, of an address or of all, and
// returns how many it closed. It closes several at once, since it has to look at all.
func (c *Connections) closeLongestIdle(from string) (n int) {
	var idle []*peer
	c.each(func(p *peer) {
		if (from == "" || p.from == from) && p.state.Load() == waiting {
			idle = append(idle, p)
		}
	})
	slices.SortFunc(idle, func(a, b *peer) int { return int(min(max(a.since.Load()-b.since.Load(), -1), 1)) })
	for _, p := range idle {
		if p.closeIdle() {
			n++
		}
		if n > c.limit/64 {
			break
		}
	}
	c.closed.Add(int64(n))
	return n
}

// each calls f for every connection. It holds the lock meanwhile, so f must neither wait nor close
// the connection.
func (c *Connections) each(f func(*peer)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for p := range c.mu.peers {
		f(p)
	}
}

// rename notes that net/http knows a connection by its own name, without the peer.
func (c *Connections) rename(p *peer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mu.tls[p.Conn] = p
}

// find returns the place of a connection of net/http, or nil.
func (c *Connections) find(nc net.Conn) *peer {
	if handed, ok := nc.(*handedConn); ok {
		return handed.peer
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.mu.tls[nc]
}

func (c *Connections) remove(p *peer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, placed := c.mu.peers[p]; !placed {
		return
	}
	delete(c.mu.peers, p)
	delete(c.mu.tls, p.Conn)
	if c.mu.addresses[p.from]--; c.mu.addresses[p.from] == 0 {
		delete(c.mu.addresses, p.from)
	}
	c.signal()
}

// signal wakes the connection that waits for a place.
func (c *Connections) signal() {
	select {
	case c.freed <- struct{}{}:
	default:
	}
}
