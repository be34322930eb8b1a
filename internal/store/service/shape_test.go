package service

import (
	"strings"
	"testing"
)

func TestShapeNamesAtMostTen(t *testing.T) {
	var s shape
	for range 12 {
		s.Null("x")
	}
	one := "Value null at 'x' failed to satisfy constraint: Member must not be null"
	invalidRequest(t, s.err(), "10 validation errors detected: "+strings.Repeat(one+"; ", 9)+one)
}

func TestShapeCostsNothing(t *testing.T) {
	v := Some("NONE")
	allocs := testing.AllocsPerRun(100, func() {
		var s shape
		s.enum("returnValues", v, enumReturnValues)
		s.length("x", v, 1, 10)
		s.dataTable("tableName", v)
		if s.err() != nil {
			t.Error("refused")
		}
	})
	equal(t, "allocations", allocs, 0)
}

func TestDataTable(t *testing.T) {
	const pattern = "Member must satisfy regular expression pattern: [a-zA-Z0-9_.-]+"
	tests := []struct{ given, name, want string }{
		{"ab", "", "1 validation error detected: Value 'ab' at 'tableName' failed to satisfy constraint: Member must have length greater than or equal to 3"},
		{"", "", "1 validation error detected: Value '' at 'tableName' failed to satisfy constraint: Member must have length greater than or equal to 1"},
		{"Music", "Music", ""},
		{"arn:aws:dynamodb:eu-west-1:123456789012:table/Music", "Music", ""},
		{"arn:aws-cn:dynamodb:cn-north-1:1:table/Music", "Music", ""},
		{"Mu sic", "", "1 validation error detected: Value 'Mu sic' at 'tableName' failed to satisfy constraint: " + pattern},
		{strings.Repeat("a", 256), "", "1 validation error detected: Value '" + strings.Repeat("a", 256) + "' at 'tableName' failed to satisfy constraint: Member must have length less than or equal to 255"},
		{"arn:aws:dynamodb::123456789012:table/Music", "", "1 validation error detected: Invalid AWS region in 'arn:aws:dynamodb::123456789012:table/Music'"},
		{"arn:azure:dynamodb:x:1:table/Music", "", "1 validation error detected: Invalid AWS partition in 'arn:azure:dynamodb:x:1:table/Music'"},
		{"arn:aws:dynamodb:x:1:backup/Music", "", "1 validation error detected: Invalid resource type in 'arn:aws:dynamodb:x:1:backup/Music'"},
		{"arn:aws:s3", "", "1 validation error detected: Valid ARN format is arn:aws:dynamodb:region:account-id:resource, not 'arn:aws:s3'"},
	}
	for _, tt := range tests {
		ref, err := dataTable(Some(tt.given))
		if tt.want != "" {
			invalidRequest(t, err, tt.want)
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", tt.given, err)
		}
		equal(t, tt.given, ref.name, tt.name)
	}
}
