package policy

import (
	"net/netip"
	"strings"
	"testing"
	"time"
)

// The decisions that documented examples expect.
const (
	allowed        = "allowed"
	refused        = "refused" // no statement allows the request
	refusedByUser  = "refused by an identity-based policy"
	refusedByTable = "refused by a resource-based policy"
)

// ask is a request, and the decision that the documentation states or that follows from its rules.
type ask struct {
	request Request
	want    string
}

// example is a policy of AWS's documentation. Without identity and resource, one of them is the
// text of statements in an identity policy.
type example struct {
	page       string // the documentation's page, and the place in it
	statements string
	identity   string
	resource   string
	asks       []ask
}

const (
	owner  = "arn:aws:dynamodb:us-west-2:123456789012:"
	scores = owner + "table/GameScores"
	books  = owner + "table/Books"
	music  = owner + "table/Music"
	thread = owner + "table/Thread"
)

// on returns a request of the user alice.
func on(action, resource string, changes ...func(*Request)) Request {
	r := Request{
		Action: action, Resource: resource, Principal: "arn:aws:iam::123456789012:user/alice", UserName: "alice", UserID: "AIDAALICE",
		Time: time.Date(2019, 7, 16, 13, 0, 0, 0, time.UTC), SourceIP: netip.MustParseAddr("203.0.113.7"),
	}
	for _, change := range changes {
		change(&r)
	}
	return r
}

func db(action, resource string, changes ...func(*Request)) Request {
	return on("dynamodb:"+action, resource, changes...)
}

func by(principal string) func(*Request) {
	return func(r *Request) {
		r.Principal, r.UserName = principal, ""
		if _, name, ok := strings.Cut(principal, ":user/"); ok {
			r.UserName = name
		}
	}
}

func session(arn string) func(*Request)     { return func(r *Request) { r.Session = arn } }
func leading(keys ...string) func(*Request) { return func(r *Request) { r.LeadingKeys = keys } }
func attributes(a ...string) func(*Request) { return func(r *Request) { r.Attributes = a } }
func selects(s string) func(*Request)       { return func(r *Request) { r.Select = s } }
func returnValues(s string) func(*Request)  { return func(r *Request) { r.ReturnValues = s } }
func enclosed(operation string) func(*Request) {
	return func(r *Request) { r.EnclosingOperation = operation }
}
func scans(f Flag) func(*Request) { return func(r *Request) { r.FullTableScan = f } }
func ip(text string) func(*Request) {
	return func(r *Request) { r.SourceIP = netip.MustParseAddr(text) }
}

func at(text string) func(*Request) {
	return func(r *Request) {
		t, err := time.Parse(time.RFC3339, text)
		if err != nil {
			panic(err)
		}
		r.Time = t
	}
}

func mustParse(t testing.TB, text string, resource bool) []*Policy {
	t.Helper()
	if text == "" {
		return nil
	}
	p, err := parse([]byte(text), resource)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return []*Policy{p}
}

// decide returns the decision in the words of the examples.
func decide(r *Request, identity, resource []*Policy) string {
	switch d := Decide(r, identity, resource); {
	case d.Allowed:
		return allowed
	case d.Policy == nil:
		return refused
	case d.Policy.resource:
		return refusedByTable
	default:
		return refusedByUser
	}
}

// TestDocumented runs the examples of AWS's documentation.
func TestDocumented(t *testing.T) {
	for _, examples := range [][]example{evaluationExamples, elementExamples, operatorExamples, setExamples, fineGrainedExamples, dynamoExamples, resourceExamples} {
		for _, e := range examples {
			t.Run(e.page, func(t *testing.T) {
				if e.statements != "" {
					e.identity = `{"Version": "2012-10-17", "Statement": ` + e.statements + `}`
				}
				identity, resource := mustParse(t, e.identity, false), mustParse(t, e.resource, true)
				for _, a := range e.asks {
					if got := decide(&a.request, identity, resource); got != a.want {
						t.Errorf("%s on %s is %s, and the documentation says %s\n%s",
							a.request.Action, a.request.Resource, got, a.want, Explain(&a.request, identity, resource))
					}
				}
			})
		}
	}
}

const carlos = "arn:aws:iam::123456789012:user/carlossalazar"

var evaluationExamples = []example{
	{
		page: "IAM, Policy evaluation logic: identity-based and resource-based policy",
		identity: `{"Version": "2012-10-17", "Statement": [
			{"Sid": "AllowS3ListRead", "Effect": "Allow", "Action": ["s3:GetBucketLocation", "s3:GetAccountPublicAccessBlock", "s3:ListAccessPoints", "s3:ListAllMyBuckets"], "Resource": "arn:aws:s3:::*"},
			{"Sid": "AllowS3Self", "Effect": "Allow", "Action": "s3:*", "Resource": ["arn:aws:s3:::carlossalazar/*", "arn:aws:s3:::carlossalazar"]},
			{"Sid": "DenyS3Logs", "Effect": "Deny", "Action": "s3:*", "Resource": "arn:aws:s3:::*log*"}]}`,
		resource: `{"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Principal": {"AWS": "` + carlos + `"},
			"Action": "s3:*", "Resource": ["arn:aws:s3:::carlossalazar/*", "arn:aws:s3:::carlossalazar"]}]}`,
		asks: []ask{
			{on("s3:PutObject", "arn:aws:s3:::carlossalazar-logs/x", by(carlos)), refusedByUser},
			{on("s3:PutObject", "arn:aws:s3:::carlossalazar/x", by(carlos)), allowed},
			{on("s3:GetBucketLocation", "arn:aws:s3:::other", by(carlos)), allowed},
			{on("s3:GetObject", "arn:aws:s3:::other/x", by(carlos)), refused},
		},
	},
	{
		page: "IAM, Policy evaluation logic: either policy type allows",
		resource: `{"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Principal": {"AWS": "` + carlos + `"},
			"Action": "s3:*", "Resource": "arn:aws:s3:::carlossalazar"}]}`,
		asks: []ask{
			{on("s3:ListBucket", "arn:aws:s3:::carlossalazar", by(carlos)), allowed},
			{on("s3:ListBucket", "arn:aws:s3:::carlossalazar"), refused},
		},
	},
	{
		page:     "IAM, Policy evaluation logic: an explicit deny in either type overrides the allow",
		identity: `{"Version": "2012-10-17", "Statement": {"Effect": "Allow", "Action": "*", "Resource": "*"}}`,
		resource: `{"Version": "2012-10-17", "Statement": {"Effect": "Deny", "Principal": "*", "Action": "dynamodb:DeleteTable", "Resource": "*"}}`,
		asks:     []ask{{db("DeleteTable", books), refusedByTable}, {db("PutItem", books), allowed}},
	},
	{
		page: "IAM, The difference between explicit and implicit denies",
		statements: `[{"Sid": "AllowGetList", "Effect": "Allow", "Action": ["iam:Get*", "iam:List*"], "Resource": "*"},
			{"Sid": "DenyReports", "Effect": "Deny", "Action": "iam:*Report", "Resource": "*"}]`,
		asks: []ask{
			{on("iam:ListUsers", "*"), allowed},
			{on("iam:CreatePolicy", "*"), refused},
			{on("iam:GetOrganizationsAccessReport", "*"), refusedByUser},
			{on("iam:GenerateCredentialReport", "*"), refusedByUser},
		},
	},
}

var elementExamples = []example{
	{
		page:       "IAM, NotAction with Allow",
		statements: `{"Effect": "Allow", "NotAction": "iam:*", "Resource": "*"}`,
		asks:       []ask{{db("Scan", books), allowed}, {on("iam:GetUser", "*"), refused}, {on("IAM:getuser", "*"), refused}},
	},
	{
		page: "IAM, NotAction with Deny",
		statements: `[{"Effect": "Deny", "NotAction": "iam:*", "Resource": "*", "Condition": {"BoolIfExists": {"dynamodb:FullTableScan": "false"}}},
			{"Effect": "Allow", "Action": "*", "Resource": "*"}]`,
		asks: []ask{
			{on("iam:GetUser", "*", scans(False)), allowed},
			{db("GetItem", books, scans(False)), refusedByUser},
			{db("GetItem", books), refusedByUser},
			{db("GetItem", books, scans(True)), allowed},
		},
	},
	{
		page: "IAM, NotResource: deny all but one folder",
		statements: `[{"Effect": "Deny", "Action": "s3:*", "NotResource": ["arn:aws:s3:::HRBucket/Payroll", "arn:aws:s3:::HRBucket/Payroll/*"]},
			{"Effect": "Allow", "Action": "s3:*", "Resource": "*"}]`,
		asks: []ask{
			{on("s3:GetObject", "arn:aws:s3:::HRBucket/Payroll/may"), allowed},
			{on("s3:GetObject", "arn:aws:s3:::HRBucket/Other"), refusedByUser},
		},
	},
	{
		page:       "IAM, Resource: all users whose path is /accounting",
		statements: `{"Effect": "Allow", "Action": "iam:*", "Resource": "arn:aws:iam::123456789012:user/accounting/*"}`,
		asks: []ask{
			{on("iam:GetUser", "arn:aws:iam::123456789012:user/accounting/bob"), allowed},
			{on("iam:GetUser", "arn:aws:iam::123456789012:user/bob"), refused},
			{on("iam:GetUser", "arn:aws:iam::999999999999:user/accounting/bob"), refused},
		},
	},
	{
		page:       "IAM, Resource: a table with the user's name",
		statements: `{"Effect": "Allow", "Action": "dynamodb:*", "Resource": "arn:aws:dynamodb:us-east-2:123456789012:table/${aws:username}"}`,
		asks: []ask{
			{db("Scan", "arn:aws:dynamodb:us-east-2:123456789012:table/alice"), allowed},
			{db("Scan", "arn:aws:dynamodb:us-east-2:123456789012:table/bob"), refused},
			{db("Scan", "arn:aws:dynamodb:us-east-2:123456789012:table/", by("arn:aws:iam::123456789012:role/r")), refused},
			{db("Scan", "arn:aws:dynamodb:us-east-2:123456789012:table/${aws:username}"), refused},
		},
	},
	{
		page:       "IAM, Variables: special characters",
		statements: `{"Effect": "Allow", "Action": "dynamodb:*", "Resource": "` + owner + `table/${*}${?}${$}*"}`,
		asks:       []ask{{db("Scan", owner+"table/*?$x"), allowed}, {db("Scan", owner+"table/abcx"), refused}},
	},
	{
		page:       "IAM, Variables: default values",
		statements: `{"Effect": "Allow", "Action": "dynamodb:*", "Resource": "` + owner + `table/${aws:userid, 'anonymous'}"}`,
		asks: []ask{
			{db("Scan", owner+"table/AIDAALICE"), allowed},
			{db("Scan", owner+"table/anonymous"), refused},
			{db("Scan", owner+"table/anonymous", func(r *Request) { r.UserID = "" }), allowed},
		},
	},
	{
		page: "IAM, Variables: a variable without a value makes the statement invalid",
		statements: `[{"Effect": "Allow", "Action": "dynamodb:Scan", "NotResource": "` + owner + `table/${aws:username}"},
			{"Effect": "Allow", "Action": "dynamodb:Query", "Resource": "*", "Condition": {"ForAllValues:StringNotEquals": {"dynamodb:LeadingKeys": "${aws:username}"}}},
			{"Effect": "Allow", "Action": "dynamodb:GetItem", "Resource": ["` + owner + `table/${aws:username}", "` + books + `"]},
			{"Effect": "Allow", "Action": "dynamodb:PutItem", "Resource": "*"},
			{"Effect": "Deny", "Action": "dynamodb:PutItem", "NotResource": "` + owner + `table/${aws:username}"}]`,
		asks: []ask{
			{db("Scan", books), allowed},
			{db("Scan", owner+"table/alice"), refused},
			{db("Scan", books, by("arn:aws:iam::123456789012:role/r")), refused},
			{db("Query", books, leading("bob")), allowed},
			{db("Query", books, leading("bob"), by("arn:aws:iam::123456789012:role/r")), refused},
			{db("GetItem", books, by("arn:aws:iam::123456789012:role/r")), allowed},
			{db("PutItem", owner+"table/alice"), allowed},
			{db("PutItem", owner+"table/alice", by("arn:aws:iam::123456789012:role/r")), refusedByUser},
		},
	},
	{
		page: "IAM, Principal: two accounts",
		resource: `{"Version": "2012-10-17", "Statement": {"Effect": "Deny", "Principal": {"AWS": ["123456789012", "555555555555"]},
			"Action": "dynamodb:*", "Resource": "*"}}`,
		asks: []ask{
			{db("Scan", books), refusedByTable},
			{db("Scan", books, by("arn:aws:iam::555555555555:user/x")), refusedByTable},
			{db("Scan", books, by("arn:aws:iam::999999999999:user/x")), refused},
		},
	},
	{
		page: "IAM, Principal: an account delegates to its identity policies",
		resource: `{"Version": "2012-10-17", "Statement": {"Effect": "Allow", "Principal": {"AWS": "arn:aws:iam::123456789012:root"},
			"Action": "dynamodb:*", "Resource": "*"}}`,
		asks: []ask{
			{db("Scan", books), refused},
			{db("Scan", books, by("arn:aws:iam::123456789012:root")), allowed},
		},
	},
	{
		page: "IAM, Principal: a role, and a session of it",
		resource: `{"Version": "2012-10-17", "Statement": [
			{"Effect": "Allow", "Principal": {"AWS": "arn:aws:iam::123456789012:role/reader"}, "Action": "dynamodb:Query", "Resource": "*"},
			{"Effect": "Allow", "Principal": {"AWS": "arn:aws:sts::123456789012:assumed-role/reader/app"}, "Action": "dynamodb:Scan", "Resource": "*"}]}`,
		asks: []ask{
			{db("Query", books, by("arn:aws:iam::123456789012:role/reader"), session("arn:aws:sts::123456789012:assumed-role/reader/app")), allowed},
			{db("Scan", books, by("arn:aws:iam::123456789012:role/reader"), session("arn:aws:sts::123456789012:assumed-role/reader/app")), allowed},
			{db("Scan", books, by("arn:aws:iam::123456789012:role/reader"), session("arn:aws:sts::123456789012:assumed-role/reader/b")), refused},
			{db("Query", books, by("arn:aws:iam::123456789012:user/Reader")), refused},
		},
	},
	{
		page:     "IAM, NotPrincipal: all but one user",
		identity: `{"Version": "2012-10-17", "Statement": {"Effect": "Allow", "Action": "*", "Resource": "*"}}`,
		resource: `{"Version": "2012-10-17", "Statement": [{"Effect": "Deny", "NotPrincipal": {"AWS": ["arn:aws:iam::444455556666:user/Bob", "arn:aws:iam::444455556666:root"]},
			"Action": "s3:*", "Resource": ["arn:aws:s3:::BUCKETNAME", "arn:aws:s3:::BUCKETNAME/*"]}]}`,
		asks: []ask{
			{on("s3:GetObject", "arn:aws:s3:::BUCKETNAME/x", by("arn:aws:iam::444455556666:user/Bob")), allowed},
			{on("s3:GetObject", "arn:aws:s3:::BUCKETNAME/x", by("arn:aws:iam::444455556666:root")), allowed},
			{on("s3:GetObject", "arn:aws:s3:::BUCKETNAME/x", by("arn:aws:iam::444455556666:user/Eve")), refusedByTable},
			{on("s3:GetObject", "arn:aws:s3:::BUCKETNAME/x"), refusedByTable},
		},
	},
	{
		page:     "IAM, NotPrincipal: all but one session of a role",
		identity: `{"Version": "2012-10-17", "Statement": {"Effect": "Allow", "Action": "*", "Resource": "*"}}`,
		resource: `{"Version": "2012-10-17", "Statement": [{"Effect": "Deny", "NotPrincipal": {"AWS": [
				"arn:aws:sts::444455556666:assumed-role/cross-account-read-only-role/cross-account-audit-app",
				"arn:aws:iam::444455556666:role/cross-account-read-only-role", "arn:aws:iam::444455556666:root"]},
			"Action": "s3:*", "Resource": ["arn:aws:s3:::Bucket_AccountAudit", "arn:aws:s3:::Bucket_AccountAudit/*"]}]}`,
		asks: []ask{
			{on("s3:GetObject", "arn:aws:s3:::Bucket_AccountAudit/x", by("arn:aws:iam::444455556666:role/cross-account-read-only-role"),
				session("arn:aws:sts::444455556666:assumed-role/cross-account-read-only-role/cross-account-audit-app")), allowed},
			{on("s3:GetObject", "arn:aws:s3:::Bucket_AccountAudit/x", by("arn:aws:iam::444455556666:role/cross-account-read-only-role"),
				session("arn:aws:sts::444455556666:assumed-role/cross-account-read-only-role/other")), refusedByTable},
		},
	},
}

var operatorExamples = []example{
	{
		page:       "IAM, Condition: key names ignore case, StringEquals does not",
		statements: `{"Effect": "Allow", "Action": "dynamodb:*", "Resource": "*", "Condition": {"StringEquals": {"AWS:UserName": "john"}}}`,
		asks: []ask{
			{db("Scan", books, by("arn:aws:iam::123456789012:user/john")), allowed},
			{db("Scan", books, by("arn:aws:iam::123456789012:user/John")), refused},
		},
	},
	{
		page:       "IAM, Condition: StringEqualsIgnoreCase",
		statements: `{"Effect": "Allow", "Action": "dynamodb:*", "Resource": "*", "Condition": {"StringEqualsIgnoreCase": {"aws:username": "john"}}}`,
		asks: []ask{
			{db("Scan", books, by("arn:aws:iam::123456789012:user/John")), allowed},
			{db("Scan", books, by("arn:aws:iam::123456789012:user/Joan")), refused},
		},
	},
	{
		page: "IAM, Condition operators: StringLike and a variable",
		statements: `{"Effect": "Allow", "Action": "dynamodb:Query", "Resource": "*",
			"Condition": {"ForAllValues:StringLike": {"dynamodb:LeadingKeys": ["", "home/", "home/${aws:username}/*"]}}}`,
		asks: []ask{
			{db("Query", books, leading("home/")), allowed},
			{db("Query", books, leading("home/alice/x")), allowed},
			{db("Query", books, leading("home/bob/x")), refused},
		},
	},
	{
		page:       "IAM, Condition operators: StringEquals has no wildcards",
		statements: `{"Effect": "Allow", "Action": "*", "Resource": "*", "Condition": {"StringEquals": {"aws:username": "a*"}}}`,
		asks:       []ask{{db("Scan", books), refused}, {db("Scan", books, func(r *Request) { r.UserName = "a*" }), allowed}},
	},
	{
		page:       "IAM, Condition operators: Numeric",
		statements: `{"Effect": "Allow", "Action": "*", "Resource": "*", "Condition": {"NumericLessThanEquals": {"aws:EpochTime": 1563282000}, "NumericGreaterThan": {"aws:EpochTime": "1563281999.5"}}}`,
		asks: []ask{
			{db("Scan", books, at("2019-07-16T13:00:00Z")), allowed},
			{db("Scan", books, at("2019-07-16T13:00:01Z")), refused},
			{db("Scan", books, at("2019-07-16T12:59:59Z")), refused},
		},
	},
	{
		page: "IAM, Conditions with multiple keys or values: time and address",
		statements: `{"Effect": "Allow", "Action": "*", "Resource": "*", "Condition": {"DateGreaterThan": {"aws:CurrentTime": "2019-07-16T12:00:00Z"},
			"DateLessThan": {"aws:CurrentTime": "2019-07-16T15:00:00Z"}, "IpAddress": {"aws:SourceIp": ["192.0.2.0/24", "203.0.113.0/24"]}}}`,
		asks: []ask{
			{db("Scan", books), allowed},
			{db("Scan", books, ip("192.0.2.255")), allowed},
			{db("Scan", books, ip("192.0.3.0")), refused},
			{db("Scan", books, at("2019-07-16T12:00:00Z")), refused},
			{db("Scan", books, at("2019-07-16T12:00:01Z")), allowed},
			{db("Scan", books, at("2019-07-16T15:00:00Z")), refused},
		},
	},
	{
		page:       "IAM, Condition operators: IPv4 and IPv6",
		statements: `{"Effect": "Allow", "Action": "someservice:*", "Resource": "*", "Condition": {"IpAddress": {"aws:SourceIp": ["203.0.113.0/24", "2001:DB8:1234:5678::/64"]}}}`,
		asks: []ask{
			{on("someservice:Do", "*", ip("2001:db8:1234:5678::1")), allowed},
			{on("someservice:Do", "*", ip("2001:db8:1234:5679::1")), refused},
			{on("someservice:Do", "*", ip("::ffff:203.0.113.9")), allowed},
		},
	},
	{
		page: "IAM, Denies access based on the source IP",
		statements: `[{"Effect": "Deny", "Action": "*", "Resource": "*", "Condition": {"NotIpAddress": {"aws:SourceIp": ["192.0.2.0/24", "203.0.113.0/24"]}}},
			{"Effect": "Allow", "Action": "*", "Resource": "*"}]`,
		asks: []ask{
			{db("Scan", books), allowed},
			{db("Scan", books, ip("198.51.100.1")), refusedByUser},
			{db("Scan", books, func(r *Request) { r.SourceIP = netip.Addr{} }), refusedByUser},
		},
	},
	{
		page: "IAM, Condition operators: Bool",
		statements: `[{"Sid": "BooleanExample", "Action": "s3:*", "Effect": "Deny", "Resource": "*", "Condition": {"Bool": {"aws:SecureTransport": "false"}}},
			{"Effect": "Allow", "Action": "*", "Resource": "*"}]`,
		asks: []ask{
			{on("s3:GetObject", "*"), refusedByUser},
			{on("s3:GetObject", "*", func(r *Request) { r.SecureTransport = true }), allowed},
		},
	},
	{
		page: "IAM, Condition operators: ARNs compare part by part",
		statements: `[{"Effect": "Allow", "Action": "dynamodb:Scan", "Resource": "*", "Condition": {"ArnLike": {"aws:PrincipalArn": "arn:aws:iam:*:111122223333:finance/*"}}},
			{"Effect": "Allow", "Action": "dynamodb:Query", "Resource": "*", "Condition": {"StringLike": {"aws:PrincipalArn": "arn:aws:iam:*:111122223333:finance/*"}}},
			{"Effect": "Allow", "Action": "dynamodb:GetItem", "Resource": "*", "Condition": {"ArnEquals": {"aws:PrincipalArn": "arn:aws:iam::*:user/al?ce"}}},
			{"Effect": "Allow", "Action": "dynamodb:PutItem", "Resource": "*", "Condition": {"ArnNotLike": {"aws:PrincipalArn": ["arn:aws:iam::*:user/a*", "arn:aws:iam::*:user/b*"]}}}]`,
		asks: []ask{
			{db("Scan", books, by("arn:aws:iam:us-east-2:999999999999:store/abc:111122223333:finance/document.txt")), refused},
			{db("Query", books, by("arn:aws:iam:us-east-2:999999999999:store/abc:111122223333:finance/document.txt")), allowed},
			{db("Scan", books, by("arn:aws:iam::111122223333:finance/x")), allowed},
			{db("GetItem", books), allowed},
			{db("GetItem", books, by("arn:aws:iam::123456789012:user/Alice")), refused},
			{db("PutItem", books), refused},
			{db("PutItem", books, by("arn:aws:iam::123456789012:user/carl")), allowed},
		},
	},
	{
		page: "IAM, Condition operators: IfExists",
		statements: `[{"Effect": "Allow", "Action": "dynamodb:Query", "Resource": "*", "Condition": {"StringLikeIfExists": {"dynamodb:Select": ["SPECIFIC_*", "COUNT"]}}},
			{"Effect": "Allow", "Action": "dynamodb:Scan", "Resource": "*", "Condition": {"StringLike": {"dynamodb:Select": ["SPECIFIC_*", "COUNT"]}}},
			{"Effect": "Allow", "Action": "dynamodb:PutItem", "Resource": "*"},
			{"Effect": "Deny", "Action": "dynamodb:PutItem", "Resource": "*", "Condition": {"StringNotEqualsIfExists": {"dynamodb:ReturnValues": "NONE"}}}]`,
		asks: []ask{
			{db("Query", books, selects("COUNT")), allowed},
			{db("Query", books, selects("ALL_ATTRIBUTES")), refused},
			{db("Query", books), allowed},
			{db("Scan", books), refused},
			{db("PutItem", books, returnValues("NONE")), allowed},
			{db("PutItem", books), refusedByUser}, // "the request is still denied even if the tag is missing"
		},
	},
	{
		page: "IAM, Condition operators: Null",
		statements: `[{"Effect": "Allow", "Action": "dynamodb:Scan", "Resource": "*", "Condition": {"Null": {"aws:username": "true"}}},
			{"Effect": "Allow", "Action": "dynamodb:Query", "Resource": "*", "Condition": {"Null": {"dynamodb:LeadingKeys": false}}}]`,
		asks: []ask{
			{db("Scan", books), refused},
			{db("Scan", books, by("arn:aws:iam::123456789012:role/r")), allowed},
			{db("Query", books), refused},
			{db("Query", books, leading("")), refused},
			{db("Query", books, leading("a")), allowed},
		},
	},
	{
		page:       "IAM, Conditions with multiple keys or values: negated operators are NOR, and true for a missing key",
		statements: `{"Effect": "Allow", "Action": "*", "Resource": "*", "Condition": {"StringNotEquals": {"aws:username": ["alice", "bob"]}}}`,
		asks: []ask{
			{db("Scan", books), refused},
			{db("Scan", books, by("arn:aws:iam::123456789012:user/bob")), refused},
			{db("Scan", books, by("arn:aws:iam::123456789012:user/eve")), allowed},
			{db("Scan", books, by("arn:aws:iam::123456789012:role/r")), allowed},
		},
	},
	{
		page:       "IAM, Conditions with multiple keys or values: keys of one operator are AND",
		statements: `{"Effect": "Allow", "Action": "*", "Resource": "*", "Condition": {"StringEquals": {"aws:username": ["alice", "bob"], "dynamodb:Select": "COUNT"}}}`,
		asks:       []ask{{db("Scan", books, selects("COUNT")), allowed}, {db("Scan", books), refused}, {db("Scan", books, selects("COUNT"), by("arn:aws:iam::123456789012:user/eve")), refused}},
	},
}

var setExamples = []example{
	{
		page:       "IAM, Multivalued context keys: ForAllValues with Allow",
		statements: `{"Effect": "Allow", "Action": "dynamodb:GetItem", "Resource": "arn:aws:dynamodb:*:*:table/Thread", "Condition": {"ForAllValues:StringEquals": {"dynamodb:Attributes": ["ID", "Message", "Tags"]}}}`,
		asks: []ask{
			{db("GetItem", thread, attributes("Message", "Tags", "ID")), allowed},
			{db("GetItem", thread, attributes("Message", "Tags", "UserName")), refused},
			{db("GetItem", thread), allowed},
			{db("GetItem", thread, attributes("")), allowed},
		},
	},
	{
		page: "IAM, Multivalued context keys: ForAnyValue with Deny",
		statements: `[{"Effect": "Deny", "Action": "dynamodb:PutItem", "Resource": "arn:aws:dynamodb:*:*:table/Thread", "Condition": {"ForAnyValue:StringEquals": {"dynamodb:Attributes": ["ID", "PostDateTime"]}}},
			{"Effect": "Allow", "Action": "*", "Resource": "*"}]`,
		asks: []ask{
			{db("PutItem", thread, attributes("UserName", "Message", "PostDateTime")), refusedByUser},
			{db("PutItem", thread, attributes("UserName")), allowed},
			{db("PutItem", thread), allowed},
			{db("PutItem", thread, attributes("")), allowed},
		},
	},
	{
		page:       "IAM, Multivalued context keys: truth table of ForAllValues",
		statements: `{"Effect": "Allow", "Action": "dynamodb:GetItem", "Resource": "*", "Condition": {"ForAllValues:StringEquals": {"dynamodb:Attributes": ["PostDateTime", "Message", "Tags"]}}}`,
		asks: []ask{
			{db("GetItem", thread, attributes("PostDateTime", "UserName")), refused},
			{db("GetItem", thread, attributes("UserName", "PostDateTime")), refused},
			{db("GetItem", thread, attributes("PostDateTime")), allowed},
		},
	},
	{
		page: "IAM, Multivalued context key examples: deny by ForAllValues and StringNotLike",
		statements: `[{"Effect": "Deny", "Action": "dynamodb:UpdateItem", "Resource": "*", "Condition": {"ForAllValues:StringNotLike": {"dynamodb:Attributes": "key1*"}}},
			{"Effect": "Allow", "Action": "*", "Resource": "*"}]`,
		asks: []ask{
			{db("UpdateItem", thread, attributes("key1:legal")), allowed},
			{db("UpdateItem", thread, attributes("key1:hr", "key2:personnel")), allowed},
			{db("UpdateItem", thread, attributes("key2:audit")), refusedByUser},
			{db("UpdateItem", thread), refusedByUser},
		},
	},
	{
		page: "IAM, Multivalued context key examples: Null against missing keys",
		statements: `[{"Sid": "DenyRestrictedTags", "Effect": "Deny", "Action": "dynamodb:*", "Resource": "*",
				"Condition": {"Null": {"dynamodb:Attributes": "false"}, "ForAllValues:StringLike": {"dynamodb:Attributes": ["key1*", "key2*", "key3*"]}}},
			{"Effect": "Allow", "Action": "*", "Resource": "*"}]`,
		asks: []ask{
			{db("UpdateItem", thread), allowed},
			{db("UpdateItem", thread, attributes("key1a", "key3b")), refusedByUser},
			{db("UpdateItem", thread, attributes("key1a", "other")), allowed},
		},
	},
	{
		page: "IAM, Multivalued context keys: negated ForAnyValue, and IfExists",
		statements: `[{"Effect": "Allow", "Action": "dynamodb:GetItem", "Resource": "*", "Condition": {"ForAnyValue:StringNotEquals": {"dynamodb:Attributes": ["a", "b"]}}},
			{"Effect": "Allow", "Action": "dynamodb:Query", "Resource": "*", "Condition": {"ForAnyValue:StringEqualsIfExists": {"dynamodb:Attributes": "a"}}}]`,
		asks: []ask{
			{db("GetItem", thread, attributes("a", "b")), refused},
			{db("GetItem", thread, attributes("a", "c")), allowed},
			{db("GetItem", thread), refused},
			{db("Query", thread), allowed},
			{db("Query", thread, attributes("c", "a")), allowed},
			{db("Query", thread, attributes("c")), refused},
		},
	},
}

// The fine-grained examples have ${aws:username} in place of the web identity variables, which are
// not supported.
var fineGrainedExamples = []example{
	{
		page: "DynamoDB, Fine-grained access control: use case",
		statements: `[{"Sid": "AllowAccessToOnlyItemsMatchingUserID", "Effect": "Allow",
			"Action": ["dynamodb:GetItem", "dynamodb:BatchGetItem", "dynamodb:Query", "dynamodb:PutItem", "dynamodb:UpdateItem", "dynamodb:DeleteItem", "dynamodb:BatchWriteItem"],
			"Resource": ["` + scores + `"],
			"Condition": {"ForAllValues:StringEquals": {"dynamodb:LeadingKeys": ["${aws:username}"],
				"dynamodb:Attributes": ["UserId", "GameTitle", "Wins", "Losses", "TopScore", "TopScoreDateTime"]},
				"StringEqualsIfExists": {"dynamodb:Select": "SPECIFIC_ATTRIBUTES"}}}]`,
		asks: []ask{
			{db("GetItem", scores, leading("alice"), attributes("UserId", "Wins")), allowed},
			{db("GetItem", scores, leading("bob"), attributes("UserId", "Wins")), refused},
			{db("BatchGetItem", scores, leading("alice", "bob"), attributes("UserId")), refused},
			{db("Query", scores, leading("alice"), attributes("UserId"), selects("SPECIFIC_ATTRIBUTES")), allowed},
			{db("Query", scores, leading("alice"), attributes("UserId"), selects("ALL_ATTRIBUTES")), refused},
			{db("GetItem", scores, leading("alice"), attributes("UserId", "Address")), refused},
			{db("Scan", scores, attributes("UserId")), refused},
		},
	},
	{
		page: "DynamoDB, Fine-grained access control, example 1: partition key value",
		statements: `[{"Sid": "FullAccessToUserItems", "Effect": "Allow",
			"Action": ["dynamodb:GetItem", "dynamodb:BatchGetItem", "dynamodb:Query", "dynamodb:PutItem", "dynamodb:UpdateItem", "dynamodb:DeleteItem", "dynamodb:BatchWriteItem"],
			"Resource": ["` + scores + `"], "Condition": {"ForAllValues:StringEquals": {"dynamodb:LeadingKeys": ["${aws:username}"]}}}]`,
		asks: []ask{
			{db("PutItem", scores, leading("alice")), allowed},
			{db("PutItem", scores, leading("alice2")), refused},
			{db("PutItem", scores, leading("alice"), by("arn:aws:iam::123456789012:role/r")), refused},
			{db("PutItem", scores+"2", leading("alice")), refused},
			{db("Scan", scores), refused},
		},
	},
	{
		page: "DynamoDB, Fine-grained access control, example 1: read-only",
		statements: `[{"Sid": "ReadOnlyAccessToUserItems", "Effect": "Allow", "Action": ["dynamodb:GetItem", "dynamodb:BatchGetItem", "dynamodb:Query"],
			"Resource": ["` + scores + `"], "Condition": {"ForAllValues:StringEquals": {"dynamodb:LeadingKeys": ["${aws:username}"]}}}]`,
		asks: []ask{{db("Query", scores, leading("alice")), allowed}, {db("PutItem", scores, leading("alice")), refused}},
	},
	{
		page: "DynamoDB, Fine-grained access control, example 2: specific attributes",
		statements: `[{"Sid": "LimitAccessToSpecificAttributes", "Effect": "Allow", "Action": ["dynamodb:UpdateItem", "dynamodb:GetItem", "dynamodb:Query", "dynamodb:BatchGetItem", "dynamodb:Scan"],
			"Resource": ["` + scores + `"], "Condition": {"ForAllValues:StringEquals": {"dynamodb:Attributes": ["UserId", "TopScore"]},
				"StringEqualsIfExists": {"dynamodb:Select": "SPECIFIC_ATTRIBUTES", "dynamodb:ReturnValues": ["NONE", "UPDATED_OLD", "UPDATED_NEW"]}}}]`,
		asks: []ask{
			{db("Scan", scores, attributes("UserId"), selects("SPECIFIC_ATTRIBUTES")), allowed},
			{db("Scan", scores, attributes("UserId"), selects("ALL_ATTRIBUTES")), refused},
			{db("UpdateItem", scores, attributes("UserId", "TopScore"), returnValues("UPDATED_NEW")), allowed},
			{db("UpdateItem", scores, attributes("UserId", "TopScore"), returnValues("ALL_NEW")), refused},
			{db("UpdateItem", scores, attributes("UserId", "Wins"), returnValues("NONE")), refused},
			{db("PutItem", scores, attributes("UserId", "TopScore"), returnValues("NONE")), refused},
		},
	},
	{
		page: "DynamoDB, Fine-grained access control, example 3: prevent updates of attributes",
		statements: `[{"Sid": "PreventUpdatesOnCertainAttributes", "Effect": "Allow", "Action": ["dynamodb:UpdateItem"], "Resource": "` + scores + `",
			"Condition": {"ForAllValues:StringNotLike": {"dynamodb:Attributes": ["FreeGamesAvailable", "BossLevelUnlocked"]},
				"StringEquals": {"dynamodb:ReturnValues": ["NONE", "UPDATED_OLD", "UPDATED_NEW"]}}}]`,
		asks: []ask{
			{db("UpdateItem", scores, attributes("UserId", "Wins"), returnValues("NONE")), allowed},
			{db("UpdateItem", scores, attributes("UserId", "BossLevelUnlocked"), returnValues("NONE")), refused},
			{db("UpdateItem", scores, attributes("UserId", "Wins"), returnValues("ALL_OLD")), refused},
			{db("UpdateItem", scores, attributes("UserId", "Wins")), refused},
		},
	},
	{
		page: "DynamoDB, Fine-grained access control, example 4: projected attributes of an index",
		statements: `[{"Sid": "QueryOnlyProjectedIndexAttributes", "Effect": "Allow", "Action": ["dynamodb:Query"], "Resource": ["` + scores + `/index/TopScoreDateTimeIndex"],
			"Condition": {"ForAllValues:StringEquals": {"dynamodb:Attributes": ["TopScoreDateTime", "GameTitle", "Wins", "Losses", "Attempts"]},
				"StringEquals": {"dynamodb:Select": "SPECIFIC_ATTRIBUTES"}}}]`,
		asks: []ask{
			{db("Query", scores+"/index/TopScoreDateTimeIndex", attributes("GameTitle"), selects("SPECIFIC_ATTRIBUTES")), allowed},
			{db("Query", scores+"/index/TopScoreDateTimeIndex", attributes("UserId"), selects("SPECIFIC_ATTRIBUTES")), refused},
			{db("Query", scores, attributes("GameTitle"), selects("SPECIFIC_ATTRIBUTES")), refused},
		},
	},
	{
		page: "DynamoDB, Fine-grained access control, example 4: all projected attributes",
		statements: `[{"Sid": "QueryAllIndexAttributes", "Effect": "Allow", "Action": ["dynamodb:Query"], "Resource": ["` + scores + `/index/TopScoreDateTimeIndex"],
			"Condition": {"StringEquals": {"dynamodb:Select": "ALL_PROJECTED_ATTRIBUTES"}}}]`,
		asks: []ask{
			{db("Query", scores+"/index/TopScoreDateTimeIndex", selects("ALL_PROJECTED_ATTRIBUTES")), allowed},
			{db("Query", scores+"/index/TopScoreDateTimeIndex", selects("ALL_ATTRIBUTES")), refused},
		},
	},
	{
		page: "DynamoDB, Fine-grained access control, example 5: attributes and partition key values",
		statements: `[{"Sid": "LimitAccessToCertainAttributesAndKeyValues", "Effect": "Allow", "Action": ["dynamodb:UpdateItem", "dynamodb:GetItem", "dynamodb:Query", "dynamodb:BatchGetItem"],
			"Resource": ["` + scores + `", "` + scores + `/index/TopScoreDateTimeIndex"],
			"Condition": {"ForAllValues:StringEquals": {"dynamodb:LeadingKeys": ["${aws:username}"], "dynamodb:Attributes": ["attribute-A", "attribute-B"]},
				"StringEqualsIfExists": {"dynamodb:Select": "SPECIFIC_ATTRIBUTES", "dynamodb:ReturnValues": ["NONE", "UPDATED_OLD", "UPDATED_NEW"]}}}]`,
		asks: []ask{
			{db("UpdateItem", scores, leading("alice"), attributes("attribute-A"), returnValues("NONE")), allowed},
			{db("UpdateItem", scores, leading("bob"), attributes("attribute-A"), returnValues("NONE")), refused},
			{db("Query", scores+"/index/TopScoreDateTimeIndex", leading("alice"), attributes("attribute-B"), selects("SPECIFIC_ATTRIBUTES")), allowed},
			{db("Query", scores, leading("alice"), attributes("attribute-C"), selects("SPECIFIC_ATTRIBUTES")), refused},
		},
	},
}

const transactions = `"Action": ["dynamodb:ConditionCheckItem", "dynamodb:PutItem", "dynamodb:UpdateItem", "dynamodb:DeleteItem", "dynamodb:GetItem"],
	"Resource": ["arn:aws:dynamodb:*:*:table/table04"]`

var dynamoExamples = []example{
	{
		page:       "DynamoDB, Identity-based policies: describe, query and scan",
		statements: `[{"Sid": "DescribeQueryScanBooksTable", "Effect": "Allow", "Action": ["dynamodb:DescribeTable", "dynamodb:Query", "dynamodb:Scan"], "Resource": "` + books + `"}]`,
		asks:       []ask{{db("Query", books), allowed}, {db("GetItem", books), refused}, {db("Query", books+"/index/i"), refused}},
	},
	{
		page:       "DynamoDB, Identity-based policies, example 1: any action on a table",
		statements: `[{"Sid": "AllAPIActionsOnBooks", "Effect": "Allow", "Action": "dynamodb:*", "Resource": "` + books + `"}]`,
		asks:       []ask{{db("DeleteTable", books), allowed}, {on("DynamoDB:deletetable", books), allowed}, {db("DeleteTable", music), refused}, {db("DeleteTable", owner+"table/books"), refused}, {on("s3:GetObject", books), refused}},
	},
	{
		page:       "DynamoDB, Identity-based policies, example 4: a table and its indexes",
		statements: `[{"Sid": "AccessAllIndexesOnBooks", "Effect": "Allow", "Action": ["dynamodb:*"], "Resource": ["` + books + `", "` + books + `/index/*"]}]`,
		asks:       []ask{{db("Query", books+"/index/i"), allowed}, {db("GetRecords", books+"/stream/2024-02-12T18:57:26.492"), refused}},
	},
	{
		page: "DynamoDB, Identity-based policies, example 5: tables with the user's name",
		statements: `[{"Sid": "AllAPIActionsOnUserSpecificTable", "Effect": "Allow", "Action": ["dynamodb:*"], "Resource": "` + owner + `table/${aws:username}_*"},
			{"Sid": "AdditionalPrivileges", "Effect": "Allow", "Action": ["dynamodb:ListTables", "dynamodb:DescribeTable", "cloudwatch:*", "sns:*"], "Resource": "*"}]`,
		asks: []ask{{db("Scan", owner+"table/alice_ProductCatalog"), allowed}, {db("Scan", owner+"table/bob_ProductCatalog"), refused}, {db("ListTables", "*"), allowed}},
	},
	{
		page: "DynamoDB, Identity-based policies, example 6: reserved capacity",
		statements: `[{"Sid": "AllowReservedCapacityDescriptions", "Effect": "Allow", "Action": ["dynamodb:DescribeReservedCapacity", "dynamodb:DescribeReservedCapacityOfferings"], "Resource": "` + owner + `*"},
			{"Sid": "DenyReservedCapacityPurchases", "Effect": "Deny", "Action": "dynamodb:PurchaseReservedCapacityOfferings", "Resource": "` + owner + `*"}]`,
		asks: []ask{{db("DescribeReservedCapacity", owner+"x"), allowed}, {db("PurchaseReservedCapacityOfferings", owner+"x"), refusedByUser}},
	},
	{
		page:       "DynamoDB, Transactions with IAM, example 1: allow them",
		statements: `[{"Effect": "Allow", ` + transactions + `}]`,
		asks:       []ask{{db("ConditionCheckItem", owner+"table/table04", enclosed("TransactWriteItems")), allowed}},
	},
	{
		page:       "DynamoDB, Transactions with IAM, example 2: only transactions",
		statements: `[{"Effect": "Allow", ` + transactions + `, "Condition": {"ForAnyValue:StringEquals": {"dynamodb:EnclosingOperation": ["TransactWriteItems", "TransactGetItems"]}}}]`,
		asks: []ask{
			{db("GetItem", owner+"table/table04", enclosed("TransactGetItems")), allowed},
			{db("GetItem", owner+"table/table04"), refused},
		},
	},
	{
		page: "DynamoDB, Transactions with IAM, example 3: no transactions",
		statements: `[{"Effect": "Deny", ` + transactions + `, "Condition": {"ForAnyValue:StringEquals": {"dynamodb:EnclosingOperation": ["TransactWriteItems", "TransactGetItems"]}}},
			{"Effect": "Allow", ` + transactions + `}]`,
		asks: []ask{
			{db("GetItem", owner+"table/table04", enclosed("TransactGetItems")), refusedByUser},
			{db("GetItem", owner+"table/table04"), allowed},
		},
	},
	{
		page:       "DynamoDB, PartiQL with IAM, example 4: only transactions",
		statements: `[{"Effect": "Allow", "Action": ["dynamodb:PartiQLInsert", "dynamodb:PartiQLSelect"], "Resource": ["` + music + `"], "Condition": {"StringEquals": {"dynamodb:EnclosingOperation": ["ExecuteTransaction"]}}}]`,
		asks:       []ask{{db("PartiQLSelect", music, enclosed("ExecuteTransaction")), allowed}, {db("PartiQLSelect", music), refused}},
	},
	{
		page: "DynamoDB, PartiQL with IAM, example 6: no full table scans",
		statements: `[{"Effect": "Deny", "Action": ["dynamodb:PartiQLSelect"], "Resource": ["` + music + `"], "Condition": {"Bool": {"dynamodb:FullTableScan": ["true"]}}},
			{"Effect": "Allow", "Action": ["dynamodb:PartiQLSelect"], "Resource": ["` + music + `"]}]`,
		asks: []ask{
			{db("PartiQLSelect", music, scans(True)), refusedByUser},
			{db("PartiQLSelect", music, scans(False)), allowed},
			{db("PartiQLSelect", music), allowed},
		},
	},
	{
		page: "DynamoDB, Backup and restore with IAM, example 2",
		statements: `[{"Effect": "Allow", "Action": ["dynamodb:CreateBackup"], "Resource": "*"},
			{"Effect": "Deny", "Action": ["dynamodb:RestoreTableFromBackup"], "Resource": "*"}]`,
		asks: []ask{{db("CreateBackup", books), allowed}, {db("RestoreTableFromBackup", books+"/backup/1"), refusedByUser}, {db("DeleteBackup", books), refused}},
	},
}

var resourceExamples = []example{
	{
		page: "DynamoDB, Resource-based policies: a table",
		resource: `{"Version": "2012-10-17", "Statement": [{"Sid": "1111", "Effect": "Allow",
			"Principal": {"AWS": ["arn:aws:iam::123456789012:user/username", "arn:aws:iam::123456789012:user/Jane"]},
			"Action": ["dynamodb:GetItem", "dynamodb:BatchGetItem"], "Resource": ["` + music + `"]}]}`,
		asks: []ask{
			{db("GetItem", music, by("arn:aws:iam::123456789012:user/Jane")), allowed},
			{db("GetItem", music), refused},
			{db("PutItem", music, by("arn:aws:iam::123456789012:user/Jane")), refused},
			{db("GetItem", books, by("arn:aws:iam::123456789012:user/Jane")), refused},
		},
	},
	{
		page: "DynamoDB, Resource-based policies: a stream",
		resource: `{"Version": "2012-10-17", "Statement": [{"Sid": "1111", "Effect": "Allow", "Principal": {"AWS": "arn:aws:iam::123456789012:user/Jane"},
			"Action": ["dynamodb:DescribeStream", "dynamodb:GetRecords", "dynamodb:GetShardIterator"], "Resource": ["` + music + `/stream/2024-02-12T18:57:26.492"]}]}`,
		asks: []ask{
			{db("GetRecords", music+"/stream/2024-02-12T18:57:26.492", by("arn:aws:iam::123456789012:user/Jane")), allowed},
			{db("GetRecords", music+"/stream/2024-02-12T18:57:26.493", by("arn:aws:iam::123456789012:user/Jane")), refused},
		},
	},
	{
		page: "DynamoDB, Resource-based policies: all actions on a table and its indexes",
		resource: `{"Version": "2012-10-17", "Statement": [{"Sid": "1111", "Effect": "Allow", "Principal": {"AWS": "arn:aws:iam::123456789012:user/Jane"},
			"Action": "dynamodb:*", "Resource": ["` + music + `", "` + music + `/index/*"]}]}`,
		asks: []ask{{db("Query", music+"/index/later", by("arn:aws:iam::123456789012:user/Jane")), allowed}},
	},
	{
		page: "DynamoDB, Resource-based policies: addresses without some",
		resource: `{"Id": "PolicyId2", "Version": "2012-10-17", "Statement": [{"Sid": "AllowIPmix", "Effect": "Allow", "Principal": {"AWS": ["arn:aws:iam::123456789012:user/Jane"]},
			"Action": ["dynamodb:*"], "Resource": ["` + music + `"],
			"Condition": {"IpAddress": {"aws:SourceIp": ["54.240.143.0/24", "2001:DB8:1234:5678::/64"]},
				"NotIpAddress": {"aws:SourceIp": ["54.240.143.188", "2001:DB8:1234:5678:ABCD::/80"]}}}]}`,
		asks: []ask{
			{db("Scan", music, by("arn:aws:iam::123456789012:user/Jane"), ip("54.240.143.1")), allowed},
			{db("Scan", music, by("arn:aws:iam::123456789012:user/Jane"), ip("54.240.143.188")), refused},
			{db("Scan", music, by("arn:aws:iam::123456789012:user/Jane"), ip("2001:db8:1234:5678:1::1")), allowed},
			{db("Scan", music, by("arn:aws:iam::123456789012:user/Jane"), ip("2001:db8:1234:5678:abcd::1")), refused},
			{db("Scan", music, by("arn:aws:iam::123456789012:user/Jane"), ip("55.240.143.1")), refused},
		},
	},
	{
		page:     "DynamoDB, Resource-based policies: only one role",
		identity: `{"Version": "2012-10-17", "Statement": {"Effect": "Allow", "Action": "dynamodb:*", "Resource": "*"}}`,
		resource: `{"Version": "2012-10-17", "Statement": [{"Sid": "1111", "Effect": "Deny", "Principal": {"AWS": "*"}, "Action": "dynamodb:*", "Resource": ["` + music + `"],
			"Condition": {"ArnNotEquals": {"aws:PrincipalArn": "arn:aws:iam::123456789012:role/admin"}}}]}`,
		asks: []ask{
			{db("Scan", music), refusedByTable},
			{db("Scan", music, by("arn:aws:iam::123456789012:role/admin"), session("arn:aws:sts::123456789012:assumed-role/admin/s")), allowed},
			{db("Scan", music, by("")), refusedByTable},
		},
	},
}
