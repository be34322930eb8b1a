package httploop

import (
	"cmp"
	"context"
	"crypto/tls"
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mayflydb/mayfly/internal/clock"
	"github.com/mayflydb/mayfly/internal/front/wire"
)

// Connections limits the connections of the servers that share it. When there are as many as may
// be, a new one takes the place of a silent one: one whose client has sent nothing for a second, or no
// whole request. Connections without a successful answer go first, then the longest silent ones.
// Without a silent one, the new connection waits. The address of another machine (in IPv6 its
// network, of 64 bits) has at most three quarters of the places, so that others can connect.
type Connections struct {
	limit int
	// see the constants of these names; tests have fewer
	handedMost, secureMost int
	headsMost              int64
	closed                 atomic.Int64 // silent ones, for the place
	refused                atomic.Int64 // because of their address's share
	// until then no address with a full share is searched, in Unix nanoseconds; there is at most one
	paused  atomic.Int64
	heads   atomic.Int64  // their estimated bytes: see headsMost
	handing chan struct{} // has an element while a connection looks for a place in net/http
	freed   chan struct{}

	mu struct {
		sync.Mutex
		peers     map[*peer]struct{}
		addresses map[string]int      // connections by the client's address
		http2     map[*tls.Conn]*peer // those that net/http knows by another name
		handed    int                 // connections of net/http
		secure    int                 // connections over TLS
	}
}

// NewConnections returns a limit of so many connections, at least one.
func NewConnections(limit int) *Connections {
	c := &Connections{limit: max(limit, 1), handedMost: handedMost, secureMost: secureMost, headsMost: headsMost, freed: make(chan struct{}, 1), handing: make(chan struct{}, 1)}
	c.mu.peers, c.mu.addresses, c.mu.http2 = map[*peer]struct{}{}, map[string]int{}, map[*tls.Conn]*peer{}
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

// ClosedSilent returns the number of silent connections that were closed for the places of others.
func (c *Connections) ClosedSilent() int64 { return c.closed.Load() }

// Refused returns the number of connections that were closed at once because their client had too
// many.
func (c *Connections) Refused() int64 { return c.refused.Load() }

// The states of a connection. The server may close one that waits or receives at any moment.
const (
	waiting   int32 = iota // for the first byte of a request
	receiving              // the rest of a request
	busy                   // with a whole request
	closed                 // by the server
)

// searchPause follows a search without success among the connections of an address with a full share.
// A search looks at all connections, which takes milliseconds if there are tens of thousands. If every
// refused connection began one, no others could be accepted.
const searchPause = 100 * time.Millisecond

// silentFor is the time after which a connection that waits or receives counts as silent.
const silentFor = time.Second

// peer is an accepted connection with its place. Closing it frees the place.
type peer struct {
	net.Conn
	secure *tls.Conn // Conn, if that is one
	of     *Connections
	server *server
	from   string // the client: its address without the port, or of IPv6 its network
	here   bool   // the client is on this machine
	state  atomic.Int32
	// when it was accepted, last answered, or began to send a request in parts, in Unix nanoseconds
	since  atomic.Int64
	served atomic.Bool // a request has succeeded
	handed atomic.Bool // net/http has it
	ended  sync.Once
}

func newPeer(s *server, nc net.Conn) *peer {
	p := &peer{Conn: nc, of: s.Connections, server: s, from: clientAt(nc.RemoteAddr())}
	p.secure, _ = nc.(*tls.Conn)
	if at := nc.RemoteAddr(); at != nil {
		p.here = at.Network() == "unix" || wire.IsLocal(at.String())
	}
	return p
}

// clientAt returns the client of an address, never "": of TCP the IP address, and of IPv6 only its
// network, in which one machine may use any of 2^64 addresses.
func clientAt(remote net.Addr) string {
	if remote == nil {
		return "unknown"
	}
	at, err := netip.ParseAddrPort(remote.String())
	switch ip := at.Addr().Unmap(); {
	case err != nil:
		host, _, _ := net.SplitHostPort(remote.String())
		return cmp.Or(host, remote.String(), remote.Network()) // such as "unix"
	case ip.Is6():
		network, _ := ip.Prefix(64) // without its zone; there is no error for 64 bits
		return network.String()
	default:
		return ip.String()
	}
}

// Close closes the connection and frees its place. Over TLS it first says goodbye, which takes 5
// seconds if the client does not read.
func (p *peer) Close() error {
	defer p.leave()
	return p.Conn.Close()
}

// cut closes the connection and frees its place, without a goodbye and so without waiting.
func (p *peer) cut() {
	p.transport().Close()
	p.leave()
}

// transport returns the connection below TLS, or the connection itself.
func (p *peer) transport() net.Conn {
	if p.secure != nil {
		return p.secure.NetConn()
	}
	return p.Conn
}

func (p *peer) leave() { p.ended.Do(func() { p.of.remove(p) }) }

// answered notes an answer, and whether it was a success.
func (p *peer) answered(now time.Time, success bool) {
	p.since.Store(now.UnixNano())
	if success && !p.served.Load() {
		p.served.Store(true)
	}
}

// closeIdle closes the connection if it waits for a request.
func (p *peer) closeIdle() bool { return p.closeIf(waiting) }

// closeSilent closes the connection if it waits for a request, or for the rest of one.
func (p *peer) closeSilent() bool { return p.closeIf(waiting) || p.closeIf(receiving) }

func (p *peer) closeIf(state int32) bool {
	ours := p.state.CompareAndSwap(state, closed)
	if ours {
		p.cut()
	}
	return ours
}

// place finds a place for a connection, and waits until there is one. It reports false if the
// connection's address has too many, or if ctx is done before.
func (c *Connections) place(ctx context.Context, p *peer) bool {
	for {
		placed, tooMany, tooManySecure := c.tryPlace(p)
		now := p.server.Now()
		searched := !tooMany || now.UnixNano() >= c.paused.Load()
		switch {
		case placed:
			return true
		case searched && c.closeSilent(now, func(other *peer) bool {
			return (!tooMany || other.from == p.from) && (!tooManySecure || other.secure != nil)
		}) > 0:
		case tooMany:
			if searched {
				c.paused.Store(now.Add(searchPause).UnixNano())
			}
			c.refused.Add(1)
			return false
		case ctx.Err() != nil:
			return false
		default:
			clock.Pause(searchPause, c.freed) // others may have become silent then
		}
	}
}

// secureMost is the most connections over TLS: one takes 30 KB, others 8.
const secureMost = 8192

// tryPlace puts a connection in a free place. tooMany reports that its address has used up its share,
// tooManySecure that there are secureMost.
func (c *Connections) tryPlace(p *peer) (placed, tooMany, tooManySecure bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	places := c.limit
	if p.secure != nil {
		places = min(places, c.secureMost)
	}
	if !p.here && c.mu.addresses[p.from] >= places-places/4 {
		return false, true, false
	}
	if p.secure != nil && c.mu.secure >= c.secureMost {
		return false, false, true
	}
	if len(c.mu.peers) >= c.limit {
		return false, false, false
	}
	if p.secure != nil {
		c.mu.secure++
	}
	p.since.Store(p.server.Now().UnixNano())
	c.mu.peers[p] = struct{}{}
	c.mu.addresses[p.from]++
	return true, false, false
}

// closeSilent closes silent connections, of those that a condition selects, and returns how many. It
// closes several at once, since it has to look at all.
func (c *Connections) closeSilent(now time.Time, of func(*peer) bool) (n int) {
	latest := now.Add(-silentFor).UnixNano()
	var silent []*peer
	c.each(func(p *peer) {
		if p.state.Load() <= receiving && p.since.Load() <= latest && of(p) {
			silent = append(silent, p)
		}
	})
	slices.SortFunc(silent, func(a, b *peer) int {
		if a.served.Load() != b.served.Load() {
			if b.served.Load() {
				return -1
			}
			return 1
		}
		return cmp.Compare(a.since.Load(), b.since.Load())
	})
	for _, p := range silent {
		if p.closeSilent() {
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
	if _, placed := c.mu.peers[p]; placed { // not closed meanwhile
		c.mu.http2[p.secure] = p
	}
}

// find returns the place of a connection of net/http, or nil.
func (c *Connections) find(nc net.Conn) *peer {
	if handed, ok := nc.(interface{ place() *peer }); ok {
		return handed.place()
	}
	secure, _ := nc.(*tls.Conn)
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.mu.http2[secure]
}

func (c *Connections) remove(p *peer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, placed := c.mu.peers[p]; !placed {
		return
	}
	delete(c.mu.peers, p)
	delete(c.mu.http2, p.secure)
	if p.handed.Load() {
		c.mu.handed--
	}
	if p.secure != nil {
		c.mu.secure--
	}
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
