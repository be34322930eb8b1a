package mayfly

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/mayflydb/mayfly/internal/front/admin"
	"github.com/mayflydb/mayfly/target"
)

// visit is a request that a web page tries.
type visit struct {
	method, path, target, contentType, body string
	answer                                  int // to a program
}

// visits are requests to everything on the port. Most would change something, and none succeeds
// only after another.
var visits = []visit{
	{"POST", "/", "DynamoDB_20120810.ListTables", "application/x-amz-json-1.0", "{}", 200},
	{"POST", "/", "DynamoDB_20120810.PutItem", "application/x-amz-json-1.0", `{"TableName":"notes","Item":{"pk":{"S":"web"}}}`, 200},
	{"POST", "/", "DynamoDB_20120810.PutItem", "text/plain", `{"TableName":"notes","Item":{"pk":{"S":"web"}}}`, 404},
	{"POST", "/", "DynamoDBStreams_20120810.ListStreams", "application/x-amz-json-1.0", "{}", 200},
	{"POST", "/", "AWSEvents.PutRule", "application/x-amz-json-1.1", `{"Name":"web","ScheduleExpression":"rate(1 minute)"}`, 200},
	{"POST", "/schedules/web", "", "text/plain", `{"ScheduleExpression":"at(2020-01-01T00:00:00)","FlexibleTimeWindow":{"Mode":"OFF"},` +
		`"Target":{"Arn":"arn:mayfly:test:::run","RoleArn":"arn:aws:iam::000000000000:role/r","Input":"from-the-web"}}`, 200},
	{"GET", "/schedules", "", "", "", 200},
	{"DELETE", "/schedules/none", "", "", "", 404},
	{"POST", "/2015-03-31/event-source-mappings", "", "application/json", `{"EventSourceArn":"arn:aws:dynamodb:us-east-1:000000000000:table/notes/stream/none","FunctionName":"f"}`, 400},
	{"GET", "/2015-03-31/event-source-mappings", "", "", "", 200},
	{"GET", "/", "", "", "", 200},
	{"GET", "/healthz", "", "", "", 200},
	{"GET", "/readyz", "", "", "", 200},
	{"GET", "/metrics", "", "", "", 200},
	{"GET", "/_mayfly/clock", "", "", "", 200},
	{"GET", "/_mayfly/deadlines", "", "", "", 200},
	{"POST", "/_mayfly/clock/rate", "", "text/plain", `{"rate":1}`, 200},
	{"GET", "/nothing", "", "", "", 404},
}

// send sends the request with the headers of a browser, Host among them, and returns the answer's
// status and text.
func (v visit) send(t *testing.T, url string, headers ...string) (status int, text string) {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), v.method, url+v.path, strings.NewReader(v.body))
	r.RequestURI = ""
	for name, value := range map[string]string{"X-Amz-Target": v.target, "Content-Type": v.contentType} {
		if value != "" {
			r.Header.Set(name, value)
		}
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		if r.Header.Add(name, value); name == "Host" {
			r.Host = value
		}
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	var all strings.Builder
	if err := answer.Write(&all); err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, all.String()
}

// A web page that is not the server's own has no effect on it and learns nothing from it, through
// whichever API, whether the browser takes it for another origin's page or, after DNS rebinding, for
// the server's. Programs are answered under every name.
func TestForeignPages(t *testing.T) {
	ran := make(chan string, 10)
	db := open(t, "", Options{
		CORS:       []string{"https://app.example"},
		AllowHosts: []string{"db.example"},
		Targets: []target.Mapping{{ARN: "arn:mayfly:test:::run", Target: target.Func(func(_ context.Context, d target.Delivery) error {
			ran <- string(d.Body)
			return nil
		})}},
	})
	makeTable(t, db.DynamoDB(), "notes")
	handler := httptest.NewServer(db.Handler())
	defer handler.Close()
	servers := map[string]string{"Serve": serve(t, db), "Handler": handler.URL}
	for _, test := range []struct {
		name    string
		headers []string
		part    string // of the refusal
	}{
		{"rebound", []string{"Host: evil.example:8000", "Origin: http://evil.example:8000", "Sec-Fetch-Site: same-origin"}, "--allow-host"},
		{"rebound, without Sec-Fetch-Site", []string{"Host: evil.example:8000", "Origin: http://evil.example:8000"}, "--allow-host"},
		{"rebound, address typed", []string{"Host: evil.example:8000", "Sec-Fetch-Site: none", "Sec-Fetch-Mode: navigate"}, "--allow-host"},
		{"rebound, listed origin", []string{"Host: evil.example:8000", "Origin: https://app.example"}, "--allow-host"},
		{"cross-site", []string{"Host: 127.0.0.1:8000", "Origin: https://evil.example", "Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: cors"}, "--cors"},
		{"cross-site, without an answer", []string{"Host: 127.0.0.1:8000", "Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: no-cors"}, "--cors"},
		{"another port", []string{"Host: localhost:8000", "Origin: http://localhost:3000", "Sec-Fetch-Site: same-site"}, "--cors"},
		{"an old browser", []string{"Host: 127.0.0.1:8000", "Origin: http://localhost:8000"}, "--cors"},
		{"a file", []string{"Host: 127.0.0.1:8000", "Origin: null"}, "--cors"},
	} {
		for server, url := range servers {
			for _, v := range visits {
				for _, method := range []string{v.method, http.MethodOptions} {
					v.method = method
					status, text := v.send(t, url, test.headers...)
					if status != http.StatusForbidden && !(status == http.StatusBadRequest && v.path == "/" && strings.Contains(text, "AccessDeniedException")) ||
						!strings.Contains(text, test.part) || strings.Contains(text, "Access-Control-") {
						t.Errorf("%s, %s: %s %s %s %s\n%s", test.name, server, v.method, v.path, v.target, v.contentType, text)
					}
				}
			}
		}
	}
	if got := visited(t, db); got != "0 items, 0 schedules" || len(ran) > 0 {
		t.Errorf("pages left %s, and the target ran %d times", got, len(ran))
	}

	for name, headers := range map[string][]string{
		"a program":          {"Host: mayfly:8000"},
		"Node's fetch":       {"Host: mayfly:8000", "Accept-Language: *", "Sec-Fetch-Mode: cors"},
		"an own page":        {"Host: 127.0.0.1:8000", "Origin: http://127.0.0.1:8000", "Sec-Fetch-Site: same-origin"},
		"an address typed":   {"Host: LOCALHOST.:8000", "Sec-Fetch-Site: none", "Sec-Fetch-Mode: navigate", "Accept-Language: en"},
		"an own page, named": {"Host: db.example:8000", "Origin: http://db.example:8000"},
	} {
		for _, v := range visits {
			if status, text := v.send(t, handler.URL, headers...); status != v.answer && status != http.StatusConflict {
				t.Errorf("%s: %s %s %s\n%s", name, v.method, v.path, v.target, text)
			}
		}
	}
	if got := visited(t, db); got != "1 items, 1 schedules" {
		t.Errorf("the others left %s", got)
	}
	select {
	case <-ran:
	case <-time.After(30 * time.Second):
		t.Error("the target did not run for the others")
	}

	// A page of a listed origin may use the APIs, but not the endpoints for operators.
	for _, v := range visits {
		status, text := v.send(t, handler.URL, "Host: 127.0.0.1:8000", "Origin: https://app.example", "Sec-Fetch-Site: cross-site")
		api := !admin.Serves(v.path)
		if api != (status == v.answer || status == http.StatusConflict) || api != strings.Contains(text, "Access-Control-Allow-Origin: https://app.example") {
			t.Errorf("a listed origin: %s %s %s\n%s", v.method, v.path, v.target, text)
		}
	}
}

// visited counts what visits make.
func visited(t *testing.T, db *DB) string {
	t.Helper()
	items, err := db.DynamoDB().Scan(t.Context(), &dynamodb.ScanInput{TableName: aws.String("notes")})
	if err != nil {
		t.Fatal(err)
	}
	schedules, err := db.Scheduler().ListSchedules(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%d items, %d schedules", len(items.Items), len(schedules.Schedules))
}

// A server with keys answers pages of all origins, as Amazon does, because a page without a key cannot
// do anything. The endpoints for operators, which also take passwords, are closed to them.
func TestPagesNeedAKey(t *testing.T) {
	db := open(t, "", Options{Credentials: []Credential{{AccessKey: "AKID", SecretKey: "secret"}}})
	makeTable(t, db.DynamoDB(), "notes")
	handler := httptest.NewServer(db.Handler())
	defer handler.Close()
	for server, url := range map[string]string{"Serve": serve(t, db), "Handler": handler.URL} {
		for _, v := range visits {
			status, text := v.send(t, url, "Host: db.example:8000", "Origin: https://evil.example", "Sec-Fetch-Site: cross-site")
			allowed := strings.Contains(text, "Access-Control-Allow-Origin: *")
			if v.method != http.MethodGet && status < 400 || allowed == admin.Serves(v.path) || allowed == strings.Contains(text, "--allow-host") {
				t.Errorf("%s: %s %s %s\n%s", server, v.method, v.path, v.target, text)
			}
			v.method = http.MethodOptions
			status, text = v.send(t, url, "Host: db.example:8000", "Origin: https://evil.example", "Access-Control-Request-Headers: x-amz-target")
			if allowed := strings.Contains(text, "Access-Control-Allow-Headers: x-amz-target"); allowed == admin.Serves(v.path) || allowed != (status == http.StatusOK) {
				t.Errorf("%s: OPTIONS %s %s\n%s", server, v.path, v.target, text)
			}
		}
	}
	if got := visited(t, db); got != "0 items, 0 schedules" {
		t.Errorf("pages left %s", got)
	}
}
