package policy

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// parser is the state of reading one policy.
type parser struct {
	policy    *Policy
	variables bool   // the version has variables
	at        string // the statement that is read, or "policy"
	patterns  int    // counted against patternsMax
	floating  int    // counted against floatingMax
	sids      map[string]bool
}

// fail returns an error for an element of the current statement.
func (p *parser) fail(element, format string, args ...any) error {
	return fmt.Errorf("%s: %s: %w", p.at, element, fmt.Errorf(format, args...))
}

// object returns the members of an object by name. All must be among the known ones.
func (p *parser) object(raw json.RawMessage, known ...string) (map[string]json.RawMessage, error) {
	all, ok := members(raw)
	if !ok {
		return nil, fmt.Errorf("%s: it is not a JSON object; write { }", p.at)
	}
	byName := make(map[string]json.RawMessage, len(all))
	for _, m := range all {
		if !slices.Contains(known, m.name) {
			return nil, p.fail(m.name, "the element is unknown; use one of %s", strings.Join(known, ", "))
		}
		byName[m.name] = m.value
	}
	return byName, p.unique("", all)
}

// unique returns an error if two members have the same name in any case. The prefix is the element
// around them.
func (p *parser) unique(prefix string, all []member) error {
	for i, m := range all {
		if slices.ContainsFunc(all[:i], func(other member) bool { return strings.EqualFold(other.name, m.name) }) {
			return p.fail(prefix+m.name, "it occurs twice; remove one of them")
		}
	}
	return nil
}

// text returns the string that is the value of an element.
func (p *parser) text(element string, raw json.RawMessage) (string, error) {
	text, ok := textOf(raw)
	if !ok {
		return "", p.fail(element, "%s is not a string; write it in double quotes", excerpt(raw))
	}
	return text, nil
}

// elements returns the elements of an array that has some, or a single other value.
func (p *parser) elements(element string, raw json.RawMessage) (all []json.RawMessage, err error) {
	if raw[0] != '[' {
		return []json.RawMessage{raw}, nil
	}
	if err := json.Unmarshal(raw, &all); err != nil || len(all) == 0 {
		return nil, p.fail(element, "the array is empty; add a value or remove the statement")
	}
	return all, nil
}

// compile returns the pattern for a value. In a policy of the earlier version, IAM takes variables
// literally and without a warning. That is hardly ever meant, so it is an error here.
func (p *parser) compile(text string, wildcards bool) (pattern, error) {
	if err := p.countPattern(); err != nil {
		return pattern{}, err
	}
	if !p.variables && strings.Contains(text, "${") {
		return pattern{}, fmt.Errorf("%q has a variable, and version %s has none; add \"Version\": %q to the policy", text, version2008, version2012)
	}
	compiled, err := compile(text, wildcards, p.variables)
	if err != nil {
		return pattern{}, err
	}
	compiled.variables(func(a *atom) { p.policy.keys |= 1 << a.variable })
	if p.floating += compiled.floating(); p.floating > floatingMax {
		return pattern{}, fmt.Errorf("%q has a question mark or a variable between two stars, and the policy has more than %d of them; split it into several policies", text, floatingMax)
	}
	return compiled, nil
}

func (p *parser) countPattern() error {
	p.patterns++
	if p.patterns > patternsMax {
		return fmt.Errorf("the policy has more than %d actions, resources, principals and condition values; split it into several policies", patternsMax)
	}
	return nil
}
