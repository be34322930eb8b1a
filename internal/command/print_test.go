package command

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

type printed struct {
	Make struct {
		Config File
		Port   int               `default:"8000"`
		Name   string            ``
		Secret string            `secret:""`
		URL    string            `name:"url"`
		Wait   time.Duration     `default:"90s"`
		Tags   []string          ``
		Map    map[string]string ``
		Fast   bool              ``
		Inner  string            `hidden:"" default:"x"`
	} `cmd:""`
}

// --print-config shows each setting with its source, in a form that is a file of settings.
func TestPrintConfig(t *testing.T) {
	file := filepath.Join(t.TempDir(), "c.yaml")
	if err := os.WriteFile(file, []byte("port: 8001\ntags: [a, b]\nmap: {k: v, l: \"1\"}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TEST_MAKE_NAME", "007")
	t.Setenv("TEST_MAKE_SECRET", "s3cret")
	print := func(args ...string) string {
		var out bytes.Buffer
		ran, err := New(Program{Name: "test", Env: "TEST", Out: &out, Err: &out}, &printed{}).Parse(append([]string{"make", "--print-config"}, args...))
		if ran != nil || err != nil {
			t.Fatal(ran, err)
		}
		return out.String()
	}
	got := print("--config", file, "--fast", "--url", "http://u:p@host")
	want := `port: 8001  # FILE
name: "007"  # TEST_MAKE_NAME
# secret: (secret)  # TEST_MAKE_SECRET
# url: (secret)  # command line
wait: 90s  # default
tags: [a, b]  # FILE
map: {k: v, l: "1"}  # FILE
fast: true  # command line
`
	if got != strings.ReplaceAll(want, "FILE", file) {
		t.Errorf("printed\n%s", got)
	}
	// What is printed can be read again.
	if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TEST_MAKE_NAME", "")
	t.Setenv("TEST_MAKE_SECRET", "")
	again := strings.ReplaceAll(print("--config", file), "  # "+file, "")
	for _, line := range []string{"port: 8001\n", "name: \"007\"\n", "# secret:\n", "wait: 90s\n", "tags: [a, b]\n", "map: {k: v, l: \"1\"}\n", "fast: true\n"} {
		if !strings.Contains(again, line) {
			t.Errorf("no %q in\n%s", line, again)
		}
	}
}
