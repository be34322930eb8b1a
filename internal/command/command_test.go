package command

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

// upper reads texts by itself.
type upper string

func (u *upper) UnmarshalText(text []byte) error {
	*u = upper(strings.ToUpper(string(text)))
	return nil
}

type common struct {
	Zone string `env:"zone,clock" help:"Zone." default:"UTC"`
}

type tree struct {
	Make  makeCommand `cmd:"" env:"short" group:"Work" help:"Make things."`
	Watch struct {
		Run  watchCommand `cmd:"" default:"withargs" help:"Watch."`
		Stop struct{}     `cmd:"" help:"Stop."`
	} `cmd:"" group:"Work" help:"Watch things."`
	Call struct {
		Table   string   `help:"Table." xor:"source" required:"" placeholder:"NAME"`
		Stream  string   `help:"Stream." xor:"source" required:"" placeholder:"ARN"`
		Command []string `arg:"" optional:"" passthrough:"" help:"What to call."`
	} `cmd:"" group:"Other" help:"Call things."`
}

type makeCommand struct {
	Config  File              `help:"File." placeholder:"FILE"`
	Name    string            `arg:"" help:"Name."`
	More    []string          `arg:"" optional:"" help:"Further names."`
	Count   int               `help:"How many." short:"n" default:"10"`
	MaxWCU  float64           `help:"Units."`
	MaxAge  time.Duration     `help:"Age." default:"1m" was:"ttl"`
	Since   time.Time         `help:"Start." placeholder:"TIME"`
	Kind    string            `help:"Kind." enum:"a,b" default:"a"`
	Tables  []string          `help:"Tables." placeholder:"NAME"`
	Pattern []string          `help:"Patterns." sep:"none"`
	Tag     map[string]string `help:"Tags." placeholder:"KEY=VALUE"`
	Quiet   bool              `help:"Say nothing."`
	Bisect  *bool             `help:"Bisect." negatable:""`
	Port    *uint16           `help:"Port."`
	Shout   upper             `help:"Text."`
	Secret  string            `hidden:""`
	common
}

// Help implements helper.
func (makeCommand) Help() string {
	return "Example:\n\n    test make x\n\nIt makes\nthings, and goes on about that for more than a line of the screen has room for."
}

type watchCommand struct {
	Table string `help:"Table." required:"" placeholder:"NAME"`
}

var newYear = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

func parse(t *testing.T, words ...string) (command any, out string, err error) {
	t.Helper()
	var b bytes.Buffer
	command, err = New(Program{Name: "test", Help: "Test.", Env: "TEST", Out: &b, Err: &b, Now: func() time.Time { return newYear }}, &tree{}).Parse(words)
	return command, b.String(), err
}

func TestParse(t *testing.T) {
	yes, no, port := true, false, uint16(80)
	standard := makeCommand{Name: "x", Count: 10, MaxAge: time.Minute, Kind: "a", common: common{"UTC"}}
	with := func(change func(*makeCommand)) *makeCommand {
		c := standard
		change(&c)
		return &c
	}
	for line, want := range map[string]any{
		"make x":                                   &standard,
		"make --count 3 x":                         with(func(c *makeCommand) { c.Count = 3 }),
		"make x -n 3 --max-wcu=0.5":                with(func(c *makeCommand) { c.Count, c.MaxWCU = 3, 0.5 }),
		"make x --max-age 2h --kind b":             with(func(c *makeCommand) { c.MaxAge, c.Kind = 2*time.Hour, "b" }),
		"make x --max-age 1d --since 2030-01-01":   with(func(c *makeCommand) { c.MaxAge, c.Since = 24*time.Hour, newYear }),
		"make x --max-age 1.5h --since +2w":        with(func(c *makeCommand) { c.MaxAge, c.Since = 90*time.Minute, newYear.AddDate(0, 0, 14) }),
		"make x --since 2030-01-01T01:00:00+01:00": with(func(c *makeCommand) { c.Since = newYear }),
		"make x y z":                               with(func(c *makeCommand) { c.More = []string{"y", "z"} }),
		"make x --tables a,b --tables c":           with(func(c *makeCommand) { c.Tables = []string{"a", "b", "c"} }),
		"make x --pattern a,b --pattern c":         with(func(c *makeCommand) { c.Pattern = []string{"a,b", "c"} }),
		"make x --tag a=1 --tag b=2;c=3=4":         with(func(c *makeCommand) { c.Tag = map[string]string{"a": "1", "b": "2", "c": "3=4"} }),
		"make x --quiet --bisect --port 80":        with(func(c *makeCommand) { c.Quiet, c.Bisect, c.Port = true, &yes, &port }),
		"make x --quiet=no --no-bisect":            with(func(c *makeCommand) { c.Bisect = &no }),
		"make x --shout hey --zone Europe/Berlin":  with(func(c *makeCommand) { c.Shout, c.Zone = "HEY", "Europe/Berlin" }),
		"make x --secret s":                        with(func(c *makeCommand) { c.Secret = "s" }),
		"make -- --x":                              with(func(c *makeCommand) { c.Name = "--x" }),
		"watch --table t":                          &watchCommand{"t"},
		"watch run --table t":                      &watchCommand{"t"},
		"watch stop":                               &struct{}{},
	} {
		got, _, err := parse(t, strings.Fields(line)...)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, %v; want %+v", line, got, err, want)
		}
	}
	got, _, err := parse(t, "call", "--table", "t", "--", "jq", "-r", "--table")
	if call := got.(*struct {
		Table   string   `help:"Table." xor:"source" required:"" placeholder:"NAME"`
		Stream  string   `help:"Stream." xor:"source" required:"" placeholder:"ARN"`
		Command []string `arg:"" optional:"" passthrough:"" help:"What to call."`
	}); err != nil || strings.Join(call.Command, " ") != "jq -r --table" || call.Table != "t" {
		t.Errorf("%+v, %v", call, err)
	}
}

func TestParseRefuses(t *testing.T) {
	for line, want := range map[string]string{ // the error, and what helps
		"mkae x":                              `unknown command "mkae" | did you mean test make?`,
		"amke --count 3":                      `unknown command "amke" | did you mean test make?`,
		"stop":                                `unknown command "stop" | did you mean test watch stop?`,
		"nothing":                             `unknown command "nothing" | test --help`,
		"watch sotp":                          `unknown command "sotp" | did you mean test watch stop?`,
		"watch nothing --table t":             `unknown command "nothing" | test watch --help`,
		"make":                                "missing argument <name> | test make --help",
		"watch":                               "missing flag: --table=NAME | set --table or TEST_WATCH_RUN_TABLE",
		"watch stop now":                      `unexpected argument "now" | test watch stop --help`,
		"make x --cuont 3":                    "unknown flag --cuont | did you mean --count?",
		"make x --ttl 3":                      "unknown flag --ttl | did you mean --max-age?",
		"make x --hlep":                       "unknown flag --hlep | did you mean --help?",
		"make x -port 3":                      "unknown flag -port | did you mean --port?",
		"make x --secrex 3":                   "unknown flag --secrex | test make --help",
		"make x -z":                           "unknown flag -z | test make --help",
		"make x --count":                      "--count needs a value | for example --count=10",
		"make x --count many":                 `--count: "many" is not a whole number | for example --count=10`,
		"make x --count 1e3":                  `--count: "1e3" is not a whole number | for example --count=10`,
		"make x --count 99999999999999999999": `--count: "99999999999999999999" is not a whole number in the range allowed | for example --count=10`,
		"make x --port -1":                    `--port: "-1" is not a whole number of 0 or more | for example --port=10`,
		"make x --port 65536":                 `--port: "65536" is not a whole number of 0 or more in the range allowed | for example --port=10`,
		"make x --max-wcu NaN":                `--max-wcu: "NaN" is not a number | for example --max-wcu=0.5`,
		"make x --max-age 5":                  `--max-age: "5" is not a duration; use 250ms, 90s, 1h30m, 2d or 2w | `,
		"make x --since noon":                 `--since: invalid time "noon"; use 2030-01-01, 2030-01-01T12:00:00, 2030-01-01T12:00:00Z, 2030-01-01T12:00:00+01:00, "in 5m" or now | `,
		"make x --since":                      "--since needs a value | test make --help",
		"make x --kind c":                     `--kind: "c" is not one of a, b | `,
		"make x --quiet=maybe":                `--quiet: "maybe" is neither true nor false | for example --quiet=true`,
		"make x --no-bisect=false":            "--no-bisect takes no value | ",
		"make x --tag a":                      `--tag: "a" is not of the form KEY=VALUE | `,
		"make x --kind":                       "--kind needs a value | test make --help",
		"help nothing":                        `unknown command "nothing" | test --help`,
		"help watch sotp":                     `unknown command "sotp" | did you mean test watch stop?`,
		"completion tcsh":                     `no completions for shell "tcsh" | use one of bash, zsh, fish, powershell`,
		"call":                                "missing flag: --table=NAME or --stream=ARN | set --table or TEST_CALL_TABLE, or --stream or TEST_CALL_STREAM",
		"call --table t --stream s":           "--table and --stream cannot be used together | ",
		"make x --config /nowhere/it":         "config file: open /nowhere/it: no such file or directory | ",
	} {
		_, _, err := parse(t, strings.Fields(line)...)
		u, is := err.(*Usage)
		if !is || u.Error()+" | "+u.Next != want {
			t.Errorf("%s: %v, next %+v; want %s", line, err, u, want)
		}
	}
}

// Command line, environment, file, default: each ranks above those behind it.
func TestRanks(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config.yaml")
	text := "count: 1\nmax-wcu: 1.5\ntables: [a, b]\ntag: {k: v}\nquiet: true\nzone: file\nsince: 2030-01-01\nmax-age: 1w\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TEST_CONFIG", path)
	t.Setenv("TEST_COUNT", "2")
	t.Setenv("TEST_MAX_AGE", "3w")
	t.Setenv("TEST_MAKE_MAX_AGE", "2w") // overrides the short form
	t.Setenv("TEST_CLOCK", "later than TEST_ZONE")
	t.Setenv("TEST_ZONE", "environment")
	t.Setenv("TEST_MAX_WCU", "") // as if it were not there
	got, _, err := parse(t, "make", "x", "--count", "3")
	if err != nil {
		t.Fatal(err)
	}
	want := &makeCommand{
		Config: File(path), Name: "x", Count: 3, MaxWCU: 1.5, MaxAge: 14 * 24 * time.Hour, Since: newYear, Kind: "a", Tables: []string{"a", "b"}, Tag: map[string]string{"k": "v"}, Quiet: true,
		common: common{"environment"},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v; want %+v", got, want)
	}
	t.Setenv("TEST_COUNT", "many")
	if _, _, err := parse(t, "make", "x"); err == nil || err.Error() != `the environment variable TEST_COUNT: "many" is not a whole number` {
		t.Error(err)
	}
}

func TestFileRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"cuont: 1\nname: x":  "unknown setting cuont, name",
		"config: other":      "unknown setting config",
		"count: [1]":         "count: takes one value, not a list",
		"count: many":        `count: "many" is not a whole number`,
		"count:":             "count: has no value",
		"zone: {a: {b: c}}":  "is not a text, a number, true or false",
		"tables: [[a]]":      "is not a text, a number, true or false",
		"- a":                "does not set flags by their names",
		"a: [":               "line 1, column 5: it is neither YAML nor JSON",
		"count: 1\ncount: 2": "line 2, column 1: count is given twice; the other one is in line 1",
		"kind: c":            `kind: "c" is not one of a, b`,
	} {
		path := filepath.Join(t.TempDir(), "config.yaml")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, _, err := parse(t, "make", "x", "--config", path); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), path) {
			t.Errorf("%q: %v; want %s", text, err, want)
		}
	}
}

func TestHelp(t *testing.T) {
	t.Setenv("COLUMNS", "60")
	for line, want := range map[string]string{
		"make --help": `Usage: test make <name> [<more> ...] [flags]

Make things.

Example:

    test make x

It makes things, and goes on about that for more than a line
of the screen has room for.

Arguments:
  <name>            Name.
  [<more> ...]      Further names.

Flags:
  -h, --help               Show this help.
`,
		"":                       "Work:\n  make          Make things.\n  watch         Watch things.\n\nOther:\n  call          Call things.\n  completion    Print",
		"watch -h":               "Commands:\n  watch run     Watch.\n",
		"watch --help":           "Usage: test watch <command>\n",
		"call -h":                "Usage: test call (--table=NAME | --stream=ARN) [<command> ...] [flags]\n",
		"help watch stop":        "Usage: test watch stop\n",
		"completion -h":          "bash",
		"completion bash":        "__complete",
		"__complete make x --co": "--count",
	} {
		command, out, err := parse(t, strings.Fields(line)...)
		if command != nil || err != nil || !strings.Contains(squeezed(out), squeezed(want)) {
			t.Errorf("%s: %v, %v, %s", line, command, err, out)
		}
		if strings.Contains(out, "secret") {
			t.Errorf("%s shows what is hidden", line)
		}
	}
	_, out, _ := parse(t, "make", "--help")
	for _, want := range []string{"-n, --count=10", "--[no-]bisect ", "--max-age=1m ", `--kind="a" `, "--tables=NAME,... ", "--pattern=PATTERN ", "--tag=KEY=VALUE ", "How many ($TEST_MAKE_COUNT)."} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in %s", want, out)
		}
	}
	for line := range strings.SplitSeq(out, "\n") {
		if len(line) > 60 {
			t.Errorf("longer than 60: %q", line)
		}
	}
}

// squeezed leaves out how wide columns are.
func squeezed(text string) string { return strings.Join(strings.Fields(text), " ") }

func TestDashed(t *testing.T) {
	for name, want := range map[string]string{"Port": "port", "MaxAge": "max-age", "AWSRegion": "aws-region", "MaxWCU": "max-wcu", "UseHTTP2Only": "use-http2-only"} {
		if got := dashed(name); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

// A manual page has the help, the arguments and the flags that --help shows, in ASCII.
func TestManual(t *testing.T) {
	root := New(Program{Name: "test", Help: "Test.", Env: "TEST"}, &tree{})
	pages := root.Manuals()
	if got, want := strings.Join(slices.Sorted(maps.Keys(pages)), " "), "test-call.1 test-make.1 test-watch-run.1 test-watch-stop.1 test-watch.1 test.1"; got != want {
		t.Errorf("the pages are %s, not %s", got, want)
	}
	page := pages["test-make.1"]
	for _, want := range []string{
		`.TH "TEST\-MAKE" "1"`, ".SH \"NAME\"\ntest-make \\- Make things\n", "test make <name> [<more> ...] [flags]", ".nf\n    test make x\n", ".fi\nIt makes\nthings,", ".TP\n\\fB<name>\\fR\nName.\n",
		".TP\n\\fB\\-n, \\-\\-count=10\\fR\nHow many ($TEST_MAKE_COUNT).\n",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("there is no %q in\n%s", want, page)
		}
	}
	if strings.Contains(page, "secret") {
		t.Error("the page shows what is hidden")
	}
	if want := ".SS \"Work\"\n.TP\n\\fBmake\\fR\nMake things. See test\\-make(1).\n.TP\n\\fBwatch\\fR\n"; !strings.Contains(pages["test.1"], want) {
		t.Errorf("there is no %q in\n%s", want, pages["test.1"])
	}
	for text, want := range map[string]string{`a\b`: `a\eb`, ".x": `\&.x`, "'x": `\&'x`, "x.y": "x.y", "NAME,…": `NAME,\[u2026]`, "--x": `\-\-x`} {
		if got := roff(text); got != want {
			t.Errorf("%s is %s, not %s", text, got, want)
		}
	}
	if _, err := root.Find([]string{"watch", "sotp"}); err == nil || err.Error() != `unknown command "sotp"` {
		t.Error(err)
	}
	if c, err := root.Find([]string{"watch", "stop"}); err != nil || c.Path() != "watch stop" {
		t.Error(c, err)
	}
}
