package invariant

import "testing"

// Every fault has a name of its own.
func TestFaultsHaveNames(t *testing.T) {
	seen := map[string]bool{}
	for f := range faults {
		if name := f.String(); name == "" || seen[name] {
			t.Errorf("fault %d is named %q", f, name)
		}
		seen[f.String()] = true
	}
	if got := faults.String(); got != "unknown fault" {
		t.Errorf("a fault out of range is named %q", got)
	}
}

// A check that holds says nothing in any build, and no fault happens by itself.
func TestQuietByDefault(t *testing.T) {
	Check(true, "never said")
	for f := range faults {
		if Injected(f) {
			t.Errorf("%v happens by itself", f)
		}
	}
}
