package program

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestDynamoDBLocalFlags(t *testing.T) {
	for line, want := range map[string]string{
		"-sharedDb":                                                "serve --like-local --data=shared-local-instance",
		"-inMemory":                                                "serve --like-local --memory --data= --separate",
		"-sharedDb -inMemory -port 9000":                           "serve --like-local --memory --data= --port=9000",
		"-sharedDb -inMemory -port=9000":                           "serve --like-local --memory --data= --port=9000",
		"-jar DynamoDBLocal.jar":                                   "serve --like-local --data=. --separate",
		"serve -jar DynamoDBLocal.jar -port 1":                     "serve --like-local --data=. --separate --port=1",
		"-jar DynamoDBLocal.jar -sharedDb -dbPath ./data":          "serve --like-local --data=data/shared-local-instance",
		"-Djava.library.path=./lib -jar L.jar -inMemory":           "serve --like-local --memory --data= --separate",
		"-Xmx1g -Dx -jar L.jar -sharedDb -inMemory":                "serve --like-local --memory --data=",
		"serve -sharedDb -inMemory -cors *":                        "serve --like-local --memory --data= --cors=*",
		"-inMemory -delayTransientStatuses":                        "serve --like-local --memory --data= --separate --transient-states=500ms",
		"-dbPath d -optimizeDbBeforeStartup":                       "serve --like-local --data=d --separate",
		"-inMemory -sharedDb -disableTelemetry --host ::1":         "serve --like-local --memory --data= --host ::1",
		"-sharedDb --data d -port 1 --port 2":                      "serve --like-local --port=1 --data d --port 2",
		"-inMemory -sharedDb --start=2030-01-01 --log-format json": "serve --like-local --memory --data= --start=2030-01-01 --log-format json",

		// Command lines of mayfly stay.
		"serve --port 8000":         "serve --port 8000",
		"serve -h":                  "serve -h",
		"-v":                        "-v",
		"":                          "",
		"schedule list":             "schedule list",
		"guard run --table t -help": "guard run --table t -help",
	} {
		got, err := fromDynamoDBLocal(strings.Fields(line))
		if err != nil || strings.Join(got, " ") != want {
			t.Errorf("%q becomes %q, %v, not %q", line, strings.Join(got, " "), err, want)
		}
	}
	for line, want := range map[string]string{
		"-sharedDb -inmemory":          `unknown flag -inmemory`,
		"-inMemory -dbPath d":          "-inMemory and -dbPath cannot be used together",
		"-inMemory -port":              "-port needs a value",
		"-port -inMemory":              "-port needs a value",
		"-jar x.jar -sharedDB":         "unknown flag -sharedDB",
		"-inMemory -version":           "unknown flag -version",
		"-jar DynamoDBLocal.jar -help": "help",
		"-help":                        "help",
	} {
		if got, err := fromDynamoDBLocal(strings.Fields(line)); err == nil || err.Error() != want {
			t.Errorf("%q becomes %q, %v, not the error %q", line, got, err, want)
		}
	}
	var out, problem bytes.Buffer
	if code := run(context.Background(), []string{"-help"}, &out, &problem); code != exitOK || out.String() != localHelp || problem.Len() > 0 {
		t.Errorf("-help exits with %d and prints %q, %q", code, out.String(), problem.String())
	}
}

// A client of DynamoDB Local finds what it expects, from the health check to a table's states.
func TestDynamoDBLocalServer(t *testing.T) {
	dir := t.TempDir()
	s, err := startPrinting(dir, os.Environ(), "-Djava.library.path=./DynamoDBLocal_lib", "-jar", "DynamoDBLocal.jar", "-port", "0", "-dbPath", ".", "-delayTransientStatuses", "--ready-file", "ready.json")
	if err != nil {
		t.Fatal(err)
	}
	defer s.kill()
	if ready, err := os.ReadFile(dir + "/ready.json"); err != nil || !strings.Contains(string(ready), `"url":"`+s.url+`"`) {
		t.Errorf("the ready file is %s, %v", ready, err)
	}
	status, text, err := exchange(http.MethodGet, s.url+"/", "")
	if err != nil || status != http.StatusBadRequest || !strings.Contains(text, "MissingAuthenticationToken") {
		t.Errorf("GET / answers %d %s, %v", status, text, err)
	}
	call := func(key, operation, body string) string {
		t.Helper()
		_, text, err := exchange(http.MethodPost, s.url, body, "X-Amz-Target:DynamoDB_20120810."+operation, "Content-Type:application/x-amz-json-1.0",
			"Authorization:AWS4-HMAC-SHA256 Credential="+key+"/20300101/us-west-2/dynamodb/aws4_request, SignedHeaders=host, Signature=0")
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	created := call("ada", "CreateTable", `{"TableName":"carts","AttributeDefinitions":[{"AttributeName":"id","AttributeType":"S"}],"KeySchema":[{"AttributeName":"id","KeyType":"HASH"}],"BillingMode":"PAY_PER_REQUEST"}`)
	if !strings.Contains(created, `"TableStatus":"CREATING"`) {
		t.Error(created)
	}
	for until := time.Now().Add(time.Minute); !strings.Contains(call("ada", "DescribeTable", `{"TableName":"carts"}`), `"TableStatus":"ACTIVE"`); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(until) {
			t.Fatal("the table does not become ACTIVE")
		}
	}
	if got := call("bob", "ListTables", "{}"); got != `{"TableNames":[]}` {
		t.Errorf("another access key sees %s", got)
	}
	if code, err := s.stop(os.Interrupt); err != nil || code != "0" {
		t.Errorf("the server exits with %s, %v", code, err)
	}
	if _, err := os.Stat(dir + "/ready.json"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the ready file is left: %v", err)
	}
	entries, err := os.ReadDir(dir)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if err != nil || !slices.Equal(names, []string{"ada_us-west-2", "bob_us-west-2"}) {
		t.Errorf("the directory has %q, %v", names, err)
	}
}

func TestReadyFileErrors(t *testing.T) {
	var out, problem bytes.Buffer
	code := run(context.Background(), []string{"serve", "--memory", "--port", "0", "--ready-file", "no/such/dir/ready.json"}, &out, &problem)
	if code != exitUsage || !strings.Contains(problem.String(), "--ready-file: ") || !strings.Contains(problem.String(), "next: name a file in a directory that exists") {
		t.Errorf("exits with %d: %s", code, problem.String())
	}
}

// A ready file that a killed server left is removed before anything else, and a server leaves the line
// of another one alone.
func TestReadyFileOfAnother(t *testing.T) {
	path := t.TempDir() + "/ready.json"
	if err := os.WriteFile(path, []byte("stale"), 0o600); err != nil {
		t.Fatal(err)
	}
	var out, problem bytes.Buffer
	if code := run(context.Background(), []string{"serve", "--memory", "--port", "99999", "--ready-file", path}, &out, &problem); code != exitUsage {
		t.Errorf("exits with %d: %s", code, problem.String())
	}
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the stale file is left: %v", err)
	}
	removeFirst, err := readyLine{PID: 1}.write(path)
	if err != nil {
		t.Fatal(err)
	}
	removeSecond, err := readyLine{PID: 2}.write(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := removeFirst(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Errorf("the first server removed the second one's file: %v", err)
	}
	if err := removeSecond(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the file is left: %v", err)
	}
}
