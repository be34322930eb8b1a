// Package descriptor divides the file descriptors of the process between the store's files, the
// server's connections and the rest. Without a division, a flood of connections would stop the store,
// because it could open no file.
package descriptor

// The parts of the limit. A process with at least 200 descriptors has room for all of them.
const (
	leastForStore = 80 // Pebble keeps at least 64 tables open
	mostForStore  = 1024
	leastForRest  = 24 // logs, listeners, the connections to targets
	mostForRest   = 256
	leastForPeers = 16
	mostForPeers  = 20_000 // idle ones take 8 KB each
)

// ForStore returns the number of files that the store may keep open.
func ForStore() int { return forStore(limit()) }

// ForConnections returns the number of connections that servers of this process may have.
func ForConnections() int { return forConnections(limit()) }

func forStore(limit int) int { return min(max(limit/4, leastForStore), mostForStore) }

func forConnections(limit int) int {
	rest := min(max(limit/8, leastForRest), mostForRest)
	return min(max(limit-forStore(limit)-rest, leastForPeers), mostForPeers)
}

// unlimited stands for a limit that is unknown or larger.
const unlimited = 64 << 10
