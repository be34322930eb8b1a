package wire

import (
	"errors"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// The SDK's client sets, reads and deletes the policies of a table and of its stream, and decodes
// the error for a missing one.
func TestSDKResourcePolicies(t *testing.T) {
	server := httptest.NewServer(newTestServer(t, Options{}))
	defer server.Close()
	db := dynamodb.New(dynamodb.Options{
		BaseEndpoint: &server.URL, Region: "eu-west-1", Credentials: credentials.NewStaticCredentialsProvider("AKID", "secret", ""), RetryMaxAttempts: 1,
	})
	created, err := db.CreateTable(t.Context(), &dynamodb.CreateTableInput{
		TableName: aws.String("Tab"), BillingMode: types.BillingModePayPerRequest, ResourcePolicy: aws.String(denyAll),
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("k"), AttributeType: types.ScalarAttributeTypeS}},
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("k"), KeyType: types.KeyTypeHash}},
		StreamSpecification:  &types.StreamSpecification{StreamEnabled: aws.Bool(true), StreamViewType: types.StreamViewTypeNewImage},
	})
	if err != nil {
		t.Fatal(err)
	}
	table, stream := created.TableDescription.TableArn, created.TableDescription.LatestStreamArn
	get := func(arn *string) (string, error) {
		out, err := db.GetResourcePolicy(t.Context(), &dynamodb.GetResourcePolicyInput{ResourceArn: arn})
		if err != nil {
			return "", err
		}
		return *out.Policy, nil
	}
	ofTable, err := get(table)
	want(t, err, nil)
	want(t, ofTable, denyAll)

	allow := strings.Replace(denyAll, "Deny", "Allow", 1)
	put, err := db.PutResourcePolicy(t.Context(), &dynamodb.PutResourcePolicyInput{
		ResourceArn: stream, Policy: &allow, ExpectedRevisionId: aws.String("NO_POLICY"), ConfirmRemoveSelfResourceAccess: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	ofStream, err := get(stream)
	want(t, err, nil)
	want(t, ofStream, allow)

	deleted, err := db.DeleteResourcePolicy(t.Context(), &dynamodb.DeleteResourcePolicyInput{ResourceArn: stream, ExpectedRevisionId: put.RevisionId})
	if err != nil {
		t.Fatal(err)
	}
	want(t, *deleted.RevisionId, *put.RevisionId)
	_, err = get(stream)
	if _, missing := errors.AsType[*types.PolicyNotFoundException](err); !missing {
		t.Errorf("after the deletion: %v", err)
	}
	again, err := db.DeleteResourcePolicy(t.Context(), &dynamodb.DeleteResourcePolicyInput{ResourceArn: stream})
	if err != nil || again.RevisionId != nil {
		t.Errorf("deleted again: %+v, %v", again, err)
	}
}

// A document that the language of policies does not allow is refused with its fault.
func TestInvalidPolicyDocuments(t *testing.T) {
	s := newTestServer(t, Options{})
	call(s, "CreateTable", createT)
	const prefix = `{"__type":"com.amazon.coral.validate#ValidationException","message":"One or more parameter values were invalid: `
	for text, fault := range map[string]string{
		``:                             `Invalid policy document: `,
		`{`:                            `Invalid policy document: `,
		`{\"Version\":\"2012-10-17\"}`: `Invalid policy document: policy: Statement is missing; `,
		`{\"Statement\":{\"Effect\":\"Deny\",\"Action\":\"*\",\"Resource\":\"*\"}}`: `Invalid policy document: statement 1: Principal: it is missing; `,
		strings.Repeat(" ", 1<<20): `Maximum policy size of 20480 bytes exceeded"}`,
	} {
		got := call(s, "PutResourcePolicy", `{"ResourceArn":"arn:aws:dynamodb:us-east-1:000000000000:table/Tab","Policy":"`+text+`"}`)
		if got.status != 400 || !strings.HasPrefix(got.body, prefix+fault) {
			t.Errorf("%.80s: %d %s", text, got.status, got.body)
		}
		got = call(s, "CreateTable", strings.Replace(createT, `{"TableName":"Tab"`, `{"TableName":"Other","ResourcePolicy":"`+text+`"`, 1))
		if got.status != 400 || !strings.HasPrefix(got.body, prefix+fault) {
			t.Errorf("CreateTable: %.80s: %d %s", text, got.status, got.body)
		}
	}
}
