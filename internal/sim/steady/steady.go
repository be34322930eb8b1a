// Package steady runs a Go program so that it does the same each time.
//
// Four things make two runs of a Go program differ although it asks for no time and no input: the
// random bytes from which the runtime draws (the order of maps, the choice of select), addresses in
// memory, the clock (the runtime's monitor preempts goroutines by it, and locks are handed over), and
// the order in which the kernel runs its threads. [Run] fixes all four by the means of a debugger. It
// changes nothing in the program's file and needs no change of Go.
//
// Two runs can still differ by what they read of the machine: the time outside of a bubble of
// testing/synctest, random numbers of crypto/rand, a network. The garbage collector is off; a
// program that needs it calls runtime.GC.
package steady

import "errors"

// ErrRefused is in the error of [Run] if the machine does not let one program control another: on
// systems other than Linux on amd64, and where ptrace is forbidden.
var ErrRefused = errors.New("the order of goroutines cannot be fixed here")
