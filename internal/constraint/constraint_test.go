package constraint

import (
	"strings"
	"testing"
)

// Each constraint has its words, and several problems make one message.
func TestWords(t *testing.T) {
	tests := []struct {
		find func(p *Problems)
		want string
	}{
		{func(*Problems) {}, ""},
		{func(p *Problems) { p.Required("target.arn", false) }, "1 validation error detected: Value null at 'target.arn' failed to satisfy constraint: Member must not be null"},
		{func(p *Problems) { p.Length("name", "äöü", 1, 3) }, ""},
		{func(p *Problems) { p.Length("name", "", 1, 3) }, "1 validation error detected: Value '' at 'name' failed to satisfy constraint: Member must have length greater than or equal to 1"},
		{func(p *Problems) { p.Length("name", "abcd", 1, 3) }, "1 validation error detected: Value 'abcd' at 'name' failed to satisfy constraint: Member must have length less than or equal to 3"},
		{func(p *Problems) { p.Enum("state", "ON", []string{"ENABLED", "DISABLED"}) }, "1 validation error detected: Value 'ON' at 'state' failed to satisfy constraint: Member must satisfy enum value set: [ENABLED, DISABLED]"},
		{func(p *Problems) { p.Least("n", 0, 1); p.Most("n", 0, 5) }, "1 validation error detected: Value '0' at 'n' failed to satisfy constraint: Member must have value greater than or equal to 1"},
		{func(p *Problems) { p.Least("n", 6, 1); p.Most("n", 6, 5) }, "1 validation error detected: Value '6' at 'n' failed to satisfy constraint: Member must have value less than or equal to 5"},
		{func(p *Problems) { p.Pattern("name", "a b", "[a-z]+") }, "1 validation error detected: Value 'a b' at 'name' failed to satisfy constraint: Member must satisfy regular expression pattern: [a-z]+"},
		{func(p *Problems) { p.Count("keys", 3, 1, 2, func() string { return List([]string{"a", "b", "c"}) }) },
			"1 validation error detected: Value '[a, b, c]' at 'keys' failed to satisfy constraint: Member must have length less than or equal to 2"},
		{func(p *Problems) { p.Null("a"); p.Null("b") }, "2 validation errors detected: Value null at 'a' failed to satisfy constraint: Member must not be null; " +
			"Value null at 'b' failed to satisfy constraint: Member must not be null"},
	}
	for _, tt := range tests {
		var p Problems
		tt.find(&p)
		if got := p.Message(); got != tt.want || p.Any() != (tt.want != "") {
			t.Errorf("got  %q\nwant %q", got, tt.want)
		}
	}
}

// A message names at most ten problems.
func TestMax(t *testing.T) {
	var p Problems
	for range 12 {
		p.Null("x")
	}
	if got := p.Message(); !strings.HasPrefix(got, "10 validation errors detected: ") || strings.Count(got, "; ") != 9 {
		t.Error(got)
	}
}
