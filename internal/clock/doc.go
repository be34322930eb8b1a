// Package clock is the engine's time, and the only place besides main that asks the machine for it.
//
// A Clock runs with real time until it is frozen, set, advanced or rated. Three laws hold whatever is done to it:
//
//	Monotonic:    Millis never returns less than it did before, nor less than the floor raised
//	NeverEarly:   Sleep(until) does not return as due while Millis() < until
//	IdleIsFree:   a sleeper owns at most one timer, for the whole of what remains; nothing ticks
//
// An instant is a whole number of milliseconds since the Unix epoch, rounded down, so that a deadline in milliseconds is reached
// exactly when its millisecond begins.
//
// The clock follows the wall clock, not the monotonic one, because instants are stored and compared with those of other processes. While the wall
// clock lies behind what has been told already, the clock stands still; State says so.
//
// Stopwatch, AfterFunc and Pause are about real time and have nothing to do with a Clock: leases, network timeouts and disk windows
// go on while a clock is frozen.
package clock
