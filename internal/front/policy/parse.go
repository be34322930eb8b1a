package policy

import (
	"encoding/json"
	"fmt"
	"strings"
)

// The versions of the policy language. Only the later one has variables.
const (
	version2008 = "2008-10-17"
	version2012 = "2012-10-17"
)

func parse(text []byte, resource bool) (*Policy, error) {
	if len(text) > sizeMax {
		return nil, fmt.Errorf("the policy has %d bytes; the limit is %d: split it into several policies", len(text), sizeMax)
	}
	raw, err := document(text)
	if err != nil {
		return nil, err
	}
	p := &parser{policy: &Policy{resource: resource}, at: "policy", sids: map[string]bool{}}
	elements, err := p.object(raw, "Version", "Id", "Statement")
	if err != nil {
		return nil, err
	}
	if err := p.version(elements["Version"]); err != nil {
		return nil, err
	}
	if id, present := elements["Id"]; present {
		if _, err := p.text("Id", id); err != nil {
			return nil, err
		}
	}
	statements, present := elements["Statement"]
	if !present {
		return nil, fmt.Errorf(`policy: Statement is missing; write for example "Statement": [{"Effect": "Allow", "Action": "dynamodb:GetItem", "Resource": "*"}]`)
	}
	if err := p.parseStatements(statements); err != nil {
		return nil, err
	}
	return p.policy, nil
}

func (p *parser) version(raw json.RawMessage) error {
	if raw == nil {
		return nil
	}
	version, _ := textOf(raw)
	p.variables = version == version2012
	if !p.variables && version != version2008 {
		return p.fail("Version", "%s is unknown; write %q", excerpt(raw), version2012)
	}
	return nil
}

func (p *parser) parseStatements(raw json.RawMessage) error {
	all, err := p.elements("Statement", raw)
	if err != nil {
		return err
	}
	if len(all) > statementsMax {
		return p.fail("Statement", "%d statements are too many; the limit is %d: split the policy", len(all), statementsMax)
	}
	for i, one := range all {
		p.at = statementName(i+1, sidOf(one))
		s, err := p.parseStatement(one)
		if err != nil {
			return err
		}
		s.name = p.at
		p.policy.statements = append(p.policy.statements, s)
	}
	return nil
}

// sidOf returns the Sid of a statement that may have other faults, so that errors can name it.
func sidOf(raw json.RawMessage) (sid string) {
	all, _ := members(raw)
	for _, m := range all {
		if m.name == "Sid" {
			sid, _ = textOf(m.value)
		}
	}
	return sid
}

func (p *parser) parseStatement(raw json.RawMessage) (s statement, err error) {
	elements, err := p.object(raw, "Sid", "Effect", "Principal", "NotPrincipal", "Action", "NotAction", "Resource", "NotResource", "Condition")
	if err != nil {
		return s, err
	}
	if err := p.sid(elements["Sid"]); err != nil {
		return s, err
	}
	effect, _ := textOf(elements["Effect"])
	if s.deny = effect == "Deny"; !s.deny && effect != "Allow" {
		return s, p.fail("Effect", "it is %s; write \"Allow\" or \"Deny\"", excerpt(elements["Effect"]))
	}
	if s.actions, err = p.parseList(elements, "Action", p.compileAction); err != nil {
		return s, err
	}
	if s.resources, err = p.parseList(elements, "Resource", p.compileResource); err != nil {
		return s, err
	}
	if s.principals, err = p.parsePrincipals(elements, s.deny); err != nil {
		return s, err
	}
	if raw, present := elements["Condition"]; present {
		s.conditions, err = p.parseCondition(raw)
	}
	return s, err
}

// sid checks a Sid. IAM allows letters and digits only; services that have resource policies allow
// more.
func (p *parser) sid(raw json.RawMessage) error {
	if raw == nil {
		return nil
	}
	sid, err := p.text("Sid", raw)
	isOther := func(c rune) bool {
		return !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9')
	}
	switch {
	case err != nil:
		return err
	case !p.policy.resource && strings.ContainsFunc(sid, isOther):
		return p.fail("Sid", "%q has other characters than letters and digits; remove them", sid)
	case sid != "" && p.sids[sid]:
		return p.fail("Sid", "an earlier statement has the Sid %q too; change one of them", sid)
	}
	p.sids[sid] = true
	return nil
}

// parseList reads the element with a name, or its negation.
func (p *parser) parseList(elements map[string]json.RawMessage, name string, compile func(string) (pattern, error)) (l list, err error) {
	raw, in, err := p.either(elements, name)
	if err != nil {
		return l, err
	}
	l.negated = in != name
	all, err := p.elements(in, raw)
	if err != nil {
		return l, err
	}
	for _, one := range all {
		text, err := p.text(in, one)
		if err != nil {
			return l, err
		}
		compiled, err := compile(text)
		if err != nil {
			return l, p.fail(in, "%w", err)
		}
		l.patterns = append(l.patterns, compiled)
	}
	return l, nil
}

// either returns the element with a name or its negation, whichever the statement has.
func (p *parser) either(elements map[string]json.RawMessage, name string) (raw json.RawMessage, found string, err error) {
	raw, plain := elements[name]
	negation, negated := elements["Not"+name]
	switch {
	case plain && negated:
		return nil, "", p.fail(name, "the statement has %s and Not%[1]s; remove one of them", name)
	case negated:
		return negation, "Not" + name, nil
	case !plain:
		return nil, "", p.fail(name, "it is missing; add %s or Not%[1]s", name)
	}
	return raw, name, nil
}

// compileAction returns the pattern for "service:action" or "*". Actions have no variables, and
// compare without case.
func (p *parser) compileAction(text string) (pattern, error) {
	service, action, found := strings.Cut(text, ":")
	isOther := func(c rune) bool {
		return c <= ' ' || c > '~' || strings.ContainsRune(`"${}:`, c)
	}
	switch {
	case text == "*":
	case !found:
		return pattern{}, fmt.Errorf("%q does not name a service; write for example dynamodb:GetItem", text)
	case service == "" || action == "" || strings.ContainsAny(service, "*?") || strings.ContainsFunc(service+action, isOther):
		return pattern{}, fmt.Errorf("%q is not an action; write a service, a colon and a name, for example dynamodb:Get*", text)
	}
	if err := p.countPattern(); err != nil {
		return pattern{}, err
	}
	return compile(text, true, false)
}
