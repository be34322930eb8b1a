package wire

import (
	"errors"
	"net/http"
	"strings"

	"github.com/mayflydb/mayfly/internal/front/audit"
	"github.com/mayflydb/mayfly/internal/store/dynamo"
)

// auditsKeys reports whether the audit log shows partition keys.
func (s *Server) auditsKeys() bool { return s.Audit != nil && s.Audit.ShowsKeys() }

// refuseCaller notes for the audit log why a request is not answered.
func (s *Server) refuseCaller(in *Request, err error) {
	if s.Audit == nil || in.InProcess {
		return
	}
	why := err.Error()
	if refused, ok := errors.AsType[*dynamo.Error](err); ok {
		why = refused.Message
	}
	in.caller = &caller{server: s, in: in, now: s.Now(), refused: why}
}

// audit writes a request from the network to the audit log, if there is one. code is the error's in
// the answer.
func (s *Server) audit(in *Request, out *Response, operation, code string) {
	if s.Audit == nil || in.InProcess {
		return
	}
	if in.caller == nil && out.Status == http.StatusRequestEntityTooLarge {
		s.refuseCaller(in, errors.New("the body is too large"))
	}
	e := audit.Entry{Operation: serviceOf(operation), Error: code, Allowed: true}
	if in.From.IsValid() {
		e.From = in.From.String()
	}
	for _, f := range out.Header {
		if f.Name == "X-Amzn-Requestid" {
			e.RequestID = f.Value
		}
	}
	if c := in.caller; c != nil {
		e.Time, e.Reason, e.Allowed = c.now, c.refused, c.refused == ""
		if c.key != nil {
			e.User, e.AccessKey = c.key.User, c.key.AccessKey
		}
		for i := range c.accesses {
			a := &c.accesses[i]
			e.Accesses = append(e.Accesses, audit.Access{Action: a.Action, Resource: a.Resource, Keys: a.LeadingKeys})
		}
	} else {
		e.Time = s.Now()
	}
	s.Audit.Write(e)
}

// serviceOf returns the name of an operation with its service. Names of mounted APIs already have it.
func serviceOf(operation string) string {
	if operation == "" || strings.Contains(operation, ":") {
		return operation
	}
	return serviceDynamoDB + ":" + operation
}
