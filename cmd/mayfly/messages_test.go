package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A wrong command line exits with 2, says what is wrong with which value, and what helps. There is no "next:" line where the error says it all.
func TestMessages(t *testing.T) {
	t.Setenv("MAYFLY_PORT", "")
	dir := t.TempDir()
	config := filepath.Join(dir, "wrong.yaml")
	if err := os.WriteFile(config, []byte("prot: 1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
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

		// Flags.
		{"serve --hlep", "unknown flag --hlep", "did you mean --help?"},
		{"serve --prt 1", "unknown flag --prt", "did you mean --port?"},
		{"guard --tabel t", "unknown flag --tabel", "did you mean --table?"},
		{"serve --nonsense", "unknown flag --nonsense", "mayfly serve --help"},
		{"guard", "missing flag: --table=NAME,...", "set --table or MAYFLY_TABLE"},
		{"trigger create --function f", "missing flag: --table=NAME or --stream=ARN", "set --table or MAYFLY_TABLE, or --stream or MAYFLY_STREAM"},
		{"trigger create --table t", "missing flag: --function=ARN", "set --function or MAYFLY_FUNCTION"},
		{"serve --data d --memory", "--data and --memory cannot be used together", ""},
		{"serve --access-key k", "--access-key and --secret-key need each other", "set both, or neither"},
		{"serve --config " + config, "config file " + config + ": unknown setting prot; a setting is named as its flag, without the dashes", "did you mean port?"},

		// Values.
		{"serve --port x", `--port: "x" is not a whole number`, "for example --port=8000"},
		{"serve --port 70000", "invalid port 70000", "use a port from 1 to 65535, or 0 for a free one"},
		{"serve --log-format xml", `--log-format: "xml" is not one of text, json`, ""},
		{"serve --cache-bytes much", `--cache-bytes: "much" is not a size; use 4096, 64KB, 64MB or 2GB`, ""},
		{"serve --durability fsync", `--durability: "fsync" is not one of sync, async, memory`, ""},
		{"serve --port 0 --shards 1000 --account 12", `--account: "12" is not twelve digits; --shards: 1000 is not between 1 and 64`, "mayfly serve --help"},
		{"serve --host 0.0.0.0 --port 0", "other machines can reach 0.0.0.0, and no credentials are configured: anyone could read and change the data", "set --access-key and --secret-key, or listen on 127.0.0.1, or add --insecure-listen on a trusted network"},
		{"guard --table t --strategy scna", `--strategy: "scna" is not one of auto, stream, index, schedule, scan`, ""},
		{"guard --table t --table t", "--table t is given twice", "give each table once"},
		{"guard --table t --batch 200", "--batch: 200 is not between 0 and 100", "mayfly guard run --help"},
		{"guard --table t --endpoint nonsense", `invalid endpoint "nonsense"`, "use a URL such as http://127.0.0.1:8000, or aws for Amazon's service"},
		{"schedule next --at noon", `--at: invalid time "noon"; use 2030-01-01T12:00:00, 2030-01-01T12:00:00Z, 2030-01-01T12:00:00+01:00, "in 5m" or now`, ""},
		{"schedule next --every 5", `--every: "5" is not a duration; use 250ms, 90s, 5m, 1h30m or 2d, up to 100 years`, ""},
		{"schedule next --cron */5_*_*_*_*", `schedule expression "cron(*/5 * * * *)": it has 5 fields; a cron expression has six: minutes hours day-of-month month day-of-week year`, "for example cron(*/5 * * * ? *)"},
		{"schedule next */5_*_*_*_*", `"*/5 * * * *" is neither a schedule's name nor an expression; a cron expression has six fields, as in cron(0 9 ? * MON-FRI *)`, "mayfly schedule next 'cron(*/5 * * * ? *)'"},
		{"schedule next --every 1m -n 0", "-n 0 is not between 1 and 10000", "for example -n 10"},
		{"schedule next --every 1m --zone Berlin", `time zone "Berlin": not in the IANA time zone database`, "use a name such as Europe/Berlin, America/New_York or UTC"},
		{"schedule next", "no time given", "give the name of a schedule, an expression, or --at, --every or --cron"},
		{"schedule delete", "which schedules? give names, or --all with or without --prefix", "mayfly schedule list"},
		{"deadletter redrive", "which dead letters? give IDs, or --all with or without --target, --source and --code", "mayfly deadletter list"},
		{"lifecycle create trial ada email", `invalid attribute "email": use name=value, such as email=ada@example.com`, `a value is a string or JSON: n=5, paid=true, tags=["a"]`},
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

// The program alone, and a group of commands, show their help.
func TestHelpAlone(t *testing.T) {
	for args, part := range map[string]string{"": "Schedules and triggers:\n  schedule ", "schedule": "Commands:\n  schedule create "} {
		var out, wrong bytes.Buffer
		if code := run(context.Background(), strings.Fields(args), &out, &wrong); code != exitOK || wrong.Len() > 0 || !strings.Contains(out.String(), part) {
			t.Errorf("mayfly %s exits with %d:\n%s%s", args, code, out.String(), wrong.String())
		}
	}
}
