package service

import (
	"maps"
	"slices"

	"github.com/mayflydb/mayfly/internal/store/dynamo"
	"github.com/mayflydb/mayfly/internal/store/expr"
)

// The parameters that expressions replaced: Expected, AttributeUpdates, KeyConditions, QueryFilter,
// ScanFilter and AttributesToGet. They compile to the same forms as expressions. Their members are
// read in the order of the attributes' names.

const attributesToGetMax = 255

// checkOperator refuses a ConditionalOperator without conditions that it could connect.
func (l *Legacy) checkOperator(conditions int) error {
	if l.ConditionalOperator.Set && conditions == 0 {
		return invalid(invalidValues + "ConditionalOperator cannot be used without Filter or Expected")
	}
	return nil
}

// legacyExpected returns the compiled Expected, or nil if it is absent.
func legacyExpected(l *Legacy) (*expr.Condition, error) {
	if err := l.checkOperator(len(l.Expected)); err != nil || l.Expected == nil {
		return nil, err
	}
	if l.Err != nil {
		return nil, l.Err
	}
	list, err := sorted(l.Expected, func(name string, e ExpectedValue) expr.ExpectedValue {
		v := expr.ExpectedValue{Attribute: name, Value: e.Value, Operator: e.Operator.V, List: e.List}
		if e.Exists.Set {
			v.Exists = &e.Exists.V
		}
		return v
	})
	if err != nil {
		return nil, err
	}
	return expr.Expected(list, l.ConditionalOperator.V)
}

// sorted returns the members of a legacy parameter in the form of package expr, by name. The error is
// about a text that cannot be a name.
func sorted[M, E any](members map[string]M, convert func(name string, m M) E) ([]E, error) {
	list := make([]E, 0, len(members))
	for _, name := range slices.Sorted(maps.Keys(members)) {
		if message := dynamo.CheckName(name); message != "" {
			return nil, invalid(invalidValues + message)
		}
		list = append(list, convert(name, members[name]))
	}
	return list, nil
}

// legacyFilter returns the compiled QueryFilter or ScanFilter, or nil if it is absent. The caller
// checks the values in it, and that a ConditionalOperator has something to connect.
func legacyFilter(filter map[string]LegacyCondition, l *Legacy) (*expr.Condition, error) {
	if filter == nil {
		return nil, nil
	}
	list, err := legacyConditions(filter)
	if err != nil {
		return nil, err
	}
	return expr.LegacyFilter(list, l.ConditionalOperator.V)
}

// legacyKeyCondition returns the compiled KeyConditions, or nil if they are absent. The caller checks
// the values in them.
func legacyKeyCondition(l *Legacy) (*expr.KeyCondition, error) {
	if l.KeyConditions == nil {
		return nil, nil
	}
	list, err := legacyConditions(l.KeyConditions)
	if err != nil {
		return nil, err
	}
	return expr.LegacyKeyCondition(list)
}

func legacyConditions(conditions map[string]LegacyCondition) ([]expr.LegacyCondition, error) {
	return sorted(conditions, func(name string, c LegacyCondition) expr.LegacyCondition {
		return expr.LegacyCondition{Attribute: name, Operator: c.Operator.V, Values: c.List}
	})
}

// legacyUpdate returns the compiled AttributeUpdates, or nil if it is absent.
func legacyUpdate(l *Legacy) (*expr.Update, error) {
	if l.AttributeUpdates == nil {
		return nil, nil
	}
	if l.Err != nil {
		return nil, l.Err
	}
	list, err := sorted(l.AttributeUpdates, func(name string, u AttributeUpdate) expr.AttributeUpdate {
		return expr.AttributeUpdate{Attribute: name, Action: u.Action.V, Value: u.Value}
	})
	if err != nil {
		return nil, err
	}
	return expr.AttributeUpdates(list)
}

// legacyProjection returns the compiled AttributesToGet, or nil if it is absent.
func legacyProjection(l *Legacy) (*expr.Projection, error) {
	if l.AttributesToGet == nil {
		return nil, nil
	}
	return expr.AttributesToGet(l.AttributesToGet)
}

// expected checks the shape of Expected and of ConditionalOperator.
func (s *shape) expected(l *Legacy) {
	for _, name := range slices.Sorted(maps.Keys(l.Expected)) {
		s.enum("expected."+name+".member.comparisonOperator", l.Expected[name].Operator, enumComparison)
	}
	s.enum("conditionalOperator", l.ConditionalOperator, enumOperator)
}

func (s *shape) attributeUpdates(l *Legacy) {
	for _, name := range slices.Sorted(maps.Keys(l.AttributeUpdates)) {
		s.enum("attributeUpdates."+name+".member.action", l.AttributeUpdates[name].Action, enumAction)
	}
}

// conditions checks the shape of KeyConditions or a filter.
func (s *shape) conditions(path string, conditions map[string]LegacyCondition) {
	for _, name := range slices.Sorted(maps.Keys(conditions)) {
		at := path + "." + name + ".member.comparisonOperator"
		s.Required(at, conditions[name].Operator.Set)
		s.enum(at, conditions[name].Operator, enumComparison)
	}
}

func (s *shape) attributesToGet(path string, l *Legacy) {
	if l.AttributesToGet != nil {
		s.Count(path, len(l.AttributesToGet), 1, attributesToGetMax, func() string { return printedList(l.AttributesToGet) })
	}
}
