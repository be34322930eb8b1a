package policy

import "fmt"

// statement is one statement of a policy.
type statement struct {
	name       string // statement 1 ("ReadOnly")
	deny       bool
	actions    list
	resources  list
	principals principals
	conditions []condition
}

func statementName(number int, sid string) string {
	if sid == "" {
		return fmt.Sprintf("statement %d", number)
	}
	return fmt.Sprintf("statement %d (%q)", number, sid)
}

// list is Action, NotAction, Resource or NotResource.
type list struct {
	negated  bool
	patterns []pattern
}

// matches reports whether the element matches a text. In an Allow statement, a negated element does
// not match if a variable in it has no value, since the excluded text is unknown then.
func (l *list) matches(m *matcher, text string, allow bool) bool {
	for i := range l.patterns {
		if m.match(&l.patterns[i], text) {
			return !l.negated
		}
	}
	return l.negated && !(allow && l.unresolved(m.r))
}

func (l *list) unresolved(r *Request) bool {
	for i := range l.patterns {
		if l.patterns[i].unresolved(r) {
			return true
		}
	}
	return false
}

// part is the part of a statement that does not match a request.
type part uint8

const (
	noPart part = iota // the statement applies
	actionPart
	resourcePart
	principalPart
	accountPart // the principal is an account, so an identity policy must allow the request
	conditionPart
)

// mismatch is the first part of a statement that does not match; the condition is set for
// conditionPart.
type mismatch struct {
	part      part
	condition *condition
}

// compare returns the first part of the statement that does not match the request.
func (s *statement) compare(r *Request) mismatch {
	m := matcher{r: r, fold: true}
	if !s.actions.matches(&m, r.Action, !s.deny) {
		return mismatch{part: actionPart}
	}
	m.fold = false
	if !s.resources.matches(&m, r.Resource, !s.deny) {
		return mismatch{part: resourcePart}
	}
	if p := s.principals.compare(r, s.deny); p != noPart {
		return mismatch{part: p}
	}
	for i := range s.conditions {
		if c := &s.conditions[i]; !c.holds(r, !s.deny) {
			return mismatch{conditionPart, c}
		}
	}
	return mismatch{}
}
