//go:build !race

package engine

// raceEnabled reports whether the race detector is on. Long tests then do less, because everything
// takes ten times as long.
const raceEnabled = false
