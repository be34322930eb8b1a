package conformance

import (
	"strings"
	"testing"
)

// nameAndPathChecks are about the names of attributes and the paths into them, in all parameters.
var nameAndPathChecks = []check{
	{"Names", namesRefused},
	{"Paths", pathsRefused},
	{"Fragments", updatedFragments},
	{"IndexKeysByUpdate", indexKeysByUpdate},
	{"IndexKeysTooLong", indexKeysTooLong},
}

// refusals are requests that a table refuses. In their messages, … is any text.
type refusals []struct{ operation, body, message string }

func (r refusals) refuse(t *testing.T, tb *table) {
	t.Helper()
	for _, row := range r {
		tb.refuse(t, row.operation, row.body, validation, row.message)
	}
}

// A name has 1 to 65,535 bytes, wherever it is.
func namesRefused(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S")
	const key = `"Key":{"pk":{"S":"a"}}`
	for name, problem := range map[string]string{
		"":                          "Empty attribute name",
		strings.Repeat("n", 65_536): "Attribute name is too large, must be less than 65536 bytes",
	} {
		placeholder := `"ExpressionAttributeNames":{"#n":"` + name + `"}`
		refusals{
			{"PutItem", `{"Item":{"pk":{"S":"a"},"` + name + `":{"S":"x"}}}`, enveloped + invalid + problem},
			{"PutItem", `{"Item":{"pk":{"S":"a"},"m":{"M":{"` + name + `":{"S":"x"}}}}}`, enveloped + invalid + problem},
			{"PutItem", `{"Item":{"pk":{"S":"a"}},"Expected":{"` + name + `":{"Exists":false}}}`, "…" + invalid + problem},
			{"UpdateItem", `{` + key + `,"AttributeUpdates":{"` + name + `":{"Value":{"S":"x"}}}}`, "…" + invalid + problem},
			{"UpdateItem", `{` + key + `,"UpdateExpression":"REMOVE #n",` + placeholder + `}`, enveloped + "ExpressionAttributeNames contains invalid value: " + problem + " for key #n"},
			{"GetItem", `{` + key + `,"AttributesToGet":["` + name + `"]}`, invalid + problem},
			{"GetItem", `{` + key + `,"ProjectionExpression":"#n",` + placeholder + `}`, "ExpressionAttributeNames contains invalid value: " + problem + " for key #n"},
			{"Scan", `{"ScanFilter":{"` + name + `":{"ComparisonOperator":"NULL"}}}`, invalid + problem},
			{"Query", `{"KeyConditions":{"` + name + `":{"ComparisonOperator":"NULL"}}}`, invalid + problem},
		}.refuse(t, tb)
	}
	longest := strings.Repeat("n", 65_535)
	tb.ok(t, "PutItem", `{"Item":{"pk":{"S":"a"},"`+longest+`":{"S":"x"}}}`)
	tb.ok(t, "GetItem", `{`+key+`,"AttributesToGet":["`+longest+`"]}`).want(t, "Item", `{"`+longest+`":{"S":"x"}}`)
}

// A path has at most 32 elements, and a list index at most 31 bits.
func pathsRefused(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S")
	deep := func(elements int) string { return "a" + strings.Repeat(".b", elements-1) }
	const levels = "The document path has too many nesting levels; nesting levels: 33"
	const index = "List index is not within the allowable range; index: [99999999999999]"
	for path, problem := range map[string]string{deep(33): levels, "a" + strings.Repeat("[0]", 32): levels, "a[99999999999999]": index, "a.b[99999999999999].c": index} {
		refusals{
			{"GetItem", `{"Key":{"pk":{"S":"a"}},"ProjectionExpression":"` + path + `"}`, "Invalid ProjectionExpression: " + problem},
			{"UpdateItem", `{"Key":{"pk":{"S":"a"}},"UpdateExpression":"REMOVE ` + path + `"}`, "…Invalid UpdateExpression: " + problem},
			{"UpdateItem", `{"Key":{"pk":{"S":"a"}},"UpdateExpression":"SET x = ` + path + `"}`, "…Invalid UpdateExpression: " + problem},
			{"DeleteItem", `{"Key":{"pk":{"S":"a"}},"ConditionExpression":"attribute_exists(` + path + `)"}`, "Invalid ConditionExpression: " + problem},
			{"Scan", `{"FilterExpression":"attribute_exists(` + path + `)"}`, "Invalid FilterExpression: " + problem},
		}.refuse(t, tb)
	}
	for _, path := range []string{deep(32), "a[2147483647]"} {
		tb.ok(t, "Scan", `{"FilterExpression":"attribute_exists(`+path+`)","ProjectionExpression":"`+path+`"}`)
	}
}

// UPDATED_OLD and UPDATED_NEW return only the parts that the update names, inside their hierarchy.
func updatedFragments(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S")
	const item = `{"Item":{"pk":{"S":"a"},"a":{"M":{"b":{"S":"old"},"c":{"L":[{"N":"1"},{"N":"2"},{"N":"3"}]},"d":{"S":"other"}}},"x":{"S":"other"}}}`
	for _, row := range []struct{ expression, old, new string }{ // "": no Attributes
		{"SET a.b = :v", `{"a":{"M":{"b":{"S":"old"}}}}`, `{"a":{"M":{"b":{"N":"9"}}}}`},
		{"SET a.c[1] = :v", `{"a":{"M":{"c":{"L":[{"N":"2"}]}}}}`, `{"a":{"M":{"c":{"L":[{"N":"9"}]}}}}`},
		{"SET a.c[0] = :v, a.c[2] = :v", `{"a":{"M":{"c":{"L":[{"N":"1"},{"N":"3"}]}}}}`, `{"a":{"M":{"c":{"L":[{"N":"9"},{"N":"9"}]}}}}`},
		{"SET a.fresh = :v", "", `{"a":{"M":{"fresh":{"N":"9"}}}}`},
		{"SET a.fresh = :v, a.b = :v", `{"a":{"M":{"b":{"S":"old"}}}}`, `{"a":{"M":{"b":{"N":"9"},"fresh":{"N":"9"}}}}`},
		{"SET y = :v", "", `{"y":{"N":"9"}}`},
		{"REMOVE a.b", `{"a":{"M":{"b":{"S":"old"}}}}`, ""},
		{"REMOVE a.gone", "", ""},
		{"SET a.b = :v REMOVE a.d", `{"a":{"M":{"b":{"S":"old"},"d":{"S":"other"}}}}`, `{"a":{"M":{"b":{"N":"9"}}}}`},
	} {
		values := ""
		if strings.Contains(row.expression, ":v") {
			values = `,"ExpressionAttributeValues":{":v":{"N":"9"}}`
		}
		for returned, want := range map[string]string{"UPDATED_OLD": row.old, "UPDATED_NEW": row.new} {
			tb.ok(t, "PutItem", item)
			got := tb.ok(t, "UpdateItem", `{"Key":{"pk":{"S":"a"}},"UpdateExpression":"`+row.expression+`","ReturnValues":"`+returned+`"`+values+`}`)
			if want == "" {
				got.wantAbsent(t, "Attributes")
			} else {
				got.want(t, "Attributes", want)
			}
		}
	}
}

// An update sets a key of an index only to the right type, and no key by a path into it.
func indexKeysByUpdate(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S sk:S", global("byX", "x:S", "ALL"), local("byN", "pk:S n:N", "ALL"))
	update := func(expression, value string) string {
		return `{"Key":{"pk":{"S":"a"},"sk":{"S":"b"}},"UpdateExpression":"` + expression + `","ExpressionAttributeValues":{":v":` + value + `}}`
	}
	const scalars = "Key attributes must be scalars; list random access '[]' and map lookup '.' are not allowed: "
	const part = ". This attribute is part of the key"
	refusals{
		{"UpdateItem", update("SET x = :v", `{"M":{}}`), invalid + "Type mismatch for Index Key x Expected: S Actual: M IndexName: byX"},
		{"UpdateItem", update("ADD x :v", `{"N":"1"}`), invalid + "Type mismatch for Index Key x Expected: S Actual: N IndexName: byX"},
		{"UpdateItem", update("SET n = :v", `{"NULL":true}`), invalid + "Type mismatch for Index Key n Expected: N Actual: NULL IndexName: byN"},
		{"UpdateItem", update("SET x.y = :v", `{"N":"1"}`), scalars + "IndexKey: x"},
		{"UpdateItem", update("SET n[0] = :v", `{"N":"1"}`), scalars + "IndexKey: n"},
		{"UpdateItem", update("SET pk = :v", `{"S":"a"}`), invalid + "Cannot update attribute pk" + part},
		{"UpdateItem", update("SET pk.x = :v", `{"S":"a"}`), invalid + "Cannot update attribute pk" + part},
		{"UpdateItem", update("SET sk[1] = :v", `{"S":"a"}`), invalid + "Cannot update attribute sk" + part},
		{"UpdateItem", update("SET z = :v REMOVE sk", `{"S":"a"}`), invalid + "Cannot update attribute sk" + part},
	}.refuse(t, tb)
}

// A value that is too long for an index's key is refused. An item that has one from before the index
// is not in it.
func indexKeysTooLong(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S", global("byX", "x:S y:S", "ALL"))
	put := func(attribute string, bytes int) string {
		return `{"Item":{"pk":{"S":"a"},"` + attribute + `":{"S":"` + strings.Repeat("v", bytes) + `"}}}`
	}
	update := func(attribute string, bytes int) string {
		return `{"Key":{"pk":{"S":"a"}},"UpdateExpression":"SET ` + attribute + ` = :v","ExpressionAttributeValues":{":v":{"S":"` + strings.Repeat("v", bytes) + `"}}}`
	}
	tb.ok(t, "PutItem", `{"Item":{"pk":{"S":"a"},"x":{"S":"`+strings.Repeat("v", 2048)+`"},"y":{"S":"`+strings.Repeat("v", 1024)+`"}}}`)
	refusals{
		{"PutItem", put("x", 2049), "…2048 bytes…"},
		{"UpdateItem", update("x", 2049), "…2048 bytes…"},
		{"UpdateItem", update("y", 1025), "…1024 bytes…"},
	}.refuse(t, tb)
}
