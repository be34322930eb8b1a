package wire

import (
	"fmt"
	"sync"
	"time"

	"github.com/mayflydb/mayfly/internal/front/keys"
	"github.com/mayflydb/mayfly/internal/front/policy"
	"github.com/mayflydb/mayfly/internal/store/dynamo"
	"github.com/mayflydb/mayfly/internal/store/service"
)

// caller is the sender of a request, and what the request asks for. The nil caller may do everything
// and is not logged. A request of this process has it. Without an audit log, so does a request
// to a server without keys, and one with a key that has no policies.
type caller struct {
	server *Server
	key    *keys.Key // nil: the server has no keys, or the request is not signed with one
	in     *Request
	now    time.Time

	// for the audit log
	accesses []service.Access
	refused  string // why the request was not allowed; empty if it was
}

// newCaller returns the sender of a verified request.
func (s *Server) newCaller(key *keys.Key, in *Request) *caller {
	if s.Audit == nil && (key == nil || key.Root()) {
		return nil
	}
	in.caller = &caller{server: s, key: key, in: in, now: s.Now()}
	return in.caller
}

// limited reports whether policies decide about the caller.
func (c *caller) limited() bool { return c.key != nil && !c.key.Root() }

// permit returns AccessDeniedException if a part of what an operation asks for is not allowed.
func (c *caller) permit(operation string, in any) error {
	if c == nil {
		return nil
	}
	database := c.server.Service
	if !c.limited() {
		c.accesses = database.Accesses(operation, in, service.Facts{LeadingKeys: c.server.auditsKeys()})
		return nil
	}
	c.refused = undecided // also if the rest fails or panics
	facts := service.Facts{
		LeadingKeys: c.key.Uses(policy.KeyLeadingKeys) || c.server.auditsKeys(), Attributes: c.key.Uses(policy.KeyAttributes),
	}
	list := database.Accesses(operation, in, facts)
	resources := make([][]*policy.Policy, len(list))
	further := facts // of the resources' policies too
	for i := range list {
		var err error
		if resources[i], err = c.server.policiesOf(list[i].Resource); err != nil {
			return err
		}
		for _, p := range resources[i] {
			further.LeadingKeys = further.LeadingKeys || p.Uses(policy.KeyLeadingKeys)
			further.Attributes = further.Attributes || p.Uses(policy.KeyAttributes)
		}
	}
	if further != facts {
		list = database.Accesses(operation, in, further)
	}
	c.accesses = list
	for i := range list {
		if err := c.decide(c.request(&list[i]), resources[i]); err != nil {
			return err
		}
	}
	c.refused = ""
	return nil
}

// undecided is the reason in the audit log if the server could not decide about a request.
const undecided = "the policies could not be evaluated"

// permitAction is permit for an action outside of the database.
func (c *caller) permitAction(action, resource string) error {
	if c == nil {
		return nil
	}
	c.accesses = []service.Access{{Action: action, Resource: resource}}
	if !c.limited() {
		return nil
	}
	return c.decide(c.request(&c.accesses[0]), nil)
}

func (c *caller) decide(r *policy.Request, resource []*policy.Policy) error {
	if d := policy.Decide(r, c.key.Policies, resource); !d.Allowed {
		c.refused = d.Message(r)
		return &dynamo.Error{Code: dynamo.CodeAccessDenied, Message: c.refused}
	}
	return nil
}

// request returns the request for a decision about an access.
func (c *caller) request(a *service.Access) *policy.Request {
	scans := policy.Missing
	switch {
	case a.FullTableScan:
		scans = policy.True
	case a.Statement:
		scans = policy.False
	}
	return &policy.Request{
		Action: a.Action, Resource: a.Resource,
		Principal: c.key.ARN(c.server.Account), UserName: c.key.User, UserID: c.key.User,
		SourceIP: c.in.From, Time: c.now, SecureTransport: c.in.Secure,
		LeadingKeys: a.LeadingKeys, Attributes: a.Attributes,
		Select: a.Select, ReturnValues: a.ReturnValues, ReturnConsumedCapacity: a.ReturnCapacity,
		EnclosingOperation: a.EnclosingOperation, FullTableScan: scans,
	}
}

// resourcePolicies are the parsed policies of tables and streams, by their revisions, which are
// never used again.
type resourcePolicies struct {
	sync.RWMutex
	parsed map[string][]*policy.Policy // at most policiesMax
}

// policiesMax bounds the parsed policies. Beyond it all are forgotten, and parsed again when they
// are needed.
const policiesMax = 1000

// policiesOf returns the policy that belongs to a resource, if there is one. It fails for a text that
// cannot be read: what it denies is unknown.
func (s *Server) policiesOf(resource string) ([]*policy.Policy, error) {
	text, revision := s.Service.ResourcePolicy(resource)
	if text == "" {
		return nil, nil
	}
	s.policies.RLock()
	known := s.policies.parsed[revision]
	s.policies.RUnlock()
	if known != nil {
		return known, nil
	}
	p, err := policy.ParseResource([]byte(text))
	if err != nil {
		return nil, fmt.Errorf("read the resource policy of %s: %w", resource, err)
	}
	p.Name = "of " + resource
	s.policies.Lock()
	defer s.policies.Unlock()
	if s.policies.parsed == nil || len(s.policies.parsed) >= policiesMax {
		s.policies.parsed = map[string][]*policy.Policy{}
	}
	s.policies.parsed[revision] = []*policy.Policy{p}
	return s.policies.parsed[revision], nil
}
