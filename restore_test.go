package mayfly

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly/target"
)

// written is a log.
type written struct {
	mu sync.Mutex
	bytes.Buffer
}

func (w *written) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.Buffer.Write(p)
}

func (w *written) has(text string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return strings.Contains(w.String(), text)
}

// switchedOff is a way to break a table of the work, and the log's message about its restoration.
var switchedOff = []struct {
	what string
	do   func(ctx context.Context, db *dynamodb.Client, table string) error
}{
	{"its stream", func(ctx context.Context, db *dynamodb.Client, table string) error {
		_, err := db.UpdateTable(ctx, &dynamodb.UpdateTableInput{
			TableName: &table, StreamSpecification: &types.StreamSpecification{StreamEnabled: aws.Bool(false)},
		})
		return err
	}},
	{"its time to live", func(ctx context.Context, db *dynamodb.Client, table string) error {
		_, err := db.UpdateTimeToLive(ctx, &dynamodb.UpdateTimeToLiveInput{
			TableName: &table, TimeToLiveSpecification: &types.TimeToLiveSpecification{AttributeName: aws.String("due"), Enabled: aws.Bool(false)},
		})
		return err
	}},
	{"the table", func(ctx context.Context, db *dynamodb.Client, table string) error {
		_, err := db.DeleteTable(ctx, &dynamodb.DeleteTableInput{TableName: &table})
		return err
	}},
}

// Schedules continue after their table's stream or TTL is switched off, or the table is deleted: a
// warning names the restored parts, and schedules fire from then on. Schedules in a table that
// still exists are not lost.
func TestScheduleTableSwitchedOff(t *testing.T) {
	for _, off := range switchedOff {
		t.Run(off.what, func(t *testing.T) {
			in, log := new(inbox), new(written)
			db := openAtMidnight(t, Options{Targets: []target.Mapping{in.mapping(testFunction)}, Logger: slog.New(slog.NewTextHandler(log, nil))})
			schedule(t, db, "first", "at(2030-01-02T00:30:00)")
			want := []string{"second 00:10:00.000 1"}
			if err := off.do(t.Context(), db.DynamoDB(), "mayfly.schedules.default"); err != nil {
				t.Fatal(err)
			}
			schedule(t, db, "second", "at(2030-01-02T00:10:00)")
			advance(t, db, 10*time.Minute)
			in.want(t, want...)
			if !log.has("table=mayfly.schedules.default") || !log.has(off.what) {
				t.Errorf("the log is %s", log.String())
			}
			if err := off.do(t.Context(), db.DynamoDB(), "mayfly.schedules.default"); err != nil {
				t.Fatal(err)
			}
			schedule(t, db, "third", "at(2030-01-02T00:20:00)")
			advance(t, db, time.Hour)
			if want = append([]string{}, "second 00:10:00.000 1", "third 00:20:00.000 1"); off.what != "the table" {
				want = append([]string{"first 00:30:00.000 1"}, want...)
			}
			in.want(t, want...)
			if ready := get(t, db, "/readyz"); ready != "ready\n" {
				t.Errorf("readyz: %s", ready)
			}
		})
	}
}

// Retries continue too: later failures are retried, and the clock does not wait for ever, also
// after a restart.
func TestRetriesTableSwitchedOff(t *testing.T) {
	for _, off := range switchedOff {
		t.Run(off.what, func(t *testing.T) {
			in, dir := new(inbox), t.TempDir()
			options := Options{Start: midnight, Frozen: true, ClockControl: ClockControlOn, Targets: []target.Mapping{{ARN: testFunction, Target: target.Func(
				func(ctx context.Context, d target.Delivery) error {
					if in.take(ctx, d); d.Attempt == 1 {
						return errors.New("not now")
					}
					return nil
				})}}}
			open := func() *DB {
				db, err := Open(dir, options)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = db.Close() })
				return db
			}
			db := open()
			schedule(t, db, "first", "at(2030-01-02T00:10:00)")
			advance(t, db, time.Hour)
			in.want(t, "first 00:10:00.000 1", "first 00:10:00.000 2")
			if err := off.do(t.Context(), db.DynamoDB(), "mayfly.retries"); err != nil {
				t.Fatal(err)
			}
			schedule(t, db, "second", "at(2030-01-02T01:30:00)")
			advance(t, db, time.Hour)
			want := []string{"first 00:10:00.000 1", "first 00:10:00.000 2", "second 01:30:00.000 1", "second 01:30:00.000 2"}
			in.want(t, want...)
			if err := off.do(t.Context(), db.DynamoDB(), "mayfly.retries"); err != nil {
				t.Fatal(err)
			}
			if err := db.Close(); err != nil {
				t.Fatal(err)
			}
			db = open()
			schedule(t, db, "third", "at(2030-01-02T02:30:00)")
			advance(t, db, time.Hour)
			in.want(t, append(want, "third 02:30:00.000 1", "third 02:30:00.000 2")...)
		})
	}
}
