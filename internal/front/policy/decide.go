package policy

// Decision is the result for a request.
type Decision struct {
	Allowed bool
	// Policy is the policy with the statement that decided, and Statement the statement's name, for
	// example `statement 1 ("ReadOnly")`. Both are zero if no statement applied.
	Policy    *Policy
	Statement string
}

// Decide judges a request by the identity policies of its principal and the resource policies of
// its resource, which belong to the same account. A Deny statement wins over every Allow statement.
//
// Decide does not know root users. IAM applies no identity policy to them.
func Decide(r *Request, identity, resource []*Policy) Decision {
	d := Decision{}
	d.Allowed = d.judge(r, identity) && d.judge(r, resource) && d.Policy != nil
	return d
}

// judge records the first Allow statement that applies, unless there is one already. It returns
// false after recording a Deny statement.
func (d *Decision) judge(r *Request, policies []*Policy) bool {
	for _, p := range policies {
		for i := range p.statements {
			s := &p.statements[i]
			if !s.deny && d.Policy != nil || s.compare(r).part != noPart {
				continue
			}
			d.Policy, d.Statement = p, s.name
			if s.deny {
				return false
			}
		}
	}
	return true
}

// Message returns the message of AWS's AccessDeniedException for a refused request.
func (d Decision) Message(r *Request) string {
	text := "User: " + r.caller() + " is not authorized to perform: " + r.Action + " on resource: " + r.Resource
	switch {
	case d.Policy == nil:
		return text + " because no identity-based policy allows the " + r.Action + " action"
	case d.Policy.resource:
		return text + " with an explicit deny in a " + d.Policy.kind()
	default:
		return text + " with an explicit deny in an " + d.Policy.kind()
	}
}
