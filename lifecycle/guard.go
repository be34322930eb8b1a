package lifecycle

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"sync"

	"github.com/mayflydb/mayfly/internal/store/dynamo"
	"github.com/mayflydb/mayfly/internal/store/expr"
	"github.com/mayflydb/mayfly/internal/work/items"
)

// guard is a condition on an entity's attributes. It is evaluated here, to choose a transition, and
// again by the endpoint in the transaction. A change in between makes the transaction fail, and the
// condition is evaluated again.
type guard struct {
	text      string
	names     map[string]string
	values    Item
	condition *expr.Condition
}

var placeholder = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`[:#][A-Za-z0-9_]+`) })

// newGuard compiles a condition with the definition's placeholders.
func (d *Definition) newGuard(text string) (*guard, error) {
	g := &guard{text: text, names: map[string]string{}, values: Item{}}
	values := map[string]dynamo.Value{}
	for _, p := range placeholder().FindAllString(text, -1) {
		if p[0] == '#' {
			name, known := d.Names[p[1:]]
			if !known {
				if name, known = d.Names[p]; !known {
					return nil, fmt.Errorf("%s is not in names", p)
				}
			}
			g.names[p] = name
			continue
		}
		value, known := d.Values[p[1:]]
		if !known {
			return nil, fmt.Errorf("%s is not in values", p)
		}
		v, err := Value(value)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", p, err)
		}
		if values[p], err = binary(v); err != nil {
			return nil, fmt.Errorf("%s: %w", p, err)
		}
		g.values[p] = v
	}
	names := g.names
	if len(names) == 0 {
		names = nil
	}
	if len(values) == 0 {
		values = nil
	}
	session, err := expr.NewSession(names, values)
	if err != nil {
		return nil, withoutCode(err)
	}
	if g.condition, err = session.Condition(expr.ConditionExpression, text); err != nil {
		return nil, withoutCode(err)
	}
	for _, name := range g.condition.Attributes() {
		if reserved(name) {
			return nil, fmt.Errorf("attribute %q is reserved; a condition can use only the entity's attributes", name)
		}
	}
	return g, nil
}

// holds reports whether the condition holds for an entity.
func (g *guard) holds(item Item) bool {
	if g == nil {
		return true
	}
	var b dynamo.Builder
	attributes := g.condition.Attributes()
	slices.Sort(attributes)
	for _, name := range attributes {
		v, ok := item[name]
		if !ok {
			continue
		}
		if value, err := binary(v); err == nil {
			b.Set(name, value)
		}
	}
	return g.condition.Eval(b.Item())
}

// join adds the guard to a condition.
func (g *guard) join(c *items.Condition) {
	if g == nil {
		return
	}
	maps.Copy(c.Names, g.names)
	maps.Copy(c.Values, g.values)
	c.Text += " AND (" + g.text + ")"
}

// withoutCode returns an API error without its code.
func withoutCode(err error) error {
	if api, ok := errors.AsType[*dynamo.Error](err); ok {
		return errors.New(api.Message)
	}
	return err
}
