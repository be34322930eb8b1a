package wire

import (
	"context"
	"errors"

	"github.com/mayflydb/mayfly/internal/front/intake"
	"github.com/mayflydb/mayfly/internal/store/dynamo"
)

// Admit decides by the head of a request whether to read a body of so many bytes, and takes room
// for it, which the caller releases. It may wait for the room. If the body is not to be read, Admit
// returns the answer, which the caller writes and releases.
func (s *Server) Admit(ctx context.Context, in *Request, bytes int64) (*intake.Hold, *Response) {
	hold, err := s.admit(ctx, in, bytes)
	if err == nil {
		return hold, nil
	}
	return nil, s.turnAway(ctx, in, err)
}

// admit is Admit with an error in place of the answer. Small bodies are admitted before their
// signature is known to be acceptable, unless room for them is scarce: they are read in one go, and
// verified then. A request of this process needs no room.
func (s *Server) admit(ctx context.Context, in *Request, bytes int64) (*intake.Hold, error) {
	if in.InProcess {
		return nil, nil
	}
	if s.Keys != nil && (bytes > intake.SmallMax || s.bodies.Scarce(bytes)) {
		service := serviceDynamoDB
		if m := s.mounted.find(in); m.api != nil {
			service = m.api.service
		}
		if err := s.Keys.VerifyHead(signed(in, service), s.Now(), s.Date()); err != nil {
			return nil, err
		}
	}
	hold, err := s.bodies.Take(ctx, bytes)
	if errors.Is(err, intake.ErrNoRoom) {
		err = errNoRoom
	}
	return hold, err
}

// turnAway returns the answer to a request whose body is not read, and reports it to Observe.
func (s *Server) turnAway(ctx context.Context, in *Request, err error) *Response {
	out := s.refusal(ctx, in, err)
	s.refuseCaller(in, err)
	s.audit(in, out, "", codeOf(err))
	if refused, ok := errors.AsType[*dynamo.Error](err); ok && s.Observe != nil {
		s.Observe("", out.Status, string(refused.Code), 0)
	}
	return out
}

// codeOf returns the code of an error of the API, or the code for faults.
func codeOf(err error) string {
	if refused, ok := errors.AsType[*dynamo.Error](err); ok {
		return string(refused.Code)
	}
	return string(errFault.Code)
}

// refusal returns the answer to a request that reaches no operation.
func (s *Server) refusal(ctx context.Context, in *Request, err error) *Response {
	out := newResponse()
	s.refuse(ctx, in, out, err)
	return out
}

// refuse writes the error of a request that reaches no operation.
func (s *Server) refuse(ctx context.Context, in *Request, out *Response, err error) {
	id := newRequestID()
	out.set("X-Amzn-Requestid", id)
	s.allowOrigin(in, out)
	if m := s.mounted.find(in); m.api != nil {
		out.set("Content-Type", m.api.contentType)
		f := s.mountedFailure(ctx, &m, m.api.refusal(err), "", id)
		m.api.fail(out, f, id)
		out.Body = out.w.buf
	} else {
		contentType, _ := answerType(in.Header.Get("Content-Type"))
		out.set("Content-Type", contentType)
		out.writeError(s.apiError(ctx, err, "", id))
	}
	out.checksum()
}

// errNoRoom answers a request for which there is no memory at present. Clients retry after it.
var errNoRoom = &dynamo.Error{Code: dynamo.CodeUnavailable, Message: "The server has no memory for another large request or answer at present. Retry later."}

// admitAnswer takes room for a large answer. Without room it returns errNoRoom in place of the
// answer, and the code. It replaces only answers of operations that change nothing: clients repeat
// those without harm.
func (s *Server) admitAnswer(ctx context.Context, in *Request, out *Response, operation, code string) (*Response, string) {
	if in.InProcess || len(out.Body) <= intake.SmallMax || !intake.ReadsOnly(operation) {
		return out, code // also if a small answer is in a large buffer of the pool
	}
	hold, ok := s.answers.Take(ctx, int64(max(cap(out.w.buf), len(out.Body))))
	if ok {
		out.hold = hold
		return out, code
	}
	out.Release()
	return s.refusal(ctx, in, errNoRoom), string(errNoRoom.Code)
}

// Load returns the memory taken by request bodies and by answers.
func (s *Server) Load() (bodies *intake.Budget, answers *intake.Outbox) { return s.bodies, s.answers }
