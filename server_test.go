package mayfly

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

// openServer serves a Server on a free port until the test ends.
func openServer(t *testing.T, dir string, options Options, with ServerOptions) (s *Server, url string) {
	t.Helper()
	s, err := OpenServer(dir, options, with)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- s.Serve(ctx, listener) }()
	t.Cleanup(func() {
		stop()
		if err := errors.Join(<-served, s.Close()); err != nil && s.failure == nil {
			t.Error(err)
		}
	})
	return s, "http://" + listener.Addr().String()
}

// as calls an operation with an access key and region, "any/us-east-1" by default.
func as(t *testing.T, url, who, operation, body string) string {
	t.Helper()
	if who == "" {
		who = "any/us-east-1"
	}
	key, region, _ := strings.Cut(who, "/")
	r, err := http.NewRequest(http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-amz-json-1.0")
	r.Header.Set("X-Amz-Target", "DynamoDB_20120810."+operation)
	r.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential="+key+"/20300101/"+region+"/dynamodb/aws4_request, SignedHeaders=host, Signature=0")
	return answered(t, r)
}

// operator calls an endpoint below /_mayfly.
func operator(t *testing.T, method, url, body string) string {
	t.Helper()
	r, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	return answered(t, r)
}

func answered(t *testing.T, r *http.Request) string {
	t.Helper()
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	if answer.StatusCode != http.StatusOK {
		return fmt.Sprint(answer.StatusCode, " ", string(text))
	}
	return string(text)
}

const sessionsTable = `{"TableName":"sessions","AttributeDefinitions":[{"AttributeName":"id","AttributeType":"S"}],"KeySchema":[{"AttributeName":"id","KeyType":"HASH"}],"BillingMode":"PAY_PER_REQUEST"}`

// fill makes a table with an item that expires an hour after the clock's start, a schedule and a backup.
func fill(t *testing.T, url string, start time.Time) {
	t.Helper()
	as(t, url, "", "CreateTable", sessionsTable)
	as(t, url, "", "UpdateTimeToLive", `{"TableName":"sessions","TimeToLiveSpecification":{"Enabled":true,"AttributeName":"expires"}}`)
	as(t, url, "", "PutItem", fmt.Sprintf(`{"TableName":"sessions","Item":{"id":{"S":"a"},"expires":{"N":"%d"}}}`, start.Add(time.Hour).Unix()))
	as(t, url, "", "CreateBackup", `{"TableName":"sessions","BackupName":"first"}`)
	if got := as(t, url, "", "GetItem", `{"TableName":"sessions","Key":{"id":{"S":"a"}}}`); !strings.Contains(got, `"Item"`) {
		t.Fatal(got)
	}
}

// checkEmpty checks that nothing is left, and that a test can begin anew.
func checkEmpty(t *testing.T, url string, start time.Time) {
	t.Helper()
	for operation, want := range map[string]string{"ListTables": `{"TableNames":[]}`, "ListBackups": `{"BackupSummaries":[]}`} {
		if got := as(t, url, "", operation, "{}"); got != want {
			t.Errorf("%s returns %s after a reset", operation, got)
		}
	}
	if got := operator(t, "GET", url+"/_mayfly/clock", ""); !strings.Contains(got, start.UTC().Format(`"now":"2006-01-02T15:04`)) {
		t.Errorf("the clock is %s after a reset", got)
	}
	fill(t, url, start)
}

func TestReset(t *testing.T) {
	start := time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	for _, dir := range []string{"", t.TempDir()} {
		var opened, ended atomic.Int32
		_, url := openServer(t, dir, Options{Start: start, Frozen: true, ClockControl: ClockControlOn}, ServerOptions{
			Opened: func(*DB) (func() error, error) {
				opened.Add(1)
				return func() error { ended.Add(1); return nil }, nil
			},
		})
		fill(t, url, start)
		for range 2 {
			if got := operator(t, "POST", url+"/_mayfly/clock/advance", `{"by":"48h"}`); !strings.Contains(got, `"expired":1`) {
				t.Fatal(got)
			}
			if got := operator(t, "POST", url+"/_mayfly/reset", "{}"); !strings.Contains(got, `"now":"2030-01-01T12:00:00.000Z"`) || !strings.Contains(got, `"frozen":true`) {
				t.Fatalf("a reset answers %s", got)
			}
			checkEmpty(t, url, start)
		}
		if opened.Load() != 3 || ended.Load() != 2 {
			t.Errorf("%d databases were opened, and %d ended, in two resets", opened.Load(), ended.Load())
		}
	}
}

func TestResetIsRefused(t *testing.T) {
	_, off := openServer(t, t.TempDir(), Options{}, ServerOptions{})
	_, on := openServer(t, "", Options{}, ServerOptions{})
	alone := serve(t, open(t, "", Options{}))
	for _, c := range []struct{ method, url, body, want string }{
		{"POST", off, "", `403 {"error":"clock control is off; start the server with --clock-control to allow a reset, which deletes all data"}`},
		{"POST", alone, "", `403 {"error":"this server cannot be emptied: only mayfly serve and a mayfly.Server can"}`},
		{"GET", on, "", `405 {"error":"/_mayfly/reset does not take the method GET; use POST"}`},
		{"POST", on, `{"to":1}`, `400 {"error":"a reset takes no settings: send no body"}`},
		{"POST", on, strings.Repeat(" ", 5000), `413 {"error":"read the body: http: request body too large"}`},
	} {
		if got := strings.TrimSpace(operator(t, c.method, c.url+"/_mayfly/reset", c.body)); got != c.want {
			t.Errorf("%s with %.20q returns %s, not %s", c.method, c.body, got, c.want)
		}
	}
}

// Clients that call during resets get whole answers: of the database before or after one, or a fault
// of the one that ends.
func TestResetUnderLoad(t *testing.T) {
	s, url := openServer(t, "", Options{}, ServerOptions{})
	done := make(chan struct{})
	var clients sync.WaitGroup
	for range 4 {
		clients.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				as(t, url, "", "CreateTable", sessionsTable)
				as(t, url, "", "PutItem", `{"TableName":"sessions","Item":{"id":{"S":"a"}}}`)
			}
		})
	}
	for range 10 {
		if err := s.Reset(t.Context()); err != nil {
			t.Error(err)
		}
	}
	close(done)
	clients.Wait()
	if err := s.Reset(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := as(t, url, "", "ListTables", "{}"); got != `{"TableNames":[]}` {
		t.Error(got)
	}
}

// A reset that fails ends the server once, and later resets fail as well.
func TestResetFails(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	var ended atomic.Int32
	s, err := OpenServer(dir, Options{ClockControl: ClockControlOn}, ServerOptions{
		Opened: func(*DB) (func() error, error) { return func() error { ended.Add(1); return nil }, nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve(t.Context(), listener) }()
	if err := errors.Join(os.RemoveAll(dir), os.WriteFile(dir, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	if got := operator(t, "POST", "http://"+listener.Addr().String()+"/_mayfly/reset", ""); !strings.HasPrefix(got, "500 ") {
		t.Errorf("the reset answers %s", got)
	}
	if err := <-served; err == nil || !strings.Contains(err.Error(), "the server has stopped: mayfly: reset: ") {
		t.Errorf("Serve returns %v", err)
	}
	if err := s.Reset(t.Context()); err == nil || s.Err() == nil {
		t.Errorf("a second reset returns %v, and Err %v", err, s.Err())
	}
	_ = s.Close() // with the errors of the removed directory
	if n := ended.Load(); n != 1 {
		t.Errorf("the database was ended %d times", n)
	}
}

// A key may stand in a presigned URL. Without one, requests are refused: no shared data arises.
func TestSeparateNeedsKey(t *testing.T) {
	s, url := openServer(t, "", Options{}, ServerOptions{Separate: true})
	as(t, url, "bob/us-east-1", "CreateTable", sessionsTable)
	call := func(method, path, body string) string {
		r, err := http.NewRequest(method, url+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/x-amz-json-1.0")
		r.Header.Set("X-Amz-Target", "DynamoDB_20120810.ListTables")
		return answered(t, r)
	}
	if got := call("POST", "/?X-Amz-Credential=bob%2F20300101%2Fus-east-1%2Fdynamodb%2Faws4_request", "{}"); got != `{"TableNames":["sessions"]}` {
		t.Errorf("a presigned request gets %s", got)
	}
	for _, path := range []string{"/", "/?X-Amz-Credential=", "/schedules"} {
		method := "POST"
		if path == "/schedules" {
			method = "GET"
		}
		if got := call(method, path, "{}"); !strings.Contains(got, "issing Authentication Token") && !strings.Contains(got, "UnrecognizedClient") {
			t.Errorf("%s %s without a key gets %s", method, path, got)
		}
	}
	if got := operator(t, "POST", url+"/_mayfly/backup", ""); !strings.HasPrefix(got, "409 ") {
		t.Errorf("a backup gets %s", got)
	}
	if tables, err := s.DB().DynamoDB().ListTables(t.Context(), &dynamodb.ListTablesInput{}); err != nil || len(tables.TableNames) > 0 {
		t.Errorf("the first database has %v, %v", tables, err)
	}
}

func TestSeparate(t *testing.T) {
	start := time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	for _, dir := range []string{"", t.TempDir()} {
		s, url := openServer(t, dir, Options{Start: start, Frozen: true, ClockControl: ClockControlOn}, ServerOptions{Separate: true})
		fill(t, url, start)
		for _, c := range []struct{ who, want string }{
			{"any/us-east-1", `{"TableNames":["sessions"]}`},
			{"any/eu-west-1", `{"TableNames":[]}`},
			{"other/us-east-1", `{"TableNames":[]}`},
			{"a.b/us-east-1", `400 {"__type":"com.amazon.coral.service#UnrecognizedClientException","message":"The Access Key ID or security token is invalid: a server with separate data accepts letters, digits, - and _ in it"}`},
			{"../x/us-east-1", `400 {"__type":"com.amazon.coral.service#UnrecognizedClientException","message":"The Access Key ID or security token is invalid: a server with separate data accepts letters, digits, - and _ in it"}`},
		} {
			if got := as(t, url, c.who, "ListTables", "{}"); got != c.want {
				t.Errorf("%s sees %s, not %s", c.who, got, c.want)
			}
		}
		if got := as(t, url, "any/eu-west-1", "CreateTable", sessionsTable); !strings.Contains(got, "arn:aws:dynamodb:eu-west-1:") {
			t.Errorf("a table in eu-west-1 is %s", got)
		}
		// One move of the clock moves all databases, also those to come.
		if got := operator(t, "POST", url+"/_mayfly/clock/advance", `{"by":"2h"}`); !strings.Contains(got, `"expired":1`) {
			t.Error(got)
		}
		as(t, url, "late/us-east-1", "ListTables", "{}")
		for name, one := range s.mu.all {
			if now := one.db.Clock().Now(); !now.Equal(start.Add(2 * time.Hour)) {
				t.Errorf("the clock of %v is %s", name, now)
			}
		}
		operator(t, "POST", url+"/_mayfly/reset", "")
		checkEmpty(t, url, start)
		if got := as(t, url, "any/eu-west-1", "ListTables", "{}"); got != `{"TableNames":[]}` {
			t.Errorf("a reset left %s", got)
		}
	}
}

// A directory keeps the data of each key, and a reset empties those too that are not open.
func TestSeparateDirectories(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "d[a]ta") // no pattern
	for _, want := range []string{`{"TableNames":[]}`, `{"TableNames":["sessions"]}`} {
		s, err := OpenServer(dir, Options{ClockControl: ClockControlOn}, ServerOptions{Separate: true})
		if err != nil {
			t.Fatal(err)
		}
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		served := make(chan error, 1)
		go func() { served <- s.Serve(ctx, listener) }()
		url := "http://" + listener.Addr().String()
		if got := as(t, url, "", "ListTables", "{}"); got != want {
			t.Errorf("the directory has %s, not %s", got, want)
		}
		as(t, url, "", "CreateTable", sessionsTable)
		stop()
		if err := errors.Join(<-served, s.Close()); err != nil {
			t.Fatal(err)
		}
	}
	_, url := openServer(t, dir, Options{ClockControl: ClockControlOn}, ServerOptions{Separate: true})
	operator(t, "POST", url+"/_mayfly/reset", "")
	if got := as(t, url, "", "ListTables", "{}"); got != `{"TableNames":[]}` {
		t.Errorf("a reset left %s", got)
	}
}

func TestSeparateIsBounded(t *testing.T) {
	_, url := openServer(t, "", Options{}, ServerOptions{Separate: true})
	for i := range tenantsMax {
		if got := as(t, url, fmt.Sprintf("key%d/us-east-1", i), "ListTables", "{}"); got != `{"TableNames":[]}` {
			t.Fatal(i, got)
		}
	}
	if got := as(t, url, "onemore/us-east-1", "ListTables", "{}"); !strings.Contains(got, "LimitExceededException") {
		t.Error(got)
	}
	if got := as(t, url, "key0/us-east-1", "ListTables", "{}"); got != `{"TableNames":[]}` {
		t.Error(got)
	}
	if _, err := OpenServer("", Options{Credentials: []Credential{{AccessKey: "a", SecretKey: "b"}}}, ServerOptions{Separate: true}); err == nil {
		t.Error("Separate goes together with Credentials")
	}
}

// With AuthForm, a request needs all parts of a signature, and any will do.
func TestAuthForm(t *testing.T) {
	_, url := openServer(t, "", Options{}, ServerOptions{AuthForm: true})
	for _, c := range []struct{ authorization, want string }{
		{"", "Request is missing Authentication Token"},
		{"AWS4-HMAC-SHA256 Credential=any/20300101/us-east-1/dynamodb/aws4_request", "Authorization header requires 'Signature' parameter. Authorization header requires 'SignedHeaders' parameter. Authorization="},
		{"AWS4-HMAC-SHA256 Credential=any/20300101/us-east-1/dynamodb/aws4_request, SignedHeaders=host, Signature=0", `{"TableNames":[]}`},
	} {
		r, err := http.NewRequest(http.MethodPost, url, strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		for name, value := range map[string]string{
			"Content-Type": "application/x-amz-json-1.0", "X-Amz-Target": "DynamoDB_20120810.ListTables", "X-Amz-Date": "20300101T000000Z", "Authorization": c.authorization,
		} {
			r.Header.Set(name, value)
		}
		if got := answered(t, r); !strings.Contains(got, c.want) {
			t.Errorf("%q: %s", c.authorization, got)
		}
	}
}

// GET / answers as AWS does, or as DynamoDB Local does.
func TestLikeLocal(t *testing.T) {
	_, aws := openServer(t, "", Options{}, ServerOptions{})
	_, local := openServer(t, "", Options{}, ServerOptions{LikeLocal: true, Separate: true})
	if got := operator(t, "GET", aws+"/", ""); got != "healthy: "+strings.TrimPrefix(aws, "http://")+" " {
		t.Error(got)
	}
	if got := operator(t, "GET", local+"/", ""); got != `400 {"__type":"com.amazonaws.dynamodb.v20120810#MissingAuthenticationToken","message":"Request must contain either a valid (registered) AWS access key ID or X.509 certificate."}` {
		t.Error(got)
	}
}
