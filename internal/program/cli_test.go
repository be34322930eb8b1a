package program

import (
	"bytes"
	"cmp"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mayflydb/mayfly/internal/command"
)

// A variable sets one flag, by the same name in each command that has it. Only the flags of serve and
// the flags that commands share have variables without the name of a command.
func TestVariables(t *testing.T) {
	flags := map[string]string{}
	own := []string{"serve", "healthcheck", "policy check", "guard policy"} // their region is part of ARNs
	short := map[string]bool{"endpoint": true, "region": true, "client-cert": true, "client-key": true, "log-format": true, "log-level": true}
	var look func(*command.Command)
	look = func(c *command.Command) {
		long := "MAYFLY_" + strings.ToUpper(strings.NewReplacer(" ", "_", "-", "_").Replace(c.Path())) + "_"
		for _, f := range c.Flags {
			for i, name := range f.Env {
				if was := cmp.Or(flags[name], f.Name); was != f.Name {
					t.Errorf("%s sets --%s and --%s", name, was, f.Name)
				}
				flags[name] = f.Name
				if i == 0 && !strings.HasPrefix(name, long) {
					t.Errorf("%s --%s is set by %s first", c.Path(), f.Name, name)
				}
			}
			if !slices.Contains(own, c.Path()) && (len(f.Env) == 2) != short[f.Name] {
				t.Errorf("%s --%s is set by %v", c.Path(), f.Name, f.Env)
			}
		}
		for _, child := range c.Children {
			look(child)
		}
	}
	look(command.New(command.Program{Name: "mayfly", Env: "MAYFLY"}, &cli{}).Fill())
	for name, flag := range map[string]string{
		"MAYFLY_PORT": "port", "MAYFLY_SERVE_PORT": "port", "MAYFLY_HEALTHCHECK_PORT": "port", "MAYFLY_WORKER_PORT": "port", "MAYFLY_GUARD_RUN_TABLE": "table", "MAYFLY_ENDPOINT": "endpoint",
		"MAYFLY_SCHEDULE_LIST_ENDPOINT": "endpoint", "MAYFLY_STREAM_RETENTION": "stream-retention",
	} {
		if flags[name] != flag {
			t.Errorf("%s sets %q, not --%s", name, flags[name], flag)
		}
	}
	t.Setenv("MAYFLY_PORT", "8111")
	t.Setenv("MAYFLY_SERVE_HOST", "::1")
	t.Setenv("MAYFLY_HOST", "127.0.0.2")
	t.Setenv("MAYFLY_JSON", "maybe") // nothing reads it
	parse := func(line ...string) any {
		c, err := command.New(command.Program{Name: "mayfly", Env: "MAYFLY"}, &cli{}).Parse(line)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	if c := parse("serve").(*serveCommand); c.Port != 8111 || c.Host != "::1" {
		t.Errorf("serve listens on %s, %d", c.Host, c.Port)
	}
	if c := parse("healthcheck").(*healthcheckCommand); c.Port != 8111 || c.Host != "::1" {
		t.Errorf("healthcheck asks %s, %d", c.Host, c.Port)
	}
	if c := parse("worker").(*workerCommand); c.Port != 8001 {
		t.Errorf("worker listens on port %d", c.Port)
	}
}

// Each command prints JSON with --json, or in a --format, unless it prints no data, or a file in a form
// of its own.
func TestEveryCommandPrintsJSON(t *testing.T) {
	without := map[string]string{
		"serve": "its log has --log-format json", "console": "its log has --log-format json", "guard proxy": "its log has --log-format json", "worker": "its log has --log-format json", "trigger run": "its log has --log-format json",
		"lifecycle run": "its log has --log-format json", "guard policy": "always JSON", "policy show": "always JSON", "schedule export": "always JSON", "lifecycle draw": "a picture",
		"plan alarms": "a file of Prometheus", "plan aws": "a file of CloudFormation or Terraform, or JSON for the AWS CLI", "man": "a page of roff", "plan prices": "a file for plan --prices", "plan record": "a file for plan --shape",
	}
	var look func(*command.Command)
	look = func(c *command.Command) {
		printsJSON := slices.ContainsFunc(c.Flags, func(f *command.Parameter) bool {
			return f.Name == "json" || f.Name == "format" && strings.Contains(f.Help, "json,")
		})
		reason, excepted := without[c.Path()]
		switch delete(without, c.Path()); {
		case len(c.Children) == 0 && !printsJSON && !excepted:
			t.Errorf("mayfly %s has no --json", c.Path())
		case printsJSON && excepted:
			t.Errorf("mayfly %s has --json, and an exception: %s", c.Path(), reason)
		}
		for _, child := range c.Children {
			look(child)
		}
	}
	look(command.New(command.Program{Name: "mayfly", Env: "MAYFLY"}, &cli{}).Fill())
	for path := range without {
		t.Errorf("there is no command %s", path)
	}
	var out bytes.Buffer
	seriesArchiveCommand{JSON: true}.print(streams{out: &out}, "dt=2030-01-01/a.parquet", 7)
	if want := `{"file":"dt=2030-01-01/a.parquet","samples":7}` + "\n"; out.String() != want {
		t.Errorf("series archive --json prints %s and not %s", out.String(), want)
	}
}

// There is a manual page for every command, which groff reads without a warning, and shells complete its
// name.
func TestEveryCommandHasAManual(t *testing.T) {
	was := parts
	t.Cleanup(func() { parts = was })
	parts.Commands = AllCommands
	dir := t.TempDir()
	mayfly := func(args ...string) string {
		t.Helper()
		var out, wrong bytes.Buffer
		if code := run(t.Context(), args, &out, &wrong); code != exitOK {
			t.Errorf("mayfly %v exits with %d: %s", args, code, wrong.String())
		}
		return out.String()
	}
	mayfly("man", "--dir", dir)
	groff, _ := exec.LookPath("groff")
	var look func(*command.Command)
	look = func(c *command.Command) {
		words := strings.Fields(c.Path())
		name := filepath.Join(dir, strings.Join(append([]string{"mayfly"}, words...), "-")+".1")
		page, err := os.ReadFile(name)
		if err != nil || string(page) != mayfly(append([]string{"man"}, words...)...) {
			t.Errorf("%s: %v, or not the page that mayfly man prints", name, err)
		}
		if groff != "" {
			if warnings, err := exec.Command(groff, "-man", "-ww", "-Tutf8", "-z", name).CombinedOutput(); err != nil || len(warnings) > 0 {
				t.Errorf("%s: %v: %s", name, err, warnings)
			}
		}
		if n := len(words); n > 0 {
			if out := mayfly(slices.Concat([]string{"__complete"}, words[:n-1], []string{""})...); !strings.Contains("\n"+out, "\n"+words[n-1]+"\t") {
				t.Errorf("shells do not complete mayfly %s: %s", c.Path(), out)
			}
		}
		for _, child := range c.Children {
			look(child)
		}
	}
	look(command.New(command.Program{Name: "mayfly", Env: "MAYFLY"}, &cli{}).Fill())
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		if script := mayfly("completion", shell); !strings.Contains(script, "__complete") {
			t.Errorf("the script for %s asks for no completions: %s", shell, script)
		}
	}
}

// Every command and every flag has a help text, and every command an example.
func TestEveryCommandShowsExamples(t *testing.T) {
	count := 0
	var look func(*command.Command)
	look = func(n *command.Command) {
		for _, child := range n.Children {
			count++
			words := strings.Fields(child.Path())
			var out, wrong bytes.Buffer
			if code := run(context.Background(), append(words, "--help"), &out, &wrong); code != exitOK {
				t.Errorf("%s --help exits with %d: %s", child.Path(), code, wrong.String())
			}
			if !strings.Contains(out.String(), "Example") || !strings.Contains(out.String(), "    mayfly "+child.Path()) {
				t.Errorf("%s --help shows no example of it", child.Path())
			}
			for _, flag := range child.Flags {
				if flag.Help == "" && !flag.Hidden {
					t.Errorf("%s: --%s says nothing", child.Path(), flag.Name)
				}
			}
			if _, runs := child.Struct().(runner); runs != (len(child.Children) == 0) {
				t.Errorf("%s: runs is %t, with %d commands below it", child.Path(), runs, len(child.Children))
			}
			look(child)
		}
	}
	look(command.New(command.Program{Name: "mayfly", Env: "MAYFLY"}, &cli{}).Fill())
	if count < 20 {
		t.Errorf("looked at %d commands only", count)
	}
}
