package descriptor

import "testing"

// The parts fit into the limit, and each has enough.
func TestParts(t *testing.T) {
	for _, c := range []struct{ limit, store, connections int }{
		{64, 80, 16}, {200, 80, 95}, {256, 80, 144}, {1024, 256, 640}, {4096, 1024, 2816}, {20_000, 1024, 18_720}, {unlimited, 1024, 20_000},
	} {
		if s, n := forStore(c.limit), forConnections(c.limit); s != c.store || n != c.connections {
			t.Errorf("of %d: %d files and %d connections, not %d and %d", c.limit, s, n, c.store, c.connections)
		} else if c.limit >= 200 && s+n+leastForRest > c.limit {
			t.Errorf("of %d: %d files and %d connections are too many", c.limit, s, n)
		}
	}
	if ForStore() < leastForStore || ForConnections() < leastForPeers {
		t.Errorf("here: %d files and %d connections", ForStore(), ForConnections())
	}
}
