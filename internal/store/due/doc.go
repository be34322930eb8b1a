// Package due runs whatever is due when it is due: one queue over many sources, each of which holds entries ordered by instant.
//
// The queue knows of a source only its head, the instant at which its earliest entry may be due. Sleeping until the least of all heads
// is the whole of its waiting. A source lowers its head with Wake when something sooner arrives, and learns of a passed head by Drain, which
// removes one bounded slice and answers with the next head.
//
//	NeverEarly:  a source is not drained while now is before its head
//	NoneLost:    an entry whose Wake came during a Drain is drained at its instant, whatever that Drain answers
//	Fair:        between two slices of one source every other due source gets one
//	IdleIsFree:  while no head passes, Run sleeps with one timer or none
//
// A head may be too early, when its entry was taken away or moved; then a Drain finds nothing and gives the right one. It must never be too late.
// Instants are in milliseconds since the Unix epoch, as the clock tells them.
package due
