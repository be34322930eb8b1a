package wire

import (
	"errors"

	"github.com/mayflydb/mayfly/internal/store/dynamo"
	"github.com/mayflydb/mayfly/internal/store/service"
)

// names reads ExpressionAttributeNames.
func (d *decoder) names() service.Names {
	if !d.Map("String") {
		return nil
	}
	names := service.Names{}
	var placeholder []byte
	for d.NextEntry(&placeholder) {
		key := string(placeholder)
		names[key] = d.CopyText()
	}
	return names
}

// values reads ExpressionAttributeValues. The error for the first bad value waits in Values.Err. It
// is worded here, since the text has the value's key.
func (d *decoder) values() service.Values {
	if !d.Map("AttributeValue") {
		return service.Values{}
	}
	values := service.Values{V: map[string]dynamo.Value{}}
	var placeholder []byte
	for d.NextEntry(&placeholder) {
		key := string(placeholder)
		var bad error
		values.V[key] = d.value(&bad)
		if values.Err == nil && bad != nil {
			values.Err = inValues(bad, key)
		}
	}
	return values
}

func inValues(err error, key string) error {
	var invalid *dynamo.Error
	if !errors.As(err, &invalid) {
		return err
	}
	return dynamo.Invalid("ExpressionAttributeValues contains invalid value: " + invalid.Message + " for key " + key)
}

// The parameters that expressions replaced.

func (d *decoder) expected(legacy *service.Legacy) {
	legacy.Expected = legacyMap(d, "ExpectedAttributeValue", func(d *decoder, e *service.ExpectedValue) {
		d.read(members{
			{"Value", func() { e.Value = d.valueMember(&legacy.Err) }},
			{"Exists", &e.Exists},
			{"ComparisonOperator", &e.Operator},
			{"AttributeValueList", func() { e.List = d.valueList(&legacy.Err) }},
		})
	})
}

func (d *decoder) attributeUpdates(legacy *service.Legacy) {
	legacy.AttributeUpdates = legacyMap(d, "AttributeValueUpdate", func(d *decoder, u *service.AttributeUpdate) {
		d.read(members{
			{"Value", func() { u.Value = d.valueMember(&legacy.Err) }},
			{"Action", &u.Action},
		})
	})
}

// conditions reads KeyConditions, QueryFilter or ScanFilter.
func (d *decoder) conditions(legacy *service.Legacy) map[string]service.LegacyCondition {
	return legacyMap(d, "Condition", func(d *decoder, c *service.LegacyCondition) {
		d.read(members{
			{"ComparisonOperator", &c.Operator},
			{"AttributeValueList", func() { c.List = d.valueList(&legacy.Err) }},
		})
	})
}

func (d *decoder) valueList(bad *error) []dynamo.Value {
	return list(d, func(d *decoder, v *dynamo.Value) { *v = d.value(bad) })
}

// legacyMap reads a map of structures by attribute name.
func legacyMap[T any](d *decoder, typ string, read func(*decoder, *T)) map[string]T {
	if !d.Map(typ) {
		return nil
	}
	structures := map[string]T{}
	var attribute []byte
	for d.NextEntry(&attribute) {
		key := string(attribute)
		var v T
		if d.StructElement(typ) {
			read(d, &v)
		}
		structures[key] = v
	}
	return structures
}
