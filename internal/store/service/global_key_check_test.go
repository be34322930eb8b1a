package service

import (
	"fmt"
	"strings"
	"testing"
)

// elements returns the key schema of "HASH a, HASH b, RANGE c".
func elements(text string) []KeySchemaElement {
	schema := []KeySchemaElement{}
	for element := range strings.SplitSeq(text, ", ") {
		kind, name, _ := strings.Cut(element, " ")
		schema = append(schema, KeySchemaElement{Name: Some(name), Type: Some(kind)})
	}
	return schema
}

// keyedTable describes a table with a partition key "id" and an index "byKey" of a key schema.
func keyedTable(schema string) CreateTableInput {
	in := CreateTableInput{
		TableName: Some("Keyed"), Attributes: definitions("id:S"), KeySchema: keys("id"), BillingMode: Some("PAY_PER_REQUEST"),
		Global: []IndexSpec{index("byKey", "ALL")},
	}
	in.Global[0].KeySchema = elements(schema)
	seen := map[string]bool{"id": true}
	for _, e := range in.Global[0].KeySchema {
		if !seen[e.Name.V] {
			in.Attributes = append(in.Attributes, definitions(e.Name.V+":S")...)
		}
		seen[e.Name.V] = true
	}
	return in
}

// Each key schema of a global index is accepted or refused alike by CreateTable and UpdateTable.
func TestGlobalKeySchema(t *testing.T) {
	const p = "One or more parameter values were invalid: "
	const tooMany = "1 validation error detected: Value '[KeySchemaElement(attributeName=a, keyType=HASH), …"
	for schema, want := range map[string]string{
		"HASH a":                   "",
		"HASH a, HASH b":           "",
		"HASH a, RANGE b, RANGE c": "",
		"HASH a, HASH id, RANGE b": "",
		"HASH a, HASH b, HASH c, HASH d, RANGE e, RANGE f, RANGE g, RANGE h": "",
		"RANGE a":                                             msgHashFirst,
		"RANGE a, HASH b, HASH c":                             msgHashFirst,
		"HASH a, RANGE b, HASH c":                             "Invalid KeySchema: The KeySchemaElement 3 is a HASH key type behind a RANGE key type",
		"HASH a, RANGE a":                                     msgKeyTwice,
		"HASH a, HASH a":                                      msgKeyTwice,
		"HASH a, HASH b, RANGE a":                             msgKeyTwice,
		"HASH a, HASH b, HASH a":                              p + "Attribute a occurs twice in the KeySchema of index: byKey",
		"HASH a, RANGE b, RANGE c, RANGE b":                   p + "Attribute b occurs twice in the KeySchema of index: byKey",
		"HASH a, HASH b, HASH c, HASH d, HASH e":              p + "Number of HASH KeySchemaElements exceeds the limit of 4 for index: byKey",
		"HASH a, RANGE b, RANGE c, RANGE d, RANGE e, RANGE f": p + "Number of RANGE KeySchemaElements exceeds the limit of 4 for index: byKey",
		"HASH a, HASH b, HASH c, HASH d, RANGE e, RANGE f, RANGE g, RANGE h, RANGE i": tooMany,
	} {
		t.Run(schema, func(t *testing.T) {
			d := open(t)
			in := keyedTable(schema)
			out, err := d.CreateTable(ctx, &in)
			if want != "" {
				invalidRequest(t, err, want)
			} else if err != nil {
				t.Fatal(err)
			} else if got := fmt.Sprint(out.Global[0].KeySchema); len(out.Global[0].KeySchema) != len(in.Global[0].KeySchema) {
				t.Errorf("it is described as %s", got)
			}
			d.counters()
			_, err = d.UpdateTable(ctx, &UpdateTableInput{
				TableName: Some("Counters"), Attributes: in.Attributes, GlobalUpdates: []IndexUpdate{{Create: &in.Global[0], Actions: 1}},
			})
			if want != "" {
				invalidRequest(t, err, want)
			} else if err != nil {
				t.Fatal(err)
			}
		})
	}
}

// Definitions must match the attributes of all indexes' keys, and tables and local indexes keep to
// one attribute of each kind.
func TestGlobalKeyDefinitions(t *testing.T) {
	const p = "One or more parameter values were invalid: "
	for about, tt := range map[string]struct {
		change func(in *CreateTableInput)
		want   string
	}{
		"missing": {func(in *CreateTableInput) { in.Attributes = definitions("id:S", "a:S", "c:S") },
			p + "Some index key attributes are not defined in AttributeDefinitions. Keys: [a, b, c], AttributeDefinitions: [id, a, c]"},
		"unused": {func(in *CreateTableInput) { in.Attributes = append(in.Attributes, definitions("z:S")...) },
			p + "Some AttributeDefinitions are not used. AttributeDefinitions: [id, a, b, c, z], keys used: [id, a, b, c]"},
		"no scalar": {func(in *CreateTableInput) { in.Attributes[2].Type = Some("M") },
			"1 validation error detected: Value 'M' at 'attributeDefinitions.3.member.attributeType' failed to satisfy constraint: Member must satisfy enum value set: [B, N, S]"},
		"table": {func(in *CreateTableInput) { in.KeySchema = elements("HASH id, RANGE a, RANGE b") },
			"1 validation error detected: Value '[KeySchemaElement(attributeName=id, keyType=HASH), KeySchemaElement(attributeName=a, keyType=RANGE), " +
				"KeySchemaElement(attributeName=b, keyType=RANGE)]' at 'keySchema' failed to satisfy constraint: Member must have length less than or equal to 2"},
		"table of two partition attributes": {func(in *CreateTableInput) { in.KeySchema = elements("HASH id, HASH a") },
			"Invalid KeySchema: The second KeySchemaElement is not a RANGE key type"},
		"local index": {func(in *CreateTableInput) {
			in.KeySchema = elements("HASH id, RANGE a")
			in.Local = []IndexSpec{index("local", "ALL")}
			in.Local[0].KeySchema = elements("HASH id, RANGE b, RANGE c")
		}, "1 validation error detected: Value '[KeySchemaElement(attributeName=id, …"},
	} {
		t.Run(about, func(t *testing.T) {
			in := keyedTable("HASH a, HASH b, RANGE c")
			tt.change(&in)
			_, err := open(t).CreateTable(ctx, &in)
			invalidRequest(t, err, tt.want)
		})
	}
}
