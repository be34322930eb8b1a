package constraint

import (
	"strings"
	"testing"
)

// Names have DynamoDB's characters and lengths.
func TestName(t *testing.T) {
	for name, want := range map[string][2]bool{ // of a declaration, of a table
		"": {}, "a": {true, false}, "ab": {true, false}, "abc": {true, true}, "aZ09_-.": {true, true}, "a b": {}, "a/b": {}, "ä": {}, "abc\n": {}, "abc\x00": {},
		strings.Repeat("a", 64): {true, true}, strings.Repeat("a", 65): {false, true}, strings.Repeat("a", 255): {false, true}, strings.Repeat("a", 256): {},
	} {
		if got := [2]bool{IsName(name), IsTable(name)}; got != want {
			t.Errorf("%q: %v, want %v", name, got, want)
		}
	}
}
