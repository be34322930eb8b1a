package sourcefile_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mayflydb/mayfly/internal/sink"
	"github.com/mayflydb/mayfly/internal/sink/aws"
	"github.com/mayflydb/mayfly/internal/sink/kafka"
	"github.com/mayflydb/mayfly/internal/sink/nats"
	"github.com/mayflydb/mayfly/internal/sink/sourcefile"
	"github.com/mayflydb/mayfly/internal/sink/targetfile"
)

// loadSource reads a source from an address, or from a file with the text.
func loadSource(t testing.TB, text string) (*sourcefile.Source, string, error) {
	t.Helper()
	o := targetfile.Options{Env: func(name string) (string, bool) { return "hunter2", name == "PASSWORD" }}
	if strings.Contains(text, "://") && !strings.Contains(text, "\n") {
		return sourcefile.Load(text, o)
	}
	path := filepath.Join(t.TempDir(), "source.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return sourcefile.Load(path, o)
}

// Every source, by its address and from a file; its name contains no password.
func TestSources(t *testing.T) {
	for text, want := range map[string]struct {
		source sourcefile.Source
		name   string
	}{
		"nats://h/READINGS":            {sourcefile.Source{NATS: &nats.Source{URL: "nats://h:4222", Stream: "READINGS"}}, "nats://h:4222/READINGS"},
		"nats://u:hunter2@h:1/S":       {sourcefile.Source{NATS: &nats.Source{URL: "nats://h:1", Stream: "S", User: "u", Password: "hunter2"}}, "nats://h:1/S"},
		"kafka://h/readings":           {sourcefile.Source{Kafka: &kafka.Source{Brokers: []string{"h:9092"}, Topic: "readings"}}, "kafka://h:9092/readings"},
		"kafka://u:hunter2@[::1]:1/a.": {sourcefile.Source{Kafka: &kafka.Source{Brokers: []string{"[::1]:1"}, Topic: "a.", User: "u", Password: "hunter2"}}, "kafka://[::1]:1/a."},
		"kinesis://readings":           {sourcefile.Source{Kinesis: &aws.Source{Stream: "readings"}}, "kinesis://readings"},
		"kafka:\n  brokers: [a:1, b:1]\n  topic: t\n  user: u\n  password: ${PASSWORD}\n  mechanism: scram-sha-512\n  tls: {server-name: x}\n  client-id: c\n": {
			sourcefile.Source{Kafka: &kafka.Source{Brokers: []string{"a:1", "b:1"}, Topic: "t", User: "u", Password: "hunter2", Mechanism: "scram-sha-512", TLS: &sink.TLS{ServerName: "x"}, ClientID: "c"}},
			"kafka://a:1,b:1/t",
		},
		"nats:\n  url: nats://a,nats://b\n  stream: S\n  token: ${PASSWORD}\n": {sourcefile.Source{NATS: &nats.Source{URL: "nats://a,nats://b", Stream: "S", Token: "hunter2"}}, "nats://a:4222,nats://b:4222/S"},
		"nats: {stream: S}": {sourcefile.Source{NATS: &nats.Source{Stream: "S"}}, "nats://127.0.0.1:4222/S"},
		"{\"kinesis\":\n{\"stream\": \"s\", \"endpoint\": \"http://h:1\", \"region\": \"eu-west-1\", \"access-key\": \"a\", \"secret-key\": \"${PASSWORD}\", \"session-token\": \"t\"}}": {
			sourcefile.Source{Kinesis: &aws.Source{Stream: "s", Endpoint: "http://h:1", Region: "eu-west-1", AccessKey: "a", SecretKey: "hunter2", SessionToken: "t"}}, "kinesis://s",
		},
	} {
		got, name, err := loadSource(t, text)
		if err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		if diff := cmp.Diff(want.source, *got); diff != "" || name != want.name {
			t.Errorf("%q is called %q\n%s", text, name, diff)
		}
	}
}

// Faults are reported with their line and without a password.
func TestWrongSources(t *testing.T) {
	for text, want := range map[string]string{
		"http://h/x":           "the source's address: must have the form nats://host:4222/STREAM, kafka://host:9092/TOPIC or kinesis://STREAM",
		"nats://u:hunter2@h:1": "must have the form nats://host:4222/STREAM",
		"kafka://h:1/a/b":      "must have the form nats://host:4222/STREAM",
		"kafka://h:1,i:1/a":    "must have the form",
		"kafka:///a":           "the host is missing",
		"kafka://h:1/a%20b":    "topic: use up to",
		"nats://h/a.b":         "stream: \"a.b\" is not a stream name",
		"kinesis://":           "stream: use up to",
		"kinesis://a/b":        "stream: use up to",
		"kafka: {brokers: [h:1], topic: a}\nnats: {stream: S}\n": "line 1: a source needs exactly one of kafka, kinesis and nats; this one has kafka and nats",
		"{}": "a source needs exactly one of kafka, kinesis and nats; this one has none",
		"kafka:\n  brokers: [h:1]\n  topics: a\n": "line 3: unknown setting topics; use one of brokers, client-id, mechanism, password, tls, topic, user",
		"kafka:\n  brokers: [h]\n  topic: '{key}'\n  user: u\n": "3 mistakes\n  line 2: kafka.brokers: number 1 must have the form host:9092\n  line 3: kafka.topic: use up to 249 letters, digits, dots, underscores and hyphens\n" +
			"  line 4: kafka.user: user and password need each other",
		"nats:\n  password: ${PASSWORD}\n  url: nats://u:hunter2@h?x\n": "line 1: nats.stream: missing; give the name of the stream to read",
		"kinesis:\n  stream: a\n  access-key: hunter2\n":                "access-key and secret-key need each other",
	} {
		got, _, err := loadSource(t, text)
		if err == nil || got != nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q: got %v, want %s", text, err, want)
		}
	}
	if _, _, err := sourcefile.Load(filepath.Join(t.TempDir(), "none.yaml"), targetfile.Options{}); err == nil || !strings.Contains(err.Error(), "none.yaml") {
		t.Errorf("got %v", err)
	}
}

// FuzzSource: any text is a source or an error, without a password.
func FuzzSource(f *testing.F) {
	for _, text := range []string{"nats://u:hunter2@h:1/S", "kafka://h/readings", "kinesis://s", "kafka:\n  brokers: [a:1]\n  topic: t\n", "nats: {stream: \"${PASSWORD}\"}", "kinesis: {stream: s}\n"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, name, err := loadSource(t, text)
		if (s == nil) != (err != nil) || err == nil && (name == "" || (s.NATS == nil) == (s.Kafka == nil) == (s.Kinesis == nil)) {
			t.Errorf("%q is %+v, %q, %v", text, s, name, err)
		}
	})
}
