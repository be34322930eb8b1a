package policy

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"
)

// TestFaults: a policy with a fault is refused, and the error names the statement, the element, the
// value and the correction.
func TestFaults(t *testing.T) {
	statement := func(members string) string {
		return `{"Version": "2012-10-17", "Statement": [{"Sid": "S1", "Effect": "Allow", ` + members + `}]}`
	}
	condition := func(c string) string {
		return statement(`"Action": "dynamodb:*", "Resource": "*", "Condition": ` + c)
	}
	action := func(a string) string { return statement(`"Action": ` + a + `, "Resource": "*"`) }
	resource := func(r string) string { return statement(`"Action": "*", "Resource": ` + r) }
	for _, c := range []struct{ policy, want string }{
		{``, `the policy is not JSON: unexpected end of JSON input, at byte 0`},
		{`{"Version": }`, `the policy is not JSON: invalid character '}' looking for beginning of value, at byte 13`},
		{"{\"Id\": \"\xff\"}", `the policy is not UTF-8`},
		{`[]`, `policy: it is not a JSON object; write { }`},
		{`{"Version": "2012-10-17"}`, `policy: Statement is missing`},
		{`{"Version": "2012-10-18", "Statement": []}`, `policy: Version: "2012-10-18" is unknown; write "2012-10-17"`},
		{`{"Version": 2012, "Statement": []}`, `policy: Version: 2012 is unknown`},
		{`{"Id": 1, "Statement": []}`, `policy: Id: 1 is not a string`},
		{`{"Statement": []}`, `policy: Statement: the array is empty`},
		{`{"statement": []}`, `policy: statement: the element is unknown; use one of Version, Id, Statement`},
		{`{"Statement": [], "Statement": []}`, `policy: Statement: it occurs twice`},
		{`{"Statement": null}`, `statement 1: it is not a JSON object`},
		{`{"Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*"}, 1]}`, `statement 2: it is not a JSON object`},

		{statement(`"Resource": "*"`), `statement 1 ("S1"): Action: it is missing; add Action or NotAction`},
		{statement(`"Action": "*"`), `statement 1 ("S1"): Resource: it is missing`},
		{statement(`"Action": "*", "NotAction": "*", "Resource": "*"`), `statement 1 ("S1"): Action: the statement has Action and NotAction; remove one of them`},
		{statement(`"Action": "*", "Resource": "*", "Resources": "*"`), `statement 1 ("S1"): Resources: the element is unknown; use one of Sid, Effect`},
		{statement(`"Action": "*", "Resource": "*", "Sid": "S2"`), `Sid: it occurs twice`},
		{`{"Statement": {"Effect": "allow", "Action": "*", "Resource": "*"}}`, `statement 1: Effect: it is "allow"; write "Allow" or "Deny"`},
		{`{"Statement": {"Action": "*", "Resource": "*"}}`, `statement 1: Effect: it is missing`},
		{`{"Statement": {"Sid": "a b", "Effect": "Allow", "Action": "*", "Resource": "*"}}`, `Sid: "a b" has other characters than letters and digits`},
		{`{"Statement": {"Sid": 1, "Effect": "Allow", "Action": "*", "Resource": "*"}}`, `statement 1: Sid: 1 is not a string`},
		{`{"Statement": [{"Sid": "a", "Effect": "Allow", "Action": "*", "Resource": "*"}, {"Sid": "a", "Effect": "Allow", "Action": "*", "Resource": "*"}]}`, `statement 2 ("a"): Sid: an earlier statement has the Sid "a" too`},
		{statement(`"Principal": "*", "Action": "*", "Resource": "*"`), `Principal: an identity policy has no principal`},
		{statement(`"NotPrincipal": "*", "Action": "*", "Resource": "*"`), `NotPrincipal: an identity policy has no principal`},

		{action(`"GetItem"`), `Action: "GetItem" does not name a service; write for example dynamodb:GetItem`},
		{action(`"*:GetItem"`), `Action: "*:GetItem" is not an action`},
		{action(`"dynamodb:"`), `Action: "dynamodb:" is not an action`},
		{action(`"dynamodb:${aws:username}"`), `is not an action`},
		{action(`"dynamodb:Get Item"`), `is not an action`},
		{action(`"dynamodb:Gét"`), `is not an action`},
		{action(`["dynamodb:GetItem", 1]`), `Action: 1 is not a string`},
		{action(`[]`), `Action: the array is empty`},
		{action(`null`), `Action: null is not a string`},
		{action(`"dynamodb:\ud800"`), `Action: "dynamodb:\ud800" is not a string`},

		{resource(`"GameScores"`), `Resource: "GameScores" is not an ARN of six parts; write for example arn:aws:dynamodb:*:*:table/orders, or *`},
		{resource(`"arn:aws:dynamodb"`), `Resource: "arn:aws:dynamodb" is not an ARN of six parts`},
		{resource(`"arn:aws:*:*:*:*"`), `Resource: "arn:aws:*:*:*:*" does not name the service`},
		{resource(`"arn:aws:dynamodb:*:${aws:userid}:table/x"`), `has a variable before the fifth colon`},
		{resource(`"arn:aws:dynamodb:*:*:table/${aws:username"`), `has "${" without "}"; write ${$} for a dollar sign`},
		{resource(`"arn:aws:dynamodb:*:*:table/${aws:PrincipalTag/team}"`), `the variable ${aws:PrincipalTag/team} is not supported; use one of dynamodb:EnclosingOperation`},
		{resource(`"arn:aws:dynamodb:*:*:table/${dynamodb:LeadingKeys}"`), `the variable ${dynamodb:LeadingKeys} is not supported`},
		{resource(`"arn:aws:dynamodb:*:*:table/${aws:username, anonymous}"`), `the default value in ${aws:username, anonymous} is not in single quotes; write ${aws:username, 'value'}`},
		{resource(`"arn:aws:dynamodb:*:*:table/` + strings.Repeat("x", 2048) + `"`), `is too long; the limit is 2048`},

		{condition(`[]`), `statement 1 ("S1"): Condition: [] is not an object`},
		{condition(`{"StringMatches": {"aws:username": "a"}}`), `Condition: unknown operator "StringMatches"; use one of ArnEquals, `},
		{condition(`{"stringequals": {"aws:username": "a"}}`), `unknown operator "stringequals"`},
		{condition(`{"ForSomeValues:StringEquals": {"aws:username": "a"}}`), `unknown operator "ForSomeValues:StringEquals"`},
		{condition(`{"NullIfExists": {"aws:username": "true"}}`), `NullIfExists: Null takes no set operator and no IfExists; write Null`},
		{condition(`{"ForAnyValue:Null": {"dynamodb:LeadingKeys": "true"}}`), `Null takes no set operator`},
		{condition(`{"BinaryEquals": {"aws:username": "QQ=="}}`), `BinaryEquals compares binary keys, and mayfly has none`},
		{condition(`{"StringEquals": {"aws:PrincipalOrgID": "o-1"}}`), `Condition.StringEquals: the condition key "aws:PrincipalOrgID" is not supported; use one of dynamodb:Attributes`},
		{condition(`{"StringEquals": {"aws:username": "a"}, "StringEquals": {"aws:userid": "b"}}`), `Condition.StringEquals: it occurs twice`},
		{condition(`{"StringEquals": {"aws:username": "a", "aws:username": "b"}}`), `Condition.StringEquals.aws:username: it occurs twice`},
		{condition(`{"StringEquals": {"aws:username": "a", "AWS:Username": "b"}}`), `Condition.StringEquals.AWS:Username: it occurs twice`},
		{condition(`{"Bool": {"aws:SecureTransport": ["true", "false"]}}`), `Condition.Bool.aws:SecureTransport: it has 2 values; write true or false`},
		{condition(`{"Null": {"aws:username": [true, true]}}`), `it has 2 values`},
		{`{"Statement": {"Effect": "Deny", "Action": "*", "Resource": "arn:aws:dynamodb:*:*:table/${aws:username}"}}`, `statement 1: Resource: "arn:aws:dynamodb:*:*:table/${aws:username}" has a variable, and version 2008-10-17 has none; add "Version": "2012-10-17" to the policy`},
		{resource(`"arn:aws:DynamoDB:*:*:table/x"`), `does not name the service; write arn:aws:dynamodb:`},
		{condition(`{"StringEquals": {}}`), `Condition.StringEquals: {} is not an object with condition keys`},
		{condition(`{"StringEquals": "aws:username"}`), `Condition.StringEquals: "aws:username" is not an object`},
		{condition(`{"StringEquals": {"dynamodb:LeadingKeys": "a"}}`), `dynamodb:LeadingKeys can have several values in a request, so StringEquals needs a set operator; write ForAllValues:StringEquals or ForAnyValue:StringEquals`},
		{condition(`{"StringLike": {"aws:SourceIp": "10.*"}}`), `StringLike does not compare the type of aws:SourceIp; use IpAddress or NotIpAddress, Null`},
		{condition(`{"NumericEquals": {"aws:CurrentTime": "1"}}`), `use Date…, Null`},
		{condition(`{"StringEquals": {"aws:SecureTransport": "true"}}`), `use Bool, Null`},
		{condition(`{"StringEquals": {"aws:username": []}}`), `Condition.StringEquals.aws:username: the array is empty`},
		{condition(`{"StringEquals": {"aws:username": true}}`), `Condition.StringEquals.aws:username: true is not a string; write it in double quotes`},
		{condition(`{"StringEquals": {"aws:username": {"a": "b"}}}`), `{"a": "b"} is not a string`},
		{condition(`{"StringEquals": {"aws:username": null}}`), `null is not a string`},
		{condition(`{"Bool": {"aws:SecureTransport": "True"}}`), `"True" is not a Boolean; write true or false`},
		{condition(`{"Bool": {"aws:SecureTransport": "${dynamodb:FullTableScan}"}}`), `is not a Boolean`},
		{condition(`{"Bool": {"aws:SecureTransport": null}}`), `null is not a string`},
		{condition(`{"DateLessThan": {"aws:CurrentTime": "2030"}}`), `"2030" is not a date`},
		{condition(`{"DateLessThan": {"aws:CurrentTime": "tomorrow"}}`), `"tomorrow" is not a date`},
		{condition(`{"DateLessThan": {"aws:CurrentTime": "2030-01-01T12:00:00"}}`), `is not a date`},
		{condition(`{"NumericLessThan": {"aws:EpochTime": "1e9"}}`), `"1e9" is not a number`},
		{condition(`{"NumericLessThan": {"aws:EpochTime": "Inf"}}`), `"Inf" is not a number`},
		{condition(`{"IpAddress": {"aws:SourceIp": "10.0.0.0/33"}}`), `"10.0.0.0/33" is not an IP address or range`},
		{condition(`{"IpAddress": {"aws:SourceIp": "::ffff:10.0.0.0/120"}}`), `is not an IP address or range`},
		{condition(`{"IpAddress": {"aws:SourceIp": "fe80::1%eth0"}}`), `is not an IP address or range`},
		{condition(`{"ArnLike": {"aws:PrincipalArn": "*"}}`), `"*" is not an ARN of six parts`},
		{condition(`{"StringEquals": {"aws:username": "` + strings.Repeat("x", 300) + `", "aws:userid": [` + strings.Repeat("1, ", 200) + `1]}}`), `1 is not a string`},
	} {
		if _, err := Parse([]byte(c.policy)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s\ngot:  %v\nwant: %s", c.policy, err, c.want)
		}
	}
}

func TestResourceFaults(t *testing.T) {
	for _, c := range []struct{ effect, principal, want string }{
		{"Allow", ``, `statement 1: Principal: it is missing; add Principal or NotPrincipal`},
		{"Allow", `"Principal": "*", "NotPrincipal": "*",`, `remove one of them`},
		{"Allow", `"Principal": "arn:aws:iam::123456789012:user/a",`, `Principal: "arn:aws:iam::123456789012:user/a" is not supported; write "*", or {"AWS": "arn:`},
		{"Allow", `"Principal": {"Service": "lambda.amazonaws.com"},`, `is not supported`},
		{"Allow", `"Principal": {"AWS": "*", "Service": "x"},`, `is not supported`},
		{"Allow", `"Principal": {"AWS": []},`, `the array is empty`},
		{"Allow", `"Principal": {"AWS": [12]},`, `12 is not a string`},
		{"Allow", `"Principal": {"AWS": "arn:aws:iam::123456789012:user/*"},`, `is not a principal; write an account's number, or an ARN without wildcards`},
		{"Allow", `"Principal": {"AWS": "arn:aws:iam::1:user/a"},`, `is not a principal`},
		{"Allow", `"Principal": {"AWS": "arn:aws:s3:::123456789012"},`, `is not a principal`},
		{"Allow", `"Principal": {"AWS": "alice"},`, `is not a principal`},
		{"Allow", `"NotPrincipal": {"AWS": "123456789012"},`, `NotPrincipal: IAM supports it with "Effect": "Deny" only`},
		{"Deny", `"NotPrincipal": "*",`, `"*" is not a principal`},
		{"Deny", `"NotPrincipal": {"AWS": "arn:aws:iam::123456789012:user/a"},`, `NotPrincipal: "arn:aws:iam::123456789012:user/a" is excepted without its account, which IAM requires; add "arn:aws:iam::123456789012:root"`},
	} {
		text := fmt.Sprintf(`{"Version": "2012-10-17", "Statement": {"Effect": %q, %s "Action": "*", "Resource": "*"}}`, c.effect, c.principal)
		if _, err := ParseResource([]byte(text)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s\ngot:  %v\nwant: %s", text, err, c.want)
		}
	}
}

// TestAccepted: forms that are unusual and valid.
func TestAccepted(t *testing.T) {
	for _, text := range []string{
		`{"Statement": {"Effect": "Deny", "Action": "*", "Resource": "*"}}`,
		`{"Version": "2008-10-17", "Id": "x", "Statement": [{"Sid": "", "Effect": "Allow", "Action": ["*"], "Resource": ["*"], "Condition": {}}]}`,
		`{"Statement": [{"Sid": "", "Effect": "Allow", "Action": "*", "Resource": "*"}, {"Sid": "", "Effect": "Allow", "Action": "*", "Resource": "*"}]}`,
		`{"Statement": {"Effect": "Allow", "Action": "*", "Resource": "*", "Condition": {"DateLessThan": {"aws:CurrentTime": ["2030-01-01", "2030-01", 1577836800, "1577836800.5", "2030-01-01T12:00Z", "2030-01-01T12:00:00.5+01:00"]}}}}`,
		`{"Version": "2012-10-17", "Statement": {"Effect": "Allow", "Action": "*", "Resource": "arn:aws:dynamodb:*:*:table/$x"}}`,
	} {
		if _, err := Parse([]byte(text)); err != nil {
			t.Errorf("%s\n%v", text, err)
		}
	}
}

// TestRelations: each operator for numbers and dates, at a value and beside it, with and without a
// value in the request.
func TestRelations(t *testing.T) {
	for operator, want := range map[string]string{ // before, at and after the policy's value, and missing
		"Equals": "-+--", "NotEquals": "+-++", "LessThan": "+---", "LessThanEquals": "++--", "GreaterThan": "--+-", "GreaterThanEquals": "-++-",
	} {
		for _, condition := range []string{
			`{"Numeric` + operator + `": {"aws:EpochTime": 1000000}}`, `{"Date` + operator + `": {"aws:EpochTime": "1000000"}}`,
			`{"Date` + operator + `": {"aws:CurrentTime": "1970-01-12T13:46:40Z"}}`,
		} {
			policies := mustParse(t, `{"Statement": {"Effect": "Allow", "Action": "*", "Resource": "*", "Condition": `+condition+`}}`, false)
			for i, instant := range []time.Time{time.Unix(999_999, 999e6), time.Unix(1_000_000, 999e6), time.Unix(1_000_001, 0), {}} {
				if got := Decide(&Request{Action: "a:b", Time: instant}, policies, nil).Allowed; got != (want[i] == '+') {
					t.Errorf("%s at %s: %t", condition, instant, got)
				}
			}
		}
	}
	far := mustParse(t, `{"Statement": {"Effect": "Allow", "Action": "*", "Resource": "*", "Condition": {"DateLessThan": {"aws:CurrentTime": "9999-12-31"}}}}`, false)
	if !Decide(&Request{Action: "a:b", Time: time.Unix(2e9, 0)}, far, nil).Allowed {
		t.Error("2033 is not before 9999")
	}
}

// TestVariableValues: wildcards in the value of a variable are literal, and each key has a text.
func TestVariableValues(t *testing.T) {
	r := db("Scan", owner+"table/x", scans(True))
	r.UserName, r.SourceIP = "*", netip.MustParseAddr("::ffff:203.0.113.7")
	for _, c := range []struct{ pattern, text string }{
		{"${aws:username}", "*"}, {"${aws:username}?", "*x"}, {"*${AWS:UserName}", "x*"}, {"*-${aws:EpochTime}-*", "a-1563282000-b"},
		{"${aws:CurrentTime}", "2019-07-16T13:00:00Z"}, {"${aws:SourceIp}", "203.0.113.7"}, {"${aws:SecureTransport}", "false"}, {"${dynamodb:FullTableScan}", "true"},
		{"${aws:PrincipalArn}", "arn:aws:iam::123456789012:user/alice"},
	} {
		p, err := compile(c.pattern, true, true)
		if err != nil {
			t.Fatal(err)
		}
		m := matcher{r: &r}
		if !m.match(&p, c.text) || m.match(&p, "x") || m.match(&p, c.text+"x") && !strings.HasSuffix(c.pattern, "*") {
			t.Errorf("%s matches only %s", c.pattern, c.text)
		}
	}
}

// TestErrorsAreShort: an error quotes the beginning of a large value only.
func TestErrorsAreShort(t *testing.T) {
	text := `{"Version": ["` + strings.Repeat("x", 20_000) + `"], "Statement": []}`
	if _, err := Parse([]byte(text)); err == nil || len(err.Error()) > 400 {
		t.Errorf("%v", err)
	}
}

func TestUses(t *testing.T) {
	p := mustParse(t, `{"Version": "2012-10-17", "Statement": {"Effect": "Allow", "Action": "*", "Resource": "arn:aws:dynamodb:*:*:table/${aws:userid}",
		"Condition": {"ForAllValues:StringEquals": {"dynamodb:LeadingKeys": "${aws:username}"}, "ArnLike": {"aws:PrincipalArn": "arn:aws:iam::*:user/${aws:SourceIp}"}}}}`, false)[0]
	for k := range keys {
		want := Key(k) == KeyUserID || Key(k) == KeyLeadingKeys || Key(k) == KeyUserName || Key(k) == KeyPrincipalArn || Key(k) == KeySourceIP
		if p.Uses(Key(k)) != want {
			t.Errorf("Uses(%s) is %t", Key(k), !want)
		}
	}
}
