package conformance

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

var describeTableChecks = []check{
	{"ByARN", describeByARN},
	{"Missing", describeMissing},
	{"NameLimits", describeNameLimits},
}

// A table answers to its ARN as to its name, in the control plane and in the data plane.
func describeByARN(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S")
	out, err := e.DB.DescribeTable(t.Context(), &dynamodb.DescribeTableInput{TableName: &tb.arn})
	if err != nil {
		t.Fatal(err)
	}
	if got := aws.ToString(out.Table.TableName); got != tb.name {
		t.Errorf("TableName: got %s, want %s", got, tb.name)
	}
	if _, err := e.DB.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &tb.arn, Item: item("pk", "a")}); err != nil {
		t.Fatal(err)
	}
	tb.wantStored(t, item("pk", "a"), item("pk", "a"))
}

func describeMissing(t *testing.T, e *Endpoint) {
	e.refuse(t, "DescribeTable", `{"TableName":"no-such-table"}`, notFound, "Requested resource not found: Table: no-such-table not found")
}

func describeNameLimits(t *testing.T, e *Endpoint) {
	e.refuse(t, "DescribeTable", `{}`, validation, "The parameter 'TableName' is required but was not present in the request")
	e.refuse(t, "DescribeTable", `{"TableName":"ab"}`, validation, "TableName must be at least 3 characters long and at most 255 characters long")
	e.refuse(t, "DescribeTable", `{"TableName":"abc;"}`, validation, "…Member must satisfy regular expression pattern: [a-zA-Z0-9_.-]+")
}
