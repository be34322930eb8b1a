package program_test

import (
	"flag"
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/mayflydb/mayfly/internal/program"
	"github.com/mayflydb/mayfly/internal/program/full"
	"github.com/mayflydb/mayfly/internal/testkit"
)

// TestMain runs the tests in a program with all parts, beside three programs: mayfly and
// mayfly-full, which have all parts, and mayfly-small, which has none, as the mayfly of a user. Scripts
// have fetch, too, and TestFlood has attack.
//
// A build with the tag invariants runs mayfly with a fault if BREAK_WITH names one, which shows that
// a test notices it:
//
//	BREAK_WITH=ShowExpired go test -tags invariants ./internal/program -run 'TestHistories$'
func TestMain(m *testing.M) {
	program.SetParts(full.Parts())
	testscript.Main(tests{m}, map[string]func(){
		"mayfly": func() {
			if fault := os.Getenv("BREAK_WITH"); fault != "" {
				breakWith(fault)
			}
			program.Main(full.Parts())
		},
		"mayfly-full":  func() { program.Main(full.Parts()) },
		"mayfly-small": func() { program.Main(program.Parts{}) },
		"fetch":        program.Fetch,
		"attack":       program.Attack,
	})
}

// tests runs four tests at once: most of their time is waiting, and with two at once two cores are
// idle half of it.
type tests struct{ *testing.M }

func (m tests) Run() int {
	flag.Parse()
	testkit.AtOnce(4)
	return m.M.Run()
}
