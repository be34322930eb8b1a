package service

import (
	"fmt"
	"testing"
)

func TestListTables(t *testing.T) {
	d := open(t)
	for _, name := range []string{"ccc", "aaa", "bbb"} {
		in := CreateTableInput{TableName: Some(name), Attributes: definitions("id:S"), KeySchema: keys("id"), BillingMode: Some("PAY_PER_REQUEST")}
		if _, err := d.CreateTable(ctx, &in); err != nil {
			t.Fatal(err)
		}
	}
	tests := []struct {
		in   ListTablesInput
		want string
	}{
		{ListTablesInput{}, "[aaa bbb ccc] "},
		{ListTablesInput{Limit: Some[int64](2)}, "[aaa bbb] bbb"},
		{ListTablesInput{Limit: Some[int64](3)}, "[aaa bbb ccc] "},
		{ListTablesInput{Start: Some("aab")}, "[bbb ccc] "},
	}
	for _, tt := range tests {
		out, err := d.ListTables(ctx, &tt.in)
		if err != nil {
			t.Fatal(err)
		}
		equal(t, fmt.Sprint(tt.in), fmt.Sprint(out.Names, " ", out.Last), tt.want)
	}
	_, err := d.ListTables(ctx, &ListTablesInput{Limit: Some[int64](101), Start: Some("a;")})
	invalidRequest(t, err, "3 validation errors detected: "+
		"Value 'a;' at 'exclusiveStartTableName' failed to satisfy constraint: Member must satisfy regular expression pattern: [a-zA-Z0-9_.-]+; "+
		"Value 'a;' at 'exclusiveStartTableName' failed to satisfy constraint: Member must have length greater than or equal to 3; "+
		"Value '101' at 'limit' failed to satisfy constraint: Member must have value less than or equal to 100")
}
