// Package policy decides whether a request is allowed, by AWS IAM's JSON policies for DynamoDB.
//
// Parse reads an identity policy, which belongs to a user, and ParseResource reads a resource
// policy, which belongs to a table or stream and names its principals. Decide judges a Request:
//
//	a Deny statement that applies, in any policy   → refused, even if an Allow statement applies
//	otherwise an Allow statement, in either kind   → allowed
//	otherwise                                      → refused
//
// A statement applies if its action, resource and principal match the request and all of its
// conditions hold. Explain returns the reason for every statement; Decide collects none.
//
// The package has no clock and does no I/O: all facts are in the Request. A fact that is empty is
// missing from the request, and IAM defines the result of comparing a missing key: false, true for
// a negated operator, true for ForAllValues and IfExists, false for ForAnyValue.
//
// Parsing is strict. Ignoring a part of a policy would open or close something without notice. So
// an element, operator or condition key that this package does not know is an error. So are forms
// that IAM accepts and that its Access Analyzer reports as errors: a multivalued key without
// ForAllValues or ForAnyValue, an operator of another type than the key, several Booleans, keys that
// differ in case only, an incomplete ARN, a variable in a policy of version 2008-10-17. Policies are
// also bounded, so that a decision takes time in proportion to the lengths of the policies and of the
// request's texts.
//
// The oracle is the IAM User Guide: the JSON element reference with its grammar, condition
// operators, multivalued context keys, variables and tags, policy evaluation logic, and Access
// Analyzer's policy checks; and in the DynamoDB Developer Guide, fine-grained access control,
// transactions and PartiQL with IAM, and resource-based policies. The tests name the page of each
// example.
//
// If the documentation allows two readings, the more restrictive one counts: a negated element of
// an Allow statement does not match when one of its variables has no value, and an Allow statement
// of a resource policy for an account as a whole needs an identity policy too.
package policy

// Limits of a policy. IAM's own are 2 to 10 KB, and DynamoDB's 20 KB for a resource policy.
const (
	sizeMax       = 32 << 10 // bytes of text
	statementsMax = 200
	// actions, resources, principals and condition values; an ARN in a condition counts six times
	patternsMax    = 1000
	patternSizeMax = 2048 // bytes
	// question marks and variables between two stars, which are tried at each place of a text
	floatingMax = 100
)

// Policy is a parsed policy. It does not change, so any number of goroutines may use it.
type Policy struct {
	// Name is the policy's name in explanations, such as its file's. The caller sets it before use.
	Name string

	resource   bool // a resource policy
	keys       uint32
	statements []statement
}

// Parse returns the identity policy in a text. The error names the statement, the element, the
// value that is wrong, and the correction.
func Parse(text []byte) (*Policy, error) { return parse(text, false) }

// ParseResource returns the resource policy in a text. Its statements must have principals.
func ParseResource(text []byte) (*Policy, error) { return parse(text, true) }

// Uses reports whether a condition or variable of the policy reads a key. The caller need not
// collect a fact that no policy uses.
func (p *Policy) Uses(key Key) bool { return p.keys&(1<<key) != 0 }

// kind returns the policy's kind in AWS's words.
func (p *Policy) kind() string {
	if p.resource {
		return "resource-based policy"
	}
	return "identity-based policy"
}
