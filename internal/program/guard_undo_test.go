package program

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"

	"github.com/mayflydb/mayfly/guard"
	"github.com/mayflydb/mayfly/guard/journal"
)

// What guard removes comes back with guard undo, from a directory and from a bucket, although guard
// was killed.
func TestGuardUndo(t *testing.T) {
	t.Parallel()
	s, err := startServer(t.TempDir(), nil, "--memory", "--shards", "1", "--expiry", "aws")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.kill)
	api, _ := s.clients()
	backend := s3mem.New()
	if err := backend.CreateBucket("removed"); err != nil {
		t.Fatal(err)
	}
	cloud := httptest.NewServer(gofakes3.New(backend, gofakes3.WithLogger(gofakes3.DiscardLog())).Server())
	t.Cleanup(cloud.Close)
	environment := append(os.Environ(), "AWS_ENDPOINT_URL_S3="+cloud.URL, "AWS_ACCESS_KEY_ID=any", "AWS_SECRET_ACCESS_KEY=any", "AWS_REGION=us-east-1")
	run := func(args ...string) (out, log string, code int) {
		var stdout, stderr bytes.Buffer
		c := exec.Command("mayfly", args...)
		c.Env, c.Stdout, c.Stderr = environment, &stdout, &stderr
		_ = c.Run()
		return stdout.String(), stderr.String(), c.ProcessState.ExitCode()
	}
	const items = 100
	for table, place := range map[string]string{"files": filepath.Join(t.TempDir(), "removed"), "objects": "s3://removed/tables"} {
		t.Run(table, func(t *testing.T) {
			_, err := api.CreateTable(t.Context(), &dynamodb.CreateTableInput{
				TableName: &table, BillingMode: types.BillingModePayPerRequest,
				AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("id"), AttributeType: "S"}},
				KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("id"), KeyType: "HASH"}},
			})
			if err != nil {
				t.Fatal(err)
			}
			for i := range items {
				_, err := api.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &table, Item: map[string]types.AttributeValue{
					"id": &types.AttributeValueMemberS{Value: fmt.Sprint("item-", i)}, "ttl": &types.AttributeValueMemberN{Value: fmt.Sprint(time.Now().Unix() - 5)},
				}})
				if err != nil {
					t.Fatal(err)
				}
			}
			left := func() int {
				out, err := api.Scan(t.Context(), &dynamodb.ScanInput{TableName: &table, Select: types.SelectCount, ConsistentRead: aws.Bool(true)})
				if err != nil {
					t.Fatal(err)
				}
				return int(out.Count)
			}
			var log bytes.Buffer
			worker := exec.Command("mayfly", "guard", "--endpoint", s.url, "--table", table, "--attribute", "ttl", "--accept-overdue", "any", "--strategy", "scan", "--alone", "--undo", place)
			worker.Env, worker.Stderr = environment, &log
			if err := worker.Start(); err != nil {
				t.Fatal(err)
			}
			for limit := time.Now().Add(time.Minute); left() > items/4 && time.Now().Before(limit); {
				time.Sleep(5 * time.Millisecond)
			}
			_ = worker.Process.Kill()
			_ = worker.Wait()
			there := left()
			if there > items/4 {
				t.Fatalf("%d items are left: %s", there, &log)
			}
			flags := []string{"guard", "undo", "--endpoint", s.url, "--table", table, "--from", time.Now().Add(-time.Hour).UTC().Format(time.RFC3339), "--json"}
			if _, log, code := run(append(flags, place)...); code != exitUsage || !strings.Contains(log, "--ttl is missing") {
				t.Errorf("without --ttl the exit code is %d: %s", code, log)
			}
			out, log2, code := run(append(flags, "--dry-run", place)...)
			if lines := strings.Count(out, `"key":`); code != 0 || lines != items-there || left() != there {
				t.Errorf("a dry run lists %d items of %d, exit code %d: %s", lines, items-there, code, log2)
			}
			out, log2, code = run(append(flags, "--ttl", "remove", place)...)
			var report guard.PutBackReport
			if err := json.Unmarshal([]byte(out), &report); err != nil || code != 0 || report.PutBack != int64(items-there) || left() != items {
				t.Errorf("%+v of %d items, %d are there, exit code %d: %s", report, items-there, left(), code, log2)
			}
			if out, _, _ := run("guard", "undo", "--endpoint", s.url, "--table", table, "--from", "2020-01-01", "--ttl", "+1h", place); !strings.HasPrefix(out, "0 items put back\n") {
				t.Errorf("the second run prints %q", out)
			}
		})
	}
	objects, err := backend.ListBucket("removed", nil, gofakes3.ListBucketPage{})
	if err != nil {
		t.Fatal(err)
	}
	if n := len(objects.Contents); n == 0 || n > 20 {
		t.Errorf("%d objects for %d items", n, items)
	}
}

// onFirst calls a function at the first write.
type onFirst struct {
	bytes.Buffer
	do func()
}

func (f *onFirst) Write(p []byte) (int, error) {
	if f.Len() == 0 {
		f.do()
	}
	return f.Buffer.Write(p)
}

// An interrupted dry run does not claim that it has put items back. In JSON the summary is there.
func TestGuardUndoInterrupted(t *testing.T) {
	s, err := startServer(t.TempDir(), nil, "--memory")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.kill)
	db := clientOf(s.url, "any", "any")
	makeExpiring(t, db, "people")
	described, err := db.DescribeTable(t.Context(), &dynamodb.DescribeTableInput{TableName: aws.String("people")})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	writer := journal.Dir(dir).Writer("w", func(error) {})
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { writer.Run(ctx) })
	var writes sync.WaitGroup
	for i := range 500 {
		key := fmt.Appendf(nil, `{"id":{"S":"item-%d"}}`, i)
		e := journal.Entry{Kind: journal.Image, ID: writer.NewID(), At: time.Now(), Table: *described.Table.TableArn, Key: key, Attribute: "expires", Deadline: time.Now(), Item: key}
		writes.Go(func() {
			if err := writer.Write(ctx, e); err != nil {
				t.Error(err)
			}
		})
	}
	writes.Wait()
	stop()
	running.Wait()
	for _, c := range []struct {
		args []string
		says string
	}{
		{[]string{"--dry-run"}, "of those that would be put back: nothing was changed"},
		{[]string{"--dry-run", "--json"}, "of those that would be put back: nothing was changed"},
	} {
		ctx, interrupt := context.WithCancel(t.Context())
		out, log := &onFirst{do: interrupt}, &bytes.Buffer{}
		code := run(ctx, append([]string{"guard", "undo", "--endpoint", s.url, "--table", "people", "--from", "2020-01-01", dir}, c.args...), out, log)
		if code != exitError || !strings.Contains(log.String(), c.says) {
			t.Errorf("%v: exit code %d: %s", c.args, code, log)
		}
		lines := strings.Split(strings.TrimSpace(out.String()), "\n")
		last := undoSummary{}
		if len(c.args) > 1 && (json.Unmarshal([]byte(lines[len(lines)-1]), &last) != nil || !last.Interrupted || last.PutBack != int64(len(lines)-1)) {
			t.Errorf("after %d items the last line is %s", len(lines)-1, lines[len(lines)-1])
		}
	}
	var log bytes.Buffer
	if report(&log, guardUndoCommand{}.interrupted(streams{&log, &log}, guard.PutBackReport{PutBack: 2})); !strings.Contains(log.String(), "interrupted after 2 items were put back\n  next: run the same command again to continue") {
		t.Errorf("it says %s", &log)
	}
}
