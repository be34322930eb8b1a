package main

import (
	"bytes"
	"encoding/json"
	"fmt"
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

	"github.com/mayflydb/mayfly/guard"
)

// What guard removes comes back with guard undo, from a directory and from a bucket, although guard
// was killed.
func TestGuardUndo(t *testing.T) {
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
