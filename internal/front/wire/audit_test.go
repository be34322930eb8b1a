package wire

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly/internal/front/audit"
	"github.com/mayflydb/mayfly/internal/front/intake"
	"github.com/mayflydb/mayfly/internal/front/keys"
	"github.com/mayflydb/mayfly/internal/front/sigv4"
	"github.com/mayflydb/mayfly/internal/store/service"
)

// line is a line of the audit log.
type line struct {
	RequestID string `json:"request_id"`
	User      string
	AccessKey string `json:"access_key"`
	From      string
	Operation string
	Accesses  []struct {
		Action, Resource string
		Keys             []string
	}
	Allowed       bool
	Reason, Error string
}

// summary returns the members of a line that differ between requests.
func (l line) summary() string {
	s := l.User + " " + l.Operation
	for _, a := range l.Accesses {
		s += " [" + a.Action + " " + a.Resource + " " + strings.Join(a.Keys, ",") + "]"
	}
	if !l.Allowed {
		s += " refused: " + l.Reason
	}
	return s + " " + l.Error
}

// TestAudit: each request over the network is one line, however it ends, and says who asked for what.
func TestAudit(t *testing.T) {
	var log bytes.Buffer
	records, err := audit.New(&log, audit.Options{Keys: audit.KeysPlain})
	if err != nil {
		t.Fatal(err)
	}
	l := newLocked(t, map[string]string{"ann": allow("dynamodb:GetItem dynamodb:PutItem", tableARN+"aaa", "")}, Options{Audit: records})
	l.table("aaa")
	ctx := t.Context()
	log.Reset()
	ann := l.client("ann")
	get := &dynamodb.GetItemInput{TableName: aws.String("aaa"), Key: key("bob")}
	ann.GetItem(ctx, get)
	ann.Scan(ctx, &dynamodb.ScanInput{TableName: aws.String("aaa")})
	ann.GetItem(ctx, &dynamodb.GetItemInput{TableName: aws.String("none"), Key: key("bob")})
	ann.PutItem(ctx, &dynamodb.PutItemInput{TableName: aws.String("aaa"), Item: person("cid"), ConditionExpression: aws.String("attribute_exists(pk)")})
	l.root.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{
		{Put: &types.Put{TableName: aws.String("aaa"), Item: person("dan")}}, {Delete: &types.Delete{TableName: aws.String("aaa"), Key: key("bob")}},
	}})
	dynamodb.New(l.options("KEY-ann", "wrong")).GetItem(ctx, get)
	dynamodb.New(l.options("nobody", "wrong")).GetItem(ctx, get)

	table := tableARN + "aaa"
	wanted := []string{
		"ann dynamodb:GetItem [dynamodb:GetItem " + table + " bob] ",
		"ann dynamodb:Scan [dynamodb:Scan " + table + " ] refused: User: arn:aws:iam::000000000000:user/ann is not authorized .* AccessDeniedException",
		"ann dynamodb:GetItem [dynamodb:GetItem " + tableARN + "none ] refused: User: .* AccessDeniedException",
		"ann dynamodb:PutItem [dynamodb:PutItem " + table + " cid] ConditionalCheckFailedException",
		"root dynamodb:TransactWriteItems [dynamodb:PutItem " + table + " dan] [dynamodb:DeleteItem " + table + " bob] ",
		" dynamodb:GetItem refused: The request signature we calculated .* InvalidSignatureException",
		" dynamodb:GetItem refused: The security token included in the request is invalid. UnrecognizedClientException",
	}
	got := strings.Split(strings.TrimSpace(log.String()), "\n")
	want(t, len(got), len(wanted))
	for i, text := range got {
		var r line
		if err := json.Unmarshal([]byte(text), &r); err != nil {
			t.Fatal(err)
		}
		pattern := "^" + strings.ReplaceAll(regexp.QuoteMeta(wanted[i]), `\.\*`, "(?s:.*)") + "$"
		if !regexp.MustCompile(pattern).MatchString(r.summary()) {
			t.Errorf("line %d is %q, want %q", i, r.summary(), wanted[i])
		}
		if r.From != "127.0.0.1" || r.RequestID == "" || (r.User == "ann") != (r.AccessKey == "KEY-ann") {
			t.Errorf("line %d: %s", i, text)
		}
	}
}

// TestAuditOfOpenServer: without keys the log has the operation, its resources and the address.
// Requests that reach no operation have a line too. Those in this process have none.
func TestAuditOfOpenServer(t *testing.T) {
	var log bytes.Buffer
	records, err := audit.New(&log, audit.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s := newTestServer(t, Options{Audit: records, BodyBudget: intake.LeastBudget})
	send := func(target, body string, headers ...string) string {
		log.Reset()
		r := httptest.NewRequest("POST", "/", strings.NewReader(body))
		r.Header.Set("X-Amz-Target", target)
		r.Header.Set("Content-Type", typeAmzJSON)
		for i := 0; i < len(headers); i += 2 {
			r.Header.Set(headers[i], headers[i+1])
		}
		s.ServeHTTP(httptest.NewRecorder(), r)
		var l line
		if err := json.Unmarshal(log.Bytes(), &l); err != nil {
			t.Fatalf("%v in %q", err, log.String())
		}
		return l.summary()
	}
	getBob := `{"TableName":"aaa","Key":{"pk":{"S":"bob"}}}`
	want(t, send(targetTables+"GetItem", getBob), " dynamodb:GetItem [dynamodb:GetItem "+tableARN+"aaa ] ResourceNotFoundException")
	want(t, send(targetTables+"Nonsense", "{}"), "  UnknownOperationException")
	want(t, send(targetTables+"GetItem", strings.Repeat("x", bodyMax+1)), "  refused: the body is too large ")
	if got := send(targetTables+"GetItem", getBob, "Origin", "https://evil.example"); !strings.HasPrefix(got, " dynamodb:GetItem refused: web pages cannot") {
		t.Errorf("a page's request: %s", got)
	}
	log.Reset()
	passed := ""
	noted := s.Noted("mayfly:Backup", http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		passed = string(body)
	}))
	noted.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("POST", "/_mayfly/backup", strings.NewReader("body")))
	if passed != "body" || !strings.Contains(log.String(), `"mayfly:Backup"`) {
		t.Errorf("a request beside the API passes %q and has the line %s", passed, &log)
	}
	log.Reset()
	do(s, &Request{Method: "POST", Path: "/", Header: http.Header{"X-Amz-Target": {targetTables + "ListTables"}}, Body: []byte("{}"), InProcess: true})
	want(t, log.String(), "")
}

// TestAuditOfEarlyRefusals: a request that is refused before the policies decide, or about which
// they cannot decide, has a line that says so.
func TestAuditOfEarlyRefusals(t *testing.T) {
	var log bytes.Buffer
	records, err := audit.New(&log, audit.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ring, err := keys.New([]keys.Spec{{
		Credential: sigv4.Credential{AccessKey: "AKID", SecretKey: "secret"}, Policies: []keys.Policy{{Text: allow("dynamodb:*", "*", "")}},
	}}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	s := newTestServer(t, Options{Audit: records, Keys: ring})
	send := func(handler http.Handler, r *http.Request) string {
		log.Reset()
		handler.ServeHTTP(httptest.NewRecorder(), r)
		var l line
		if err := json.Unmarshal(log.Bytes(), &l); err != nil {
			t.Fatalf("%v in %q", err, log.String())
		}
		return l.summary()
	}
	r := httptest.NewRequest("POST", "/", bytes.NewReader(pack(codingGzip, make([]byte, 2*intake.SmallMax))))
	r.Header.Set("Content-Encoding", "gzip")
	if got := send(s, r); !strings.Contains(got, "refused: ") || !strings.HasSuffix(got, " MissingAuthenticationTokenException") {
		t.Errorf("an unsigned gzip body: %s", got)
	}
	next := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the request passed") })
	r = httptest.NewRequest("POST", "/_mayfly/clock/set", strings.NewReader(strings.Repeat("x", bodyMax+1)))
	want(t, send(s.Permitted("mayfly:MoveClock", next), r), " mayfly:MoveClock refused: the body is too large ")

	c := s.newCaller(ring.Key("AKID"), &Request{})
	func() {
		defer func() { recover() }()
		c.permit("GetItem", (*service.GetItemInput)(nil)) // panics
	}()
	want(t, c.refused, undecided)
}
