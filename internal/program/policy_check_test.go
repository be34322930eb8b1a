package program

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestPolicyCheck(t *testing.T) {
	dir := t.TempDir()
	keys, own := filepath.Join(dir, "keys.yaml"), filepath.Join(dir, "own.json")
	if err := os.WriteFile(own, []byte(`{"Version": "2012-10-17", "Statement": [{"Sid": "Own", "Effect": "Allow", "Action": "dynamodb:GetItem", "Resource": "*",
		"Condition": {"ForAllValues:StringEquals": {"dynamodb:LeadingKeys": "${aws:username}", "dynamodb:Attributes": ["id", "a,b"]}, "StringEqualsIfExists": {"dynamodb:Select": "COUNT", "dynamodb:ReturnValues": "NONE",
		"dynamodb:EnclosingOperation": "TransactGetItems"}, "Bool": {"aws:SecureTransport": "true"}, "IpAddress": {"aws:SourceIp": "10.0.0.0/8"}, "DateLessThan": {"aws:CurrentTime": "2030-01-01T00:00:00Z"}}}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(keys, []byte(`keys:
- {access-key: R1, user: reader, secret-key-command: [false], policies: [read-only, "table:notes"]}
- {access-key: O1, user: ada, secret-key-env: UNSET, policies: [./own.json]}
- {access-key: O2, user: ada, secret-key: s, policies: [backup]}
- {access-key: F1, secret-key: s, policies: [full-access]}
- {access-key: I1, secret-key: s, status: inactive, policies: [full-access]}
- {access-key: E1, secret-key: s, expires: 2020-01-01T00:00:00Z, policies: [full-access]}
`), 0o600); err != nil {
		t.Fatal(err)
	}
	const conditions = " --action GetItem --resource t --leading-key ada --attribute id --attribute a,b --select COUNT --return-values NONE --enclosing-operation TransactGetItems --secure --source-ip 10.1.2.3 --time 2029-01-01T00:00:00Z"
	for line, want := range map[string]string{ // the exit code, and part of the output
		"--key R1 --action GetItem --resource orders":                                         "0 allowed by identity-based policy read-only, statement 1 (\"ReadOnly\")",
		"--key reader --action dynamodb:PutItem --resource notes":                             "0 allowed by identity-based policy table:notes",
		"--key reader --action Query --resource notes/index/i":                                "0 allowed by",
		"--key reader --action PutItem --resource orders":                                     "1 denied: no statement allows the request\n  identity-based policy read-only, statement 1 (\"ReadOnly\"): Allow does not apply: the action dynamodb:PutItem does not match",
		"--key R1 --action PutItem --resource orders --account 123456789012":                  "1 mayfly: User: arn:aws:iam::123456789012:user/reader is not authorized to perform: dynamodb:PutItem on resource: arn:aws:dynamodb:us-east-1:123456789012:table/orders",
		"--key R1 --action ListTables --resource *":                                           "0 allowed by",
		"--key F1 --action PutItem --resource orders":                                         "0 allowed: the key has full access\n",
		"--key I1 --action PutItem --resource orders":                                         "1 denied: the key is inactive\nmayfly: the server refuses the key as unknown\n",
		"--key E1 --action PutItem --resource orders":                                         "1 denied: the key expired at 2020-01-01 00:00:00Z\nmayfly: the server refuses the key as expired\n",
		"--key E1 --action PutItem --resource orders --time 2019-01-01T00:00:00Z":             "0 allowed: the key has full access\n",
		"--key ada --action PutItem --resource orders":                                        "2 mayfly: user ada has 2 keys\n  next: set --key to one of O1, O2\n",
		"--key none --action PutItem --resource orders":                                       "2 mayfly: " + keys + " has neither an access key nor a user none\n",
		"--key R1 --action GetItem --resource orders --source-ip here":                        "2 mayfly: --source-ip here is not an IP address\n",
		"--key R1 --action GetItem --resource orders --account 1":                             "2 mayfly: --account 1 is not 12 digits\n",
		"--action GetItem --resource orders":                                                  "2 mayfly: nothing to judge by\n",
		"--key R1 --policy x --action GetItem --resource orders":                              "2 mayfly: --policy cannot be used together with --keys and --key\n",
		"--key O1" + conditions:                                                               "0 allowed by identity-based policy ./own.json",
		"--key O1" + strings.Replace(conditions, "--leading-key ada", "--leading-key bob", 1): "1 denied",
		"--key O1" + strings.Replace(conditions, "--attribute id", "--attribute other", 1):    "1 denied",
		"--key O1" + strings.Replace(conditions, "COUNT", "ALL", 1):                           "1 denied",
		"--key O1" + strings.Replace(conditions, "NONE", "ALL_OLD", 1):                        "1 denied",
		"--key O1" + strings.Replace(conditions, "TransactGetItems", "TransactWriteItems", 1): "1 denied",
		"--key O1" + strings.Replace(conditions, " --secure", "", 1):                          "1 denied",
		"--key O1" + strings.Replace(conditions, "10.1.2.3", "11.1.2.3", 1):                   "1 denied",
		"--key O1" + strings.Replace(conditions, "2029", "2031", 1):                           "1 denied",
	} {
		code, text := runPolicy("check --keys " + keys + " " + line)
		if got := string(rune('0'+code)) + " " + text; !strings.HasPrefix(got, want) && !(got[0] == want[0] && strings.Contains(got, want[2:])) {
			t.Errorf("%s:\n got %s\nwant %s", line, got, want)
		}
	}
	if code, text := runPolicy("check --policy " + own + " --action PutItem --resource t"); code != exitError || !strings.HasPrefix(text, "denied: no statement") {
		t.Errorf("a policy alone: %d %s", code, text)
	}
	if code, text := runPolicy("check --policy absent --action PutItem --resource t"); code != exitUsage || !strings.Contains(text, "--policy: open absent: no such file") {
		t.Errorf("no policy: %d %s", code, text)
	}

	var out, problem bytes.Buffer
	code := run(t.Context(), strings.Fields("policy check --json --action PutItem --resource orders --key R1 --keys "+keys), &out, &problem)
	var v verdict
	if err := json.Unmarshal(out.Bytes(), &v); err != nil || code != exitError || v.Allowed || len(v.Statements) != 2 || v.Reason != "denied: no statement allows the request" ||
		v.Principal != "arn:aws:iam::000000000000:user/reader" || v.Statements[1].Policy != "table:notes" || v.Statements[1].Reason == "" {
		t.Errorf("as JSON: %d, %v: %s", code, err, out.String())
	}
}

func TestPolicyShow(t *testing.T) {
	for name, want := range map[string]string{
		"read-only": `"Sid": "ReadOnly"`, "backup": `"Sid": "Backup"`, "table:orders": `"arn:aws:dynamodb:*:*:table/orders/index/*"`, "guard:orders": `"Sid": "Leases"`,
		"full-access": "full-access is no policy", "readonly": "did you mean read-only?",
	} {
		code, text := runPolicy("show " + name)
		if strings.HasPrefix(want, `"`) != (code == exitOK) || !strings.Contains(text, want) {
			t.Errorf("%s: %d %s", name, code, text)
		}
	}
}

// runPolicy returns the exit code of a command line, and everything that it prints.
func runPolicy(line string) (code int, text string) {
	var out bytes.Buffer
	code = run(context.Background(), strings.Fields("policy "+line), &out, &out)
	return code, out.String()
}
