package program

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// secretTargets map targets that fail in different ways, with a secret in each place that can hold one.
const secretTargets = `targets:
- arn: arn:mayfly:url:::a
  webhook: {url: "http://user:${T_URL}@127.0.0.1:1/", headers: {Authorization: "Bearer ${T_HEADER}"}, secrets: ["${T_SIGNING}"]}
- arn: arn:mayfly:refuses:::a
  webhook: {url: "%s", headers: {Authorization: "Bearer ${T_HEADER}"}, secrets: ["${T_SIGNING}"]}
- arn: arn:mayfly:nats:::a
  nats: {url: "nats://127.0.0.1:1", user: u, password: "${T_BROKER}", subject: s}
- arn: arn:mayfly:natsurl:::a
  nats: {url: "nats://u:${T_BROKER}@127.0.0.1:1", subject: s}
- arn: arn:mayfly:rabbitmq:::a
  rabbitmq: {url: "amqp://u:${T_BROKER}@127.0.0.1:1", routing-key: q}
- arn: arn:mayfly:kafka:::a
  kafka: {brokers: ["127.0.0.1:1"], topic: t, user: u, password: "${T_BROKER}", timeout: 1s}
- arn: arn:mayfly:exec:::a
  exec: {command: [sh, -c, "exit 1"], env: {PASSWORD: "${T_EXEC}"}}
- arn: arn:aws:sqs:us-east-1:000000000000:profile
  aws: {endpoint: "http://127.0.0.1:1", region: us-east-1}
- arn: arn:aws:sqs:us-east-1:000000000000:keys
  aws: {endpoint: "http://127.0.0.1:1", region: us-east-1, access-key: k, secret-key: "${T_AWS}", session-token: "${T_SESSION}"}
`

// secretKeys have a secret in each form.
const secretKeys = `keys:
- {access-key: plain, secret-key: hidden-plain-2Qa1, policies: [read-only]}
- {access-key: env, secret-key-env: T_KEY, policies: [read-only]}
- {access-key: file, secret-key-file: secret, policies: [read-only]}
- {access-key: command, secret-key-command: [sh, -c, "echo hidden-command-4Ui8; echo hidden-rest"], policies: [read-only]}
`

// No secret of a server leaves it: not in its log at the level debug, its metrics, its answers, its
// tables, the files of its database or the list of processes. The server meets good, wrong and
// malformed signatures, and fails to deliver to targets with secrets.
func TestSecretsStayInside(t *testing.T) {
	t.Parallel()
	secrets := map[string]string{
		"MAYFLY_SECRET_KEY": "hidden-access-4Wq1", "T_URL": "hidden-url-8Zr2", "T_HEADER": "hidden-header-1Xc3", "T_BROKER": "hidden-broker-7Vb4",
		"T_EXEC": "hidden-exec-9Nm5", "T_AWS": "hidden-aws-3Lk6", "T_SESSION": "hidden-session-5Jh7", "AWS_SECRET_ACCESS_KEY": "hidden-profile-2Gf8",
		"T_KEY": "hidden-key-8Op9", "T_SIGNING": "whsec_" + base64.StdEncoding.EncodeToString([]byte("hidden-signing-6Ds9-and-more-bytes")),
	}
	env := append(os.Environ(), "MAYFLY_ACCESS_KEY=ours", "AWS_ACCESS_KEY_ID=profile", "AWS_REGION=us-east-1")
	sought := []string{"hidden-", strings.TrimPrefix(secrets["T_SIGNING"], "whsec_")}
	for name, secret := range secrets {
		env = append(env, name+"="+secret)
		sought = append(sought, base64.StdEncoding.EncodeToString([]byte("user:"+secret)), base64.StdEncoding.EncodeToString([]byte("u:"+secret)), base64.StdEncoding.EncodeToString([]byte(secret)))
	}
	leaks := func(text string) string {
		for _, s := range sought {
			if i := strings.Index(text, s); i >= 0 {
				return text[max(0, i-200):min(len(text), i+len(s)+100)]
			}
		}
		return ""
	}
	refuses := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+secrets["T_HEADER"] || r.Header.Get("webhook-signature") == "" {
			t.Error("a webhook came without its secrets: the test shows nothing")
		}
		w.WriteHeader(http.StatusForbidden)
	}))
	defer refuses.Close()
	dir := t.TempDir()
	targets := filepath.Join(t.TempDir(), "targets.yaml")
	if err := os.WriteFile(targets, fmt.Appendf(nil, secretTargets, refuses.URL), 0o600); err != nil {
		t.Fatal(err)
	}
	keys := filepath.Join(t.TempDir(), "keys.yaml")
	writeKeys := func(last string) {
		if err := os.WriteFile(keys, []byte(secretKeys+last), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	writeKeys("")
	if err := os.WriteFile(filepath.Join(filepath.Dir(keys), "secret"), []byte("hidden-file-6Ty7\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	server, err := startServer(t.TempDir(), env, "--data", dir, "--log-level", "debug", "--targets", targets, "--keys", keys)
	if err != nil {
		t.Fatal(err)
	}
	defer server.kill()
	var seen strings.Builder // everything that clients see

	// Signatures.
	api := clientOf(server.url, "ours", secrets["MAYFLY_SECRET_KEY"])
	for _, wrong := range []*dynamodb.Client{clientOf(server.url, "ours", "guess"), clientOf(server.url, "theirs", secrets["MAYFLY_SECRET_KEY"])} {
		_, err := wrong.ListTables(t.Context(), nil)
		if err == nil {
			t.Error("a wrong signature is accepted")
		}
		fmt.Fprintln(&seen, err)
	}
	for key, secret := range map[string]string{"plain": "hidden-plain-2Qa1", "env": secrets["T_KEY"], "file": "hidden-file-6Ty7", "command": "hidden-command-4Ui8"} {
		if _, err := clientOf(server.url, key, secret).ListTables(t.Context(), nil); err != nil {
			t.Errorf("key %s is refused: the test shows nothing: %v", key, err)
		}
		_, err := clientOf(server.url, key, "guess").ListTables(t.Context(), nil)
		fmt.Fprintln(&seen, err)
	}
	for _, last := range []string{ // each is read, or refused with a message
		"- {access-key: more, secret-key: hidden-more-1We2, policies: [read-only]}\n", "- {access-key: more, secret-key: *hidden-anchor }\n",
		"- {access-key: more, secret-key: !hidden-tag x}\n", "- {access-key: more, secret-key: [hidden-list], policies: [x]}\n", "- hidden-entry\n", "- {secret-key: {hidden-key: x}}\n",
		"- {access-key: more, secret-key-command: [sh, -c, 'echo hidden-out; echo hidden-err >&2; exit 1'], policies: [read-only]}\n",
	} {
		before := len(server.logged())
		writeKeys(last)
		for end := time.Now().Add(20 * time.Second); !strings.Contains(server.logged()[before:], "key file"); time.Sleep(50 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("the server has not read the changed key file:\n%s", server.logged()[before:])
			}
			_, err := api.ListTables(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	const scope = "AWS4-HMAC-SHA256 Credential=ours/20300101/us-east-1/dynamodb/aws4_request, SignedHeaders=host, Signature="
	for _, header := range []string{"", "AWS4-HMAC-SHA256", "AWS4-HMAC-SHA256 Credential=ours", "Basic b3Vyczp4", scope, scope + strings.Repeat("0", 64)} {
		_, text, err := exchange(http.MethodPost, server.url, "{}", "Authorization:"+header, "X-Amz-Date:20300101T000000Z",
			"X-Amz-Target:DynamoDB_20120810.ListTables", "Content-Type:application/x-amz-json-1.0")
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintln(&seen, text)
	}

	// Each delivery fails at its only attempt.
	mayfly := func(args ...string) string {
		command := exec.Command("mayfly", append(args, "--endpoint", server.url)...)
		command.Env = append(slices.Clone(env), "AWS_ACCESS_KEY_ID=ours", "AWS_SECRET_ACCESS_KEY="+secrets["MAYFLY_SECRET_KEY"])
		text, err := command.CombinedOutput()
		if err != nil {
			t.Fatalf("%q: %v\n%s", args, err, text)
		}
		seen.Write(text)
		return string(text)
	}
	deliveries := 0
	for line := range strings.SplitSeq(secretTargets, "\n") {
		if arn, ok := strings.CutPrefix(line, "- arn: "); ok {
			deliveries++
			mayfly("schedule", "create", fmt.Sprintf("s%d", deliveries), "--at", "now", "--target", arn, "--retries", "0", "--input", "x")
		}
	}
	limit := time.Now().Add(time.Minute)
	for {
		letters := strings.Count(mayfly("deadletter", "list", "--json"), "\n")
		if letters == deliveries {
			break
		}
		if time.Now().After(limit) {
			t.Fatalf("%d of %d deliveries have failed\n%s", letters, deliveries, server.logged())
		}
		time.Sleep(50 * time.Millisecond)
	}
	mayfly("deadletter", "list")

	// Tables and pages.
	tables, err := api.ListTables(t.Context(), nil)
	if err != nil || len(tables.TableNames) == 0 {
		t.Fatalf("no tables: %v", err)
	}
	for _, name := range tables.TableNames {
		scan, err := api.Scan(t.Context(), &dynamodb.ScanInput{TableName: &name, ReturnConsumedCapacity: types.ReturnConsumedCapacityTotal})
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(scan.Items)
		if err != nil {
			t.Fatal(err)
		}
		seen.Write(text)
	}
	_, err = api.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: aws.String("missing"), Key: map[string]types.AttributeValue{}})
	fmt.Fprintln(&seen, err)
	for _, page := range []string{"/", "/metrics", "/healthz", "/readyz", "/_mayfly/clock", "/_mayfly/nothing", "/debug/pprof/cmdline", "/debug/vars"} {
		_, text, err := exchange(http.MethodGet, server.url+page, "")
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintln(&seen, text)
	}
	if found := leaks(seen.String()); found != "" {
		t.Errorf("a client sees a secret: …%s…", found)
	}

	// The list of processes.
	proc := fmt.Sprintf("/proc/%d/", server.command.Process.Pid)
	line, err := os.ReadFile(proc + "cmdline")
	if found := leaks(string(line)); err != nil || found != "" {
		t.Errorf("the list of processes shows %q, %v", found, err)
	}
	if info, err := os.Stat(proc + "environ"); err != nil || info.Mode().Perm()&0o077 != 0 {
		t.Errorf("others can read the environment: %v, %v", info, err)
	}

	// Logs and files.
	if code, err := server.stop(syscall.SIGTERM); err != nil || code != "0" {
		t.Errorf("it exited with %s, %v\n%s", code, err, server.logged())
	}
	if log := server.logged(); !strings.Contains(log, "level=DEBUG") {
		t.Errorf("the log is not at the level debug:\n%s", log)
	}
	if found := leaks(server.printed() + server.logged()); found != "" {
		t.Errorf("the server logs a secret: …%s…", found)
	}
	files := 0
	err = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		files++
		content, err := os.ReadFile(path)
		if found := leaks(string(content)); found != "" {
			t.Errorf("%s has a secret: %q", path, found)
		}
		return err
	})
	if err != nil || files == 0 {
		t.Errorf("%d files of the database, %v", files, err)
	}
}

// A secret on the command line makes a warning that names the flag and other ways to set it; a secret in the
// environment or a file makes none.
func TestSecretOnCommandLine(t *testing.T) {
	t.Parallel()
	config := filepath.Join(t.TempDir(), "mayfly.yaml")
	if err := os.WriteFile(config, []byte("access-key: k\nsecret-key: hunter2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	targets := filepath.Join(t.TempDir(), "targets.yaml")
	if err := os.WriteFile(targets, []byte("targets:\n- arn: a\n  nats: {url: \"nats://127.0.0.1:1\", subject: s}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	const (
		wrong   = " --access-key k --port -1"
		warning = "mayfly: warning: other users of this machine can read "
		key     = warning + "--secret-key on the command line\n  next: set MAYFLY_%s_SECRET_KEY in the environment"
		full    = warning + "--secret-key on the command line\n  next: set MAYFLY_SERVE_SECRET_KEY in the environment, or secret-key in the file of --config\n"
	)
	for _, test := range []struct{ program, line, env, want string }{
		{"mayfly", "serve --memory --secret-key hunter2" + wrong, "", full},
		{"mayfly-small", "serve --memory --secret-key=hunter2 --targets " + targets + wrong, "", full}, // not again by mayfly-full
		{"mayfly", "guard proxy --all-tables --endpoint http://127.0.0.1:1 --secret-key hunter2" + wrong, "", fmt.Sprintf(key, "GUARD_PROXY") + "\n"},
		{"mayfly", "worker --endpoint http://127.0.0.1:1 --secret-key hunter2", "", fmt.Sprintf(key, "WORKER") + "\n"},
		{"mayfly", "trigger run --table t --webhook http://127.0.0.1:1 --webhook-secret hunter2", "", warning + "--webhook-secret on the command line\n  next: set MAYFLY_TRIGGER_RUN_WEBHOOK_SECRET in the environment\n"},
		{"mayfly", "trigger run --table t --webhook ftp://u:hunter2@h", "", warning + "the password in --webhook on the command line\n  next: set MAYFLY_TRIGGER_RUN_WEBHOOK in the environment\n"},
		{"mayfly-small", "series ingest s --from nats://u:hunter2@127.0.0.1:1/S --endpoint http://127.0.0.1:1", "", warning + "the password in --from on the command line\n  next: set MAYFLY_SERIES_INGEST_FROM in the environment\n"},
		{"mayfly", "schedule list --endpoint http://u:hunter2@127.0.0.1", "", warning + "the password in --endpoint on the command line\n  next: set MAYFLY_ENDPOINT in the environment\n"},
		{"mayfly", "schedule list", "MAYFLY_ENDPOINT=http://u:hunter2@127.0.0.1", ""},
		{"mayfly", "schedule list", "MAYFLY_ENDPOINT=http://u:hunter2@127.0.0.1:70000", ""},
		{"mayfly", "healthcheck", "MAYFLY_HEALTHCHECK_URL=http://u:hunter2@127.0.0.1:1", ""},
		{"mayfly", "healthcheck", "MAYFLY_HEALTHCHECK_URL=ftp://u:hunter2@127.0.0.1:1", ""},
		{"mayfly", "healthcheck", "MAYFLY_HEALTHCHECK_URL=http://u:hunter2@127.0.0.1:x", ""},
		{"mayfly", "serve --memory" + wrong, "MAYFLY_SECRET_KEY=hunter2", ""},
		{"mayfly", "serve --memory --port -1 --config " + config, "", ""},
		{"mayfly", "trigger run --table t", "MAYFLY_TRIGGER_RUN_WEBHOOK=ftp://u:hunter2@h", ""},
		{"mayfly", "trigger run --table t --webhook http://127.0.0.1:1/a@b:c --webhook-secret x", "MAYFLY_TRIGGER_RUN_WEBHOOK_SECRET=", warning + "--webhook-secret on the command line\n  next: set MAYFLY_TRIGGER_RUN_WEBHOOK_SECRET in the environment\n"},
	} {
		command := exec.Command(test.program, strings.Fields(test.line)...)
		command.Env = append(os.Environ(), test.env)
		text, err := command.CombinedOutput()
		said := string(text)
		if err == nil {
			t.Errorf("%s %s runs, but should stop at an error", test.program, test.line)
		}
		if strings.Count(said, "warning: ") != strings.Count(test.want, "warning: ") || !strings.Contains(said, test.want) {
			t.Errorf("%s %s prints\n%s\nwant\n%s", test.program, test.line, said, test.want)
		}
		if strings.Contains(said, "hunter2") {
			t.Errorf("%s %s prints the secret:\n%s", test.program, test.line, said)
		}
	}
}
