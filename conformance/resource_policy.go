package conformance

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
)

var (
	resourcePolicyChecks = []check{
		{"PutChangeDelete", policyPutChangeDelete},
		{"WithCreateTable", policyWithCreateTable},
		{"Revisions", policyRevisions},
		{"Refused", policyRefused},
		{"BadARN", policyBadARN},
	}
	streamPolicyChecks = []check{
		{"OfItsOwn", policyOfStream},
	}
)

const policyNotFound = "PolicyNotFoundException"

// noPolicyAt is the message for a resource without a policy.
func noPolicyAt(arn string) string {
	return "Resource-based policy not found for the provided ResourceArn: " + arn
}

// allowing returns a policy that allows everyone an action on a resource.
func allowing(action, arn string) string {
	return `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":"*","Action":"` + action + `","Resource":"` + arn + `"}]}`
}

// putPolicy sets a policy and waits until it can be read. It returns the revision.
func (tb *table) putPolicy(t *testing.T, arn, policy string, change ...func(*dynamodb.PutResourcePolicyInput)) string {
	t.Helper()
	in := &dynamodb.PutResourcePolicyInput{ResourceArn: &arn, Policy: &policy}
	for _, f := range change {
		f(in)
	}
	var out *dynamodb.PutResourcePolicyOutput
	err := retryPolicyChange(func() (err error) {
		out, err = tb.DB.PutResourcePolicy(t.Context(), in)
		return err
	})
	if err != nil {
		t.Fatalf("put policy: %v", err)
	}
	revision := aws.ToString(out.RevisionId)
	tb.await(t, "the policy", func() bool {
		_, got, err := tb.getPolicy(t, arn)
		return err == nil && got == revision
	})
	return revision
}

// deletePolicy removes a policy and waits until it cannot be read. It returns the revision.
func (tb *table) deletePolicy(t *testing.T, arn string, expected *string) string {
	t.Helper()
	var out *dynamodb.DeleteResourcePolicyOutput
	err := retryPolicyChange(func() (err error) {
		out, err = tb.DB.DeleteResourcePolicy(t.Context(), &dynamodb.DeleteResourcePolicyInput{ResourceArn: &arn, ExpectedRevisionId: expected})
		return err
	})
	if err != nil {
		t.Fatalf("delete policy: %v", err)
	}
	tb.await(t, "no policy", func() bool {
		_, _, err := tb.getPolicy(t, arn)
		return errorProblem(err, policyNotFound, noPolicyAt(arn)) == ""
	})
	return aws.ToString(out.RevisionId)
}

// retryPolicyChange repeats a change that the endpoint refuses soon after another one.
func retryPolicyChange(change func() error) error {
	const patience = 30 * time.Second
	for deadline := time.Now().Add(patience); ; time.Sleep(pollEvery) {
		err := change()
		api, refused := errors.AsType[smithy.APIError](err)
		if !refused || time.Now().After(deadline) || api.ErrorCode() != inUse && api.ErrorCode() != "ThrottlingException" {
			return err
		}
	}
}

func (tb *table) getPolicy(t *testing.T, arn string) (policy, revision string, err error) {
	t.Helper()
	out, err := tb.DB.GetResourcePolicy(t.Context(), &dynamodb.GetResourcePolicyInput{ResourceArn: &arn})
	if err != nil {
		return "", "", err
	}
	return aws.ToString(out.Policy), aws.ToString(out.RevisionId), nil
}

func (tb *table) wantPolicy(t *testing.T, arn, policy, revision string) {
	t.Helper()
	gotPolicy, gotRevision, err := tb.getPolicy(t, arn)
	if err != nil || gotPolicy != policy || gotRevision != revision {
		t.Errorf("got  %s with revision %s, %v\nwant %s with revision %s", gotPolicy, gotRevision, err, policy, revision)
	}
}

// A policy is set, replaced and deleted. Setting the same one again keeps the revision, and
// deleting one that does not exist is no error.
func policyPutChangeDelete(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S")
	_, _, err := tb.getPolicy(t, tb.arn)
	wantError(t, err, policyNotFound, noPolicyAt(tb.arn))
	get, put := allowing("dynamodb:GetItem", tb.arn), allowing("dynamodb:PutItem", tb.arn)
	first := tb.putPolicy(t, tb.arn, get)
	tb.wantPolicy(t, tb.arn, get, first)
	if again := tb.putPolicy(t, tb.arn, get); again != first {
		t.Errorf("the same policy: revision %s follows %s", again, first)
	}
	second := tb.putPolicy(t, tb.arn, put)
	tb.wantPolicy(t, tb.arn, put, second)
	if second == first {
		t.Errorf("two policies have the revision %s", first)
	}
	if deleted := tb.deletePolicy(t, tb.arn, nil); deleted != second {
		t.Errorf("deleted revision %s, want %s", deleted, second)
	}
	if deleted := tb.deletePolicy(t, tb.arn, nil); deleted != "" {
		t.Errorf("deleted revision %s again", deleted)
	}
	if third := tb.putPolicy(t, tb.arn, get); third == first || third == second {
		t.Errorf("the revision %s comes again", third)
	}
}

// A table may have a policy from the start.
func policyWithCreateTable(t *testing.T, e *Endpoint) {
	policy := allowing("dynamodb:GetItem", "*")
	tb := newTable(t, e, "pk:S", func(in *dynamodb.CreateTableInput) { in.ResourcePolicy = &policy })
	tb.await(t, "the policy", func() bool {
		got, revision, err := tb.getPolicy(t, tb.arn)
		return err == nil && got == policy && revision != ""
	})
}

// A change may expect the revision of the present policy, or that there is none.
func policyRevisions(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S")
	first, second := allowing("dynamodb:GetItem", tb.arn), allowing("dynamodb:PutItem", tb.arn)
	expect := func(revision string) func(*dynamodb.PutResourcePolicyInput) {
		return func(in *dynamodb.PutResourcePolicyInput) { in.ExpectedRevisionId = &revision }
	}
	revision := tb.putPolicy(t, tb.arn, first, expect("NO_POLICY"))
	refuse := func(policy, expected, detail string) {
		t.Helper()
		err := retryPolicyChange(func() error {
			_, err := tb.DB.PutResourcePolicy(t.Context(), &dynamodb.PutResourcePolicyInput{ResourceArn: &tb.arn, Policy: &policy, ExpectedRevisionId: &expected})
			return err
		})
		wantError(t, err, policyNotFound, noPolicyAt(detail))
	}
	other := "Requested update for policy with revision id 1, but the policy associated to target table " + tb.name + " has revision id " + revision + "."
	refuse(second, "1", other)
	refuse(second, "NO_POLICY", "Requested policy update expecting none to be present for table "+tb.name+", but a policy exists with revision id "+revision+".")
	err := retryPolicyChange(func() error {
		_, err := tb.DB.DeleteResourcePolicy(t.Context(), &dynamodb.DeleteResourcePolicyInput{ResourceArn: &tb.arn, ExpectedRevisionId: aws.String("1")})
		return err
	})
	wantError(t, err, policyNotFound, noPolicyAt(other))
	tb.wantPolicy(t, tb.arn, first, revision)
	revision = tb.putPolicy(t, tb.arn, second, expect(revision))
	tb.deletePolicy(t, tb.arn, &revision)
}

func policyRefused(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S")
	arn := `{"ResourceArn":"` + tb.arn + `"`
	e.refuse(t, "PutResourcePolicy", arn+`}`, validation,
		"1 validation error detected: Value null at 'policy' failed to satisfy constraint: Member must not be null")
	for _, policy := range []string{``, `{`, `{\"Version\":\"2012-10-17\",\"Statement\":[]}`} {
		e.refuse(t, "PutResourcePolicy", arn+`,"Policy":"`+policy+`"}`, validation, invalid+"Invalid policy document: …")
	}
	long := strings.ReplaceAll(allowing("dynamodb:GetItem", "*"), `"`, `\"`) + strings.Repeat(" ", 20<<10)
	e.refuse(t, "PutResourcePolicy", arn+`,"Policy":"`+long+`"}`, validation, invalid+"Maximum policy size of 20480 bytes exceeded")
	_, _, err := tb.getPolicy(t, tb.arn)
	wantError(t, err, policyNotFound, noPolicyAt(tb.arn))
}

// Only tables and streams have policies; an index has its table's.
func policyBadARN(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S")
	missing := strings.TrimSuffix(tb.arn, tb.name) + "no-such-table"
	policy := `"Policy":"` + strings.ReplaceAll(allowing("dynamodb:GetItem", "*"), `"`, `\"`) + `"`
	for _, c := range []struct{ arn, code, message string }{
		{missing, notFound, "Requested resource not found: Table: no-such-table not found"},
		{tb.name, validation, invalid + "ARNs must start with 'arn:': " + tb.name},
		{tb.arn + "/index/byA", validation, invalid + "Invalid resource arn provided, only table or stream is accepted. Provided resource arn: …"},
	} {
		e.refuse(t, "GetResourcePolicy", `{"ResourceArn":"`+c.arn+`"}`, c.code, c.message)
		e.refuse(t, "PutResourcePolicy", `{"ResourceArn":"`+c.arn+`",`+policy+`}`, c.code, c.message)
		e.refuse(t, "DeleteResourcePolicy", `{"ResourceArn":"`+c.arn+`"}`, c.code, c.message)
	}
	none := "2000-01-01T00:00:00.000"
	e.refuse(t, "GetResourcePolicy", `{"ResourceArn":"`+tb.arn+"/stream/"+none+`"}`, notFound,
		"Requested resource not found: Stream: "+none+" not found for Table: "+tb.name)
}

// A stream and its table have a policy each.
func policyOfStream(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S", stream(types.StreamViewTypeKeysOnly))
	arn := tb.awaitStream(t)
	policy := allowing("dynamodb:GetRecords", arn)
	revision := tb.putPolicy(t, arn, policy)
	_, _, err := tb.getPolicy(t, tb.arn)
	wantError(t, err, policyNotFound, noPolicyAt(tb.arn))
	tb.putPolicy(t, tb.arn, allowing("dynamodb:GetItem", tb.arn))
	tb.wantPolicy(t, arn, policy, revision)
	tb.deletePolicy(t, tb.arn, nil)
	tb.wantPolicy(t, arn, policy, revision)
	if deleted := tb.deletePolicy(t, arn, &revision); deleted != revision {
		t.Errorf("deleted revision %s, want %s", deleted, revision)
	}
}
