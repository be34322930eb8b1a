//go:build invariants

package due

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/mayflydb/mayfly/internal/invariant"
)

// faultEnv names the fault with which the test binary runs a law's test.
const faultEnv = "DUE_TEST_FAULT"

// lawOf names the test that must fail with a fault injected.
var lawOf = map[invariant.Fault]string{
	invariant.FireEarly: "TestNeverEarly",
	invariant.BusyLoop:  "TestIdleIsFree",
	invariant.LoseWake:  "TestNoneLost",
	invariant.HogQueue:  "TestFair",
}

// unnoticed is the last line of a run in which no check has noticed the fault.
const unnoticed = "no check has noticed the fault"

func TestMain(m *testing.M) {
	for fault := range lawOf {
		if fault.String() == os.Getenv(faultEnv) {
			invariant.Inject(fault)
			code := m.Run()
			if !invariant.Noticed(fault) {
				fmt.Println(unnoticed)
			}
			os.Exit(code)
		}
	}
	os.Exit(m.Run())
}

// Each law's test fails when the law is broken on purpose, and a check notices the fault too.
func TestFaultsAreFound(t *testing.T) {
	if os.Getenv(faultEnv) != "" {
		t.Skip("inside a run with a fault")
	}
	for fault, law := range lawOf {
		t.Run(fault.String(), func(t *testing.T) {
			cmd := exec.Command(os.Args[0], "-test.run=^"+law+"$")
			cmd.Env = append(os.Environ(), faultEnv+"="+fault.String())
			out, err := cmd.CombinedOutput()
			if err == nil || strings.Contains(string(out), unnoticed) {
				t.Errorf("%s with %v injected: %v\n%s", law, fault, err, out)
			}
		})
	}
}
