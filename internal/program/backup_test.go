package program

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
)

// putNumbers writes items with keys from one number up to another into a table, which it creates if
// from is 0.
func putNumbers(t *testing.T, api *dynamodb.Client, from, to int) {
	t.Helper()
	if from == 0 {
		_, err := api.CreateTable(t.Context(), &dynamodb.CreateTableInput{
			TableName: aws.String("numbers"), BillingMode: types.BillingModePayPerRequest,
			AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("n"), AttributeType: "N"}},
			KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("n"), KeyType: "HASH"}},
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for n := from; n < to; n++ {
		_, err := api.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String("numbers"), Item: map[string]types.AttributeValue{
			"n": &types.AttributeValueMemberN{Value: fmt.Sprint(n)},
		}})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// numbersIn starts a server with a directory and returns the number of items in the table.
func numbersIn(t *testing.T, dir string) int {
	t.Helper()
	s := serveDir(t, dir)
	defer s.kill()
	api, _ := s.clients()
	out, err := api.Scan(t.Context(), &dynamodb.ScanInput{TableName: aws.String("numbers"), Select: types.SelectCount})
	if err != nil {
		t.Fatal(err)
	}
	return int(out.Count)
}

// A server in memory and one with a directory are backed up into a directory and into a bucket. Each
// backup can be restored, and a stopped directory is backed up without a server.
func TestBackupCommand(t *testing.T) {
	t.Parallel()
	backend := s3mem.New()
	if err := backend.CreateBucket("backups"); err != nil {
		t.Fatal(err)
	}
	cloud := httptest.NewServer(gofakes3.New(backend, gofakes3.WithLogger(gofakes3.DiscardLog())).Server())
	t.Cleanup(cloud.Close)
	environment := []string{"AWS_ENDPOINT_URL_S3=" + cloud.URL, "AWS_ACCESS_KEY_ID=any", "AWS_SECRET_ACCESS_KEY=any", "AWS_REGION=us-east-1"}
	for name, place := range map[string]string{"memory": "s3://backups/of/numbers", "data": filepath.Join(t.TempDir(), "backups")} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run := func(args ...string) string {
				t.Helper()
				out, log, code := runWith(environment, args...)
				if code != 0 {
					t.Fatalf("mayfly %s ends with code %d: %s", strings.Join(args, " "), code, log)
				}
				return out
			}
			data := filepath.Join(t.TempDir(), "data")
			args := []string{"--memory"}
			if name == "data" {
				args = []string{"--data", data}
			}
			s, err := startServer(t.TempDir(), nil, args...)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(s.kill)
			api, _ := s.clients()
			var reports [3]backupReport
			for i := range reports {
				putNumbers(t, api, 10*i, 10*i+10)
				out := run("backup", "--endpoint", s.url, "--to", place, "--keep", "2", "--json")
				if err := json.Unmarshal([]byte(out), &reports[i]); err != nil {
					t.Fatalf("%v: %s", err, out)
				}
			}
			if r := reports[2]; r.Removed != 1 || r.NewFiles >= r.Files || r.NewBytes >= r.Bytes || r.Bytes == 0 {
				t.Errorf("the third backup is %+v", r)
			}
			list := run("restore", "--from", place, "--list")
			if strings.Contains(list, reports[0].Backup) || !strings.Contains(list, reports[1].Backup) || !strings.Contains(list, s.url) {
				t.Errorf("the list is %s", list)
			}
			for i := 1; i < len(reports); i++ {
				dir := filepath.Join(t.TempDir(), "restored")
				out := run("restore", "--from", place, "--backup", reports[i].Backup, "--to", dir)
				if !strings.HasPrefix(out, "restored "+reports[i].Backup+" to "+dir) {
					t.Errorf("a restore prints %q", out)
				}
				if n := numbersIn(t, dir); n != 10*i+10 {
					t.Errorf("backup %d has %d items", i, n)
				}
			}
			if out := run("restore", "--from", place, "--check"); out != "2 backups: no damage\n" {
				t.Errorf("the check prints %q", out)
			}
			if name == "memory" {
				return
			}
			if _, log, code := runProgram("backup", "--data", data, "--to", place); code != exitError || !strings.Contains(log, "use --endpoint with its address in place of --data") {
				t.Errorf("--data beside the server ends with code %d: %s", code, log)
			}
			s.kill()
			out := run("backup", "--data", data, "--to", place)
			dir := filepath.Join(t.TempDir(), "restored")
			run("restore", "--from", place, "--to", dir)
			if n := numbersIn(t, dir); n != 30 {
				t.Errorf("the backup of the directory has %d items: %s", n, out)
			}
		})
	}
}

// What curl receives is a directory.
func TestBackupUnpacks(t *testing.T) {
	t.Parallel()
	s := serveDir(t, t.TempDir())
	api, _ := s.clients()
	putNumbers(t, api, 0, 7)
	dir := t.TempDir()
	c := exec.Command("sh", "-c", `curl -sSf -X POST "$1"/_mayfly/backup | tar -x -C "$2"`, "sh", s.url, dir)
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("there is no curl")
	}
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if n := numbersIn(t, dir); n != 7 {
		t.Errorf("the directory has %d items", n)
	}
}

// --every goes on after a failure, and ends with its signal.
func TestBackupEvery(t *testing.T) {
	t.Parallel()
	place := filepath.Join(t.TempDir(), "backups")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	_ = l.Close() // nothing listens there until the server starts
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var out, log buffer
	c := exec.CommandContext(ctx, "mayfly", "backup", "--endpoint", "http://"+address, "--to", place, "--every", "1s", "--keep", "2")
	c.Stdout, c.Stderr = &out, &log
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	await := func(what string, is func() bool) {
		t.Helper()
		for !is() {
			if ctx.Err() != nil {
				t.Fatalf("%s did not come: %s%s", what, out.String(), log.String())
			}
			time.Sleep(10 * time.Millisecond)
		}
	}
	await("a failure", func() bool { return strings.Contains(log.String(), "nothing listens") })
	_, port, _ := net.SplitHostPort(address)
	s, err := startPrinting(t.TempDir(), nil, "serve", "--memory", "--port", port)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.kill)
	await("the third backup", func() bool { return strings.Contains(out.String(), "removed 1 older backup") })
	_ = c.Process.Signal(os.Interrupt)
	if err := c.Wait(); err != nil {
		t.Errorf("it ends with %v: %s", err, log.String())
	}
}

// A key needs mayfly:Backup.
func TestBackupNeedsPermission(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "keys.yaml")
	writeKeyFile(t, path, "keys:\n- {access-key: copies, secret-key: s, policies: [backup]}\n- {access-key: reads, secret-key: s, policies: [read-only]}\n- {access-key: table, secret-key: s, policies: ['table:numbers']}\n")
	s, err := startServer(t.TempDir(), nil, "--memory", "--keys", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.kill)
	for key, want := range map[string]string{"copies": "", "reads": "mayfly:Backup", "table": "mayfly:Backup", "nobody": "refuses to send a backup"} {
		place := filepath.Join(t.TempDir(), "backups")
		_, log, code := runWith([]string{"AWS_ACCESS_KEY_ID=" + key, "AWS_SECRET_ACCESS_KEY=s"}, "backup", "--endpoint", s.url, "--to", place)
		if (code == 0) != (want == "") || !strings.Contains(log, want) {
			t.Errorf("key %s: code %d: %s", key, code, log)
		}
		if _, err := os.Stat(filepath.Join(place, "snapshots")); (err == nil) != (want == "") {
			t.Errorf("key %s: the place has %v", key, err)
		}
	}
	answer, err := http.Post(s.url+"/_mayfly/backup", "application/json", nil)
	if err != nil {
		t.Fatal(err)
	}
	if _ = answer.Body.Close(); answer.StatusCode != http.StatusBadRequest {
		t.Errorf("without a signature the status is %d", answer.StatusCode)
	}
}

// Wrong command lines, and damaged or vanished places, have an exact error, and change nothing.
func TestBackupErrors(t *testing.T) {
	t.Parallel()
	s, err := startServer(t.TempDir(), nil, "--memory")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.kill)
	api, _ := s.clients()
	putNumbers(t, api, 0, 3)
	root := t.TempDir()
	place := filepath.Join(root, "backups")
	if _, log, code := runProgram("backup", "--endpoint", s.url, "--to", place); code != 0 {
		t.Fatal(log)
	}
	damaged := filepath.Join(root, "damaged")
	if _, log, code := runProgram("backup", "--endpoint", s.url, "--to", damaged); code != 0 {
		t.Fatal(log)
	}
	tables, _ := filepath.Glob(filepath.Join(damaged, "files", "*.sst-*"))
	if len(tables) == 0 {
		t.Fatal("the backup has no table file")
	}
	if err := os.Truncate(tables[0], 10); err != nil {
		t.Fatal(err)
	}
	full := filepath.Join(root, "full")
	if err := os.Mkdir(full, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(full, "notes"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(root, "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	other := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(other.Close)
	cut := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/x-tar")
		_, _ = w.Write(bytes.Repeat([]byte{0}, 100<<10))
		panic(http.ErrAbortHandler)
	}))
	t.Cleanup(cut.Close)
	for _, c := range []struct {
		args string
		code int
		says string
	}{
		{"backup", exitUsage, "missing flag: --to=PLACE"},
		{"backup --to " + place + " --keep -1", exitUsage, "--keep -1 is negative"},
		{"backup --to " + place + " --every 1ms", exitUsage, "--every 1ms is less than a second"},
		{"backup --to " + place + " --endpoint aws --region us-east-1", exitUsage, "cannot back up Amazon's service\n  next: copy a table to files with mayfly export"},
		{"backup --to " + place + " --data " + filepath.Join(root, "none"), exitError, "no such file or directory\n  next: give the directory that mayfly serve uses as --data"},
		{"backup --to " + place + " --data " + full, exitError, "not mayfly's: notes"},
		{"backup --to " + place + " --endpoint http://127.0.0.1:1", exitError, "nothing listens at http://127.0.0.1:1"},
		{"backup --to " + place + " --endpoint " + other.URL, exitError, "is no mayfly server, or an old one: it answered 404"},
		{"backup --to " + place + " --endpoint " + cut.URL, exitError, "ended the backup before its end: "},
		{"backup --to " + file + " --endpoint " + s.url, exitError, "not a directory"},
		{"restore --from " + place, exitUsage, "exactly one of --to, --list and --check is needed"},
		{"restore --from " + place + " --list --check", exitUsage, "exactly one of"},
		{"restore --from " + filepath.Join(root, "none") + " --to " + root + "/new", exitError, "there is no backup in " + filepath.Join(root, "none")},
		{"restore --from " + place + " --backup 1999 --to " + root + "/new", exitError, "there is no backup 1999 in " + place + "\n  next: list them with"},
		{"restore --from " + place + " --to " + full, exitUsage, full + " is not empty: it has notes"},
		{"restore --from " + place + " --to " + file, exitError, "not a directory"},
		{"restore --from " + damaged + " --to " + root + "/new", exitDamaged, ".sst-"},
		{"restore --from " + damaged + " --check", exitDamaged, damaged + ": 1 fault"},
	} {
		_, log, code := runProgram(strings.Fields(c.args)...)
		if code != c.code || !strings.Contains(log, c.says) {
			t.Errorf("mayfly %s ends with code %d, want %d with %q: %s", c.args, code, c.code, c.says, log)
		}
	}
	if entries, err := os.ReadDir(full); err != nil || len(entries) != 1 {
		t.Errorf("the directory that was not empty has %v, %v", entries, err)
	}
	if out, log, code := runProgram("restore", "--from", place, "--list", "--json"); code != 0 || strings.Count(out, "\n") != 1 {
		t.Errorf("after the failures the place lists %s%s", out, log)
	}
	if entries, err := os.ReadDir(filepath.Join(root, "new")); err == nil && len(entries) > 0 {
		t.Errorf("failed restores leave %v", entries)
	}
}

// A directory with the mark of an unfinished restore is refused by the server with the reason, and
// the next restore begins anew there. Package backup tests when the mark is there.
func TestUnfinishedRestore(t *testing.T) {
	t.Parallel()
	s, err := startServer(t.TempDir(), nil, "--memory")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.kill)
	api, _ := s.clients()
	putNumbers(t, api, 0, 3)
	place, dir := filepath.Join(t.TempDir(), "backups"), filepath.Join(t.TempDir(), "restored")
	for _, args := range [][]string{{"backup", "--endpoint", s.url, "--to", place}, {"restore", "--from", place, "--to", dir}} {
		if _, log, code := runProgram(args...); code != 0 {
			t.Fatal(log)
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names strings.Builder
	for _, e := range entries {
		fmt.Fprintln(&names, e.Name())
	}
	if err := os.WriteFile(filepath.Join(dir, "RESTORING"), []byte(names.String()), 0o600); err != nil { // as if it had been killed before its end
		t.Fatal(err)
	}
	if _, log, code := runProgram("serve", "--data", dir, "--port", "0"); code == 0 || !strings.Contains(log, "RESTORING: says that a backup is being restored") {
		t.Errorf("a server with an unfinished restore ends with code %d: %s", code, log)
	}
	if _, log, code := runProgram("restore", "--from", place, "--to", dir); code != 0 {
		t.Errorf("the restore is not continued: %s", log)
	}
	if n := numbersIn(t, dir); n != 3 {
		t.Errorf("it has %d items", n)
	}
}
