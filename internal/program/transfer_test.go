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
	for chunk := range slices.Chunk(lines, transfer.BatchMax) {
		var writes []types.WriteRequest
		for _, line := range chunk {
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
	things := thingsTable()
	things.GlobalSecondaryIndexes = append([]transfer.Index{{IndexName: "by-all", KeySchema: []types.KeySchemaElement{
		{AttributeName: aws.String("by"), KeyType: "HASH"}, {AttributeName: aws.String("sk"), KeyType: "HASH"}, {AttributeName: aws.String("pk"), KeyType: "RANGE"},
	}, Projection: transfer.Projection{ProjectionType: "KEYS_ONLY"}}}, things.GlobalSecondaryIndexes...)
	if err := side.Create(t.Context(), things); err != nil {
		t.Fatal(err)
	}
	put(t, side, things, everyType)
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
		wanted, _ := json.Marshal(things)
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
	for i := range 3000 { // 6 MB: six pages, and 120 batches or a few more
		lines = append(lines, fmt.Sprintf(`{"pk":{"B":"%04d"},"sk":{"N":"%d"},"v":{"S":%q}}`, i%100, i, strings.Repeat("v", 2000)))
	}
	put(t, side, thingsTable(), lines)
	want := contents(t, db, "things")
	full := t.TempDir()
	mustTransfer(t, "export", "--endpoint", s.url, "--table", "things", "--to", full)
	// Each run ends at the n-th call of an operation. By then it has saved progress, however slow the machine
	// is. An export and a copy read two segments, and save a page before the next call for the segment. An
	// import makes two calls at a time and saves behind 50 batches: the call that saves ends before the other
	// slot gets past 100 batches, where it saves too.
	for number, c := range []struct {
		command, operation string
		n                  int
	}{{"export", "Scan", 4}, {"import", "BatchWriteItem", 2*saveEvery + 5}, {"copy", "Scan", 4}} {
		for i, how := range []string{"interrupt", "vanish", "kill"} {
			if testing.Short() && i != number {
				continue // each command once, and each way once
			}
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
					var wrong bytes.Buffer
					process.Stderr = &wrong
					reached, killed := make(chan struct{}), make(chan struct{})
					var once sync.Once
					g.set(func(operation string, n int) bool {
						if operation != c.operation || n < c.n {
							return false
						}
						once.Do(func() { close(reached) })
						<-killed
						return true
					})
					if err := process.Start(); err != nil {
						t.Fatal(err)
					}
					ended := make(chan error, 1)
					go func() { ended <- process.Wait() }()
					select {
					case <-reached:
					case err := <-ended:
						t.Fatalf("it ended before call %d: %v: %s", c.n, err, &wrong)
					}
					_ = process.Process.Kill()
					close(killed)
					<-ended
				}
				g.set(func(string, int) bool { return false })
				r := mustTransfer(t, args...)
				if !r.Continued || r.Items != int64(len(want)) {
					t.Errorf("%+v", r)
				}
				g.mu.Lock()
				most := 45 // of an import that has saved its last batches
				if how == "kill" {
					most = 95
				}
				if calls := g.counts[c.operation]; calls == 0 || c.command == "import" && calls > most {
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

// sumsOf replaces the checksums of an export's manifests, so that they fit what a test has changed.
func sumsOf(t *testing.T, folder string) {
	t.Helper()
	for _, name := range []string{"manifest-summary", "manifest-files"} {
		if err := os.Remove(filepath.Join(folder, name+".checksum")); err != nil {
			t.Fatal(err)
		}
	}
}

// replace changes a text in a file.
func replace(t *testing.T, path, old, new string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil || !bytes.Contains(text, []byte(old)) {
		t.Fatalf("%s has no %q: %v", path, old, err)
	}
	if err := os.WriteFile(path, bytes.ReplaceAll(text, []byte(old), []byte(new)), 0o600); err != nil {
		t.Fatal(err)
	}
}

// Each wrong input is an exact error with a next step. Neither the table nor the source changes, and no
// table appears.
func TestTransferRefusals(t *testing.T) {
	t.Parallel()
	s, db := memoryServer(t)
	side := sideOf(db, "things")
	if err := side.Create(t.Context(), thingsTable()); err != nil {
		t.Fatal(err)
	}
	put(t, side, thingsTable(), everyType)
	numbers, err := transfer.Keyed("pk", "N", "", "")
	if err != nil {
		t.Fatal(err)
	}
	if err := sideOf(db, "numbers").Create(t.Context(), numbers); err != nil {
		t.Fatal(err)
	}
	put(t, sideOf(db, "numbers"), numbers, []string{`{"pk":{"N":"1"},"old":{"BOOL":true}}`})
	before := append(contents(t, db, "things"), contents(t, db, "numbers")...)
	lines := func(text string) func(t *testing.T, dir string) {
		return func(t *testing.T, dir string) {
			if err := os.WriteFile(filepath.Join(dir, "a.json"), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	// export makes an export in dir, and changes it
	export := func(change func(t *testing.T, folder, data string)) func(t *testing.T, dir string) {
		return func(t *testing.T, dir string) {
			mustTransfer(t, "export", "--endpoint", s.url, "--table", "things", "--to", dir, "--segments", "1")
			folders, err := filepath.Glob(filepath.Join(dir, "AWSDynamoDB", "*"))
			if err != nil || len(folders) != 1 {
				t.Fatal(folders, err)
			}
			change(t, folders[0], filepath.Join(folders[0], "data", "0000-000000.json.gz"))
		}
	}
	// half leaves a half-finished run behind
	half := func(operation string, n int, args ...string) func(t *testing.T, dir string) {
		return func(t *testing.T, dir string) {
			g := newCutter(t, s.url)
			g.set(func(o string, i int) bool { return o == operation && i >= n })
			if _, log, code := runTransfer(t.Context(), strings.Fields(strings.NewReplacer("DIR", dir, "URL", g.URL).Replace(strings.Join(args, " ")))...); code == exitOK {
				t.Fatalf("the first run ended well: %s", log)
			}
			if table := "gone"; operation == "BatchWriteItem" {
				_, _ = db.DeleteTable(t.Context(), &dynamodb.DeleteTableInput{TableName: &table})
			}
		}
	}
	const next = "\n  next: "
	for _, c := range []struct {
		name    string
		prepare func(t *testing.T, dir string)
		args    string // with DIR and URL
		want    string // with DIR, URL and ID, the name of the export
	}{
		{"truncated", export(func(t *testing.T, _, data string) {
			if err := os.Truncate(data, 100); err != nil {
				t.Fatal(err)
			}
		}), "import --table new --from DIR", "DIR: AWSDynamoDB/ID/data/0000-000000.json.gz, line 1: the file is truncated: its compressed data ends too early" + next + "nothing was written; correct the file, or export again"},
		{"lying manifest", export(func(t *testing.T, folder, _ string) {
			replace(t, filepath.Join(folder, "manifest-files.json"), `"itemCount":5`, `"itemCount":6`)
			replace(t, filepath.Join(folder, "manifest-summary.json"), `"itemCount":5`, `"itemCount":6`)
			sumsOf(t, folder)
		}), "import --table new --from DIR", "DIR: AWSDynamoDB/ID/data/0000-000000.json.gz: it has 5 items, but the manifest says 6" + next + "nothing was written; correct the file, or export again"},
		{"missing file", export(func(t *testing.T, _, data string) {
			if err := os.Remove(data); err != nil {
				t.Fatal(err)
			}
		}), "import --table things --into-existing --from DIR", "DIR: AWSDynamoDB/ID/data/0000-000000.json.gz: the file is missing" + next + "nothing was written; correct the file, or export again"},
		{"unfinished", export(func(t *testing.T, folder, _ string) {
			if err := os.Remove(filepath.Join(folder, "manifest-summary.json")); err != nil {
				t.Fatal(err)
			}
		}), "import --table new --from DIR", "DIR: the export in AWSDynamoDB/ID has not ended: it has no manifest-summary.json" + next + "wait until it ends, or repeat the export; if it will not end, remove DIR/AWSDynamoDB/ID"},
		{"wrong keys", export(func(*testing.T, string, string) {}), "import --table numbers --into-existing --from DIR", `DIR: AWSDynamoDB/ID/data/0000-000000.json.gz, line 1: the key attribute "pk" has the type B; the table needs N` + next + "nothing was written; correct the file, or export again"},
		{"exists", export(func(*testing.T, string, string) {}), "import --table things --from DIR", `table "things" exists at URL` + next + "import into another table, or add --into-existing, which overwrites items with the same keys"},
		{"does not exist", lines("{}"), "import --table new --into-existing --from DIR", `table "new" does not exist at URL` + next + "check --table, --endpoint and --region"},
		{"second line", lines(`{"Item":{"pk":{"N":"1"}}}` + "\n" + `{"Item":{"pk":{"N":"one"}}}`), "import --table numbers --into-existing --from DIR", "DIR: a.json, line 2: The parameter cannot be converted to a numeric value: one" + next + "nothing was written; correct the file, or export again"},
		{"no keys", lines("{}"), "import --table new --from DIR", "DIR does not say what keys the table has" + next + "set --key, and --sort if the table has a sort key; for example --key pk:S --sort sk:N"},
		{"nothing", func(*testing.T, string) {}, "import --table new --from DIR", "DIR: there is no export and no file to import" + next + "check --from"},
		{"incremental", func(*testing.T, string) {}, "import --table new --key Id:N --from ../exportfile/testdata/incremental", "../exportfile/testdata/incremental is an incremental export, which has changes of a table and not all of its items" + next + "import the full export before it first, then this one with --into-existing"},
		{"wrong key flag", lines("{}"), "import --table new --key pk --from DIR", `--key pk --sort : AttributeDefinitions has no type S, N or B for the key "pk"` + next + "for example --key pk:S --sort sk:N; the types are S, N and B"},
		{"segments", lines("{}"), "import --table new --segments 0 --from DIR", "--segments 0 is not between 1 and 1000" + next + "for example --segments 8"},
		{"damaged progress", func(t *testing.T, dir string) {
			if err := os.WriteFile(filepath.Join(dir, "p"), []byte("{"), 0o600); err != nil {
				t.Fatal(err)
			}
		}, "import --table new --from DIR --progress DIR/p", "the progress file DIR/p: unexpected end of JSON input" + next + "set --progress to another file, or remove this one to begin anew"},
		{"half-finished import of another place", half("BatchWriteItem", 1, "import --endpoint URL --table gone --from ../exportfile/testdata/full --key Id:N --progress DIR/p --patience 1ms"), "import --table gone --from DIR --progress DIR/p",
			"DIR/p is of a half-finished import from ../exportfile/testdata/full into gone at ANY" + next + "finish it with its own command, set --progress to another file, or remove this one"},
		{"half-finished export of another table", half("Scan", 2, "export --endpoint URL --table things --to DIR --segments 4 --patience 1ms"), "export --table numbers --to DIR --segments 4",
			"DIR/AWSDynamoDB/ID is a half-finished export of another table, arn:aws:dynamodb:us-east-1:000000000000:table/things" + next + "finish it with its own command, remove DIR/AWSDynamoDB/ID to begin anew, or use another --to"},
		{"half-finished export of other segments", half("Scan", 2, "export --endpoint URL --table things --to DIR --segments 4 --patience 1ms"), "export --table things --to DIR",
			"DIR/AWSDynamoDB/ID is a half-finished export with --segments 4, not 8" + next + "finish it with --segments 4, remove DIR/AWSDynamoDB/ID to begin anew, or use another --to"},
		{"half-finished copy of other segments", half("BatchWriteItem", 1, "copy --endpoint URL --table things --to-table gone --progress DIR/p --patience 1ms"), "copy --endpoint ANY --table things --to-table gone --progress DIR/p --segments 3", "the half-finished copy has --segments 8, not 3" + next + "set --segments 8, or remove DIR/p to begin anew"},
		{"copied table was deleted", half("BatchWriteItem", 1, "copy --endpoint URL --table things --to-table gone --progress DIR/p --patience 1ms"), "copy --endpoint ANY --table things --to-table gone --progress DIR/p", `table "gone" of the half-finished copy was deleted` + next + "remove DIR/p to begin anew"},
		{"export of nothing", func(*testing.T, string) {}, "export --table new --to DIR", `table "new" does not exist at URL` + next + "check --table, --endpoint and --region"},
		{"export to a file", lines(""), "export --table things --to DIR/a.json", "open DIR/a.json: not a directory"},
		{"copy over itself", func(*testing.T, string) {}, "copy --table things", "the copy would be the table itself" + next + "set --to-table or --to-endpoint"},
		{"copy over another", func(*testing.T, string) {}, "copy --table things --to-table numbers", `table "numbers" exists at URL` + next + "set --to-table to another name, or add --into-existing, which overwrites items with the same keys"},
		{"copy to other keys", func(*testing.T, string) {}, "copy --table things --to-table numbers --into-existing", `table "numbers" at URL: its keys are [pk:N]; the source has [pk:B sk:N]` + next + "copy to another table"},
		{"vanished", func(*testing.T, string) {}, "copy --table things --to-endpoint http://127.0.0.1:1 --patience 1ms --progress DIR/p", "nothing listens at http://127.0.0.1:1" + next + "start one with mayfly serve, or set --endpoint or AWS_ENDPOINT_URL to the server's address"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			c.prepare(t, dir)
			any := s.url
			if text, err := os.ReadFile(filepath.Join(dir, "p")); err == nil {
				var saved struct{ Endpoint, From string }
				_ = json.Unmarshal(text, &saved)
				any = saved.Endpoint + saved.From
			}
			args := strings.ReplaceAll(c.args, "DIR", dir)
			if strings.Contains(args, "ANY") {
				args = strings.ReplaceAll(args, "ANY", any)
			} else {
				args += " --endpoint " + s.url
			}
			if !strings.Contains(args, "--progress") && !strings.HasPrefix(args, "export") {
				args += " --progress " + filepath.Join(dir, "p")
			}
			var id string
			if folders, _ := filepath.Glob(filepath.Join(dir, "AWSDynamoDB", "*")); len(folders) > 0 {
				id = filepath.Base(folders[0])
			}
			_, log, code := runTransfer(t.Context(), strings.Fields(args)...)
			if want := "mayfly: " + strings.NewReplacer("DIR", dir, "_URL", "_URL", "URL", s.url, "ID", id, "ANY", any).Replace(c.want) + "\n"; code == exitOK || log != want {
				t.Errorf("exit code %d\n%swant\n%s", code, log, want)
			}
		})
	}
	same(t, "the tables", append(contents(t, db, "things"), contents(t, db, "numbers")...), before)
	out, err := db.ListTables(t.Context(), &dynamodb.ListTablesInput{})
	if err != nil || !slices.Equal(out.TableNames, []string{"numbers", "things"}) {
		t.Errorf("the tables are %v, %v", out.TableNames, err)
	}
}

// A copy over its own source is refused and writes nothing, also under another address of the endpoint or
// another region.
func TestCopyOverItself(t *testing.T) {
	t.Parallel()
	s, db := memoryServer(t)
	side := sideOf(db, "things")
	if err := side.Create(t.Context(), thingsTable()); err != nil {
		t.Fatal(err)
	}
	put(t, side, thingsTable(), everyType)
	g := newCutter(t, s.url) // another address of the same server
	named := strings.Replace(g.URL, "127.0.0.1", "localhost", 1)
	for _, c := range []struct{ name, source, target, flags string }{
		{"another address", s.url, g.URL, ""},
		{"another address, into existing", s.url, g.URL, "--into-existing"},
		{"a host name", s.url, named, "--into-existing"},
		{"another region", g.URL, g.URL, "--into-existing --to-region eu-west-1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			progress := filepath.Join(t.TempDir(), "p")
			args := append(strings.Fields(c.flags), "--progress", progress, "--endpoint", c.source, "--to-endpoint", c.target, "--table", "things")
			_, log, code := runTransfer(t.Context(), append([]string{"copy"}, args...)...)
			want := `mayfly: the copy would be the table itself: "things" at ` + c.target + ` and "things" at ` + c.source + " are the same table\n  next: set --to-table to another name, or --to-endpoint to another server\n"
			if code != exitUsage || log != want {
				t.Errorf("exit code %d\n%swant\n%s", code, log, want)
			}
			if left, err := filepath.Glob(progress); err != nil || len(left) > 0 {
				t.Errorf("progress is left: %v, %v", left, err)
			}
		})
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if n := g.counts["BatchWriteItem"]; n > 0 {
		t.Errorf("%d batches were written", n)
	}
}

// A target that becomes full stops the import after exactly the items that it has taken, and the import
// continues when there is room.
func TestImportIntoFull(t *testing.T) {
	t.Parallel()
	s, db := memoryServer(t)
	dir := t.TempDir()
	var lines, want []string
	for i := range 1000 {
		item := fmt.Sprintf(`{"pk":{"S":"%04d"}}`, i)
		lines, want = append(lines, `{"Item":`+item+`}`), append(want, item)
	}
	if err := os.WriteFile(filepath.Join(dir, "a"), []byte(strings.Join(lines, "\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	g := newCutter(t, s.url)
	full := false
	answers := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		g.mu.Lock()
		refuse := full && strings.HasSuffix(r.Header.Get("X-Amz-Target"), ".BatchWriteItem") && g.counts["BatchWriteItem"] == 10
		g.mu.Unlock()
		if refuse {
			w.Header().Set("Content-Type", "application/x-amz-json-1.0")
			w.WriteHeader(http.StatusBadRequest)
			_, _ = io.WriteString(w, `{"__type":"LimitExceededException","message":"The disk is full"}`)
			return
		}
		g.Config.Handler.ServeHTTP(w, r)
	}))
	t.Cleanup(answers.Close)
	full = true
	args := []string{"import", "--endpoint", answers.URL, "--table", "things", "--from", dir, "--key", "pk:S", "--segments", "1", "--patience", "10ms", "--progress", filepath.Join(t.TempDir(), "p")}
	_, log, code := runTransfer(t.Context(), args...)
	if wanted := "mayfly: stopped after 250 items: LimitExceededException: The disk is full\n  next: run the same command again to continue\n"; code != exitError || log != wanted {
		t.Errorf("exit code %d: %s, want %s", code, log, wanted)
	}
	same(t, "the full table", contents(t, db, "things"), want[:250])
	g.mu.Lock()
	full = false
	g.mu.Unlock()
	if r := mustTransfer(t, args...); !r.Continued || r.Items != 1000 {
		t.Errorf("%+v", r)
	}
	same(t, "the table", contents(t, db, "things"), want)
}
