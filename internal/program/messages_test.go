package program

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mayflydb/mayfly/internal/command"
)

// A wrong command line exits with 2, and the message has the wrong value and the next step. A clear
// error has no "next:" line.
func TestMessages(t *testing.T) {
	t.Setenv("MAYFLY_PORT", "")
	dir := t.TempDir()
	file := func(name, content string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	config, broken, prose := file("wrong.yaml", "prot: 1\n"), file("broken.yaml", "not: [yaml"), file("prose.yaml", "hello\n")
	triggers, lifecycle := file("triggers.yaml", "- {name: a, table: abc, target: x, batch: many}\n"), file("lifecycle.yaml", "lifecycle: a\nstates:\n  - name: [a]\n")
	for _, test := range []struct{ args, says, next string }{
		// Commands.
		{"sevre", `unknown command "sevre"`, "did you mean mayfly serve?"},
		{"sevre --port 1", `unknown command "sevre"`, "did you mean mayfly serve?"},
		{"statsu", `unknown command "statsu"`, "did you mean mayfly guard status?"},
		{"guard statsu --table t", `unknown command "statsu"`, "did you mean mayfly guard status?"},
		{"schedule lst", `unknown command "lst"`, "did you mean mayfly schedule list?"},
		{"nonsense", `unknown command "nonsense"`, "mayfly --help"},
		{"schedule nonsense", `unknown command "nonsense"`, "mayfly schedule --help"},
		{"serve here", `unexpected argument "here"`, "mayfly serve --help"},
		{"schedule create", "missing argument <name>", "mayfly schedule create --help"},
		{"help nonsense", `unknown command "nonsense"`, "mayfly --help"},
		{"help schedule lst", `unknown command "lst"`, "did you mean mayfly schedule list?"},
		{"completion tcsh", `no completions for shell "tcsh"`, "use one of bash, zsh, fish, powershell"},

		// Flags.
		{"serve --hlep", "unknown flag --hlep", "did you mean --help?"},
		{"serve --prt 1", "unknown flag --prt", "did you mean --port?"},
		{"guard --tabel t", "unknown flag --tabel", "did you mean --table?"},
		{"--versio", "unknown flag --versio", "did you mean --version?"},
		{"serve --cors", "--cors needs a value", "mayfly serve --help"},
		{"serve --cors app.example", `--cors: "app.example" is neither "*" nor an origin such as "https://app.example"`, "mayfly serve --help"},
		{"serve --port 0 --allow-host http://db.example:8000", `--allow-host: "http://db.example:8000" is not a host name such as "db.example", without scheme, port and path`, "mayfly serve --help"},
		{"worker --endpoint http://127.0.0.1:9 --allow-host *", `--allow-host: "*" would admit every web page that the user of this machine visits; list the names`, "mayfly worker --help"},
		{"serve --nonsense", "unknown flag --nonsense", "mayfly serve --help"},
		{"guard", "missing flag: --table=NAME,...", "set --table or MAYFLY_GUARD_RUN_TABLE"},
		{"trigger create --function f", "missing flag: --table=NAME or --stream=ARN", "set --table or MAYFLY_TRIGGER_CREATE_TABLE, or --stream or MAYFLY_TRIGGER_CREATE_STREAM"},
		{"trigger create --table t", "missing flag: --function=ARN", "set --function or MAYFLY_TRIGGER_CREATE_FUNCTION"},
		{"serve --data d --memory", "--data and --memory cannot be used together", ""},
		{"serve --access-key k", "--access-key and --secret-key need each other", "set both, or neither"},
		{"serve --config " + config, "config file " + config + ": unknown setting prot; a setting is named as its flag, without the dashes", "did you mean port?"},
		{"serve --config " + broken, "config file " + broken + ": line 1, column 6: it is neither YAML nor JSON: did not find expected ',' or ']'; what begins here is not closed", ""},
		{"serve --config " + prose, "config file " + prose + " does not set flags by their names", "write one setting a line, such as port: 8000"},

		// Files.
		{"serve --port 0 --targets absent.yaml", "targets file: open absent.yaml: no such file or directory", "give the path of an existing file"},
		{"serve --port 0 --targets " + broken, "targets file " + broken + ": line 1, column 6: it is neither YAML nor JSON: did not find expected ',' or ']'; what begins here is not closed", "docs/targets.md explains each setting"},
		{"serve --port 0 --triggers " + triggers, "triggers file " + triggers + `: line 1, column 43: batch: "many" is not a whole number`, "docs/triggers.md describes the file"},
		{"schedule import absent.jsonl", "open absent.jsonl: no such file or directory", "give an existing file, or - for standard input"},
		{"schedule import " + dir, dir + " is a directory", "give an existing file, or - for standard input"},
		{"plan --writes 1 --prices " + prose, "--prices " + prose + ": the price table cannot be read: line 1, column 1: \"hello\" is not an object with settings", "mayfly plan prices > prices.yaml prints a table to edit"},
		{"lifecycle validate " + lifecycle, "lifecycle: " + lifecycle + ":3:3: states: a list is not a text", "docs/lifecycle.md explains each setting"},
		{"bench --merge absent.json --only start", "--merge: open absent.json: no such file or directory", "make a report with mayfly bench --json > absent.json"},

		// Values.
		{"serve --start yesterday", `--start: invalid time "yesterday"; use 2030-01-01, 2030-01-01T12:00:00, 2030-01-01T12:00:00Z, 2030-01-01T12:00:00+01:00, "in 5m" or now`, ""},
		{"serve --log-level loud", `--log-level: "loud" is not one of debug, info, warn, error`, ""},
		{"demo --items 0", "--items: 0 is not between 1 and 1000000", "mayfly demo --help"},
		{"demo --port 0 --items 5000000 --spread 1ms", "--items: 5000000 is not between 1 and 1000000; --spread: 1ms is not between 1s and 1h", "mayfly demo --help"},
		{"demo --deadline-unit minutes", `--deadline-unit: "minutes" is not one of seconds, milliseconds`, ""},
		{"demo --port 99999", "invalid port 99999", "use a port from 1 to 65535, or 0 for a free one"},
		{"healthcheck --port 70000", "invalid port 70000", "use a port from 1 to 65535"},
		{"healthcheck --url tcp://x", `invalid --url "tcp://x"`, "use an address such as http://127.0.0.1:8000"},
		{"healthcheck --timeout 0s", "--timeout: 0s is not above 0", "for example --timeout 3s"},
		{"schedule list --endpoint http://127.0.0.1:70000", `invalid endpoint "http://127.0.0.1:70000"`, "use a URL such as http://127.0.0.1:8000, or aws for Amazon's service"},
		{"trigger run --stream arn:x --print", `--stream: "arn:x" is not the ARN of a DynamoDB stream`, "mayfly trigger run --help"},
		{"trigger run --table abc -- nosuchcommand", `command: program "nosuchcommand" not found on the PATH`, ""},
		{"series ingest abc --format xml", `--format: "xml" is not one of csv, ndjson, influx`, ""},
		{"series latest s", `series name: "s" is not 3 to 248 of the characters a-z, A-Z, 0-9, "_", "-" and "."`, "mayfly series create --help"},
		{"bench --connections 0 --rounds 101", "--connections: 0 is not between 1 and 1024; --rounds: 101 is not between 1 and 100", "mayfly bench run --help"},
		{"bench --server-pid 5", "--server-pid works only with --url", "set --url to the server's address"},
		{"bench --merge absent.json", "--merge needs --only with one or more of schedules, triggers, guard, start", ""},
		{"serve --port x", `--port: "x" is not a whole number`, "for example --port=8000"},
		{"serve --port 70000", "invalid port 70000", "use a port from 1 to 65535, or 0 for a free one"},
		{"serve --log-format xml", `--log-format: "xml" is not one of text, json`, ""},
		{"serve --cache-bytes much", `--cache-bytes: "much" is not a size; use 4096, 64KB, 64MB or 2GB`, ""},
		{"serve --durability fsync", `--durability: "fsync" is not one of sync, async, memory`, ""},
		{"serve --port 0 --shards 1000 --account 12", `--account: "12" is not twelve digits; --shards: 1000 is not between 1 and 64`, "mayfly serve --help"},
		{"serve --host 0.0.0.0 --port 0", "other machines can reach 0.0.0.0, and no credentials are configured: anyone could read and change the data", "set --access-key and --secret-key, or --keys, or --tls-client-ca, or listen on 127.0.0.1, or add --insecure-listen on a trusted network"},
		{"guard --table t --strategy scna", `--strategy: "scna" is not one of auto, stream, index, schedule, scan`, ""},
		{"guard --table t --table t", "--table t is given twice", "give each table once"},
		{"guard --table t --batch some", `--batch: "some" is neither a number nor auto`, ""},
		{"guard --table t --batch -1", `--batch: "-1" is neither a number nor auto`, ""},
		{"guard --table t --batch 200", "--batch: 200 is not between 0 and 100", "mayfly guard run --help"},
		{"schedule list --endpoint http://u@127.0.0.1", "endpoint http://…@127.0.0.1 has a user or a password, which requests signed for AWS cannot carry", "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY to the endpoint's credentials"},
		{"guard --table t --endpoint nonsense", `invalid endpoint "nonsense"`, "use a URL such as http://127.0.0.1:8000, or aws for Amazon's service"},
		{"schedule next --at noon", `--at: invalid time "noon"; use 2030-01-01, 2030-01-01T12:00:00, 2030-01-01T12:00:00Z, 2030-01-01T12:00:00+01:00, "in 5m" or now`, ""},
		{"schedule next --every 5", `--every: "5" is not a duration; use 250ms, 90s, 1h30m, 2d or 2w`, ""},
		{"schedule next --every 0s", "--every 0s is not above 0", "for example --every 5m"},
		{"schedule next --cron */5_*_*_*_*", `schedule expression "cron(*/5 * * * *)": it has 5 fields; a cron expression has six: minutes hours day-of-month month day-of-week year`, "for example cron(*/5 * * * ? *)"},
		{"schedule next */5_*_*_*_*", `"*/5 * * * *" is neither a schedule's name nor an expression; a cron expression has six fields, as in cron(0 9 ? * MON-FRI *)`, "mayfly schedule next 'cron(*/5 * * * ? *)'"},
		{"schedule next --every 1m -n 0", "-n 0 is not between 1 and 10000", "for example -n 10"},
		{"schedule next --every 1m --zone Berlin", `time zone "Berlin": not in the IANA time zone database`, "use a name such as Europe/Berlin, America/New_York or UTC"},
		{"schedule next", "no time given", "give the name of a schedule, an expression, or --at, --every or --cron"},
		{"schedule delete", "which schedules? give names, or --all with or without --prefix", "mayfly schedule list"},
		{"deadletter redrive", "which dead letters? give IDs, or --all with or without --target, --source and --code", "mayfly deadletter list"},
		{"lifecycle create trial ada email", `invalid attribute "email": use name=value, such as email=ada@example.com`, `a value is a string or JSON: n=5, paid=true, tags=["a"]`},
		{"schedule next tea --from noon", `--from: invalid time "noon"; use 2030-01-01, 2030-01-01T12:00:00, 2030-01-01T12:00:00Z, 2030-01-01T12:00:00+01:00, "in 5m" or now`, ""},
		{"schedule create tea --at noon --target arn:aws:sqs:us-east-1:000000000000:q", `--at: invalid time "noon"; use 2030-01-01, 2030-01-01T12:00:00, 2030-01-01T12:00:00Z, 2030-01-01T12:00:00+01:00, "in 5m" or now`, ""},
		{"schedule list --limit -1", "--limit -1 is negative", "use 0 to show all"},
		{"deadletter list --limit -1", "--limit -1 is negative", "use 0 to show all"},
		{"series range weather roof --zone Mars", `--zone: unknown time zone "Mars"`, "for example --zone Europe/Berlin"},
		{"series range weather roof --until 2030-01-01 --from 2030-01-02", "--until 2030-01-01 is before --from 2030-01-02", ""},
		{"series range weather roof --to 2030-01-01", "unknown flag --to", "did you mean --until?"},
		{"series export weather --to d --until noon", `--until: invalid time "noon"; use 2030-01-01, 2030-01-01T12:00:00, 2030-01-01T12:00:00Z, 2030-01-01T12:00:00+01:00, "in 5m" or now`, ""},
		{"lifecycle simulate absent.yaml", "lifecycle: open absent.yaml: no such file or directory", "give the path of an existing file"},
		{"guard --table t --lease 2fortnights", `--lease: "2fortnights" is not a duration; use 250ms, 90s, 1h30m, 2d or 2w`, ""},
		{"man guard rnu", `unknown command "rnu"`, "did you mean mayfly guard run?"},
		{"man guard run --dir d", "--dir d is for the pages of all commands", "drop the name of the command, or --dir"},
		{"plan", "no traffic", "set --writes and --reads-eventual, or --shape FILE"},
		{"plan --writes -1", "writes: -1 is not between 0 and 1e+09 a second", "mayfly plan --help"},
	} {
		args := strings.Fields(test.args)
		for i := range args {
			args[i] = strings.ReplaceAll(args[i], "_", " ")
		}
		want := "mayfly: " + test.says + "\n"
		if test.next != "" {
			want += "  next: " + test.next + "\n"
		}
		var out, wrong bytes.Buffer
		if code := run(context.Background(), args, &out, &wrong); code != exitUsage || wrong.String() != want || out.Len() > 0 {
			t.Errorf("mayfly %s exits with %d:\n%s%swant\n%s", strings.Join(args, " "), code, out.String(), wrong.String(), want)
		}
	}
}

// A command that fails although its command line is right exits with 1, except for the commands that
// document other codes.
func TestFailures(t *testing.T) {
	t.Setenv("MAYFLY_ENDPOINT", "http://127.0.0.1:1") // nothing listens there
	t.Setenv("AWS_ACCESS_KEY_ID", "any")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "any")
	t.Setenv("AWS_REGION", "us-east-1")
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, []byte("hello\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for line, code := range map[string]int{
		"schedule list": exitError, "schedule show tea": exitError, "schedule create tea --every 1m --target arn:aws:sqs:us-east-1:000000000000:q": exitError, "schedule delete tea": exitError,
		"schedule import " + file: exitError, "schedule group list": exitError, "trigger list": exitError, "trigger show 14e0db71-5d35-4eb5-b481-8945cf9d10c2": exitError, "deadletter list": exitError,
		"recorded": exitError, "reminder list": exitError, "backup --to " + dir: exitError, "restore --from " + dir + " --to " + dir + "/new": exitError, "healthcheck --port 1": exitError,
		"check " + dir + "/none": exitError, "salvage " + dir + "/none --to " + dir + "/new": exitError, "serve --port 0 --data " + file: exitError, "worker --port 0": exitError,
		"guard run --table t": exitUnavailable, "guard init --table t": exitUnavailable, "guard status --table t": exitUnavailable,
	} {
		var out, wrong bytes.Buffer
		if got := run(t.Context(), strings.Fields(line), &out, &wrong); got != code || wrong.Len() == 0 {
			t.Errorf("mayfly %s exits with %d, not %d: %s%s", line, got, code, &out, &wrong)
		}
	}
}

// The help of both programs begins with the six most used commands, and gives each command one line of 80
// columns.
func TestHelpBegins(t *testing.T) {
	t.Setenv("COLUMNS", "80")
	for name, root := range map[string]any{"mayfly": &smallCLI{}, "mayfly-full": &cli{}} {
		var out bytes.Buffer
		c := command.New(command.Program{Name: "mayfly", Help: "Test.", Env: "MAYFLY", Out: &out, Err: &out}, root)
		if _, err := c.Parse(nil); err != nil {
			t.Fatal(err)
		}
		text, isFirst := strings.CutPrefix(out.String(), "Usage: mayfly <command>\n\nTest.\n\nMost used:\n")
		most, _, _ := strings.Cut(text, "\n\n")
		var names []string
		for line := range strings.SplitSeq(most, "\n") {
			names = append(names, strings.Fields(line)[0])
		}
		if want := "serve demo guard schedule clock console"; !isFirst || strings.Join(names, " ") != want {
			t.Errorf("the help of %s begins with %v; want %s in\n%s", name, names, want, out.String())
		}
		commands, _, _ := strings.Cut(text, "Flags:")
		for line := range strings.SplitSeq(commands, "\n") {
			if strings.HasPrefix(line, "     ") || len(line) > 80 {
				t.Errorf("the help of %s has a command of two lines: %s", name, line)
			}
		}
	}
}

// The program alone, and a group of commands, show their help.
func TestHelpAlone(t *testing.T) {
	for args, part := range map[string]string{"": "Schedules and triggers:\n  trigger ", "schedule": "Commands:\n  schedule create "} {
		var out, wrong bytes.Buffer
		if code := run(context.Background(), strings.Fields(args), &out, &wrong); code != exitOK || wrong.Len() > 0 || !strings.Contains(out.String(), part) {
			t.Errorf("mayfly %s exits with %d:\n%s%s", args, code, out.String(), wrong.String())
		}
	}
}
