package policy

import (
	"fmt"
	"strconv"
	"strings"
)

// Explanation is a decision with the result of every statement.
type Explanation struct {
	Decision Decision
	Findings []Finding
}

// Finding is the result of one statement.
type Finding struct {
	Policy    *Policy
	Statement string // statement 1 ("ReadOnly")
	Effect    string // "Allow" or "Deny"
	Applies   bool
	Reason    string // why it does not apply; empty if it does
}

// Explain returns the same decision as Decide, and the reason of each statement.
func Explain(r *Request, identity, resource []*Policy) Explanation {
	e := Explanation{Decision: Decide(r, identity, resource)}
	for _, policies := range [][]*Policy{identity, resource} {
		for _, p := range policies {
			for i := range p.statements {
				e.Findings = append(e.Findings, p.finding(&p.statements[i], r))
			}
		}
	}
	return e
}

func (p *Policy) finding(s *statement, r *Request) Finding {
	m := s.compare(r)
	f := Finding{Policy: p, Statement: s.name, Effect: "Allow", Applies: m.part == noPart, Reason: s.reason(m, r)}
	if s.deny {
		f.Effect = "Deny"
	}
	return f
}

// String returns the explanation as lines: the decision, then each statement.
func (e Explanation) String() string {
	var b strings.Builder
	d := e.Decision
	switch {
	case d.Policy == nil:
		b.WriteString("denied: no statement allows the request\n")
	case d.Allowed:
		fmt.Fprintf(&b, "allowed by %s\n", d.where())
	default:
		fmt.Fprintf(&b, "denied by %s\n", d.where())
	}
	for _, f := range e.Findings {
		fmt.Fprintf(&b, "  %s, %s: %s\n", f.Policy.title(), f.Statement, f.result())
	}
	return b.String()
}

func (d Decision) where() string { return d.Policy.title() + ", " + d.Statement }

func (p *Policy) title() string { return strings.TrimSpace(p.kind() + " " + p.Name) }

func (f Finding) result() string {
	if f.Applies {
		return f.Effect + " applies"
	}
	return f.Effect + " does not apply: " + f.Reason
}

// reason returns why a part of the statement does not match.
func (s *statement) reason(m mismatch, r *Request) string {
	switch m.part {
	case actionPart:
		return s.actions.reason("Action", "action "+r.Action, r)
	case resourcePart:
		return s.resources.reason("Resource", "resource "+r.Resource, r)
	case principalPart:
		return s.principals.reason(r)
	case accountPart:
		return fmt.Sprintf("Principal names the account %s as a whole, so an identity-based policy must allow the request", accountOf(r.Principal))
	case conditionPart:
		return m.condition.reason(r)
	default:
		return ""
	}
}

func (l *list) reason(name, subject string, r *Request) string {
	var texts []string
	for i := range l.patterns {
		texts = append(texts, l.patterns[i].describe(r))
	}
	switch {
	case !l.negated:
		return fmt.Sprintf("the %s does not match %s %s", subject, name, alternatives(texts))
	case l.unresolved(r):
		return fmt.Sprintf("Not%s has a variable without a value: %s", name, alternatives(texts))
	default:
		return fmt.Sprintf("the %s matches Not%s %s", subject, name, alternatives(texts))
	}
}

func (p *principals) reason(r *Request) string {
	if p.negated {
		return fmt.Sprintf("NotPrincipal excepts %s", r.caller())
	}
	return fmt.Sprintf("the principal %s does not match Principal %s", r.caller(), alternatives(append(p.arns[:len(p.arns):len(p.arns)], p.accounts...)))
}

// reason returns why the condition does not hold.
func (c *condition) reason(r *Request) string {
	var have, want []string
	for i := range r.count(c.key) {
		have = append(have, strconv.Quote(r.text(c.key, i)))
	}
	for i := range c.values {
		want = append(want, c.values[i].describe(r))
	}
	value := "has no value in the request"
	if len(have) > 0 {
		value = "is " + alternatives(have)
	}
	return fmt.Sprintf("%s %s, and the condition is %s %s", c.key, value, c.written, alternatives(want))
}

func (v *value) describe(r *Request) string {
	if v.pattern.segments != nil {
		return v.pattern.describe(r)
	}
	return v.written
}

// describe returns the pattern as written, with the value of each variable behind it.
func (p *pattern) describe(r *Request) string {
	text, separator := p.written, " ("
	p.variables(func(a *atom) {
		v, ok := a.value(r)
		if ok {
			v = " is " + strconv.Quote(v)
		} else {
			v = " has no value"
		}
		text, separator = text+separator+a.variable.String()+v, ", "
	})
	if separator == ", " {
		text += ")"
	}
	return text
}

// alternatives returns a list of texts, with the number of those beyond the first eight.
func alternatives(texts []string) string {
	const shown = 8
	if len(texts) <= shown {
		return strings.Join(texts, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(texts[:shown], ", "), len(texts)-shown)
}
