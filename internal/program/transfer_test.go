package program

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"

	"github.com/mayflydb/mayfly/internal/testkit"
	"github.com/mayflydb/mayfly/internal/work/attr"
	"github.com/mayflydb/mayfly/internal/work/retry"
	"github.com/mayflydb/mayfly/internal/work/transfer"
)

// memoryServer starts a server in memory.
func memoryServer(t testing.TB) (*served, *dynamodb.Client) {
	t.Helper()
	s, err := startServer(t.TempDir(), nil, "--memory")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.kill)
	db, _ := s.clients()
	return s, db
}

// sideOf returns a table at an endpoint.
func sideOf(db *dynamodb.Client, table string) transfer.Side {
	return transfer.Side{DB: db, Table: table, Rate: transfer.NewRate(0), Retry: retry.Calls}
}

// thingsTable is a table with all that a copy keeps.
func thingsTable() transfer.Table {
	key := func(name string, kind types.KeyType) types.KeySchemaElement {
		return types.KeySchemaElement{AttributeName: &name, KeyType: kind}
	}
	define := func(name string, kind types.ScalarAttributeType) types.AttributeDefinition {
		return types.AttributeDefinition{AttributeName: &name, AttributeType: kind}
	}
	return transfer.Table{
		TableName: "things", BillingMode: types.BillingModePayPerRequest, TimeToLiveAttribute: "until",
		AttributeDefinitions:   []types.AttributeDefinition{define("by", "S"), define("pk", "B"), define("sk", "N")},
		KeySchema:              []types.KeySchemaElement{key("pk", "HASH"), key("sk", "RANGE")},
		GlobalSecondaryIndexes: []transfer.Index{{IndexName: "by-whom", KeySchema: []types.KeySchemaElement{key("by", "HASH")}, Projection: transfer.Projection{ProjectionType: "INCLUDE", NonKeyAttributes: []string{"l"}}}},
		LocalSecondaryIndexes:  []transfer.Index{{IndexName: "local", KeySchema: []types.KeySchemaElement{key("pk", "HASH"), key("by", "RANGE")}, Projection: transfer.Projection{ProjectionType: "ALL"}}},
	}
}

// everyType are items with values of all types.
var everyType = []string{
	`{"pk":{"B":"AA=="},"sk":{"N":"0"}}`,
	`{"pk":{"B":"AP8="},"sk":{"N":"-99999999999999999999999999999999999999"},"s":{"S":""},"b":{"B":""},"l":{"L":[]},"m":{"M":{}}}`,
	`{"pk":{"B":"AP8="},"sk":{"N":"12345678901234567890123456789012345678"},"by":{"S":"Zürich 🚲 \u0000\u2028 <&>"},"n":{"N":"0.00000000000000000000000000000000000000000000001"}}`,
	`{"pk":{"B":"AQID"},"sk":{"N":"1.5"},"ss":{"SS":["","a","é"]},"ns":{"NS":["-1","2.5","1000"]},"bs":{"BS":["","AA=="]},"t":{"BOOL":true},"f":{"BOOL":false},"nil":{"NULL":true}}`,
	`{"pk":{"B":"AQID"},"sk":{"N":"2"},"l":{"L":[{"S":"x"},{"N":"1"},{"L":[{"M":{"é \"\\":{"B":"AAECAwQ="}}}]},{"NULL":true}]},"m":{"M":{"deep":{"M":{"deeper":{"L":[{"BOOL":true}]}}}}},"until":{"N":"4102444800"}}`,
}

// put writes items given as JSON.
func put(t testing.TB, side transfer.Side, table transfer.Table, lines []string) {
	t.Helper()
	reader := table.NewReader()
	for some := range slices.Chunk(lines, transfer.BatchMax) {
		var writes []types.WriteRequest
		for _, line := range some {
			if _, err := reader.Check([]byte(line)); err != nil {
				t.Fatalf("%s: %v", line, err)
			}
			item, _, err := reader.Read([]byte(line))
			if err != nil {
				t.Fatal(err)
			}
			writes = append(writes, transfer.Put(item))
		}
		if err := side.Write(t.Context(), writes); err != nil {
			t.Fatal(err)
		}
	}
}

// contents returns all items in canonical form, in order.
func contents(t testing.TB, db *dynamodb.Client, table string) (all []string) {
	t.Helper()
	side := sideOf(db, table)
	d, err := side.Describe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	reader := d.NewReader()
	err = transfer.Scan{Side: side, Segments: 1, Consistent: true}.Segment(t.Context(), 0, nil, func(items []attr.Item, _ attr.Item) error {
		for _, item := range items {
			item, _, err := reader.Read(transfer.AppendItem(nil, item))
			if err != nil {
				return err
			}
			all = append(all, string(transfer.AppendItem(nil, item)))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(all)
	return all
}

// same compares two tables item by item.
func same(t testing.TB, what string, got, want []string) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%s: %d items, want %d", what, len(got), len(want))
	}
	for i := range min(len(got), len(want)) {
		if got[i] != want[i] {
			t.Errorf("%s: %.200s, want %.200s", what, got[i], want[i])
			return
		}
	}
}

// runTransfer runs a command in this process, and returns its report.
func runTransfer(ctx context.Context, args ...string) (r transferReport, log string, code int) {
	var out, wrong bytes.Buffer
	code = run(ctx, append(args, "--json"), &out, &wrong)
	if code == exitOK {
		if err := json.Unmarshal(out.Bytes(), &r); err != nil {
			return r, err.Error(), exitError
		}
	}
	return r, wrong.String(), code
}

func mustTransfer(t testing.TB, args ...string) transferReport {
	t.Helper()
	r, log, code := runTransfer(t.Context(), args...)
	if code != exitOK {
		t.Fatalf("%s: exit code %d: %s", args[0], code, log)
	}
	return r
}

// Every item of every type, and the description of the table, survive an export, an import and a copy.
func TestExportImport(t *testing.T) {
	t.Parallel()
	a, from := memoryServer(t)
	b, to := memoryServer(t)
	side := sideOf(from, "things")
	if err := side.Create(t.Context(), thingsTable()); err != nil {
		t.Fatal(err)
	}
	put(t, side, thingsTable(), everyType)
	want := contents(t, from, "things")
	dir, files := t.TempDir(), t.TempDir()
	if r := mustTransfer(t, "export", "--endpoint", a.url, "--table", "things", "--to", dir, "--consistent"); r.Items != int64(len(everyType)) {
		t.Errorf("%+v", r)
	}
	left, err := filepath.Glob(filepath.Join(dir, "AWSDynamoDB", "*", "progress", "*"))
	if err != nil || len(left) > 0 {
		t.Errorf("progress is left: %v, %v", left, err)
	}
	progress := filepath.Join(files, "progress.json")
	mustTransfer(t, "import", "--endpoint", b.url, "--table", "imported", "--from", dir, "--progress", progress)
	same(t, "the import", contents(t, to, "imported"), want)
	mustTransfer(t, "copy", "--endpoint", a.url, "--table", "things", "--to-endpoint", b.url, "--to-table", "copied", "--progress", progress, "--segments", "3")
	same(t, "the copy", contents(t, to, "copied"), want)
	mustTransfer(t, "copy", "--endpoint", b.url, "--table", "copied", "--to-table", "imported", "--into-existing", "--progress", progress)
	same(t, "the copy over the import", contents(t, to, "imported"), want)
	same(t, "the source", contents(t, from, "things"), want)
	if left, err := os.ReadDir(files); err != nil || len(left) > 0 {
		t.Errorf("progress is left: %v, %v", left, err)
	}
	for _, name := range []string{"imported", "copied"} {
		d, err := sideOf(to, name).Describe(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		d.TableName = "things"
		got, _ := json.Marshal(d.Table)
		wanted, _ := json.Marshal(thingsTable())
		if string(got) != string(wanted) {
			t.Errorf("%s is\n%s, want\n%s", name, got, wanted)
		}
	}
}

// Amazon's export in its documented form can be imported, and its incremental export after it.
func TestImportAmazons(t *testing.T) {
	t.Parallel()
	s, db := memoryServer(t)
	flags := []string{"import", "--endpoint", s.url, "--table", "catalog", "--progress", filepath.Join(t.TempDir(), "p"), "--from"}
	mustTransfer(t, append(flags, "../exportfile/testdata/full", "--key", "Id:N")...)
	bike := `{"Color":{"L":[{"S":"Red"},{"S":"Black"}]},"Id":{"N":"205"},"Photo":{"B":"AAECAw=="},"Price":{"N":"500.5"},"Title":{"S":"20-Bike-205"}}`
	parts := `{"Id":{"N":"301"},"Parts":{"M":{"bell":{"NULL":true},"wheels":{"N":"2"}}},"Title":{"S":"Zürich — 18-Bike-301"}}`
	same(t, "the full export", contents(t, db, "catalog"), []string{
		`{"Authors":{"SS":["Author1","Author2"]},"Dimensions":{"S":"8.5 x 11.0 x 1.5"},"Id":{"N":"103"},"InPublication":{"BOOL":false},"Title":{"S":"Book 103 Title"}}`, bike, parts,
	})
	if r := mustTransfer(t, append(flags, "../exportfile/testdata/incremental", "--into-existing")...); r.Deleted != 1 {
		t.Errorf("%+v", r)
	}
	same(t, "the incremental export", contents(t, db, "catalog"), []string{
		`{"Id":{"N":"103"},"Title":{"S":"Book 103, second edition"}}`, parts, `{"Id":{"N":"404"},"Title":{"S":"Lamp 404"}}`,
	})
}

func TestImportCSV(t *testing.T) {
	t.Parallel()
	s, db := memoryServer(t)
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a.csv"), []byte("7;Ada;\"London; \"\"EC1\"\"\"\n8;Bo;\n7;Ada;Paris\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	mustTransfer(t, "import", "--endpoint", s.url, "--table", "people", "--from", dir, "--format", "csv", "--delimiter", ";", "--header", "id,name,town", "--key", "id:N", "--sort", "name:S", "--progress", filepath.Join(t.TempDir(), "p"))
	same(t, "the table", contents(t, db, "people"), []string{`{"id":{"N":"7"},"name":{"S":"Ada"},"town":{"S":"Paris"}}`, `{"id":{"N":"8"},"name":{"S":"Bo"},"town":{"S":""}}`})
}

// A copy to another implementation and back has every item. What that implementation lacks is said.
func TestCopyDynalite(t *testing.T) {
	t.Parallel()
	other := testkit.Dynalite(t)
	s, db := memoryServer(t)
	side := sideOf(db, "things")
	if err := side.Create(t.Context(), thingsTable()); err != nil {
		t.Fatal(err)
	}
	lines := everyType[:1:1]
	for _, line := range everyType[1:] {
		lines = append(lines, strings.NewReplacer(`"b":{"B":""},`, "", `["","a"`, `["b","a"`, `["","AA=="]`, `["AQ==","AA=="]`, `"s":{"S":""},`, "").Replace(line)) // which dynalite refuses, as DynamoDB did once
	}
	put(t, side, thingsTable(), lines)
	progress := filepath.Join(t.TempDir(), "p")
	_, log, code := runTransfer(t.Context(), "copy", "--endpoint", s.url, "--table", "things", "--to-endpoint", other, "--progress", progress)
	if want := "has no time to live: the items of things do not expire there by \"until\""; code != exitOK || !strings.Contains(log, want) {
		t.Fatalf("exit code %d: %s", code, log)
	}
	mustTransfer(t, "copy", "--endpoint", other, "--table", "things", "--to-endpoint", s.url, "--to-table", "back", "--progress", progress)
	same(t, "the copy of the copy", contents(t, db, "back"), contents(t, db, "things"))
	dir := t.TempDir()
	mustTransfer(t, "export", "--endpoint", other, "--table", "things", "--to", dir)
	mustTransfer(t, "import", "--endpoint", s.url, "--table", "imported", "--from", dir, "--progress", progress)
	same(t, "the import of the copy's export", contents(t, db, "imported"), contents(t, db, "things"))
}

// An export in a bucket can be imported. mayfly hands both over to mayfly-full.
func TestExportToBucket(t *testing.T) {
	t.Parallel()
	s, db := memoryServer(t)
	side := sideOf(db, "things")
	if err := side.Create(t.Context(), thingsTable()); err != nil {
		t.Fatal(err)
	}
	put(t, side, thingsTable(), everyType)
	backend := s3mem.New()
	if err := backend.CreateBucket("exports"); err != nil {
		t.Fatal(err)
	}
	cloud := httptest.NewServer(gofakes3.New(backend, gofakes3.WithLogger(gofakes3.DiscardLog())).Server())
	t.Cleanup(cloud.Close)
	command := func(args ...string) {
		t.Helper()
		c := exec.Command("mayfly-small", append(args, "--endpoint", s.url)...)
		c.Dir = t.TempDir()
		c.Env = append(os.Environ(), "AWS_ENDPOINT_URL_S3="+cloud.URL, "AWS_ACCESS_KEY_ID=any", "AWS_SECRET_ACCESS_KEY=any", "AWS_REGION=us-east-1")
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	command("export", "--table", "things", "--to", "s3://exports/daily")
	command("import", "--table", "imported", "--from", "s3://exports/daily")
	same(t, "the import", contents(t, db, "imported"), contents(t, db, "things"))
	page, err := backend.ListBucket("exports", nil, gofakes3.ListBucketPage{})
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range page.Contents {
		if !strings.HasSuffix(o.Key, "manifest-summary.json") {
			continue
		}
		object, err := backend.GetObject("exports", o.Key, nil)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(object.Contents)
		if folder := strings.TrimSuffix(o.Key, "manifest-summary.json"); err != nil || !strings.Contains(string(text), `"s3Bucket":"exports","s3Prefix":"daily"`) ||
			!strings.Contains(string(text), `"manifestFilesS3Key":"`+folder+`manifest-files.json"`) {
			t.Errorf("%v: %s", err, text)
		}
	}
}

// cutter is a proxy before a server that can do something at a call.
type cutter struct {
	*httptest.Server
	mu     sync.Mutex
	counts map[string]int
	at     func(operation string, n int) (refuse bool) // n counts from 1
}

// newCutter returns a cutter before a server. Where at reports true, the connection is cut.
func newCutter(t testing.TB, url string) *cutter {
	g := &cutter{counts: make(map[string]int), at: func(string, int) bool { return false }}
	g.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		operation := strings.TrimPrefix(r.Header.Get("X-Amz-Target"), "DynamoDB_20120810.")
		g.mu.Lock()
		g.counts[operation]++
		refuse := g.at(operation, g.counts[operation])
		g.mu.Unlock()
		if refuse {
			panic(http.ErrAbortHandler)
		}
		out, err := http.NewRequestWithContext(r.Context(), r.Method, url+r.URL.Path, r.Body)
		if err != nil {
			panic(err)
		}
		out.Header, out.ContentLength = r.Header.Clone(), r.ContentLength
		answer, err := http.DefaultTransport.RoundTrip(out)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		defer answer.Body.Close()
		maps.Copy(w.Header(), answer.Header)
		w.WriteHeader(answer.StatusCode)
		_, _ = io.Copy(w, answer.Body)
	}))
	t.Cleanup(g.Close)
	return g
}

// set changes what happens at calls, and counts anew.
func (g *cutter) set(at func(operation string, n int) bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.counts, g.at = make(map[string]int), at
}

// An export, an import and a copy that are interrupted, killed or lose their endpoint continue where they
// were, and the result has every item.
func TestTransferContinues(t *testing.T) {
	t.Parallel()
	s, db := memoryServer(t)
	side := sideOf(db, "things")
	if err := side.Create(t.Context(), thingsTable()); err != nil {
		t.Fatal(err)
	}
	var lines []string
	for i := range 4000 { // 12 MB: a dozen pages, and 160 batches
		lines = append(lines, fmt.Sprintf(`{"pk":{"B":"%04d"},"sk":{"N":"%d"},"v":{"S":%q}}`, i%100, i, strings.Repeat("v", 3000)))
	}
	put(t, side, thingsTable(), lines)
	want := contents(t, db, "things")
	full := t.TempDir()
	mustTransfer(t, "export", "--endpoint", s.url, "--table", "things", "--to", full)
	for _, c := range []struct {
		command, operation string
		n                  int
	}{{"export", "Scan", 8}, {"import", "BatchWriteItem", 130}, {"copy", "Scan", 8}} {
		for _, how := range []string{"interrupt", "vanish", "kill"} {
			t.Run(c.command+" "+how, func(t *testing.T) {
				g := newCutter(t, s.url)
				dir := t.TempDir()
				table := c.command + "-" + how
				args := map[string][]string{
					"export": {"export", "--table", "things", "--to", dir, "--file-mb", "1"},
					"import": {"import", "--table", table, "--from", full, "--progress", filepath.Join(dir, "progress.json")},
					"copy":   {"copy", "--table", "things", "--to-table", table, "--progress", filepath.Join(dir, "progress.json")},
				}[c.command]
				args = append(args, "--endpoint", g.URL, "--segments", "2", "--patience", "50ms")
				ctx, stop := context.WithCancel(t.Context())
				defer stop()
				var log string
				var code int
				switch how {
				case "interrupt":
					g.set(func(operation string, n int) bool {
						if operation == c.operation && n >= c.n {
							stop()
						}
						return false
					})
					_, log, code = runTransfer(ctx, args...)
					if code != exitError || !strings.Contains(log, "mayfly: interrupted after ") || !strings.HasSuffix(log, "  next: run the same command again to continue\n") {
						t.Fatalf("exit code %d: %s", code, log)
					}
				case "vanish":
					g.set(func(operation string, n int) bool { return operation == c.operation && n >= c.n })
					_, log, code = runTransfer(ctx, args...)
					if code != exitError || !strings.Contains(log, "mayfly: stopped after ") || !strings.Contains(log, c.operation+": ") || !strings.HasSuffix(log, "  next: run the same command again to continue\n") {
						t.Fatalf("exit code %d: %s", code, log)
					}
				case "kill":
					process := exec.Command("mayfly", args...)
					var once sync.Once
					g.set(func(operation string, n int) bool {
						if operation == c.operation && n >= c.n {
							once.Do(func() { _ = process.Process.Kill() })
							return true
						}
						return false
					})
					if err := process.Run(); err == nil || process.ProcessState.Exited() {
						t.Fatalf("it was not killed: %v", err)
					}
				}
				g.set(func(string, int) bool { return false })
				r := mustTransfer(t, args...)
				if !r.Continued || r.Items != int64(len(want)) {
					t.Errorf("%+v", r)
				}
				g.mu.Lock()
				if calls := g.counts[c.operation]; calls == 0 || c.command == "import" && calls > 100 {
					t.Errorf("the second run made %d calls of %s", calls, c.operation)
				}
				g.mu.Unlock()
				if c.command == "export" {
					mustTransfer(t, "import", "--endpoint", s.url, "--table", table, "--from", dir, "--progress", filepath.Join(t.TempDir(), "p"))
				}
				same(t, table, contents(t, db, table), want)
				if _, err := db.DeleteTable(t.Context(), &dynamodb.DeleteTableInput{TableName: aws.String(table)}); err != nil {
					t.Error(err)
				}
			})
		}
	}
	same(t, "the source", contents(t, db, "things"), want)
}
