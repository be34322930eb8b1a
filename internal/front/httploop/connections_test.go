package httploop

import (
	"context"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// newPlaces returns a limit of two connections, which both have a request, and a function that
// starts to place a further one.
func newPlaces(t *testing.T) (first, second *peer, placing func(from string), placed *atomic.Int64) {
	t.Helper()
	c, placed := NewConnections(2), new(atomic.Int64)
	s := &server{Options: Options{Connections: c, Now: time.Now}}
	busyPeer := func(from string) *peer {
		_, theirs := net.Pipe()
		p := newPeer(s, addressed{theirs, from})
		p.state.Store(busy)
		return p
	}
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	placing = func(from string) {
		p := busyPeer(from)
		go func() {
			if c.place(ctx, p) {
				placed.Add(1)
			}
		}()
		synctest.Wait()
	}
	first, second = busyPeer("a"), busyPeer("b")
	if !c.place(ctx, first) || !c.place(ctx, second) {
		t.Fatal("no place")
	}
	return first, second, placing, placed
}

// Two listeners that share the places may wait at once. Each place that is free, and each connection
// that is silent, serves one of them.
func TestTwoListenersWait(t *testing.T) {
	ends := map[string]func(*peer){"closed": func(p *peer) { p.Close() }, "idle": func(p *peer) { p.state.Store(waiting) }}
	for one, endFirst := range ends {
		for other, endSecond := range ends {
			for _, pause := range []func(){func() {}, synctest.Wait} {
				synctest.Test(t, func(t *testing.T) {
					first, second, placing, placed := newPlaces(t)
					placing("c")
					placing("d")
					endFirst(first)
					pause()
					endSecond(second)
					time.Sleep(2 * silentFor)
					if placed.Load() != 2 {
						t.Errorf("%s and %s: %d of 2 are placed", one, other, placed.Load())
					}
				})
			}
		}
	}
}

// unhashable is a connection of a type that is no key of a map.
type unhashable struct {
	net.Conn
	_ func()
}

// A listener's connections may be of any type.
func TestUnhashableConnection(t *testing.T) {
	_, theirs := net.Pipe()
	c := NewConnections(1)
	p := newPeer(&server{Options: Options{Connections: c, Now: time.Now}}, unhashable{Conn: theirs})
	if !c.place(t.Context(), p) || c.find(unhashable{}) != nil || p.Close() != nil || c.Open() != 0 {
		t.Error("no place, or it was not freed")
	}
}

func TestClientAt(t *testing.T) {
	for _, c := range []struct {
		remote net.Addr
		want   string
	}{
		{&net.TCPAddr{IP: net.IPv4(10, 0, 0, 1), Port: 5}, "10.0.0.1"},
		{&net.TCPAddr{IP: net.ParseIP("::ffff:10.0.0.1"), Port: 5}, "10.0.0.1"},
		{&net.TCPAddr{IP: net.ParseIP("2001:db8::1:2:3"), Port: 5}, "2001:db8::/64"},
		{&net.TCPAddr{IP: net.ParseIP("2001:db8::9"), Port: 6}, "2001:db8::/64"},
		{&net.TCPAddr{IP: net.ParseIP("fe80::1"), Zone: "eth0", Port: 5}, "fe80::/64"},
		{address("name"), "name"},
		{&net.UnixAddr{Net: "unix"}, "unix"},
		{&net.UnixAddr{Net: "unix", Name: "@"}, "@"},
		{nil, "unknown"},
	} {
		if got := clientAt(c.remote); got != c.want {
			t.Errorf("%v: %q, not %q", c.remote, got, c.want)
		}
	}
}
