package conformance

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

var describeEndpointsChecks = []check{
	{"Endpoints", describeEndpoints},
}

// The answer names at least one address and for how long it may be remembered.
func describeEndpoints(t *testing.T, e *Endpoint) {
	out, err := e.DB.DescribeEndpoints(t.Context(), &dynamodb.DescribeEndpointsInput{})
	if err != nil {
		t.Fatal(err)
	}
	if len(out.Endpoints) == 0 {
		t.Fatal("no endpoints")
	}
	if first := out.Endpoints[0]; aws.ToString(first.Address) == "" || first.CachePeriodInMinutes <= 0 {
		t.Errorf("endpoint: %q for %d minutes", aws.ToString(first.Address), first.CachePeriodInMinutes)
	}
}
