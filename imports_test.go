package mayfly_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/mayflydb/mayfly"

// layer is a row of the import table.
type layer struct {
	may   []string // packages of ours that it imports
	tests []string // those that only its tests do, besides
	why   string   // it imports no more
}

// sinkWhy is why the packages of the brokers import no more.
const sinkWhy = "a sink is a target and knows of nothing else of ours; only the program puts it to use, so a user of the library links no broker's client"

// brokerWhy is why the packages that read brokers are not one.
const brokerWhy = "who ingests files does not link a broker's client"

// layers is the architecture: which package of ours imports which. Imports never climb. A package that is missing here fails the test, and so does
// a row without a package.
var layers = map[string]layer{
	"cmd/mayfly": {
		may: []string{
			"", "guard", "guard/strict", "internal/front/admin", "internal/bench", "internal/clock", "internal/command", "internal/work/cron", "internal/work/deliver", "internal/demo", "internal/work/lease", "internal/work/reminder",
			"internal/work/resolve", "internal/work/scheduler", "internal/front/sigv4", "internal/sink/targetfile", "internal/work/trigger", "internal/work/host", "lifecycle", "planner",
			"target", "timeseries", "timeseries/archive", "timeseries/archive/bucket", "timeseries/fromkafka", "timeseries/fromkinesis", "timeseries/fromnats",
		},
		tests: []string{"conformance", "internal/testkit", "internal/brokertest"},
		why:   "main is wiring: it uses the library as anyone would",
	},
	"deploy": {
		tests: []string{"", "guard", "internal/front/admin", "internal/work/lease", "planner", "target"},
		why:   "templates are text; their test holds them against what guard does",
	},
	"tools/mutate": {
		may: []string{"internal/clock"},
		why: "it edits and tests the source from outside; no user links it",
	},
	"tools/climb": {
		why: "it reads the source from outside; no user links it",
	},
	"tools/picture": {
		may: []string{"internal/clock"},
		why: "it runs a program and draws what the program prints; no user links it",
	},
	"cmd/mayfly-lambda": {
		may:   []string{"guard", "internal/clock"},
		tests: []string{"", "internal/sink/aws/lambdatest"},
		why:   "main is wiring: it reads the environment, and guard does the rest",
	},
	"": {
		may: []string{
			"internal/front/admin", "internal/clock", "internal/work/deliver", "internal/store/engine", "internal/front/httploop", "internal/store/kv", "internal/work/lease", "internal/work/resolve",
			"internal/work/reminder", "internal/front/routes", "internal/work/scheduler", "internal/store/service", "internal/front/sigv4", "internal/work/trigger", "internal/front/wire", "target",
		},
		tests: []string{"", "conformance", "internal/store/dynamo", "internal/faulttest", "internal/work/lease", "lifecycle", "target"},
		why:   "the root is wiring: what a request means is decided below it, and the toolkits are built on it",
	},
	"planner": {
		tests: []string{"guard"},
		why:   "the planner is arithmetic over a workload and a price table; whoever runs it needs nothing else of ours",
	},
	"conformance": {
		tests: []string{""},
		why:   "the suite runs against any endpoint, so it knows clients of the AWS SDK only",
	},
	"guard": {
		may:   []string{"internal/clock", "internal/work/deliver", "internal/store/dynamo", "internal/work/ensure", "internal/invariant", "internal/work/lease", "internal/skew", "target"},
		tests: []string{"", "conformance", "internal/faulttest", "internal/testkit"},
		why:   "exact expiry for tables elsewhere runs at any endpoint, so it knows clients of the AWS SDK only; of what is ours it needs how a number is read",
	},
	"guard/strict": {
		may:   []string{"internal/clock", "internal/constraint", "internal/store/dynamo", "internal/store/expr", "internal/front/sigv4", "internal/skew"},
		tests: []string{"", "conformance", "internal/testkit"},
		why:   "strict reads work on the requests and answers of any endpoint; what an expression means is expr's",
	},
	"timeseries": {
		may:   []string{"internal/clock", "internal/constraint", "internal/work/ensure"},
		tests: []string{"", "internal/testkit"},
		why:   "series of samples are kept at any endpoint, so the package knows clients of the AWS SDK only",
	},
	"timeseries/archive": {
		may:   []string{"internal/clock", "internal/work/deliver", "internal/work/lease", "target", "timeseries"},
		tests: []string{"", "guard"},
		why:   "files of samples stand beside a series at any endpoint; who does without them does not link Parquet",
	},
	"timeseries/fromkafka": {
		may:   []string{"internal/clock", "timeseries"},
		tests: []string{"internal/brokertest"},
		why:   brokerWhy,
	},
	"timeseries/fromkinesis": {
		may:   []string{"internal/clock", "internal/work/lease", "timeseries"},
		tests: []string{"internal/testkit", "internal/brokertest"},
		why:   brokerWhy,
	},
	"timeseries/fromnats": {
		may:   []string{"internal/clock", "timeseries"},
		tests: []string{"internal/brokertest"},
		why:   brokerWhy,
	},
	"internal/brokertest": {
		may: []string{"", "timeseries"},
		why: "what the tests of the brokers' readers share knows no broker; only tests use it",
	},
	"timeseries/archive/bucket": {
		may:   []string{"timeseries/archive"},
		tests: []string{"", "internal/front/sigv4", "target", "timeseries"},
		why:   "who keeps an archive in a directory does not link S3",
	},
	"lifecycle": {
		may: []string{
			"internal/clock", "internal/constraint", "internal/work/cron", "internal/work/declare", "internal/work/deliver", "internal/store/dynamo", "internal/work/ensure", "internal/store/expr", "internal/work/lease",
			"internal/work/resolve", "internal/work/template", "target",
		},
		tests: []string{"", "internal/testkit"},
		why:   "lifecycles run at any endpoint, so they know clients of the AWS SDK only; what a condition means is expr's",
	},
	"target": {
		why: "what a delivery is and where it can go; whoever writes a target imports this and nothing else of ours",
	},
	"internal/sink": {
		may: []string{"target"},
		why: "what the brokers' sinks share knows deliveries, and no broker",
	},
	"internal/sink/nats": {
		may:   []string{"internal/sink", "target"},
		tests: []string{"internal/sink/sinktest"},
		why:   sinkWhy,
	},
	"internal/sink/kafka": {
		may:   []string{"internal/sink", "target"},
		tests: []string{"internal/sink/sinktest"},
		why:   sinkWhy,
	},
	"internal/sink/aws": {
		may:   []string{"internal/constraint", "target"},
		tests: []string{"internal/front/sigv4", "internal/sink/aws/lambdatest"},
		why:   sinkWhy,
	},
	"internal/sink/aws/lambdatest": {
		why: "a runtime for Lambda functions knows nothing of ours; only tests use it",
	},
	"internal/sink/rabbitmq": {
		may:   []string{"internal/sink", "target"},
		tests: []string{"internal/sink/sinktest"},
		why:   sinkWhy,
	},
	"internal/sink/sinktest": {
		may: []string{"target"},
		why: "what the sinks' tests share knows deliveries, and no sink; only tests use it",
	},
	"internal/sink/targetfile": {
		may: []string{"internal/sink", "internal/sink/aws", "internal/sink/kafka", "internal/sink/nats", "internal/sink/rabbitmq", "target"},
		why: "the file names kinds of targets, and what each of them makes of its settings is its own business",
	},
	"internal/work/deliver": {
		may:   []string{"internal/clock", "internal/work/ensure", "internal/invariant", "internal/work/lease", "target"},
		tests: []string{"", "internal/faulttest"},
		why:   "what brings records and jobs to targets runs at any endpoint, so it knows clients of the AWS SDK only",
	},
	"internal/work/scheduler": {
		may:   []string{"internal/clock", "internal/constraint", "internal/work/cron", "internal/work/deliver", "internal/work/ensure", "internal/work/lease", "target"},
		tests: []string{"internal/store/engine", "internal/store/kv", "internal/store/service", "internal/front/wire"},
		why:   "schedules are items of any endpoint: the scheduler knows clients of the AWS SDK only, and has not heard of HTTP's routes",
	},
	"internal/work/lease": {
		may:   []string{"internal/clock", "internal/work/ensure"},
		tests: []string{""},
		why:   "leases are kept in a table at any endpoint",
	},
	"internal/work/resolve": {
		may:   []string{"internal/work/deliver", "internal/work/ensure", "target"},
		tests: []string{""},
		why:   "which target an ARN leads to follows from mappings; what goes there is deliver's",
	},
	"internal/work/ensure": {
		may:   []string{"internal/clock"},
		tests: []string{""},
		why:   "tables are made at any endpoint",
	},
	"internal/demo": {
		may:   []string{"internal/clock"},
		tests: []string{""},
		why:   "the demo is a client like any other, so it could run elsewhere",
	},
	"internal/bench": {
		may: []string{"internal/store/kv"},
		why: "the bench is a client of any endpoint; the bare store is what it compares with",
	},
	"internal/front/admin": {
		may: []string{"internal/clock"},
		why: "health, metrics and the clock are handed to it as functions",
	},
	"internal/front/httploop": {
		may: []string{"internal/clock", "internal/front/wire"},
		why: "the loop reads requests and writes answers; what they mean is wire's, and what it does not know is net/http's",
	},
	"internal/front/wire": {
		may:   []string{"internal/store/dynamo", "internal/store/service", "internal/front/sigv4"},
		tests: []string{"internal/store/engine"},
		why:   "wire has not heard of the engine: it turns HTTP into the service's inputs and back",
	},
	"internal/front/sigv4": {
		may: []string{"internal/store/dynamo"},
		why: "a signature is verified before anything is understood",
	},
	"internal/skew": {
		why: "arithmetic on headers and instants: it has no clock of its own",
	},
	"internal/store/service": {
		may:   []string{"internal/constraint", "internal/store/dynamo", "internal/store/engine", "internal/store/expr"},
		tests: []string{"internal/clock"},
		why:   "the service has not heard of HTTP: it gives each operation its meaning",
	},
	"internal/work/trigger": {
		may:   []string{"internal/clock", "internal/constraint", "internal/work/declare", "internal/work/deliver", "internal/store/dynamo", "internal/work/ensure", "internal/work/lease", "internal/work/pattern", "target"},
		tests: []string{"", "internal/sink/aws", "internal/sink/aws/lambdatest", "internal/sink/nats", "internal/testkit"},
		why:   "triggers run at any endpoint; of what is ours in JSON they need only how a string is quoted",
	},
	"internal/front/routes": {
		may: []string{"internal/work/scheduler", "internal/work/trigger", "internal/front/wire"},
		why: "it puts the operations of others into the wire's tables, and has none of its own",
	},
	"internal/work/host": {
		may: []string{
			"internal/front/admin", "internal/work/deliver", "internal/work/lease", "internal/work/reminder", "internal/work/resolve", "internal/front/routes", "internal/work/scheduler", "internal/front/sigv4",
			"internal/work/trigger", "internal/front/wire", "target",
		},
		tests: []string{"", "internal/clock"},
		why:   "a worker is wiring beside an endpoint that is elsewhere, so it knows no engine",
	},
	"internal/work/reminder": {
		may:   []string{"internal/clock", "internal/constraint", "internal/work/declare", "internal/work/deliver", "internal/work/ensure", "internal/work/lease", "internal/work/template", "target"},
		tests: []string{"", "internal/testkit"},
		why:   "a reminder is an item that expires, at any endpoint",
	},
	"internal/work/template": {
		may: []string{"internal/store/dynamo"},
		why: "what a template is filled in from is an item of any endpoint; of what is ours in JSON it needs only how a string is quoted",
	},
	"internal/work/declare": {
		why: "a file is read without knowing what is declared in it",
	},
	"internal/work/pattern": {
		why: "patterns are matched against JSON, whoever wrote it",
	},
	"internal/store/expr": {
		may: []string{"internal/store/dynamo"},
		why: "expressions are evaluated over items, wherever those come from",
	},
	"internal/store/engine": {
		may:   []string{"internal/clock", "internal/store/due", "internal/store/dynamo", "internal/invariant", "internal/store/keyenc", "internal/store/kv"},
		tests: []string{"internal/faulttest"},
		why:   "the engine takes compiled predicates: it knows neither JSON nor the text of an expression",
	},
	"internal/store/keyenc": {
		may: []string{"internal/store/dynamo"},
		why: "the key codec is pure functions over values",
	},
	"internal/store/kv": {
		may: []string{"internal/clock", "internal/invariant"},
		why: "storage holds bytes, not items",
	},
	"internal/store/due": {
		may:   []string{"internal/clock", "internal/invariant"},
		tests: []string{"internal/faulttest"},
		why:   "what is due is its source's to know",
	},
	"internal/constraint":   {why: "the words for a broken constraint are the same in every API"},
	"internal/testkit":      {why: "what tests share knows of nothing that they test"},
	"internal/faulttest":    {may: []string{"internal/invariant"}, why: "it checks tests by the names of their faults"},
	"internal/command":      {why: "how a command line is read has nothing to do with what it is about"},
	"internal/work/cron":    {why: "schedule expressions are pure arithmetic: the time is an argument"},
	"internal/store/dynamo": {why: "the vocabulary imports nothing of ours"},
	"internal/clock":        {why: "time depends on nothing of ours"},
	"internal/invariant":    {why: "checks and faults are used by all and know none"},
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
	{path: "github.com/nats-io", only: []string{"internal/sink/nats", "internal/bench", "internal/work/trigger", "cmd/mayfly", "timeseries/fromnats"}, tests: true, why: sinkWhy},
	{path: "github.com/nats-io", only: []string{"internal/sink/nats", "internal/bench", "timeseries/fromnats"}, why: sinkWhy + "; the bench reads what was delivered"},
	{path: "github.com/nats-io/nats-server", only: []string{}, why: "servers run in tests only: linked, it would make the program half as large again"},
	{path: "github.com/twmb/franz-go", only: []string{"internal/sink/kafka", "timeseries/fromkafka", "cmd/mayfly"}, tests: true, why: sinkWhy},
	{path: "github.com/twmb/franz-go", only: []string{"internal/sink/kafka", "timeseries/fromkafka"}, why: sinkWhy},
	{path: "github.com/parquet-go", only: []string{"timeseries/archive"}, tests: true, why: "only who keeps an archive links Parquet"},
	{path: "github.com/aws/aws-sdk-go-v2/service/s3", only: []string{"timeseries/archive/bucket"}, tests: true, why: "only who keeps an archive in a bucket links S3"},
	{path: "github.com/johannesboyne", only: []string{}, why: "S3 is elsewhere; a server of its API runs in tests only"},
	{path: "github.com/rabbitmq", only: []string{"internal/sink/rabbitmq"}, tests: true, why: sinkWhy},
	{path: "C", except: slices.Collect(maps.Keys(layers)), tests: true, why: "everything works without cgo"},
	{path: "testing", only: []string{"conformance", "internal/faulttest", "internal/testkit", "internal/brokertest"}, why: "tests do not ship, and only tests import what is theirs"},
	{path: "golang.org/x/tools", only: []string{}, tests: true, why: "tools have a module of their own"},
}

// belowWire are the packages that no protocol reaches.
var belowWire = []string{
	"internal/store/service", "internal/constraint", "internal/store/expr", "internal/store/engine", "internal/store/keyenc", "internal/store/kv", "internal/store/due", "internal/store/dynamo",
	"internal/clock", "internal/invariant", "internal/work/cron",
}

// tellsTime are the functions that ask the machine for the time or wait for it.
var tellsTime = []string{"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "NewTimer", "NewTicker", "Tick"}

// mayTellTime are the packages that use them outside tests: the clock, main, the suite and the bench, which wait for endpoints elsewhere, the root,
// which hands wire the wall clock by which signatures age, and what only tests import.
var mayTellTime = []string{"internal/clock", "cmd/mayfly", "conformance", "internal/bench", "", "internal/brokertest"}

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

// imports gives the paths that a file imports.
func (s source) imports() (paths []string) {
	for _, spec := range s.file.Imports {
		p, err := strconv.Unquote(spec.Path.Value)
		if err == nil {
			paths = append(paths, p)
		}
	}
	return paths
}

// inModule gives the directory of a package of ours.
func inModule(importPath string) (pkg string, ours bool) {
	if importPath == module {
		return "", true
	}
	return strings.CutPrefix(importPath, module+"/")
}

// TestImports: packages import what the table says, and no more.
func TestImports(t *testing.T) {
	seen := map[string]bool{}
	for _, s := range sources(t) {
		seen[s.pkg] = true
		row, known := layers[s.pkg]
		if !known {
			t.Errorf("%s: package %q has no row in the import table", s.name, s.pkg)
			continue
		}
		for _, p := range s.imports() {
			pkg, ours := inModule(p)
			if ours && !slices.Contains(row.may, pkg) && !(s.test && (slices.Contains(row.tests, pkg) || pkg == s.pkg || pkg == "internal/invariant")) {
				t.Errorf("%s imports %s, which its row does not allow: %s", s.name, p, row.why)
			}
		}
	}
	for pkg := range layers {
		if !seen[pkg] {
			t.Errorf("the import table has a row for %q, which does not exist", pkg)
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
