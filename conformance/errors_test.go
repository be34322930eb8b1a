package conformance

import "testing"

// TestMatches checks the patterns of expected messages: each … stands for any text.
func TestMatches(t *testing.T) {
	for _, row := range []struct {
		text, pattern string
		want          bool
	}{
		{"", "", true}, {"a", "", false}, {"abc", "abc", true}, {"abc", "ab", false},
		{"abc", "…", true}, {"abc", "a…", true}, {"abc", "…c", true}, {"abc", "a…c", true}, {"abc", "a…b", false}, {"abc", "b…", false},
		{"abc", "a…b…c", true}, {"abcabc", "a…ca…c", true}, {"ab", "ab…b", false}, {"a; b", "…; …", true},
	} {
		if got := matches(row.text, row.pattern); got != row.want {
			t.Errorf("matches(%q, %q) = %v", row.text, row.pattern, got)
		}
	}
}
