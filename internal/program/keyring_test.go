package program

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/scheduler"
	"github.com/aws/smithy-go"

	"github.com/mayflydb/mayfly/internal/front/keys"
	"github.com/mayflydb/mayfly/internal/front/policy"
)

// writeKeyFile replaces a key file as an editor does.
func writeKeyFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

// codeOf returns the code of an API's error, "ok" for none.
func codeOf(err error) string {
	var answer smithy.APIError
	switch {
	case err == nil:
		return "ok"
	case errors.As(err, &answer):
		return answer.ErrorCode()
	}
	return err.Error()
}

// The keys of a file work, each until it is removed or expires, and the file may be edited while the
// server runs.
func TestServeKeys(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "keys.yaml")
	entry := func(settings string) string { return "- {policies: [full-access], secret-key: s, " + settings + "}\n" }
	const old = "- {access-key: old, user: u, secret-key-env: OLD_SECRET, policies: [read-only]}\n"
	writeKeyFile(t, path, "keys:\n"+old+entry("access-key: session, session-token: token")+entry("access-key: expired, expires: 2020-01-01T00:00:00Z")+
		entry("access-key: off, status: inactive"))
	env := append(os.Environ(), "OLD_SECRET=s", "MAYFLY_ACCESS_KEY=flag", "MAYFLY_SECRET_KEY=s")
	server, err := startServer(t.TempDir(), env, "--memory", "--keys", path)
	if err != nil {
		t.Fatal(err)
	}
	defer server.kill()
	list := func(key, token string) string {
		_, err := clientOf(server.url, key, "s").ListTables(t.Context(), nil, func(o *dynamodb.Options) {
			o.Credentials = credentials.NewStaticCredentialsProvider(key, "s", token)
		})
		return codeOf(err)
	}
	const unknown = "UnrecognizedClientException"
	for key, want := range map[string]string{
		"flag": "ok", "old": "ok", "session:token": "ok", "session": unknown, "session:other": unknown, "expired": "ExpiredTokenException", "off": unknown, "new": unknown,
	} {
		key, token, _ := strings.Cut(key, ":")
		if got := list(key, token); got != want {
			t.Errorf("key %s with token %q: %s, want %s", key, token, got, want)
		}
	}

	// eventually waits until the answer to a key is the wanted one.
	eventually := func(key, want string) {
		t.Helper()
		for end := time.Now().Add(20 * time.Second); list(key, "") != want; time.Sleep(20 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("key %s: %s, want %s\n%s", key, list(key, ""), want, server.logged())
			}
		}
	}
	writeKeyFile(t, path, "keys:\n"+entry("access-key: new"))
	eventually("new", "ok")
	if got := list("old", ""); got != unknown {
		t.Errorf("the removed key: %s", got)
	}
	writeKeyFile(t, path, "keys:\n"+old+"- broken\n")
	for end := time.Now().Add(20 * time.Second); !strings.Contains(server.logged(), "line 3: key 2: must have settings"); time.Sleep(20 * time.Millisecond) {
		if got := list("new", ""); got != "ok" || time.Now().After(end) {
			t.Fatalf("with a broken file: %s\n%s", got, server.logged())
		}
	}
	if got := list("old", ""); got != unknown {
		t.Errorf("a key of the broken file: %s", got)
	}
	writeKeyFile(t, path, "keys: []\n")
	eventually("new", unknown)
	if got := list("flag", ""); got != "ok" {
		t.Errorf("the key of the flag: %s", got)
	}
	if log := server.logged(); strings.Count(log, "must have settings") != 1 || strings.Count(log, `msg="read the changed key file"`) != 2 {
		t.Errorf("it logs\n%s", log)
	}
}

// A server whose only keys are removed from the file stays closed.
func TestServeKeysNone(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "keys.yaml")
	writeKeyFile(t, path, "keys: []\n")
	server, err := startServer(t.TempDir(), nil, "--memory", "--keys", path)
	if err != nil {
		t.Fatal(err)
	}
	defer server.kill()
	if _, err := clientOf(server.url, "any", "any").ListTables(t.Context(), nil); codeOf(err) != "UnrecognizedClientException" {
		t.Errorf("a server without an active key answers: %v", err)
	}
	if log := server.logged(); !strings.Contains(log, "no key is active: every request is refused") {
		t.Errorf("it logs\n%s", log)
	}
}

// A worker has the keys too.
func TestWorkerKeys(t *testing.T) {
	t.Parallel()
	database, err := startServer(t.TempDir(), nil, "--memory", "--database-only")
	if err != nil {
		t.Fatal(err)
	}
	defer database.kill()
	path := filepath.Join(t.TempDir(), "keys.yaml")
	writeKeyFile(t, path, "keys: [{access-key: k, secret-key: s, policies: [full-access]}]\n")
	worker, err := startListening(t.TempDir(), nil, "worker", "--endpoint", database.url, "--keys", path)
	if err != nil {
		t.Fatal(err)
	}
	defer worker.kill()
	for key, want := range map[string]string{"k": "ok", "other": "UnrecognizedClientException"} {
		_, err := scheduler.New(scheduler.Options{
			BaseEndpoint: &worker.url, Region: "us-east-1", RetryMaxAttempts: 1, Credentials: credentials.NewStaticCredentialsProvider(key, "s", ""),
		}).ListSchedules(t.Context(), nil)
		if got := codeOf(err); got != want {
			t.Errorf("key %s: %s, want %s", key, got, want)
		}
	}
}

func TestKeyFlags(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys.yaml")
	writeKeyFile(t, path, "keys: [{access-key: k, secret-key: s, policies: [full-access]}]\n")
	for line, want := range map[string]string{
		"serve --memory --port 0 --keys absent.yaml":                                     "key file: open absent.yaml: no such file or directory\n  next: docs/security.md explains each setting\n",
		"serve --memory --port 0 --access-key k --secret-key s --keys " + path:           `key file ` + path + `: line 1: key k: access-key: "k" is also set by --access-key`,
		"guard proxy --all-tables --endpoint http://127.0.0.1:9 --keys " + path:          "unknown flag --keys",
		"guard proxy --all-tables --endpoint http://127.0.0.1:9 --host 0.0.0.0 --port 0": "next: set --access-key and --secret-key, or --tls-client-ca",
		"serve --memory --host 0.0.0.0 --port -1 --keys " + path:                         "invalid port -1", // the file counts as credentials
		"worker --endpoint http://127.0.0.1:9 --host 0.0.0.0":                            "next: set --access-key and --secret-key, or --keys, or --tls-client-ca",
	} {
		var out, problem bytes.Buffer
		if code := run(t.Context(), strings.Fields(line), &out, &problem); code != exitUsage || !strings.Contains(problem.String(), want) {
			t.Errorf("mayfly %s exits with %d:\n%s\nwant %s", line, code, problem.String(), want)
		}
	}
}

// A key with guard:NAME may do what guard needs, and nothing on other tables.
func TestGuardKeyPolicy(t *testing.T) {
	if _, err := keys.New([]keys.Spec{{User: "guard", Policies: []keys.Policy{{Text: guardKeyPolicy("orders")}}}}, nil, nil); err != nil {
		t.Fatal(err)
	}
	p, err := policy.Parse([]byte(guardKeyPolicy("orders")))
	if err != nil {
		t.Fatal(err)
	}
	for request, want := range map[string]bool{
		"DeleteItem orders": true, "GetRecords orders/stream/x": true, "PutItem mayfly.leases": true, "PutItem mayfly.deadlines": true,
		"PutItem orders": false, "DeleteItem orders2": false,
	} {
		action, table, _ := strings.Cut(request, " ")
		r := &policy.Request{Action: "dynamodb:" + action, Resource: "arn:aws:dynamodb:eu-west-1:123456789012:table/" + table}
		if got := policy.Decide(r, []*policy.Policy{p}, nil).Allowed; got != want {
			t.Errorf("%s: allowed is %v", request, got)
		}
	}
}
