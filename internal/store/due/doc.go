// Package due drains entries when they are due: one queue over many sources, each with entries
// ordered by instant.
//
// The queue knows only a source's head, the instant at which its earliest entry may be due, and
// sleeps until the least of all heads. A source lowers its head with Wake when an earlier entry
// arrives. When the head passes, the queue calls Drain, which removes one bounded slice and returns
// the next head.
//
//	NeverEarly:  a source is not drained while now is before its head
//	NoneLost:    an entry whose Wake came during a Drain is drained at its instant, regardless of that Drain's result
//	Fair:        between two slices of one source every other due source gets one
//	IdleIsFree:  while no head passes, Run sleeps with one timer or none
//
// A head may be too early, when its entry was removed or moved. A Drain then finds nothing and
// returns the right head. A head must never be too late. Instants are the clock's milliseconds
// since the Unix epoch.
package due
