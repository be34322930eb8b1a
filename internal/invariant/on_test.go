//go:build invariants

package invariant

import "testing"

// A violated check panics with its message.
func TestCheckPanics(t *testing.T) {
	defer func() {
		if got := recover(); got != "invariant violated: 1 is not 2" {
			t.Errorf("panicked with %v", got)
		}
	}()
	Check(false, "%d is not %d", 1, 2)
}

// A fault happens until every injection of it is restored.
func TestInject(t *testing.T) {
	first, second := Inject(KeepMark), Inject(KeepMark)
	first()
	if !Injected(KeepMark) || Injected(SkipRecheck) {
		t.Error("KeepMark, and it alone, should happen")
	}
	second()
	if Injected(KeepMark) {
		t.Error("KeepMark happens after it was restored")
	}
}
