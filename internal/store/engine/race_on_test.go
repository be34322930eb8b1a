//go:build race

package engine

// raceEnabled says that the race detector is on: long tests do less, because everything takes ten times as long.
const raceEnabled = true
