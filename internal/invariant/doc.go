// Package invariant holds the checks and the deliberate faults of builds with the tag invariants.
// Without the tag every function is empty, or a constant false, and costs nothing.
//
// Check asserts a condition that only a bug can violate. A Fault breaks one thing on purpose, to
// show that the test of the violated law fails: a law whose test passes with its fault injected is
// not tested.
package invariant
