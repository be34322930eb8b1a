package mayfly_test

import (
	"cmp"
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/mayflydb/mayfly"

// wing is a row of the import table: a directory whose packages stand on floors. A package imports
// packages of lower floors of its wing, and those that the wing may import. Imports never climb.
type wing struct {
	floors []string // from top to bottom: names of packages in the wing, separated by blanks
	may    []string // packages of ours outside the wing; "x/..." are all below x
	tests  []string // packages that only tests import, besides
	why    string   // it imports no more
}

// exception is a package that imports more or less than its wing, or one that has none.
type exception struct {
	may   []string
	not   []string // although its wing may
	tests []string
	why   string
}

// wings is the architecture. A package below one of these directories that is on none of its floors
// fails the test, and so does a floor without a package.
var wings = map[string]wing{
	"internal/store": {
		floors: []string{"service", "bulk", "engine", "due expr keyenc kv partiql", "dynamo"},
		may:    []string{"internal/clock", "internal/constraint", "internal/descriptor", "internal/invariant", "internal/points", "internal/ttl", "internal/when"},
		tests:  []string{"internal/faulttest", "internal/testkit"},
		why:    "the database knows neither a protocol nor the work that clients build on it",
	},
	"internal/front": {
		floors: []string{"cloudwatch httploop routes", "keyfile wire", "admin audit fault intake keys", "policy rpc sigv4", "browser"},
		may:    []string{"internal/clock", "internal/points", "internal/store/dynamo", "internal/store/service", "internal/when"},
		why:    "the ways in turn HTTP into the service's inputs and back; they have not heard of the engine",
	},
	"internal/work": {
		floors: []string{
			"host", "judge", "autoscale reminder resolve scheduler transfer trigger", "deliver", "timer", "consume", "items lease", "ensure",
			"cron declare pattern template", "api attr retry",
		},
		may:   []string{"internal/clock", "internal/constraint", "internal/invariant", "internal/option", "internal/tracking", "internal/ttl", "internal/when", "internal/yamlfile", "target"},
		tests: []string{"", "internal/faulttest", "internal/testkit"},
		why:   "work runs at any endpoint, so it knows clients of the AWS SDK only",
	},
	"guard/internal": {
		floors: []string{"audit backlog index scan schedule stream", "strategy", "table", "armed pace"},
		may: []string{
			"internal/clock", "internal/invariant", "internal/store/dynamo", "internal/work/attr", "internal/work/consume", "internal/work/ensure", "internal/work/lease",
			"internal/ttl", "internal/work/retry",
		},
		tests: []string{"", "internal/faulttest"},
		why:   "a strategy sees guard through an interface, and no other strategy; the audit sees none; of the database it needs how a number is read",
	},
	"internal/sink": {
		floors: []string{"kinds sourcefile", "targetfile", "aws kafka nats rabbitmq", ".", "aws/lambdatest sinktest"},
		may:    []string{"internal/constraint", "internal/option", "internal/sdk/functions", "internal/sdk/sinks", "internal/when", "internal/work/retry", "internal/yamlfile", "target"},
		why:    sinkWhy,
	},
	"internal": {
		floors: []string{
			"backup bench bench/expirybench brokertest command demo exportfile faulttest guardsim sim testkit testkit/chrome", "objects sim/steady", "chart clock constraint descriptor durable invariant option points sdk sdk/functions sdk/mappings sdk/objects sdk/sinks skew tracking ttl when yamlfile", "sdk/options",
		},
		why: "leaves are used by all wings and know none",
	},
	"internal/program": {
		floors: []string{"full", "."},
		may: []string{
			"", "console", "guard", "guard/journal", "guard/strict", "internal/backup", "internal/chart", "internal/clock", "internal/command", "internal/demo", "internal/descriptor", "internal/exportfile", "internal/front/...",
			"internal/objects", "internal/option", "internal/sdk", "internal/sdk/functions", "internal/sdk/mappings", "internal/sink/targetfile", "internal/ttl", "internal/when", "internal/work/...", "lifecycle", "planner", "target", "timeseries",
		},
		tests: []string{"conformance", "internal/bench", "internal/bench/expirybench", "internal/brokertest", "internal/program/full", "internal/sink/kinds", "internal/testkit", "internal/testkit/chrome", "timeseries/archive"},
		why:   "the program is wiring: it uses the library as anyone would, and no large library",
	},
	"timeseries": {
		floors: []string{"archive/bucket", "archive fromkafka fromkinesis fromnats", "."},
		may:    []string{"internal/clock", "internal/constraint", "internal/objects", "internal/option", "internal/sdk/objects", "internal/work/...", "target"},
		tests:  []string{"", "guard", "internal/brokertest", "internal/front/sigv4", "internal/testkit"},
		why:    "series run at any endpoint, so they know clients of the AWS SDK only; a broker, Parquet and S3 link to those who use them",
	},
	"tools": {
		floors: []string{"climb mutate picture targets"},
		may:    []string{"internal/clock"},
		why:    "tools read and run the program from outside; no user links them",
	},
}

// sinkWhy is why the packages of the brokers import no more.
const sinkWhy = "a sink is a target and knows nothing else of ours; only the program uses it, so a user of the library links no broker's client"

// exceptions are the packages outside the wings, and those that differ from theirs.
var exceptions = map[string]exception{
	// The database: each layer knows its neighbours only.
	"internal/store/service": {
		may:   []string{"internal/objects"},
		not:   []string{"internal/store/due", "internal/store/keyenc", "internal/store/kv"},
		tests: []string{"internal/clock"},
		why:   "the service gives operations their meaning; how things are stored is the engine's",
	},
	"internal/store/bulk": {
		may: []string{"internal/exportfile", "internal/objects"},
		not: []string{"internal/store/due", "internal/store/expr", "internal/store/keyenc"},
		why: "jobs move items between the engine and files; they know neither requests nor how things are stored",
	},
	"internal/store/engine":  {not: []string{"internal/store/expr", "internal/store/partiql"}, why: "the engine takes compiled predicates: it knows neither JSON nor the text of an expression"},
	"internal/store/kv":      {not: []string{"internal/store/dynamo"}, why: "storage holds bytes, not items"},
	"internal/store/due":     {not: []string{"internal/store/dynamo"}, why: "the source of an entry knows its contents"},
	"internal/store/expr":    {not: []string{"internal/clock"}, why: "time is an argument"},
	"internal/store/partiql": {not: []string{"internal/clock"}, why: "a statement is syntax; the service gives it a meaning"},
	"internal/store/keyenc":  {not: []string{"internal/clock"}, why: "the key codec is pure functions over values"},
	"internal/store/dynamo":  {not: []string{"internal/clock", "internal/constraint", "internal/invariant", "internal/ttl"}, why: "the vocabulary imports nothing of ours"},

	"internal/front/wire":     {not: []string{"internal/clock"}, tests: []string{"internal/store/engine"}, why: "time is an argument"},
	"internal/front/httploop": {not: []string{"internal/store/..."}, why: "the loop reads requests and writes answers; wire knows what they mean"},
	"internal/front/sigv4":    {not: []string{"internal/clock", "internal/store/service"}, why: "a signature is verified before anything is understood"},
	"internal/front/browser":  {not: []string{"internal/clock", "internal/store/..."}, why: "who sends a request is decided before anything is understood"},
	"internal/front/policy":   {not: []string{"internal/clock", "internal/store/..."}, why: "a policy judges facts that others pass in"},
	"internal/front/keys":     {not: []string{"internal/clock", "internal/store/service"}, why: "who sends a request is decided before anything is understood"},
	"internal/front/audit":    {not: []string{"internal/clock", "internal/store/..."}, why: "the log writes facts and times that others pass in"},
	"internal/front/keyfile": {
		may: []string{"internal/option", "internal/yamlfile"}, not: []string{"internal/clock", "internal/store/..."},
		why: "the file of the keys is a matter of the program; it knows what a key is, and no request",
	},
	"internal/front/admin":  {not: []string{"internal/store/..."}, why: "health, metrics and the clock are functions that others pass in"},
	"internal/front/routes": {may: []string{"internal/work/api", "internal/work/autoscale", "internal/work/scheduler", "internal/work/trigger"}, why: "it puts the operations of others into the wire's tables, and has none of its own"},

	"internal/work/host": {
		may:   []string{"internal/front/admin", "internal/front/audit", "internal/front/browser", "internal/front/keys", "internal/front/routes", "internal/front/wire"},
		tests: []string{"internal/clock"},
		why:   "a worker serves the APIs of its work, and knows no engine",
	},
	"internal/work/scheduler": {
		tests: []string{"internal/front/wire", "internal/store/engine", "internal/store/kv", "internal/store/service"},
		why:   "schedules are items of any endpoint",
	},
	"internal/work/trigger": {
		may:   []string{"internal/store/dynamo"},
		tests: []string{"internal/sink/aws", "internal/sink/aws/lambdatest", "internal/sink/nats"},
		why:   "of the database it needs only how a string is quoted in JSON",
	},
	"internal/work/transfer": {
		may:   []string{"internal/store/dynamo"},
		tests: []string{""},
		why:   "of the database it needs how an item's JSON is read and written",
	},
	"internal/work/template": {may: []string{"internal/store/dynamo"}, why: "of the database it needs only how a string is quoted in JSON"},
	"internal/work/cron":     {not: []string{"internal/clock"}, why: "schedule expressions are arithmetic: the time is an argument"},

	"internal/clock": {tests: []string{"internal/testkit"}, why: "leaves know none; a sleep is measured with the helper of other tests"},
	"internal/sink/targetfile": {
		not:   []string{"internal/sink/aws", "internal/sink/kafka", "internal/sink/nats", "internal/sink/rabbitmq"},
		tests: []string{"internal/sink/aws", "internal/sink/kafka", "internal/sink/kinds", "internal/sink/nats", "internal/sink/rabbitmq"},
		why:   "the small program reads files of targets, and links no broker's client",
	},
	"internal/sink/aws": {tests: []string{"internal/front/sigv4"}, why: sinkWhy},
	"internal/bench":    {may: []string{"internal/store/kv", "internal/work/retry"}, why: "the bench is a client of any endpoint, and compares it with the bare store"},
	"internal/guardsim": {
		may: []string{"", "guard", "internal/clock", "internal/option", "internal/sdk", "planner"}, why: "the simulation runs guard as anyone would, in a database of its own, and compares it with the plan",
	},
	"internal/sim": {
		may:   []string{"", "internal/invariant", "internal/store/engine", "internal/store/kv"},
		tests: []string{"internal/faulttest"},
		why:   "the simulation opens the library as anyone would, on disks of its own, and checks their files at the end; only mayfly-full links it",
	},
	"internal/bench/expirybench": {
		may:   []string{"internal/bench", "internal/chart", "internal/sdk", "internal/skew", "internal/work/attr", "internal/work/retry"},
		tests: []string{"", "internal/testkit"},
		why:   "a client of any endpoint, which knows nothing about the server",
	},
	"internal/sdk/mappings": {tests: []string{""}, why: "leaves know none; a test calls a server"},
	"internal/sdk/sinks":    {tests: []string{"internal/sdk/functions", "internal/sdk/objects"}, why: "leaves know none; one test compares the clients of all"},
	"internal/demo":         {may: []string{"internal/work/attr"}, tests: []string{""}, why: "the demo is a client of any endpoint"},
	"internal/brokertest":   {may: []string{"", "timeseries"}, why: "the tests of the readers of brokers share a series; only tests use it"},

	"": {
		may: []string{"internal/backup", "internal/clock", "internal/descriptor", "internal/front/...", "internal/objects", "internal/option", "internal/points", "internal/sdk", "internal/store/bulk", "internal/store/engine", "internal/store/kv", "internal/store/service", "internal/work/...", "target"},
		tests: []string{
			"", "conformance", "internal/faulttest", "internal/store/dynamo", "internal/testkit", "lifecycle",
		},
		why: "the root is wiring: packages below it decide the meaning of a request, and the toolkits are built on it",
	},
	"internal/program/full": {
		may: []string{"internal/bench/...", "internal/guardsim", "internal/sim", "internal/sdk", "internal/sink/kinds", "internal/sink/sourcefile", "timeseries/..."},
		why: "the parts of mayfly-full: only it links them",
	},
	"cmd/mayfly":      {may: []string{"internal/program"}, why: "main is the program without parts"},
	"cmd/mayfly-full": {may: []string{"internal/program", "internal/program/full"}, why: "main is the program with all parts"},
	"cmd/mayfly-lambda": {
		may:   []string{"guard", "internal/clock", "internal/sdk", "internal/when"},
		tests: []string{"", "internal/sink/aws/lambdatest"},
		why:   "main is wiring: it reads the environment, and guard does the rest",
	},
	"deploy": {
		tests: []string{"", "guard", "internal/front/admin", "internal/work/lease", "planner", "target"},
		why:   "templates are text; their test compares them with guard",
	},
	"conformance": {tests: []string{""}, why: "the suite runs against any endpoint, so it knows clients of the AWS SDK only"},
	"guard": {
		may: []string{
			"guard/internal/...", "guard/journal", "internal/clock", "internal/constraint", "internal/invariant", "internal/option", "internal/sdk", "internal/skew", "internal/work/ensure", "internal/work/lease", "internal/work/retry",
			"target",
		},
		tests: []string{"", "conformance", "internal/faulttest", "internal/testkit", "internal/work/attr", "internal/work/consume"},
		why:   "guard runs at any endpoint, so it knows clients of the AWS SDK only",
	},
	"guard/journal": {may: []string{"internal/clock", "internal/durable"}, why: "the journal stores bytes of JSON: it knows neither guard nor an endpoint, and S3 is the program's"},
	"guard/chaos": {
		may: []string{"", "guard", "internal/chart", "internal/clock", "internal/command", "internal/sdk"},
		why: "chaos is a main program: it runs guard as anyone would, against any endpoint, and starts one of ours if there is none",
	},
	"guard/strict": {
		may:   []string{"internal/clock", "internal/constraint", "internal/front/browser", "internal/front/intake", "internal/front/sigv4", "internal/skew", "internal/store/dynamo", "internal/store/expr", "internal/store/partiql", "internal/ttl"},
		tests: []string{"", "conformance", "guard", "internal/testkit"},
		why:   "strict reads change the requests and answers of any endpoint; expr knows the meaning of an expression",
	},
	"lifecycle": {
		may: []string{
			"internal/chart", "internal/clock", "internal/constraint", "internal/store/dynamo", "internal/store/expr", "internal/when", "internal/work/...", "internal/yamlfile", "target",
		},
		tests: []string{"", "internal/testkit"},
		why:   "lifecycles run at any endpoint, so they know clients of the AWS SDK only; expr knows the meaning of a condition",
	},
	"console": {
		may: []string{
			"guard", "internal/chart", "internal/clock", "internal/front/browser", "internal/front/sigv4", "internal/sdk", "internal/sdk/mappings", "internal/ttl", "internal/when", "internal/work/attr", "internal/work/consume", "internal/work/cron", "internal/work/deliver",
			"internal/work/judge", "internal/work/lease", "internal/work/reminder", "internal/work/resolve", "internal/work/retry", "internal/work/scheduler", "internal/work/transfer", "lifecycle",
		},
		tests: []string{"", "internal/testkit/...", "target"},
		why:   "the pages run at any endpoint, so they know clients of the AWS SDK only, and nothing of the server that serves them",
	},
	"planner":    {may: []string{"internal/chart", "internal/tracking", "internal/yamlfile"}, tests: []string{"guard", "internal/testkit/chrome"}, why: "the planner is arithmetic over a workload and a price table"},
	"mayflytest": {may: []string{""}, why: "a test of a user opens a database through it; it wraps what the root offers"},
	"target":     {may: []string{"internal/option"}, why: "the author of a target imports this and nothing else of ours"},
}

// ban keeps an import, with everything below its path, to some packages.
type ban struct {
	path   string
	only   []string // packages that may import it; ours by path in the module
	except []string // or: packages that may not
	tests  bool     // tests are bound too
	why    string
}

var bans = []ban{
	{path: "github.com/cockroachdb/pebble", only: []string{"internal/store/kv"}, tests: true, why: "kv is the only importer of the LSM"},
	{path: "net/http", except: belowWire, why: "HTTP ends in wire"},
	{path: "github.com/aws", except: append([]string{"internal/front/wire", "internal/front/sigv4", "internal/front/admin"}, belowWire...),
		why: "inside the server there are our own types; the SDK is for what could run elsewhere"},
	{path: "github.com/aws/aws-lambda-go/lambda", only: []string{"cmd/mayfly-lambda", "internal/sink/aws/lambdatest"}, why: "only main is a function; a library has handlers"},
	{path: "github.com/aws/aws-lambda-go/events", only: []string{"cmd/mayfly-lambda", "guard"}, why: "Lambda's form of records is for functions"},
	{path: "github.com/nats-io", only: []string{"internal/sink/nats", "internal/bench", "internal/work/trigger", "internal/program", "timeseries/fromnats"}, tests: true, why: sinkWhy},
	{path: "github.com/nats-io", only: []string{"internal/sink/nats", "internal/bench", "timeseries/fromnats"}, why: sinkWhy + "; the bench reads what was delivered"},
	{path: "github.com/nats-io/nats-server", only: []string{}, why: "servers run in tests only: linked, it would make the program half as large again"},
	{path: "github.com/twmb/franz-go", only: []string{"internal/sink/kafka", "timeseries/fromkafka", "internal/program"}, tests: true, why: sinkWhy},
	{path: "github.com/twmb/franz-go", only: []string{"internal/sink/kafka", "timeseries/fromkafka"}, why: sinkWhy},
	{path: "github.com/parquet-go", only: []string{"timeseries/archive"}, tests: true, why: "only who keeps an archive links Parquet"},
	{path: "github.com/aws/aws-sdk-go-v2/service/s3", only: []string{"internal/sdk/objects", "timeseries/archive/bucket"}, tests: true, why: "only who keeps an archive in a bucket links S3"},
	{path: "github.com/johannesboyne", only: []string{}, why: "S3 is elsewhere; a server of its API runs in tests only"},
	{path: "github.com/rabbitmq", only: []string{"internal/sink/rabbitmq"}, tests: true, why: sinkWhy},
	{path: "C", only: []string{}, tests: true, why: "everything works without cgo"},
	{path: "testing", only: []string{"conformance", "internal/faulttest", "internal/testkit", "internal/testkit/chrome", "internal/brokertest", "mayflytest", "internal/guardsim", "internal/sim"}, why: "tests do not ship, but for the bubble of virtual time of the simulations, and only tests import what is theirs"},
	{path: "golang.org/x/tools", only: []string{}, tests: true, why: "tools have a module of their own"},
}

// belowWire are the packages that no protocol reaches.
var belowWire = []string{
	"internal/store/service", "internal/constraint", "internal/store/expr", "internal/store/engine", "internal/store/keyenc", "internal/store/kv", "internal/store/due", "internal/store/dynamo",
	"internal/clock", "internal/front/audit", "internal/front/policy", "internal/invariant", "internal/work/cron",
}

// tellsTime are the functions that ask the machine for the time or wait for it.
var tellsTime = []string{"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "NewTimer", "NewTicker", "Tick"}

// mayTellTime are the packages that use them outside tests: the clock, main, the suite and the
// bench, which wait for endpoints elsewhere, the simulation, whose time is virtual, the root, which passes the wall clock to wire, where
// signatures age, and what only tests import.
var mayTellTime = []string{"internal/clock", "internal/program", "internal/program/full", "conformance", "internal/bench", "internal/bench/expirybench", "internal/sim", "", "internal/brokertest"}

// source is a Go file of the tree.
type source struct {
	pkg  string // its directory in the module; empty for the root
	name string // its path
	test bool
	file *ast.File
}

// sources parses every Go file of this module.
func sources(t *testing.T) (all []source) {
	t.Helper()
	files := token.NewFileSet()
	err := filepath.WalkDir(".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			return skipDir(name, entry.Name())
		}
		if filepath.Ext(name) != ".go" {
			return nil
		}
		file, err := parser.ParseFile(files, name, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		pkg := path.Dir(filepath.ToSlash(name))
		if pkg == "." {
			pkg = ""
		}
		all = append(all, source{pkg, name, strings.HasSuffix(name, "_test.go"), file})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// skipDir leaves out what is not of this module.
func skipDir(name, base string) error {
	if name == "." {
		return nil
	}
	if base == "testdata" || base == "vendor" || base == "node_modules" || strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_") {
		return filepath.SkipDir
	}
	if _, err := os.Stat(filepath.Join(name, "go.mod")); err == nil {
		return filepath.SkipDir
	}
	return nil
}

// imports returns the paths that a file imports.
func (s source) imports() (paths []string) {
	for _, spec := range s.file.Imports {
		p, err := strconv.Unquote(spec.Path.Value)
		if err == nil {
			paths = append(paths, p)
		}
	}
	return paths
}

// inModule returns the directory of a package of ours.
func inModule(importPath string) (pkg string, ours bool) {
	if importPath == module {
		return "", true
	}
	return strings.CutPrefix(importPath, module+"/")
}

// wingOf returns the wing of a package, the innermost one, and the package's floor in it; the top
// is
// 0. The floor is -1 if the package is on none.
func wingOf(pkg string) (dir string, floor int) {
	for d := range wings {
		if (pkg == d || strings.HasPrefix(pkg, d+"/")) && len(d) > len(dir) {
			dir = d
		}
	}
	name := cmp.Or(strings.TrimPrefix(strings.TrimPrefix(pkg, dir), "/"), ".")
	return dir, slices.IndexFunc(wings[dir].floors, func(floor string) bool {
		return slices.Contains(strings.Fields(floor), name)
	})
}

// among reports whether a list of packages has a package, or "x/..." for a directory around it.
func among(list []string, pkg string) bool {
	return slices.ContainsFunc(list, func(entry string) bool {
		dir, all := strings.CutSuffix(entry, "/...")
		return entry == pkg || all && (pkg == dir || strings.HasPrefix(pkg, dir+"/"))
	})
}

// mayImport reports whether a file of a package may import another package of ours, and why no
// more.
func mayImport(pkg, imported string, test bool) (may bool, why string) {
	own := exceptions[pkg]
	dir, floor := wingOf(pkg)
	w := wings[dir]
	why = cmp.Or(own.why, w.why)
	switch {
	case test && (imported == pkg || imported == "internal/invariant" || among(own.tests, imported) || among(w.tests, imported)):
		return true, why
	case among(own.not, imported):
		return false, why
	case among(own.may, imported) || among(w.may, imported):
		return true, why
	}
	otherDir, otherFloor := wingOf(imported)
	return dir != "" && dir == otherDir && otherFloor > floor, why
}

// TestImports: packages import what the table allows, and no more.
func TestImports(t *testing.T) {
	seen := map[string]bool{}
	for _, s := range sources(t) {
		seen[s.pkg] = true
		_, special := exceptions[s.pkg]
		if _, floor := wingOf(s.pkg); floor < 0 && !special {
			t.Errorf("%s: package %q is on no floor of a wing and is no exception", s.name, s.pkg)
			continue
		}
		for _, p := range s.imports() {
			pkg, ours := inModule(p)
			if !ours {
				continue
			}
			if may, why := mayImport(s.pkg, pkg, s.test); !may {
				t.Errorf("%s imports %s, which its row does not allow: %s", s.name, p, why)
			}
		}
	}
	for pkg := range exceptions {
		if !seen[pkg] {
			t.Errorf("the import table has an exception for %q, which does not exist", pkg)
		}
	}
	for dir, w := range wings {
		for name := range strings.FieldsSeq(strings.Join(w.floors, " ")) {
			if pkg := path.Join(dir, name); !seen[pkg] {
				t.Errorf("the import table has a floor with %q, which does not exist", pkg)
			}
		}
	}
}

// TestMayImport: the table refuses what would break the architecture.
func TestMayImport(t *testing.T) {
	for _, c := range []struct {
		pkg, imported string
		test, may     bool
	}{
		{"internal/store/service", "internal/store/engine", false, true},
		{"internal/store/engine", "internal/store/kv", false, true},
		{"internal/store/engine", "internal/store/service", false, false},
		{"internal/store/engine", "internal/store/expr", false, false},
		{"internal/store/service", "internal/store/kv", false, false},
		{"internal/store/kv", "internal/store/dynamo", false, false},
		{"internal/store/kv", "internal/store/expr", false, false},
		{"internal/store/dynamo", "internal/clock", false, false},
		{"internal/store/engine", "internal/front/wire", false, false},
		{"internal/store/engine", "internal/work/deliver", false, false},
		{"internal/front/wire", "internal/store/engine", false, false},
		{"internal/front/wire", "internal/store/engine", true, true},
		{"internal/front/wire", "internal/front/httploop", false, false},
		{"internal/front/httploop", "internal/store/service", false, false},
		{"internal/work/scheduler", "internal/store/engine", false, false},
		{"internal/work/scheduler", "internal/work/trigger", false, false},
		{"internal/work/deliver", "internal/work/scheduler", false, false},
		{"internal/work/lease", "", false, false},
		{"internal/work/lease", "", true, true},
		{"internal/work/trigger", "internal/sink/aws", false, false},
		{"internal/sink/nats", "internal/sink/kafka", false, false},
		{"internal/sink/nats", "internal/sink", false, true},
		{"internal/sink", "internal/sink/nats", false, false},
		{"internal/clock", "internal/skew", false, false},
		{"timeseries", "timeseries/archive", false, false},
		{"timeseries/archive", "timeseries", false, true},
		{"guard", "internal/store/engine", false, false},
		{"lifecycle", "", false, false},
		{"target", "internal/clock", false, false},
	} {
		if may, _ := mayImport(c.pkg, c.imported, c.test); may != c.may {
			t.Errorf("%s may import %q (in a test: %t): %t; want %t", c.pkg, c.imported, c.test, may, c.may)
		}
	}
}

// TestBannedImports: some packages from outside stay behind one door.
func TestBannedImports(t *testing.T) {
	for _, s := range sources(t) {
		for _, p := range s.imports() {
			for _, b := range bans {
				if p != b.path && !strings.HasPrefix(p, b.path+"/") || s.test && !b.tests {
					continue
				}
				if slices.Contains(b.except, s.pkg) || b.only != nil && !slices.Contains(b.only, s.pkg) {
					t.Errorf("%s imports %s: %s", s.name, p, b.why)
				}
			}
		}
	}
}

// TestTimeIsAnArgument: only the clock asks the machine for the time.
func TestTimeIsAnArgument(t *testing.T) {
	for _, s := range sources(t) {
		if s.test || slices.Contains(mayTellTime, s.pkg) || !slices.Contains(s.imports(), "time") {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			if sel, ok := n.(*ast.SelectorExpr); ok {
				if x, ok := sel.X.(*ast.Ident); ok && x.Name == "time" && slices.Contains(tellsTime, sel.Sel.Name) {
					t.Errorf("%s uses time.%s: time comes from the clock, or as an argument", s.name, sel.Sel.Name)
				}
			}
			return true
		})
	}
}

// TestNoFileForOneProcessor: the same files are compiled for amd64 and arm64, so that CI need not
// compile every pair of system and processor that a release has.
func TestNoFileForOneProcessor(t *testing.T) {
	for _, s := range sources(t) {
		for _, system := range []string{"linux", "darwin", "windows"} {
			var matches []bool
			for _, processor := range []string{"amd64", "arm64"} {
				context := build.Default
				context.GOOS, context.GOARCH = system, processor
				matched, err := context.MatchFile(path.Split(s.name))
				if err != nil {
					t.Fatal(err)
				}
				matches = append(matches, matched)
			}
			if matches[0] != matches[1] {
				t.Errorf("%s is compiled on %s for one processor only", s.name, system)
				break
			}
		}
	}
}

// TestPackageComments: every package says what it is, once.
func TestPackageComments(t *testing.T) {
	comments := map[string][]string{}
	for _, s := range sources(t) {
		if s.test {
			continue
		}
		if _, known := comments[s.pkg]; !known {
			comments[s.pkg] = nil
		}
		if s.file.Doc == nil {
			continue
		}
		text, name := s.file.Doc.Text(), s.file.Name.Name
		if name != "main" && !strings.HasPrefix(text, "Package "+name+" ") {
			t.Errorf("%s: the package comment should begin with %q", s.name, "Package "+name)
		}
		comments[s.pkg] = append(comments[s.pkg], s.name)
	}
	for pkg, files := range comments {
		if len(files) != 1 {
			t.Errorf("package %q has %d package comments: %v", pkg, len(files), files)
		}
	}
}
