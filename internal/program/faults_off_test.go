//go:build !invariants

package program_test

func breakWith(string) { panic("faults need the build tag invariants") }
