package wire

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"strings"
	"unicode/utf8"

	"github.com/mayflydb/mayfly/internal/front/rpc"
)

// Route is an operation of a REST API with JSON bodies, found by method and path.
type Route struct {
	// the service in signatures, such as "scheduler"; it also selects the form of errors
	Service string
	Name    string // of the operation, such as "CreateSchedule"
	Method  string
	// a segment in braces is a label, which matches any text but the empty one: "/schedules/{Name}"
	Path   string
	Status int // on success; default 200

	// Resource returns the ARN of what a call is about, for policies. Default "*".
	Resource func(c *Call) string

	// Do executes a call. A [Failure] is an error of the API, and any other error a fault.
	// encoding/json writes the result; nil is an empty structure.
	Do func(ctx context.Context, c *Call) (any, error)
}

// Action is an operation of an API in AWS JSON 1.1: POST / with a header X-Amz-Target.
type Action struct {
	Service string // the service in signatures, such as "events"
	Prefix  string // of actions in policies: "cloudwatch". Default: Service
	Target  string // "AWSEvents.PutRule": the operation's name is after the dot

	// Namespace is the namespace of the API's XML. With one, the API has three protocols: AWS JSON
	// 1.0, Smithy RPC v2 CBOR, and the query protocol. Package rpc then reads requests and writes
	// answers. Default: only AWS JSON 1.1.
	Namespace string

	Resource func(c *Call) string // as in Route

	Do func(ctx context.Context, c *Call) (any, error) // as in Route
}

// mount returns the action as the operation of an API.
func (a *Action) mount(to *api, name string) *mountedOp {
	return &mountedOp{to, cmp.Or(a.Prefix, a.Service) + ":" + name, http.StatusOK, a.Resource, a.Do}
}

// mountedOp is the operation of a Route or an Action.
type mountedOp struct {
	api    *api
	name   string // with its service: "scheduler:TagResource" is not the tables' TagResource
	status int

	resource func(c *Call) string // nil: "*"
	do       func(ctx context.Context, c *Call) (any, error)
}

// resourceOf returns the ARN of what a call is about.
func (op *mountedOp) resourceOf(c *Call) string {
	if op.resource == nil {
		return "*"
	}
	return op.resource(c)
}

// match is the mounted operation that a request asks for.
type match struct {
	api *api       // nil: no mounted API
	op  *mountedOp // nil: the API is known, but not the operation

	pattern  *pattern // nil for an action
	segments []string // of the path, still escaped
}

// mountTable finds the mounted operation of a request. It does not change after New.
type mountTable struct {
	roots   map[string]*root      // of routes, by their first segment
	targets map[string]*api       // of actions, by the part of their target before the dot
	actions map[string]*mountedOp // by their whole target
	forms   formTable             // the same actions in further protocols
}

// root holds the paths below one first segment. They all belong to one API, so that the error for
// an unknown operation there can have that API's form.
type root struct {
	api      *api
	patterns []*pattern
}

// pattern is a path with the operations at it.
type pattern struct {
	segments []string // labels without their braces
	labels   []bool   // of each segment: whether it is a label
	methods  map[string]*mountedOp
}

// newMountTable returns the table of operations. It panics after a mistake in the program: two
// operations of one target, or of one path and method; two paths that can match one request,
// even with different methods; a path whose first segment is empty, a label or another API's; a
// target without a dot, or with the prefix of another service.
func newMountTable(routes []Route, actions []Action) *mountTable {
	t := &mountTable{roots: map[string]*root{}, targets: map[string]*api{}, actions: map[string]*mountedOp{}, forms: newFormTable()}
	apis := map[string]*api{}
	for _, r := range routes {
		if apis[r.Service] == nil {
			apis[r.Service] = newRESTAPI(r.Service)
		}
		t.addRoute(r, apis[r.Service])
	}
	for _, a := range actions {
		prefix, name, found := strings.Cut(a.Target, ".")
		if t.targets[prefix] == nil {
			t.targets[prefix] = newActionAPI(a, rpc.JSON)
		}
		if !found || t.actions[a.Target] != nil || t.targets[prefix].service != a.Service {
			panic("wire: the action " + a.Target + " is repeated, has no dot, or has the prefix of another service")
		}
		t.actions[a.Target] = a.mount(t.targets[prefix], name)
		t.forms.add(a, prefix, name)
	}
	return t
}

func (t *mountTable) addRoute(r Route, owner *api) {
	p := newPattern(r.Path)
	first := p.segments[0]
	at := t.roots[first]
	if at == nil {
		at = &root{api: owner}
		t.roots[first] = at
	}
	if at.api != owner || p.labels[0] || first == "" {
		panic("wire: the first segment of the path " + r.Path + " is empty, a label, or another API's")
	}
	op := &mountedOp{owner, r.Service + ":" + r.Name, r.Status, r.Resource, r.Do}
	op.status = cmp.Or(op.status, http.StatusOK)
	for _, other := range at.patterns {
		switch {
		case !other.overlaps(p):
		case r.Path != other.String() || other.methods[r.Method] != nil:
			panic("wire: the path " + r.Path + " overlaps " + other.String())
		default:
			other.methods[r.Method] = op
			return
		}
	}
	p.methods = map[string]*mountedOp{r.Method: op}
	at.patterns = append(at.patterns, p)
}

func newPattern(path string) *pattern {
	p := &pattern{segments: split(path)}
	p.labels = make([]bool, len(p.segments))
	for i, s := range p.segments {
		if strings.HasPrefix(s, "{") {
			p.segments[i], p.labels[i] = strings.Trim(s, "{}"), true
		}
	}
	return p
}

// String returns the path of the pattern.
func (p *pattern) String() string {
	var path strings.Builder
	for i, s := range p.segments {
		if p.labels[i] {
			s = "{" + s + "}"
		}
		path.WriteString("/" + s)
	}
	return path.String()
}

// overlaps reports whether a path can match both patterns.
func (p *pattern) overlaps(other *pattern) bool {
	if len(p.segments) != len(other.segments) {
		return false
	}
	for i, s := range p.segments {
		if !p.labels[i] && !other.labels[i] && s != other.segments[i] {
			return false
		}
	}
	return true
}

// split returns the segments of a path without one slash at its end. Lambda's paths exist with and
// without it.
func split(path string) []string {
	path = strings.TrimPrefix(path, "/")
	return strings.Split(strings.TrimSuffix(path, "/"), "/")
}

// find returns the operation that a request asks for. The match has no API if the request is for
// none of the mounted ones, and no operation if it is for an unknown operation of one.
func (t *mountTable) find(in *Request) match {
	if in.Path == "/" {
		return t.findAction(in)
	}
	if in.Method == http.MethodOptions {
		return match{} // a preflight, which all APIs answer alike
	}
	if m := t.forms.findCBOR(in); m.api != nil {
		return m
	}
	at := t.root(in.Path)
	if at == nil {
		return match{}
	}
	segments := split(in.Path)
	for _, p := range at.patterns {
		if op := p.methods[in.Method]; op != nil && p.matches(segments) {
			return match{at.api, op, p, segments}
		}
	}
	return match{api: at.api}
}

func (t *mountTable) findAction(in *Request) match {
	if len(t.actions) == 0 || in.Method != http.MethodPost {
		return match{}
	}
	target := in.Header.Get("X-Amz-Target")
	if target == "" {
		return t.forms.findQuery(in)
	}
	prefix, _, _ := strings.Cut(target, ".")
	return match{api: t.targets[prefix], op: t.actions[target]}
}

// root returns the paths below the first segment of a path, or nil.
func (t *mountTable) root(path string) *root {
	below, absolute := strings.CutPrefix(path, "/")
	if !absolute {
		return nil
	}
	first, _, _ := strings.Cut(below, "/")
	return t.roots[first]
}

// matches reports whether a path equals the pattern's literals and has a text for each label.
func (p *pattern) matches(segments []string) bool {
	if len(segments) != len(p.segments) {
		return false
	}
	for i, s := range segments {
		if p.labels[i] && s == "" || !p.labels[i] && s != p.segments[i] {
			return false
		}
	}
	return true
}

// labels returns the unescaped text of each label in the path, by the label's name. The error for a
// text that is malformed or not UTF-8 is a Failure. An action has no labels.
func (m *match) labels() (map[string]string, error) {
	if m.pattern == nil {
		return nil, nil
	}
	labels := make(map[string]string, 1)
	for i, s := range m.segments {
		if !m.pattern.labels[i] {
			continue
		}
		name := m.pattern.segments[i]
		text, err := url.PathUnescape(s)
		if err != nil || !utf8.ValidString(text) {
			return nil, malformed("the path is not percent-encoded UTF-8 at {" + name + "}")
		}
		labels[name] = text
	}
	return labels, nil
}

// Routed reports whether a path is below the first segment of a route, or below an API in CBOR. Do
// answers all requests there.
func (s *Server) Routed(path string) bool {
	return s.mounted.root(path) != nil || s.mounted.forms.atCBOR(path) != nil
}
