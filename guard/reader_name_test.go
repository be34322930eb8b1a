package guard

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/mayflydb/mayfly/internal/work/attr"
	"github.com/mayflydb/mayfly/internal/work/lease"
)

// readers returns the names of the consumers of the world's streams.
func readers(t *testing.T, db *dynamodb.Client) (names []string) {
	t.Helper()
	seen := map[string]bool{}
	out, err := db.Scan(context.Background(), &dynamodb.ScanInput{TableName: aws.String(lease.TableName), ConsistentRead: aws.Bool(true)})
	must(t, err)
	for _, item := range out.Items {
		name := attr.String(item["consumer"])
		_, kind, _ := strings.Cut(name, "/"+worldTable+"/")
		if kind, _, _ = strings.Cut(strings.TrimPrefix(kind, "dry-run/"), "/"); (kind == "stream" || kind == "schedule") && !strings.Contains(name, "/scan/") && !seen[name] {
			seen[name] = true
			names = append(names, name)
		}
	}
	return names
}

// older moves the checkpoints of a reader to the name that older versions used.
func older(t *testing.T, db *dynamodb.Client) {
	t.Helper()
	for _, name := range readers(t, db) {
		rows, err := lease.New(db, name, lease.Options{}).Rows(t.Context())
		must(t, err)
		leases := lease.New(db, name[:strings.LastIndexByte(name, '/')], lease.Options{})
		for shard, row := range rows {
			_, err := leases.Note(t.Context(), shard, row.Checkpoint)
			must(t, err)
		}
		must(t, lease.Clear(t.Context(), db, name, lease.Options{}))
	}
}

// A reader's name has the label of its stream. A worker continues from the checkpoints of an older
// version, whose readers had no label in their names: it scans nothing and misses nothing.
func TestReaderOfOlderVersion(t *testing.T) {
	t.Parallel()
	test := func(t *testing.T, w *world, o Options) {
		l := newLine(nil)
		o = l.lay(o)
		db := o.withDefaults().Deadlines
		reported := &progresses{}
		o.Progress = reported.add
		r := w.start(o)
		w.put("first", w.in(0))
		w.awaitNames("")
		r.await("the stream is read", func() bool { return r.Stats().Counts[Consumed] > 0 && len(readers(t, db)) == 1 })
		reported.last(r, FirstScan)
		w.settle()
		must(t, r.stop())
		label := w.streamARN()[strings.LastIndexByte(w.streamARN(), '/'):]
		if names := readers(t, db); len(names) != 1 || !strings.HasSuffix(names[0], label) {
			t.Fatalf("readers %v of the stream %s", names, label)
		}
		older(t, db)
		w.put("between", w.in(10))
		scans := sentOf([]*line{l})["Scan "+worldTable]
		w.start(o)
		w.put("after", w.in(10))
		w.settle()
		w.advance(10 * time.Second)
		w.awaitNames("")
		if n := sentOf([]*line{l})["Scan "+worldTable]; n != scans {
			t.Errorf("%d scans after the upgrade", n-scans)
		}
		if names := readers(t, db); len(names) != 1 || !strings.HasSuffix(names[0], label) {
			t.Errorf("readers %v of the stream %s", names, label)
		}
	}
	everyStore(t, test)
	t.Run("schedule", func(t *testing.T) {
		w := newWorld(t)
		test(t, w, w.scheduling())
	})
}

// streamARN returns the ARN of the table's stream.
func (w *world) streamARN() string {
	w.t.Helper()
	out, err := w.DynamoDB().DescribeTable(context.Background(), &dynamodb.DescribeTableInput{TableName: aws.String(worldTable)})
	must(w.t, err)
	return aws.ToString(out.Table.LatestStreamArn)
}

// The checkpoints of a stream are deleted when another one takes its place, with those of an older
// version, which are not adopted.
func TestReaderOfNewStream(t *testing.T) {
	t.Parallel()
	test := func(t *testing.T, w *world, o Options, old bool) {
		db := o.withDefaults().Deadlines
		r := w.start(o)
		w.put("first", w.in(0))
		w.awaitNames("")
		must(t, r.stop())
		if old {
			older(t, db)
		}
		w.stream(false)
		w.stream(true)
		w.put("between", w.in(10))
		w.start(o)
		w.put("after", w.in(10))
		w.settle()
		label := w.streamARN()[strings.LastIndexByte(w.streamARN(), '/'):]
		if names := readers(t, db); len(names) != 1 || !strings.HasSuffix(names[0], label) {
			t.Errorf("readers %v of the stream %s", names, label)
		}
		w.advance(10 * time.Second)
		w.awaitNames("")
	}
	for name, old := range map[string]bool{"older": true, "same": false} {
		t.Run(name, func(t *testing.T) {
			everyStore(t, func(t *testing.T, w *world, o Options) { test(t, w, o, old) })
		})
	}
}
