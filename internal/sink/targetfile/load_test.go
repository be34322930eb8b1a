package targetfile_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/mayflydb/mayfly/internal/sink/aws"
	"github.com/mayflydb/mayfly/internal/sink/kafka"
	"github.com/mayflydb/mayfly/internal/sink/kinds"
	"github.com/mayflydb/mayfly/internal/sink/nats"
	"github.com/mayflydb/mayfly/internal/sink/rabbitmq"
	"github.com/mayflydb/mayfly/internal/sink/targetfile"
	"github.com/mayflydb/mayfly/target"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// load loads a text with a small environment.
func load(t testing.TB, text string) ([]target.Mapping, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "targets.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	mappings, shut, err := targetfile.Load(t.Context(), path, targetfile.Options{
		Kinds: kinds.All,
		Now:   time.Now,
		Self:  []string{"127.0.0.1:8000"},
		Env: func(name string) (string, bool) {
			value, set := map[string]string{"SECRET": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "EMPTY": "", "BAD": "hunter2"}[name]
			return value, set
		},
	})
	if err == nil {
		t.Cleanup(func() {
			if err := shut(); err != nil {
				t.Error(err)
			}
		})
	} else {
		err = fmt.Errorf("%s", strings.ReplaceAll(err.Error(), path, "FILE"))
	}
	return mappings, err
}

// Every kind of target, with every kind of setting; in YAML, and the same in JSON.
func TestKinds(t *testing.T) {
	const text = `
targets:
  - arn: "arn:aws:lambda:*:*:function:resize-*"
    name: resize
    limits: {concurrency: 8, batch: 50, per-second: 0.5, timeout: 10 seconds}
    webhook:
      url: "https://example.com/resize"
      mode: batch
      method: PUT
      secrets: ["${SECRET}", "${SECRET}"]
      headers: {Authorization: "Bearer $${x}${EMPTY}", X: 5}
      timeout: 500ms
      batch-bytes: 64KB
      parallel: 3
  - arn: "arn:aws:lambda:*:*:function:*"
    webhook: {url: http://127.0.0.1:1, mode: batch}
  - arn: arn:aws:sqs:us-east-1:123456789012:jobs
    nats: {url: "nats://u:p@127.0.0.1:4222", subject: "jobs.{key}", stream: JOBS, mode: structured, tls: {server-name: x}}
  - arn: arn:aws:sqs:us-east-1:123456789012:more
    nats: {subject: more, core: true}
  - arn: arn:aws:kafka:x
    kafka: {brokers: ["127.0.0.1:9092"], topic: jobs, user: u, password: 12345, mechanism: scram-sha-256, client-id: x, max-bytes: 2MB, timeout: 5s}
  - arn: arn:aws:rabbit:x
    rabbitmq: {url: "amqps://127.0.0.1", exchange: e, routing-key: "{name}", tls: {}}
  - arn: "arn:mayfly:exec:::backup"
    exec: {command: [sh, -c, "echo"], dir: /, env: {A: b}, permanent: [64, 65], grace: 1s, output: -1, timeout: 1h}
  - arn: "*"
    aws: {endpoint: "http://127.0.0.1:4566", region: us-east-1, endpoints: {sqs: "http://127.0.0.1:9324"}, access-key: a, secret-key: b}
`
	mappings, err := load(t, text)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, m := range mappings {
		got = append(got, fmt.Sprintf("%s %s %T %+v", m.ARN, m.Name, m.Target, m.Limits))
	}
	want := []string{
		"arn:aws:lambda:*:*:function:resize-* resize *target.Webhook {Concurrency:8 Batch:50 PerSecond:0.5 Timeout:10s}",
		"arn:aws:lambda:*:*:function:* arn:aws:lambda:*:*:function:* *target.Webhook {Concurrency:0 Batch:100 PerSecond:0 Timeout:0s}",
		"arn:aws:sqs:us-east-1:123456789012:jobs arn:aws:sqs:us-east-1:123456789012:jobs *nats.Sink {Concurrency:0 Batch:100 PerSecond:0 Timeout:0s}",
		"arn:aws:sqs:us-east-1:123456789012:more arn:aws:sqs:us-east-1:123456789012:more *nats.Sink {Concurrency:0 Batch:100 PerSecond:0 Timeout:0s}",
		"arn:aws:kafka:x arn:aws:kafka:x *kafka.Sink {Concurrency:0 Batch:100 PerSecond:0 Timeout:0s}",
		"arn:aws:rabbit:x arn:aws:rabbit:x *rabbitmq.Sink {Concurrency:0 Batch:100 PerSecond:0 Timeout:0s}",
		"arn:mayfly:exec:::backup arn:mayfly:exec:::backup *target.Exec {Concurrency:0 Batch:1 PerSecond:0 Timeout:0s}",
		"* * *aws.Sink {Concurrency:0 Batch:10 PerSecond:0 Timeout:0s}",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if mappings, err := load(t, `{"targets": [{"arn": "arn:x", "limits": {"timeout": "1s"}, "nats": {"subject": "a", "tls": {}}}]}`); err != nil || len(mappings) != 1 || mappings[0].Limits.Timeout != time.Second {
		t.Errorf("JSON: %v, %v", mappings, err)
	}
	if mappings, err := load(t, "targets: []"); err != nil || len(mappings) != 0 {
		t.Errorf("none: %v, %v", mappings, err)
	}
}

// A target from a file works with its settings.
func TestDelivers(t *testing.T) {
	var got *http.Request
	var body []byte
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		got = r
		body, _ = io.ReadAll(r.Body)
	}))
	defer server.Close()
	dir := t.TempDir()
	mappings, err := load(t, `
targets:
  - arn: arn:a
    webhook: {url: "`+server.URL+`/x", mode: plain, method: PUT, secrets: ["${SECRET}"], headers: {X-A: "a $${b}"}}
  - arn: arn:b
    exec: {command: [sh, -c, 'cat > out; echo $A >> out'], dir: `+dir+`, env: {A: "${EMPTY}e"}}
`)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range mappings {
		if results := m.Target.Deliver(t.Context(), []target.Delivery{{ID: "i", Body: []byte("body\n")}}); results[0] != nil {
			t.Fatal(results)
		}
	}
	if got.Method != "PUT" || got.URL.Path != "/x" || got.Header.Get("X-A") != "a ${b}" || !strings.HasPrefix(got.Header.Get("webhook-signature"), "v1,") || string(body) != "body\n" {
		t.Errorf("%s %s %v %q", got.Method, got.URL, got.Header, body)
	}
	if out, err := os.ReadFile(filepath.Join(dir, "out")); err != nil || string(out) != "body\ne\n" {
		t.Errorf("%q, %v", out, err)
	}
}

// All faults of the file's form are reported at once, with lines and without values.
func TestForm(t *testing.T) {
	_, err := load(t, `targets:
  - arn: arn:a
    nmae: x
    limits: {concurrency: many, per-second: [1], timeout: 10, batch: hunter2}
    webhook:
      url: http://h
      url: http://h
      secrets: hunter2
      headers: [hunter2]
      now: x
      transport: x
      batch-bytes: 1XB
      timeout:
  - arn: {hunter2: x}
    nats: {core: yes, password: "${MISSING}", subject: "${", user: "${1}"}
  - hunter2
  - exec: {permanent: [1.5], output: 99999999999999999999}
  - aws: {self: [x], ? [a] : b}
surplus: 1
`)
	want := `targets file FILE: 23 mistakes
  line 3: unknown setting nmae; use one of arn, aws, exec, kafka, limits, name, nats, rabbitmq, webhook
  line 4: concurrency: must be a whole number
  line 4: per-second: must be a single value
  line 4: timeout: must be a duration, such as 500ms, 10s, 15m or 1d
  line 4: batch: must be a whole number
  line 7: url is given twice
  line 8: secrets: must be a list, as [a, b] or lines with hyphens
  line 9: headers: must be names with values, as name: value
  line 10: unknown setting now; use one of batch-bytes, headers, method, mode, parallel, secrets, timeout, url
  line 11: unknown setting transport; use one of batch-bytes, headers, method, mode, parallel, secrets, timeout, url
  line 12: batch-bytes: must be a whole number
  line 13: timeout: the value is missing; write {} or [] for an empty one, or drop the line
  line 14: arn: must be a single value
  line 15: core: must be true or false
  line 15: password: the environment variable MISSING is not set
  line 15: subject: ${ is not followed by a name and }; write ${NAME} for an environment variable, or $${ for a literal ${
  line 15: user: ${ is not followed by a name and }; write ${NAME} for an environment variable, or $${ for a literal ${
  line 16: targets number 3: must be settings, as name: value
  line 17: permanent number 1: must be a whole number
  line 17: output: must be a whole number
  line 18: unknown setting self; use one of access-key, endpoint, endpoints, function, profile, region, secret-key, session-token
  line 18: the name of a setting must be a single word
  line 19: unknown setting surplus; use one of targets`
	if err == nil || err.Error() != want {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
	if err != nil && strings.Contains(err.Error(), "hunter2") {
		t.Error("a value in the message")
	}
}

// All faults of all entries are reported at once: in ARNs, names, limits and kinds.
func TestEntries(t *testing.T) {
	_, err := load(t, `targets:
  - arn: arn:a
    name: x
    nats: {subject: a}
  - arn: arn:a
    name: x
    nats: {subject: a}
    kafka: {brokers: ["h:1"], topic: a}
  - name: y
    nats: {subject: a}
  - arn: jobs
    limits: {concurrency: 0, batch: 1001, per-second: 0, timeout: 1h}
`)
	want := `targets file FILE: 10 mistakes
  line 5: arn:a is mapped twice, first at line 2
  line 5: a target needs exactly one of aws, exec, kafka, nats, rabbitmq, webhook; this one has kafka and nats
  line 6: the name x is used twice, first at line 3
  line 9: a target needs an arn
  line 11: "jobs" is neither an ARN ("arn:…") nor a pattern that begins with "*"
  line 11: a target needs exactly one of aws, exec, kafka, nats, rabbitmq, webhook; this one has none
  line 12: limits.concurrency: 0 is not between 1 and 1000
  line 12: limits.batch: 1001 is not between 1 and 1000
  line 12: limits.per-second: 0 is not above 0 and at most 1e+09; drop it for no limit
  line 12: limits.timeout: 1h0m0s is not between 10ms and 15m0s`
	if err == nil || err.Error() != want {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
}

// Faults that the constructors of targets find are all reported, at the lines of the settings.
func TestSettings(t *testing.T) {
	_, err := load(t, `targets:
  - arn: arn:a
    webhook:
      url: ftp://hunter2@h
      secrets:
        - "${BAD}"
      timeout: 1h
  - arn: arn:b
    nats:
      url: http://hunter2@h
  - arn: arn:c
    exec: {command: [/nowhere/at/all]}
  - arn: arn:d
    aws:
      access-key: hunter2
      endpoint: http://localhost:8000
  - arn: arn:e
    kafka:
      topic: a b
  - arn: arn:f
    rabbitmq: {tls: {ca: /nowhere}, url: "amqp://h"}
`)
	want := `targets file FILE: 12 mistakes
  line 4: webhook.url: must have the form https://example.com/path, with http or https, a host and no fragment
  line 5: webhook.secrets: number 1 begins with something other than "whsec_"
  line 7: webhook.timeout: 1h0m0s is not between 10ms and 15m0s
  line 9: nats.subject: use tokens separated by dots, without spaces and wildcards
  line 10: nats.url: number 1 must begin with one of nats://, tls://, ws://, wss://
  line 12: exec.command: exec: "/nowhere/at/all": stat /nowhere/at/all: no such file or directory
  line 14: aws: access-key and secret-key need each other
  line 16: aws.endpoint: http://localhost:8000 is this server itself, so deliveries would come back to it; use the address of the service
  line 18: kafka.brokers: give at least one, as host:port
  line 19: kafka.topic: use up to 249 letters, digits, dots, underscores and hyphens
  line 21: rabbitmq.routing-key: missing; give the name of the queue, or set exchange
  line 21: rabbitmq.tls: open /nowhere: no such file or directory`
	if err == nil || err.Error() != want {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
	if err != nil && strings.Contains(err.Error(), "hunter2") {
		t.Error("a value in the message")
	}
}

// A text that is no file of targets is an error that says so.
func TestNoFile(t *testing.T) {
	for text, want := range map[string]string{
		"":                               `targets file FILE: it is empty; it must begin with "targets:"`,
		"# nothing\n":                    `targets file FILE: it is empty; it must begin with "targets:"`,
		"{}":                             `targets file FILE: line 1: no targets; the file must begin with "targets:"`,
		"targets: []\n---\na: 1":         `targets file FILE: line 2, column 1: a second document begins here; the file must have only one`,
		"targets: x":                     `targets file FILE: line 1: targets: must be a list, as [a, b] or lines with hyphens`,
		"[1]":                            `targets file FILE: line 1: the file: must be settings, as name: value`,
		"targets: &a [*a]":               `targets file FILE: line 1: targets number 1: must be settings, as name: value`,
		"a: [":                           `targets file FILE: line 1, column 5: it is neither YAML nor JSON: did not find expected node content`,
		strings.Repeat("# x\n", 300_000): `targets file FILE: it is larger than 1048576 bytes`,
	} {
		if _, err := load(t, text); err == nil || err.Error() != want {
			t.Errorf("%.20q: %v, not %s", text, err, want)
		}
	}
	if _, _, err := targetfile.Load(t.Context(), "/nowhere/at/all", targetfile.Options{Now: time.Now}); err == nil || err.Error() != "targets file: open /nowhere/at/all: no such file or directory" {
		t.Error(err)
	}
}

// The manual names every setting of every kind.
func TestManual(t *testing.T) {
	text, err := os.ReadFile("../../../docs/targets.md")
	if err != nil {
		t.Fatal(err)
	}
	sections := map[string]string{}
	for _, section := range strings.Split(string(text), "\n## ")[1:] {
		title, body, _ := strings.Cut(section, "\n")
		sections[strings.ToLower(title)] = body
	}
	for title, options := range map[string]any{
		"webhook": target.WebhookOptions{}, "exec": target.ExecOptions{}, "nats": nats.Config{}, "kafka": kafka.Config{}, "rabbitmq": rabbitmq.Config{}, "aws": aws.Config{},
		"limits": target.Limits{},
	} {
		for _, name := range targetfile.Settings(reflect.TypeOf(options)) {
			if !strings.Contains(sections[title], "\n| `"+name+"` |") {
				t.Errorf("docs/targets.md does not explain %s of %s", name, title)
			}
		}
	}
}

// FuzzLoad: any file yields targets or a message, which does not quote the environment.
func FuzzLoad(f *testing.F) {
	f.Add("targets:\n  - arn: arn:a\n    webhook: {url: http://h, secrets: [\"${BAD}\"]}\n")
	f.Add(`{"targets": [{"arn": "arn:x", "name": "${BAD}", "nats": {"subject": "{key}", "password": "${BAD}", "tls": {}}}]}`)
	f.Add("targets: &a\n  - kafka: {brokers: [\"h:1\"], topic: \"${\", max-bytes: 1MB}\n    limits: *a\n")
	f.Add("targets: [{arn: '*', rabbitmq: {routing-key: x}, exec: {command: [sh], permanent: [1]}}]")
	path := filepath.Join(f.TempDir(), "targets.yaml")
	f.Fuzz(func(t *testing.T, text string) {
		if strings.Contains(text, "aws") { // it reads files, and is slow
			t.Skip()
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		mappings, shut, err := targetfile.Load(context.Background(), path, targetfile.Options{Now: time.Now, Env: func(string) (string, bool) { return "hunter2", true }})
		if err != nil {
			if err.Error() == "" || mappings != nil {
				t.Errorf("%v, %q", mappings, err)
			}
			return
		}
		for _, m := range mappings {
			if m.ARN == "" || m.Target == nil || m.Name == "" || m.Limits.Batch < 1 {
				t.Errorf("%+v", m)
			}
		}
		if err := shut(); err != nil {
			t.Error(err)
		}
	})
}
