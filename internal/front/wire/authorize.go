package wire

import (
	"time"

	"github.com/mayflydb/mayfly/internal/front/keys"
	"github.com/mayflydb/mayfly/internal/front/policy"
	"github.com/mayflydb/mayfly/internal/store/dynamo"
	"github.com/mayflydb/mayfly/internal/store/service"
)

// caller is the sender of a request whose key has policies. nil may do everything: a request of
// this process, of a key without policies, or to a server without keys.
type caller struct {
	server *Server
	key    *keys.Key
	in     *Request
	now    time.Time
}

// newCaller returns the sender of a verified request.
func (s *Server) newCaller(key *keys.Key, in *Request) *caller {
	if key == nil || key.Root() {
		return nil
	}
	return &caller{s, key, in, s.Now()}
}

// permit returns AccessDeniedException if a part of what an operation asks for is not allowed.
func (c *caller) permit(operation string, in any) error {
	if c == nil {
		return nil
	}
	database := c.server.Service
	list := database.Accesses(operation, in, service.Facts{})
	resources := make([][]*policy.Policy, len(list))
	facts := factsOf(c.key.Policies)
	for i := range list {
		resources[i] = c.server.policiesOf(list[i].Resource)
		used := factsOf(resources[i])
		facts.LeadingKeys, facts.Attributes = facts.LeadingKeys || used.LeadingKeys, facts.Attributes || used.Attributes
	}
	if facts != (service.Facts{}) {
		list = database.Accesses(operation, in, facts)
	}
	for i := range list {
		if err := c.decide(c.request(&list[i]), resources[i]); err != nil {
			return err
		}
	}
	return nil
}

// permitAction is permit for an action outside of the database.
func (c *caller) permitAction(action, resource string) error {
	if c == nil {
		return nil
	}
	return c.decide(c.request(&service.Access{Action: action, Resource: resource}), nil)
}

func (c *caller) decide(r *policy.Request, resource []*policy.Policy) error {
	if d := policy.Decide(r, c.key.Policies, resource); !d.Allowed {
		return &dynamo.Error{Code: dynamo.CodeAccessDenied, Message: d.Message(r)}
	}
	return nil
}

// request returns the request for a decision about an access.
func (c *caller) request(a *service.Access) *policy.Request {
	return &policy.Request{
		Action: a.Action, Resource: a.Resource,
		Principal: "arn:aws:iam::" + c.server.Account + ":user/" + c.key.User, UserName: c.key.User, UserID: c.key.AccessKey,
		SourceIP: c.in.From, Time: c.now, SecureTransport: c.in.Secure,
		LeadingKeys: a.LeadingKeys, Attributes: a.Attributes,
		Select: a.Select, ReturnValues: a.ReturnValues, ReturnConsumedCapacity: a.ReturnCapacity,
		EnclosingOperation: a.EnclosingOperation,
	}
}

// factsOf returns the costly facts that policies compare.
func factsOf(policies []*policy.Policy) (f service.Facts) {
	for _, p := range policies {
		f.LeadingKeys = f.LeadingKeys || p.Uses(policy.KeyLeadingKeys)
		f.Attributes = f.Attributes || p.Uses(policy.KeyAttributes)
	}
	return f
}

// policiesOf returns the policies that belong to a resource.
func (s *Server) policiesOf(string) []*policy.Policy { return nil }
