// Package invariant holds the checks and the deliberate faults that exist only in builds with the tag invariants. Without the tag
// every function here is empty, or a constant false, and costs nothing.
//
// Check asserts what cannot happen unless the program is wrong. A Fault breaks one thing on purpose, so that the test of the law that
// forbids it can be shown to fail: a law whose test passes with its fault injected is not tested.
package invariant
