package conformance

import (
	"fmt"
	"strings"
	"testing"
)

// orderOfReadsChecks are about the order in which Query and Scan check their parameters.
var orderOfReadsChecks = []check{
	{"Query", orderOfQuery},
	{"Scan", orderOfScan},
	{"StartKeys", orderOfStartKeys},
}

// fault is a part of a request with a mistake, and the message about it.
type fault struct{ members, message string }

// wantOrder checks, for each two faults in one request, that the endpoint reports the earlier one.
// Two faults in one member cannot be in one request. base completes each request.
func wantOrder(t *testing.T, tb *table, operation, base string, faults []fault) {
	t.Helper()
	for i, first := range faults {
		for _, second := range append([]fault{{}}, faults[i+1:]...) {
			if shareMember(first.members, second.members) {
				continue
			}
			parts := []string{first.members}
			if second.members != "" {
				parts = append(parts, second.members)
			}
			both := strings.Join(parts, ",")
			for member := range strings.SplitSeq(base, ";") {
				name, _, _ := strings.Cut(member, ":")
				if !strings.Contains(both, name+":") {
					both += "," + member
				}
			}
			tb.refuse(t, operation, "{"+both+"}", validation, first.message)
		}
	}
}

// faultMembers are the names that shareMember looks for.
var faultMembers = []string{
	"TableName", "IndexName", "Limit", "Select", "KeyConditions", "KeyConditionExpression", "QueryFilter", "ScanFilter", "FilterExpression", "AttributesToGet", "ProjectionExpression",
	"ExpressionAttributeNames", "ExpressionAttributeValues", "ExclusiveStartKey", "Segment", "TotalSegments",
}

func shareMember(a, b string) bool {
	for _, name := range faultMembers {
		if quoted := `"` + name + `":`; strings.Contains(a, quoted) && strings.Contains(b, quoted) {
			return true
		}
	}
	if strings.Contains(a, "Segment") && strings.Contains(b, "Segment") {
		return true // two halves of a valid pair
	}
	// legacy parameters and expressions in one request are a fault of their own
	return isLegacyFault(a) && isExpressionFault(b) || isLegacyFault(b) && isExpressionFault(a)
}

func isLegacyFault(members string) bool {
	return !strings.Contains(members, "Expression") && (strings.Contains(members, `Filter":`) || strings.Contains(members, "KeyConditions") || strings.Contains(members, "AttributesToGet"))
}

func isExpressionFault(members string) bool {
	return strings.Contains(members, "Expression") && !strings.Contains(members, "Filter\":{") && !strings.Contains(members, "AttributesToGet")
}

const (
	emptyValue      = "Supplied AttributeValue is empty, must contain exactly one of the supported datatypes"
	startKeyInvalid = "The provided starting key is invalid"
	keyMismatch     = "The provided key element does not match the schema"
)

// Each fault of a Query precedes the following ones.
func orderOfQuery(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S sk:S", global("byG", "g:S n:S", "KEYS_ONLY"))
	wantOrder(t, tb, "Query", `"KeyConditionExpression":"pk = :p";"ExpressionAttributeValues":{":p":{"S":"a"}}`, []fault{
		{`"Limit":0`, "1 validation error detected: …"},
		{`"KeyConditionExpression":"pk = :p","FilterExpression":"x = :p","AttributesToGet":["a"]`, "Can not use both expression and non-expression parameters in the same request: …"},
		{`"ExpressionAttributeNames":{}`, "ExpressionAttributeNames must not be empty"},
		{`"ExpressionAttributeValues":{"p":{"S":"a"}}`, `ExpressionAttributeValues contains invalid key: Syntax error; key: "p"`},
		{`"ExpressionAttributeValues":{":p":{}}`, "ExpressionAttributeValues contains invalid value: " + emptyValue + " for key :p"},
		{`"KeyConditionExpression":"pk ="`, "Invalid KeyConditionExpression: …"},
		{`"FilterExpression":"("`, "Invalid FilterExpression: …"},
		{`"ProjectionExpression":"("`, "Invalid ProjectionExpression: …"},
		{`"ExpressionAttributeValues":{":p":{"S":"a"},":q":{"S":"a"}}`, "Value provided in ExpressionAttributeValues unused in expressions: keys: {:q}"},
		{`"ExclusiveStartKey":{"pk":{},"sk":{"S":"a"}}`, startKeyInvalid + ": " + emptyValue},
		{`"IndexName":"none"`, "The table does not have the specified index: none"},
		{`"ExclusiveStartKey":{"pk":{"S":"a"},"sk":{"N":"1"}}`, startKeyInvalid + ": " + keyMismatch},
		{`"ExpressionAttributeValues":{":p":{"N":"1"}}`, invalid + "Condition parameter type does not match schema type"},
		{`"ExclusiveStartKey":{"pk":{"S":"b"},"sk":{"S":"a"}}`, "The provided starting key is outside query boundaries based on provided conditions"},
		{`"FilterExpression":"pk = :p"`, "Filter Expression can only contain non-primary key attributes: Primary key attribute: pk"},
	})
	// of legacy parameters
	wantOrder(t, tb, "Query", `"KeyConditions":{"pk":{"ComparisonOperator":"EQ","AttributeValueList":[{"S":"a"}]}}`, []fault{
		{`"KeyConditions":{"pk":{"ComparisonOperator":"x"}}`, "1 validation error detected: …"},
		{`"QueryFilter":{"a":{"ComparisonOperator":"EQ","AttributeValueList":[{}]}}`, emptyValue},
		{`"AttributesToGet":["a","a"]`, invalid + "Duplicate value in attribute name: a"},
		{`"QueryFilter":{"a":{"ComparisonOperator":"EQ"}}`, invalid + "Invalid number of argument(s) for the EQ ComparisonOperator"},
		{`"KeyConditions":{"pk":{"ComparisonOperator":"EQ"}}`, invalid + "Invalid number of argument(s) for the EQ ComparisonOperator"},
		{`"ExpressionAttributeNames":{}`, "ExpressionAttributeNames can only be specified when using expressions"},
		{`"ExclusiveStartKey":{"pk":{"N":"x"},"sk":{"S":"a"}}`, "The parameter cannot be converted to a numeric value: x"},
		{`"IndexName":"none"`, "The table does not have the specified index: none"},
		{`"ExclusiveStartKey":{"pk":{"S":"a"}}`, startKeyInvalid + "…"},
		{`"KeyConditions":{"sk":{"ComparisonOperator":"EQ","AttributeValueList":[{"S":"a"}]}}`, "Query condition missed key schema element: pk"},
		{`"ExclusiveStartKey":{"pk":{"S":"b"},"sk":{"S":"a"}}`, "The provided starting key is outside query boundaries based on provided conditions"},
		{`"QueryFilter":{"sk":{"ComparisonOperator":"NULL"}}`, "QueryFilter can only contain non-primary key attributes: Primary key attribute: sk"},
	})
	// legacy parameters precede the mixing
	for filter, message := range map[string]string{
		`{"a":{"ComparisonOperator":"EQ","AttributeValueList":[{"NULL":false}]}}`: invalid + "Null attribute value types must have the value of true",
		`{"a":{"ComparisonOperator":"EQ"}}`:                                       invalid + "Invalid number of argument(s) for the EQ ComparisonOperator",
		`{"a":{"ComparisonOperator":"LT","AttributeValueList":[{"SS":["a"]}]}}`:   invalid + "ComparisonOperator LT is not valid for SS AttributeValue type",
	} {
		tb.refuse(t, "Query", `{"KeyConditionExpression":"pk ","QueryFilter":`+filter+`}`, validation, message)
	}
	// of an index
	wantOrder(t, tb, "Query", `"IndexName":"byG";"KeyConditionExpression":"g = :p";"ExpressionAttributeValues":{":p":{"S":"a"}}`, []fault{
		{`"ConsistentRead":true`, "Consistent reads are not supported on global secondary indexes"},
		{`"ExclusiveStartKey":{"pk":{"S":"a"},"sk":{"S":"a"},"g":{"S":"a"}}`, startKeyInvalid},
		{`"ExclusiveStartKey":{"pk":{"N":"1"},"sk":{"S":"a"},"g":{"S":"a"},"n":{"S":"a"}}`, startKeyInvalid + ": " + keyMismatch},
		{`"KeyConditionExpression":"n = :p"`, "Query condition missed key schema element: g"},
		{`"ExclusiveStartKey":{"pk":{"S":"a"},"sk":{"S":"a"},"g":{"S":"b"},"n":{"S":"a"}}`, "The provided starting key is outside query boundaries based on provided conditions"},
		{`"FilterExpression":"n = :p"`, "Filter Expression can only contain non-primary key attributes: Primary key attribute: n"},
		{`"Select":"ALL_ATTRIBUTES"`, invalid + "Select type ALL_ATTRIBUTES is not supported for global secondary index byG because its projection type is not ALL"},
	})
}

// Each fault of a Scan precedes the following ones.
func orderOfScan(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S sk:S", global("byG", "g:S", "KEYS_ONLY"))
	faults := []fault{
		{`"Segment":-1`, "1 validation error detected: …"},
		{`"ScanFilter":{"a":{"ComparisonOperator":"EQ","AttributeValueList":[{"N":"x"}]}}`, "The parameter cannot be converted to a numeric value: x"},
		{`"AttributesToGet":["a","a"]`, invalid + "Duplicate value in attribute name: a"},
		{`"ScanFilter":{"a":{"ComparisonOperator":"NULL","AttributeValueList":[{"S":"x"}]}}`, invalid + "Invalid number of argument(s) for the NULL ComparisonOperator"},
		{`"ScanFilter":{"a":{"ComparisonOperator":"NULL"}},"ProjectionExpression":"a"`, "Can not use both expression and non-expression parameters in the same request: …"},
		{`"FilterExpression":"#a = #b","ExpressionAttributeNames":{"a":"b"}`, `ExpressionAttributeNames contains invalid key: Syntax error; key: "a"`},
		{`"Segment":0`, "The TotalSegments parameter is required but was not present in the request when Segment parameter is present"},
		{`"TotalSegments":2`, "The Segment parameter is required but was not present in the request when parameter TotalSegments is present"},
		{`"Segment":2,"TotalSegments":2`, "The Segment parameter is zero-based and must be less than parameter TotalSegments: Segment: 2 is not less than TotalSegments: 2"},
		{`"FilterExpression":"("`, "Invalid FilterExpression: …"},
		{`"ProjectionExpression":"("`, "Invalid ProjectionExpression: …"},
		{`"ExclusiveStartKey":{"pk":{"SS":["a","a"]},"sk":{"S":"a"}}`, invalid + "Input collection [a, a] contains duplicates."},
		{`"IndexName":"none"`, "The table does not have the specified index: none"},
		{`"ExclusiveStartKey":{"pk":{"S":"a"}}`, startKeyInvalid + ": " + keyMismatch},
	}
	wantOrder(t, tb, "Scan", `"Limit":1`, faults)
	wantOrder(t, tb, "Scan", `"IndexName":"byG"`, []fault{
		{`"ConsistentRead":true`, "Consistent reads are not supported on global secondary indexes"},
		{`"ExclusiveStartKey":{"pk":{"S":"a"},"g":{"S":"a"}}`, startKeyInvalid},
		{`"ExclusiveStartKey":{"pk":{"N":"1"},"sk":{"S":"a"},"g":{"S":"a"}}`, startKeyInvalid + ": " + keyMismatch},
		{`"Select":"ALL_ATTRIBUTES"`, invalid + "Select type ALL_ATTRIBUTES is not supported for global secondary index byG because its projection type is not ALL"},
	})
	e.refuse(t, "Scan", `{"TableName":"no-such-table","FilterExpression":"("}`, validation, "Invalid FilterExpression: …")
	e.refuse(t, "Scan", `{"TableName":"no-such-table","ExclusiveStartKey":{"pk":{}}}`, validation, startKeyInvalid+": "+emptyValue)
	e.refuse(t, "Scan", `{"TableName":"no-such-table","ExclusiveStartKey":{"pk":{"S":"a"}}}`, notFound, "Requested resource not found")
}

// A start key must be one that the Query's conditions leave.
func orderOfStartKeys(t *testing.T, e *Endpoint) {
	const (
		predicate = "The provided starting key does not match the range key predicate"
		outside   = "The provided starting key is outside query boundaries based on provided conditions"
		oneRow    = "The query can return at most one row and cannot be restarted"
	)
	tb := newTable(t, e, "pk:S sk:S")
	for _, row := range []struct{ condition, pk, sk, message string }{
		{"pk = :a", "b", "a", outside},
		{"pk = :a AND sk > :a", "a", "a", predicate},
		{"pk = :a AND sk > :a", "b", "a", predicate},
		{"pk = :a AND sk < :b", "b", "a", oneRow},
		{"pk = :a AND sk = :a", "a", "b", predicate},
		{"pk = :a AND sk = :a", "a", "a", oneRow},
	} {
		values := `":a":{"S":"a"}`
		if strings.Contains(row.condition, ":b") {
			values += `,":b":{"S":"b"}`
		}
		tb.refuse(t, "Query", fmt.Sprintf(`{"KeyConditionExpression":%q,"ExpressionAttributeValues":{%s},"ExclusiveStartKey":{"pk":{"S":%q},"sk":{"S":%q}}}`,
			row.condition, values, row.pk, row.sk), validation, row.message)
	}
	alone := newTable(t, e, "pk:S")
	const query = `{"KeyConditionExpression":"pk = :a","ExpressionAttributeValues":{":a":{"S":"a"}},"ExclusiveStartKey":{"pk":{"S":`
	alone.refuse(t, "Query", query+`"b"}}}`, validation, outside)
	alone.refuse(t, "Query", query+`"a"}}}`, validation, "The provided exclusive start key is invalid: ExclusiveStartKey: …")
}
