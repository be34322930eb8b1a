package policy

import (
	"strings"
	"testing"
)

// TestLimits: a policy at a limit is accepted, and one beyond it is refused.
func TestLimits(t *testing.T) {
	const allow = `{"Effect": "Allow", "Action": "*", "Resource": "*"}`
	statements := func(n int) string {
		return `{"Statement": [` + strings.TrimSuffix(strings.Repeat(allow+",", n), ",") + `]}`
	}
	actions := func(n int) string { // with the resource, n + 1 patterns
		return `{"Statement": {"Effect": "Allow", "Resource": "*", "Action": [` + strings.TrimSuffix(strings.Repeat(`"a:*",`, n), ",") + `]}}`
	}
	floating := func(n int) string {
		return `{"Version": "2012-10-17", "Statement": {"Effect": "Allow", "Action": "*", "Resource": ["arn:aws:a:::?*` + strings.Repeat("?", n-1) + `*?", "arn:aws:a:::?*${aws:userid}*?"]}}`
	}
	pad := func(n int) string { return statements(1) + strings.Repeat(" ", n-len(statements(1))) }
	for _, c := range []struct {
		name, within, beyond, want string
	}{
		{"size", pad(sizeMax), pad(sizeMax + 1), "the policy has 32769 bytes; the limit is 32768: split it"},
		{"statements", statements(statementsMax), statements(statementsMax + 1), "Statement: 201 statements are too many; the limit is 200"},
		{"patterns", actions(patternsMax - 1), actions(patternsMax), "more than 1000 actions, resources, principals and condition values"},
		{"floating", floating(floatingMax), floating(floatingMax + 1), "has a question mark or a variable between two stars, and the policy has more than 100 of them"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, err := Parse([]byte(c.within)); err != nil {
				t.Error(err)
			}
			if _, err := Parse([]byte(c.beyond)); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got:  %v\nwant: %s", err, c.want)
			}
		})
	}
}

// TestDepth: brackets are refused at the level where the grammar ends.
func TestDepth(t *testing.T) {
	for _, open := range []string{"[", `{"Statement":`, `{"Statement":{"Effect":"Allow","Action":"*","Resource":"*","Condition":{"StringEquals":{"aws:username":[`} {
		text := open + strings.Repeat("[", 10_000) + strings.Repeat("]", 10_000)
		for _, c := range open {
			switch c {
			case '[':
				text += "]"
			case '{':
				text += "}"
			}
		}
		if _, err := Parse([]byte(text)); err == nil || len(err.Error()) > 500 {
			t.Errorf("%.40s…: %v", text, err)
		}
	}
}

// TestSteps: the steps of a match stay within the bound that matcher documents.
func TestSteps(t *testing.T) {
	r := Request{UserName: strings.Repeat("a", 100)}
	text := strings.Repeat("a", 20_000)
	for _, c := range []struct {
		pattern string
		linear  bool
	}{
		{strings.Repeat("*a", 1000) + "b", true},
		{strings.Repeat("a*", 1000) + "b", true},
		{strings.Repeat("*", 2000) + "b", true},
		{strings.Repeat("*aa*", 500) + "b*", true},
		{strings.Repeat("*"+strings.Repeat("a", 99), 20) + "b", true},
		{"*" + strings.Repeat("a", 1000) + "b*", true},
		{strings.Repeat("?", 2000) + "b", true},
		{"*" + strings.Repeat("?", 1000) + "b*", false},
		{strings.Repeat("*?a", 600) + "b", false},
		{strings.Repeat("*?${aws:username}b", 50), false},
	} {
		p, err := compile(c.pattern, true, true)
		if err != nil {
			t.Fatal(err)
		}
		m := matcher{r: &r}
		if m.match(&p, text) {
			t.Errorf("%.40s matches", c.pattern)
		}
		length := len(c.pattern) + len(r.UserName)*strings.Count(c.pattern, "$")
		limit := length * len(text)
		if c.linear {
			limit = length + len(text)
		}
		if m.steps > limit {
			t.Errorf("%.40s takes %d steps; the limit is %d", c.pattern, m.steps, limit)
		}
	}
}

// TestMatch compares the matcher with a naive one, for all short patterns and texts.
func TestMatch(t *testing.T) {
	const patternChars, textChars = "aé*?", "aéb"
	texts := words(textChars, 4)
	for _, w := range words(patternChars, 4) {
		p, err := compile(w, true, true)
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range texts {
			m := matcher{}
			if got, want := m.match(&p, text), naive([]rune(w), []rune(text)); got != want {
				t.Fatalf("%q matches %q: %t", w, text, got)
			}
		}
	}
}

// words returns all words of up to n of the characters.
func words(chars string, n int) []string {
	all := []string{""}
	for start := 0; n > 0; n-- {
		end := len(all)
		for _, w := range all[start:end] {
			for _, c := range chars {
				all = append(all, w+string(c))
			}
		}
		start = end
	}
	return all
}

func naive(pattern, text []rune) bool {
	switch {
	case len(pattern) == 0:
		return len(text) == 0
	case pattern[0] == '*':
		return naive(pattern[1:], text) || len(text) > 0 && naive(pattern, text[1:])
	default:
		return len(text) > 0 && (pattern[0] == '?' || pattern[0] == text[0]) && naive(pattern[1:], text[1:])
	}
}
