package policy

import (
	"reflect"
	"strings"
	"testing"
)

// TestMessage: the messages of AccessDeniedException are those of the IAM User Guide, "Troubleshoot
// access denied error messages".
func TestMessage(t *testing.T) {
	identity := mustParse(t, `{"Statement": [{"Effect": "Allow", "Action": "dynamodb:Query", "Resource": "*"}, {"Effect": "Deny", "Action": "dynamodb:Scan", "Resource": "*"}]}`, false)
	resource := mustParse(t, `{"Statement": {"Effect": "Deny", "Principal": "*", "Action": "dynamodb:Query", "Resource": "*"}}`, true)
	role := []func(*Request){by("arn:aws:iam::123456789012:role/r"), session("arn:aws:sts::123456789012:assumed-role/r/s")}
	for _, c := range []struct {
		request Request
		want    string
	}{
		{db("GetItem", books), "User: arn:aws:iam::123456789012:user/alice is not authorized to perform: dynamodb:GetItem on resource: arn:aws:dynamodb:us-west-2:123456789012:table/Books because no identity-based policy allows the dynamodb:GetItem action"},
		{db("Scan", books), "User: arn:aws:iam::123456789012:user/alice is not authorized to perform: dynamodb:Scan on resource: arn:aws:dynamodb:us-west-2:123456789012:table/Books with an explicit deny in an identity-based policy"},
		{db("Query", books, role...), "User: arn:aws:sts::123456789012:assumed-role/r/s is not authorized to perform: dynamodb:Query on resource: arn:aws:dynamodb:us-west-2:123456789012:table/Books with an explicit deny in a resource-based policy"},
	} {
		if got := Decide(&c.request, identity, resource).Message(&c.request); got != c.want {
			t.Errorf("got:  %s\nwant: %s", got, c.want)
		}
	}
}

func TestExplain(t *testing.T) {
	identity := mustParse(t, `{"Version": "2012-10-17", "Statement": [
		{"Sid": "Write", "Effect": "Allow", "Action": ["dynamodb:PutItem", "dynamodb:UpdateItem"], "Resource": "*"},
		{"Sid": "Own", "Effect": "Allow", "Action": "dynamodb:GetItem", "Resource": "`+owner+`table/${aws:username}_*"},
		{"Sid": "Others", "Effect": "Allow", "NotAction": "dynamodb:Get*", "Resource": "*"},
		{"Sid": "Elsewhere", "Effect": "Allow", "Action": "*", "NotResource": "`+owner+`table/*"},
		{"Sid": "Unknown", "Effect": "Allow", "Action": "*", "NotResource": "`+owner+`table/${dynamodb:Select}"},
		{"Sid": "Keys", "Effect": "Allow", "Action": "*", "Resource": "*", "Condition": {"ForAllValues:StringEquals": {"dynamodb:LeadingKeys": ["${aws:username}", "all"]}}},
		{"Sid": "Night", "Effect": "Deny", "Action": "*", "Resource": "*", "Condition": {"DateGreaterThan": {"aws:CurrentTime": "2019-07-16T22:00:00Z"}}},
		{"Sid": "Counting", "Effect": "Allow", "Action": "*", "Resource": "*", "Condition": {"NumericGreaterThan": {"aws:EpochTime": 0}, "StringEquals": {"dynamodb:Select": "COUNT"}}}]}`, false)
	identity[0].Name = "alice.json"
	resource := mustParse(t, `{"Statement": [
		{"Effect": "Allow", "Principal": {"AWS": ["arn:aws:iam::123456789012:user/bob", "999999999999"]}, "Action": "*", "Resource": "*"},
		{"Effect": "Allow", "Principal": {"AWS": "123456789012"}, "Action": "*", "Resource": "*"},
		{"Effect": "Deny", "NotPrincipal": {"AWS": ["arn:aws:iam::123456789012:user/alice", "123456789012"]}, "Action": "*", "Resource": "*"}]}`, true)
	r := db("GetItem", books, leading("alice", "1", "2", "3", "4", "5", "6", "7", "8", "9"))
	const want = `denied: no statement allows the request
  identity-based policy alice.json, statement 1 ("Write"): Allow does not apply: the action dynamodb:GetItem does not match Action dynamodb:PutItem, dynamodb:UpdateItem
  identity-based policy alice.json, statement 2 ("Own"): Allow does not apply: the resource arn:aws:dynamodb:us-west-2:123456789012:table/Books does not match Resource arn:aws:dynamodb:us-west-2:123456789012:table/${aws:username}_* (aws:username is "alice")
  identity-based policy alice.json, statement 3 ("Others"): Allow does not apply: the action dynamodb:GetItem matches NotAction dynamodb:Get*
  identity-based policy alice.json, statement 4 ("Elsewhere"): Allow does not apply: the resource arn:aws:dynamodb:us-west-2:123456789012:table/Books matches NotResource arn:aws:dynamodb:us-west-2:123456789012:table/*
  identity-based policy alice.json, statement 5 ("Unknown"): Allow does not apply: NotResource has a variable without a value: arn:aws:dynamodb:us-west-2:123456789012:table/${dynamodb:Select} (dynamodb:Select has no value)
  identity-based policy alice.json, statement 6 ("Keys"): Allow does not apply: dynamodb:LeadingKeys is "alice", "1", "2", "3", "4", "5", "6", "7" and 2 more, and the condition is ForAllValues:StringEquals ${aws:username} (aws:username is "alice"), all
  identity-based policy alice.json, statement 7 ("Night"): Deny does not apply: aws:CurrentTime is "2019-07-16T13:00:00Z", and the condition is DateGreaterThan 2019-07-16T22:00:00Z
  identity-based policy alice.json, statement 8 ("Counting"): Allow does not apply: dynamodb:Select has no value in the request, and the condition is StringEquals COUNT
  resource-based policy, statement 1: Allow does not apply: the principal arn:aws:iam::123456789012:user/alice does not match Principal arn:aws:iam::123456789012:user/bob, 999999999999
  resource-based policy, statement 2: Allow does not apply: Principal names the account 123456789012 as a whole, so an identity-based policy must allow the request
  resource-based policy, statement 3: Deny does not apply: NotPrincipal excepts arn:aws:iam::123456789012:user/alice
`
	e := Explain(&r, identity, resource)
	if got := e.String(); got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
	checkFindings(t, Decide(&r, identity, resource), e)

	r.LeadingKeys = []string{"all"}
	if got, _, _ := strings.Cut(Explain(&r, identity, resource).String(), "\n"); got != `allowed by identity-based policy alice.json, statement 6 ("Keys")` {
		t.Error(got)
	}
	r.Time = r.Time.AddDate(0, 0, 1)
	if got, _, _ := strings.Cut(Explain(&r, identity, resource).String(), "\n"); got != `denied by identity-based policy alice.json, statement 7 ("Night")` {
		t.Error(got)
	}
}

// checkFindings compares a decision with the findings about the statements.
func checkFindings(t *testing.T, d Decision, e Explanation) {
	t.Helper()
	allows, denies := false, false
	for _, f := range e.Findings {
		if f.Applies != (f.Reason == "") {
			t.Fatalf("%s applies: %t, with the reason %q", f.Statement, f.Applies, f.Reason)
		}
		allows = allows || f.Applies && f.Effect == "Allow"
		denies = denies || f.Applies && f.Effect == "Deny"
	}
	if !reflect.DeepEqual(d, e.Decision) || d.Allowed != (allows && !denies) || (d.Policy != nil) != (allows || denies) {
		t.Fatalf("the decision is %+v\n%s", d, e)
	}
	if e.String() == "" || strings.Count(e.String(), "\n") < len(e.Findings) {
		t.Fatalf("%s", e)
	}
}
