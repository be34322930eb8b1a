package lease

import (
	"strings"
	"testing"
)

// TestMixed: kinds take turns, and leases of one kind stay in their order, which each worker shuffles.
func TestMixed(t *testing.T) {
	for from, want := range map[string]string{
		"c a b":                 "c a b",
		"patrol/1 sweep/2":      "sweep/2 patrol/1",
		"p/2 p/1 s/1 s/2 p/3 x": "p/2 s/1 p/1 x s/2 p/3",
	} {
		got := mixed(strings.Fields(from), func(name string) string { return name })
		if strings.Join(got, " ") != want {
			t.Errorf("%s became %s, want %s", from, got, want)
		}
	}
}
