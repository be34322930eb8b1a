package expr

import (
	"cmp"
	"slices"
	"strings"

	"github.com/mayflydb/mayfly/internal/store/dynamo"
)

// The kinds of expression, with their names in requests and messages.
const (
	ConditionExpression    = "ConditionExpression"
	FilterExpression       = "FilterExpression"
	KeyConditionExpression = "KeyConditionExpression"
	UpdateExpression       = "UpdateExpression"
	ProjectionExpression   = "ProjectionExpression"
)

const (
	paramNames  = "ExpressionAttributeNames"
	paramValues = "ExpressionAttributeValues"
)

// Session compiles the expressions of one request: it binds their placeholders and records which
// ones they use. It is not safe for concurrent use; the compiled expressions are.
//
// Every error of NewSession and of a Session's methods is a *dynamo.Error about the request alone.
// On PutItem and UpdateItem it comes in the envelope of docs/spec/errors.md §8. Errors that depend
// on a table or an item come from KeyCondition.Range and Update.Apply.
type Session struct {
	names  map[string]string
	values map[string]dynamo.Value
	bound  []*placeholders // of the expressions compiled so far
	buf    [4]*placeholders
}

// NewSession returns a session after a check of the placeholders' syntax, number and size. A nil
// map is an absent parameter, and an empty one an error. The session keeps the maps. The caller
// checks the values themselves; that check ranks after these.
func NewSession(names map[string]string, values map[string]dynamo.Value) (*Session, error) {
	if err := checkKeys(paramNames, '#', names); err != nil {
		return nil, err
	}
	if err := checkKeys(paramValues, ':', values); err != nil {
		return nil, err
	}
	bad, found := firstKey(names, func(key string) bool { return dynamo.CheckName(names[key]) != "" })
	if found {
		return nil, dynamo.Invalid(paramNames + " contains invalid value: " + dynamo.CheckName(names[bad]) + " for key " + bad)
	}
	size := 0
	for key, name := range names {
		size += len(key) + len(name)
	}
	for key, v := range values {
		size += len(key) + len(v)
	}
	if size > maxSubstituted {
		return nil, dynamo.Invalid("Expression attribute names and values exceed the maximum size of 2 MB")
	}
	s := &Session{names: names, values: values}
	s.bound = s.buf[:0]
	return s, nil
}

// checkKeys checks the placeholders of one parameter.
func checkKeys[V any](param string, sigil byte, m map[string]V) error {
	if m != nil && len(m) == 0 {
		return dynamo.Invalid(param + " must not be empty")
	}
	bad, found := firstKey(m, func(key string) bool { return !isPlaceholder(key, sigil) })
	switch {
	case !found:
		return nil
	case len(bad) > maxPlaceholder:
		return dynamo.Invalid(param + " contains invalid key: The key is longer than 255 bytes; key: \"" + bad + `"`)
	}
	return dynamo.Invalid(param + ` contains invalid key: Syntax error; key: "` + bad + `"`)
}

func isPlaceholder(key string, sigil byte) bool {
	if len(key) < 2 || len(key) > maxPlaceholder || key[0] != sigil {
		return false
	}
	return wordEnd(key, 1) == len(key)
}

// firstKey returns the first key in byte order that is bad.
func firstKey[V any](m map[string]V, bad func(key string) bool) (first string, found bool) {
	for key := range m {
		if bad(key) && (!found || key < first) {
			first, found = key, true
		}
	}
	return first, found
}

// Condition returns a compiled condition or filter expression; kind is ConditionExpression or
// FilterExpression.
func (s *Session) Condition(kind, text string) (*Condition, error) {
	tree, err := conditions.tree(text)
	if err != nil {
		return nil, err.(problem).in(kind)
	}
	c := &Condition{tree: tree}
	s.bind(&c.binding, &tree.placeholders)
	if err := c.check(tree); err != nil {
		return nil, err.(problem).in(kind)
	}
	return c, nil
}

// KeyCondition returns a compiled key condition expression. Other errors of the request rank before
// the ones that only key conditions have: call Unused, and then the result's Check and Range.
func (s *Session) KeyCondition(text string) (*KeyCondition, error) {
	c, err := s.Condition(KeyConditionExpression, text)
	if err != nil {
		return nil, err
	}
	return newKeyCondition(c), nil
}

// Update returns a compiled update expression.
func (s *Session) Update(text string) (*Update, error) {
	tree, err := updates.tree(text)
	if err != nil {
		return nil, err.(problem).in(UpdateExpression)
	}
	u := &Update{actions: tree.actions}
	s.bind(&u.binding, &tree.placeholders)
	if err := u.check(tree); err != nil {
		return nil, err.(problem).in(UpdateExpression)
	}
	return u, nil
}

// Projection returns a compiled projection expression.
func (s *Session) Projection(text string) (*Projection, error) {
	tree, err := projections.tree(text)
	if err != nil {
		return nil, err.(problem).in(ProjectionExpression)
	}
	if len(tree.names) == 0 {
		if tree.problem != nil {
			return nil, tree.problem.(problem).in(ProjectionExpression)
		}
		return &Projection{selector: tree.selector}, nil
	}
	var b binding
	s.bind(&b, &tree.placeholders)
	if err := cmp.Or(b.undefinedName, tree.tooDeep, checkPaths(tree.paths, b.names)); err != nil {
		return nil, err.(problem).in(ProjectionExpression)
	}
	return &Projection{selector: newSelector(tree.paths, b.names)}, nil
}

// Unused returns the error for placeholders that no expression has used. Call it after the
// request's last expression. The nil session, of a request without expressions, has none.
func (s *Session) Unused() error {
	if s == nil {
		return nil
	}
	if err := reportUnused(paramNames, s.names, s.bound, func(p *placeholders) []string { return p.names }); err != nil {
		return err
	}
	return reportUnused(paramValues, s.values, s.bound, func(p *placeholders) []string { return p.values })
}

func reportUnused[V any](param string, given map[string]V, bound []*placeholders, list func(*placeholders) []string) error {
	if len(given) == 0 || len(bound) == 1 && len(list(bound[0])) == len(given) {
		return nil // one expression, with distinct and defined placeholders, as many as there are
	}
	used := map[string]struct{}{}
	for _, p := range bound {
		for _, key := range list(p) {
			used[key] = struct{}{}
		}
	}
	var unused []string
	for key := range given {
		if _, ok := used[key]; !ok {
			unused = append(unused, key)
		}
	}
	if unused == nil {
		return nil
	}
	slices.Sort(unused)
	return dynamo.Invalid("Value provided in " + param + " unused in expressions: keys: {" + strings.Join(unused, ", ") + "}")
}

// MixedParameters returns the error for a request with legacy parameters and expressions, named in
// the order of docs/spec/errors.md §11.
func MixedParameters(legacy, expressions []string) error {
	return dynamo.Invalid("Can not use both expression and non-expression parameters in the same request: " +
		"Non-expression parameters: {" + strings.Join(legacy, ", ") + "} " +
		"Expression parameters: {" + strings.Join(expressions, ", ") + "}")
}

// NamesWithoutExpression returns the error for a request with ExpressionAttributeNames and no
// expression.
func NamesWithoutExpression() error {
	return dynamo.Invalid(paramNames + " can only be specified when using expressions")
}

// ValuesWithoutExpression returns the error for a request with ExpressionAttributeValues and no
// expression that could use them. kinds are those expressions, in the order of the message.
func ValuesWithoutExpression(kinds ...string) error {
	verb := " is null"
	if len(kinds) > 1 {
		verb = " are null"
	}
	return dynamo.Invalid(paramValues + " can only be specified when using expressions: " + strings.Join(kinds, " and ") + verb)
}
