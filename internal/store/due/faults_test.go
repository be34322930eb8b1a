//go:build invariants

package due

import (
	"os"
	"os/exec"
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

func TestMain(m *testing.M) {
	for fault := range lawOf {
		if fault.String() == os.Getenv(faultEnv) {
			invariant.Inject(fault)
		}
	}
	os.Exit(m.Run())
}

// Each law's test fails when the law is broken on purpose.
func TestFaultsAreFound(t *testing.T) {
	if os.Getenv(faultEnv) != "" {
		t.Skip("inside a run with a fault")
	}
	for fault, law := range lawOf {
		t.Run(fault.String(), func(t *testing.T) {
			cmd := exec.Command(os.Args[0], "-test.run=^"+law+"$")
			cmd.Env = append(os.Environ(), faultEnv+"="+fault.String())
			if out, err := cmd.CombinedOutput(); err == nil {
				t.Errorf("%s passes with %v injected:\n%s", law, fault, out)
			}
		})
	}
}
