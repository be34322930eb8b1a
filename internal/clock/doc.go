// Package clock is the engine's time, and the only place besides main that reads the machine's
// clock.
//
// A Clock runs with real time until it is frozen, set, advanced or rated. Three laws always hold:
//
//	Monotonic:    Millis never returns less than it did before, nor less than the floor raised
//	NeverEarly:   Sleep(until) does not return as due while Millis() < until
//	IdleIsFree:   a sleeper owns at most one timer, for the whole remaining time; nothing ticks
//
// An instant is a whole number of milliseconds since the Unix epoch, rounded down, so a clock
// reaches a deadline in milliseconds exactly when its millisecond begins.
//
// The clock follows the wall clock, not the monotonic one, because instants are stored and compared
// with those of other processes. While the wall clock lies behind an instant already shown, the
// clock stands still, and State reports it.
//
// Stopwatch, AfterFunc and Pause measure real time, independent of any Clock: leases, network
// timeouts and disk windows continue while a clock is frozen.
package clock
