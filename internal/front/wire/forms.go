package wire

import (
	"bytes"
	"net/http"
	"net/url"
	"strings"

	"github.com/mayflydb/mayfly/internal/front/rpc"
)

// protocol is how an API that package rpc reads and writes looks on the wire.
type protocol struct {
	form      rpc.Form
	namespace string // of XML
}

// decode reads a body. The error is a Failure.
func (p *protocol) decode(body []byte, into any) error {
	if err := p.form.Decode(body, into); err != nil {
		return malformed(err.Error())
	}
	return nil
}

// newActionAPI returns the form of an action's API in one protocol.
func newActionAPI(a Action, form rpc.Form) *api {
	made := newJSONAPI(a.Service)
	if a.Namespace != "" {
		made.contentType, made.fault = form.ContentType(), "InternalServiceFault"
		made.protocol = &protocol{form, a.Namespace}
		if form == rpc.Query {
			made.refused = http.StatusForbidden
		}
	}
	return made
}

// write writes an answer in the API's protocol.
func (m *match) write(out *Response, result any, id string) error {
	p := m.api.protocol
	if p == nil {
		return out.w.marshal(result)
	}
	_, operation, _ := strings.Cut(m.op.name, ":")
	p.setHeaders(out)
	out.w.buf = p.form.Append(out.w.buf, rpc.Answer{Operation: operation, Namespace: p.namespace, RequestID: id}, result)
	return nil
}

// setHeaders marks an answer in CBOR for its clients.
func (p *protocol) setHeaders(out *Response) {
	if p.form == rpc.CBOR {
		out.set(headerProtocol, protocolCBOR)
	}
}

const (
	headerProtocol = "Smithy-Protocol"
	protocolCBOR   = "rpc-v2-cbor"
	// headerQueryError has the error's code in the query protocol, which clients show for APIs that
	// once had only that protocol.
	headerQueryError = "X-Amzn-Query-Error"
)

// fail writes an error in the API's protocol.
func (a *api) fail(out *Response, f Failure, id string) {
	p := a.protocol
	if p == nil {
		a.writeError(out, f.ErrorCode(), f.ErrorMessage(), f.HTTPStatus())
		return
	}
	out.Status = f.HTTPStatus()
	fault := rpc.Fault{
		Code: f.ErrorCode(), QueryCode: queryCode(f.ErrorCode()), Message: f.ErrorMessage(),
		Server: f.HTTPStatus() >= http.StatusInternalServerError, Namespace: p.namespace, RequestID: id,
	}
	p.setHeaders(out)
	if p.form != rpc.Query {
		out.set(headerQueryError, fault.QueryCode+";"+fault.Side())
	}
	out.w.buf = p.form.AppendFault(out.w.buf, fault)
}

// queryCode returns the code of an error in the query protocol, as CloudWatch's model has it for its
// own errors.
func queryCode(code string) string {
	switch code {
	case "MissingRequiredParameterException":
		return "MissingParameter"
	case "InternalServiceFault":
		return "InternalServiceError"
	case "UnknownOperationException":
		return "InvalidAction"
	case "SerializationException":
		return "MalformedInput"
	}
	return strings.TrimSuffix(code, "Exception")
}

// formTable finds actions in CBOR and in the query protocol.
type formTable struct {
	cbor  map[string]*formAPI // by the part of targets before the dot
	query map[string]*formAPI // by the service in signatures
}

// formAPI is an API in one protocol.
type formAPI struct {
	api *api
	ops map[string]*mountedOp // by name
}

func newFormTable() formTable {
	return formTable{cbor: map[string]*formAPI{}, query: map[string]*formAPI{}}
}

// add adds an action whose API has further protocols.
func (t *formTable) add(a Action, prefix, name string) {
	if a.Namespace == "" {
		return
	}
	addForm(t.cbor, prefix, rpc.CBOR, a, name)
	addForm(t.query, a.Service, rpc.Query, a, name)
}

// addForm adds an action to the API at a key, and makes the API for the first one.
func addForm(apis map[string]*formAPI, key string, form rpc.Form, a Action, name string) {
	at := apis[key]
	if at == nil {
		at = &formAPI{newActionAPI(a, form), map[string]*mountedOp{}}
		apis[key] = at
	}
	at.ops[name] = a.mount(at.api, name)
}

// atCBOR returns the API that a path belongs to: /service/GraniteServiceVersion20100801/operation/….
func (t *formTable) atCBOR(path string) *formAPI {
	if rest, ok := strings.CutPrefix(path, "/service/"); ok {
		prefix, _, _ := strings.Cut(rest, "/")
		return t.cbor[prefix]
	}
	return nil
}

// findCBOR returns the action that a request in CBOR asks for.
func (t *formTable) findCBOR(in *Request) match {
	at := t.atCBOR(in.Path)
	if at == nil {
		return match{}
	}
	segments := split(in.Path)
	if len(segments) != 4 || segments[2] != "operation" || in.Method != http.MethodPost || in.Header.Get(headerProtocol) != protocolCBOR {
		return match{api: at.api}
	}
	return match{api: at.api, op: at.ops[segments[3]]}
}

// findQuery returns the action that a form asks for. The signature names the service.
func (t *formTable) findQuery(in *Request) match {
	if len(t.query) == 0 {
		return match{}
	}
	base, _, _ := strings.Cut(in.Header.Get("Content-Type"), ";")
	if base != "application/x-www-form-urlencoded" {
		return match{}
	}
	at := t.query[foreignService(in)]
	if at == nil {
		return match{}
	}
	return match{api: at.api, op: at.ops[formAction(in)]}
}

// formAction returns the operation that a form names, or "".
func formAction(in *Request) string {
	for parameter := range bytes.SplitSeq(in.Body, []byte("&")) {
		if name, ok := bytes.CutPrefix(parameter, []byte("Action=")); ok {
			action, err := url.QueryUnescape(string(name))
			if err != nil {
				return ""
			}
			return action
		}
	}
	return ""
}
