package program_test

import (
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/mayflydb/mayfly/internal/program"
	"github.com/mayflydb/mayfly/internal/program/full"
)

// TestMain runs the tests in a program with all parts, beside three programs: mayfly and
// mayfly-full, which have all parts, and mayfly-small, which has none, as the mayfly of a user.
func TestMain(m *testing.M) {
	program.SetParts(full.Parts())
	testscript.Main(m, map[string]func(){
		"mayfly":       func() { program.Main(full.Parts()) },
		"mayfly-full":  func() { program.Main(full.Parts()) },
		"mayfly-small": func() { program.Main(program.Parts{}) },
	})
}
