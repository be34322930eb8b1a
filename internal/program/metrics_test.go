package program

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// metricName is what a name of ours looks like in an expression.
var metricName = regexp.MustCompile(`\b(mayfly_[a-z0-9_]+|TimeToLiveDeletedItemCount)\b`)

// TestMetricsExist: every metric that an alarm or a panel of the dashboard names is one that a real server and a real guard export, once items have expired, schedules have fired and failed,
// and a trigger's function has refused a record and not answered to another.
func TestMetricsExist(t *testing.T) {
	missing := map[string][]string{} // by name: the files that name it
	for _, file := range []string{"prometheus/mayfly.rules.yaml", "grafana/mayfly.json"} {
		text, err := os.ReadFile("../../deploy/" + file)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range metricName.FindAllString(string(text), -1) {
			if !slices.Contains(missing[name], file) {
				missing[name] = append(missing[name], file)
			}
		}
	}
	if len(missing) < 30 {
		t.Fatalf("only %d metrics are named", len(missing))
	}

	hangs := make(chan struct{})
	targets := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		switch r.URL.Path {
		case "/refuses":
			w.WriteHeader(http.StatusBadRequest)
		case "/hangs":
			<-hangs
		}
	}))
	t.Cleanup(targets.Close)
	t.Cleanup(func() { close(hangs) })
	dir := t.TempDir()
	var file strings.Builder
	file.WriteString("targets:\n")
	for _, name := range []string{"works", "refuses", "hangs"} {
		fmt.Fprintf(&file, "  - arn: \"arn:aws:lambda:*:*:function:%s\"\n    webhook: {url: \"%s/%s\"}\n", name, targets.URL, name)
	}
	if err := os.WriteFile(filepath.Join(dir, "targets.yaml"), []byte(file.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	// Records that the function which does not answer holds are soon older than the retention.
	server, err := startServer(dir, nil, "--memory", "--targets", "targets.yaml", "--stream-retention", "1s")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.kill)
	call := func(operation, body string) {
		t.Helper()
		callDynamoDB(t, server.url, operation, body)
	}
	mayfly := func(args ...string) {
		t.Helper()
		if out, err := exec.Command("mayfly", append(args, "--endpoint", server.url)...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", args, err, out)
		}
	}
	const create = `{"TableName":"%s","AttributeDefinitions":[{"AttributeName":"id","AttributeType":"S"}],"KeySchema":[{"AttributeName":"id","KeyType":"HASH"}],"BillingMode":"PAY_PER_REQUEST"%s}`
	call("CreateTable", fmt.Sprintf(create, "orders", `,"StreamSpecification":{"StreamEnabled":true,"StreamViewType":"KEYS_ONLY"}`))
	call("UpdateTimeToLive", `{"TableName":"orders","TimeToLiveSpecification":{"Enabled":true,"AttributeName":"ttl"}}`)
	call("CreateTable", fmt.Sprintf(create, "guarded", ""))
	mayfly("trigger", "create", "--table", "orders", "--function", "hangs", "--from", "trim-horizon")
	mayfly("trigger", "create", "--table", "orders", "--function", "refuses", "--from", "trim-horizon", "--retries", "0")
	for _, name := range []string{"works", "refuses"} {
		mayfly("schedule", "create", name, "--at", "now", "--target", "arn:aws:lambda:us-east-1:000000000000:function:"+name)
	}
	for _, table := range []string{"orders", "guarded"} {
		call("PutItem", fmt.Sprintf(`{"TableName":"%s","Item":{"id":{"S":"a"},"ttl":{"N":"%d"}}}`, table, time.Now().Unix()-10))
	}
	guard, err := startPrinting(dir, append(os.Environ(), "AWS_ACCESS_KEY_ID=any", "AWS_SECRET_ACCESS_KEY=any"), "guard", "--endpoint", server.url, "--table", "guarded", "--attribute", "ttl", "--accept-overdue", "any", "--strategy", "scan",
		"--alone", "--metrics-port", "0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(guard.kill)

	for until := time.Now().Add(time.Minute); len(missing) > 0; time.Sleep(100 * time.Millisecond) {
		for _, url := range []string{server.url, guard.url} {
			for _, name := range exported(t, url+"/metrics") {
				delete(missing, name)
			}
		}
		if time.Now().After(until) {
			t.Fatalf("not exported: %v\n%s\n%s", missing, server.logged(), guard.logged())
		}
	}
}

// exported returns the names of the documented series.
func exported(t *testing.T, url string) (names []string) {
	t.Helper()
	answer, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if !strings.HasPrefix(line, "#") {
			names = append(names, line[:strings.IndexAny(line, "{ ")])
		}
	}
	return names
}
