package conformance

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

var describeLimitsChecks = []check{
	{"Limits", describeLimits},
}

// An account allows at least as much as a table.
func describeLimits(t *testing.T, e *Endpoint) {
	out, err := e.DB.DescribeLimits(t.Context(), &dynamodb.DescribeLimitsInput{})
	if err != nil {
		t.Fatal(err)
	}
	if r, w := aws.ToInt64(out.TableMaxReadCapacityUnits), aws.ToInt64(out.TableMaxWriteCapacityUnits); r <= 0 || w <= 0 {
		t.Errorf("a table may have %d, %d units", r, w)
	}
	if aws.ToInt64(out.AccountMaxReadCapacityUnits) < aws.ToInt64(out.TableMaxReadCapacityUnits) ||
		aws.ToInt64(out.AccountMaxWriteCapacityUnits) < aws.ToInt64(out.TableMaxWriteCapacityUnits) {
		t.Errorf("the account's limits are below a table's: %+v", out)
	}
}
