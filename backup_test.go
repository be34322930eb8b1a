package mayfly

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	streamtypes "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
)

// removedKeys returns the keys of the removals in a table's stream, in order.
func removedKeys(t testing.TB, db *DB, table string) string {
	t.Helper()
	list, err := db.Streams().ListStreams(t.Context(), &dynamodbstreams.ListStreamsInput{TableName: &table})
	if err != nil || len(list.Streams) != 1 {
		t.Fatalf("%d streams, %v", len(list.Streams), err)
	}
	arn := list.Streams[0].StreamArn
	d, err := db.Streams().DescribeStream(t.Context(), &dynamodbstreams.DescribeStreamInput{StreamArn: arn})
	if err != nil {
		t.Fatal(err)
	}
	var keys []string
	for _, shard := range d.StreamDescription.Shards {
		it, err := db.Streams().GetShardIterator(t.Context(), &dynamodbstreams.GetShardIteratorInput{
			StreamArn: arn, ShardId: shard.ShardId, ShardIteratorType: streamtypes.ShardIteratorTypeTrimHorizon,
		})
		if err != nil {
			t.Fatal(err)
		}
		page, err := db.Streams().GetRecords(t.Context(), &dynamodbstreams.GetRecordsInput{ShardIterator: it.ShardIterator})
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range page.Records {
			if r.EventName == streamtypes.OperationTypeRemove {
				keys = append(keys, r.Dynamodb.Keys["pk"].(*streamtypes.AttributeValueMemberS).Value)
			}
		}
	}
	return strings.Join(keys, " ")
}

// A restored database continues as if it had been stopped at the instant of the backup: an item whose
// deadline passes afterwards is there until then, gone at the first read, and has one record.
func TestBackupOfExpiring(t *testing.T) {
	t.Parallel()
	start := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, dir := range []string{"", filepath.Join(t.TempDir(), "data")} {
		place, restored := filepath.Join(t.TempDir(), "backups"), filepath.Join(t.TempDir(), "restored")
		db := open(t, dir, Options{Start: start, Frozen: true, Shards: 1, ClockControl: ClockControlOn})
		makeTable(t, db.DynamoDB(), "things")
		putUntil(t, db.DynamoDB(), "things", "gone", start.Add(time.Second))
		putUntil(t, db.DynamoDB(), "things", "soon", start.Add(time.Minute))
		putUntil(t, db.DynamoDB(), "things", "late", start.Add(time.Hour))
		advance := func(db *DB, by time.Duration) {
			t.Helper()
			if _, err := db.Clock().Advance(t.Context(), by); err != nil {
				t.Fatal(err)
			}
		}
		advance(db, 2*time.Second)
		id, err := db.Backup(t.Context(), place, 0)
		if err != nil {
			t.Fatal(err)
		}
		putUntil(t, db.DynamoDB(), "things", "later", start.Add(time.Hour))
		advance(db, 2*time.Minute)
		if err := Restore(t.Context(), place, id, restored); err != nil {
			t.Fatal(err)
		}
		var faults []Fault
		if err := Check(t.Context(), restored, func(int64, int64) {}, func(f Fault) { faults = append(faults, f) }); err != nil || len(faults) > 0 {
			t.Errorf("the restored directory has the faults %v, %v", faults, err)
		}
		again := open(t, restored, Options{Frozen: true, ClockControl: ClockControlOn})
		if got := scanned(t, again, "things", ""); got != "late soon" {
			t.Errorf("at the instant of the backup there is %q", got)
		}
		if got := removedKeys(t, again, "things"); got != "gone" {
			t.Errorf("the stream has the removals %q", got)
		}
		if _, err := again.Clock().Set(t.Context(), start.Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		if got := scanned(t, again, "things", ""); got != "late" {
			t.Errorf("after the deadline there is %q", got)
		}
		if got := removedKeys(t, again, "things"); got != "gone soon" {
			t.Errorf("after the deadline the stream has the removals %q", got)
		}
	}
}

// WriteBackup leaves out what the receiver has. One backup runs at a time.
func TestWriteBackup(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	db := open(t, dir, Options{})
	makeTable(t, db.DynamoDB(), "things")
	names := func(has []BackupFile) string {
		t.Helper()
		var b bytes.Buffer
		if err := db.WriteBackup(t.Context(), &b, has); err != nil {
			t.Fatal(err)
		}
		var names []string
		for r := tar.NewReader(&b); ; {
			h, err := r.Next()
			if errors.Is(err, io.EOF) {
				return strings.Join(names, " ")
			}
			if err != nil {
				t.Fatal(err)
			}
			names = append(names, h.Name)
		}
	}
	all := names(nil)
	if !strings.HasPrefix(all, "BACKUP ") || !strings.Contains(all, ".sst") || !strings.Contains(all, "marker.manifest") {
		t.Errorf("the archive has %s", all)
	}
	c, err := db.engine.Copy()
	if err != nil {
		t.Fatal(err)
	}
	files := source{c}.Files()
	if err := db.WriteBackup(t.Context(), io.Discard, nil); !errors.Is(err, ErrBackup) {
		t.Errorf("beside another backup: %v", err)
	}
	if _, err := db.Backup(t.Context(), t.TempDir(), 0); !errors.Is(err, ErrBackup) {
		t.Errorf("beside another backup: %v", err)
	}
	status, body := send(t, http.MethodPost, serving(t, db)+"/_mayfly/backup", "")
	if status != http.StatusConflict || !strings.Contains(body, "another backup") {
		t.Errorf("beside another backup the answer is %d %s", status, body)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if strings.HasSuffix(f.Name, ".sst") && strings.Contains(names(files), f.Name) {
			t.Errorf("%s is sent again", f.Name)
		}
	}
	if err := WriteBackup(t.Context(), dir, io.Discard, nil); !errors.Is(err, ErrLocked) {
		t.Errorf("of an open directory: %v", err)
	}
	if err := Restore(t.Context(), t.TempDir(), "", filepath.Join(t.TempDir(), "new")); err == nil || !strings.Contains(err.Error(), "there is no backup") {
		t.Errorf("a restore from an empty place: %v", err)
	}
}

// The endpoint refuses what it cannot serve, and breaks the connection of a backup that fails.
func TestBackupOverHTTP(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	db := open(t, dir, Options{})
	url := serving(t, db) + "/_mayfly/backup"
	makeTable(t, db.DynamoDB(), "things")
	for _, c := range []struct {
		method, body string
		status       int
		says         string
	}{
		{http.MethodGet, "", http.StatusMethodNotAllowed, "use POST"},
		{http.MethodPost, "{", http.StatusBadRequest, `\"has\"`},
		{http.MethodPost, `{"has":[{"name":"x","size":1,"crc32c":"zzz"}]}`, http.StatusBadRequest, "invalid checksum"},
		{http.MethodPost, strings.Repeat(" ", 16<<20+1), http.StatusRequestEntityTooLarge, "too large"},
		{http.MethodPost, `{"has":[]}`, http.StatusOK, "marker.manifest"},
	} {
		status, body := send(t, c.method, url, c.body)
		if status != c.status || !strings.Contains(body, c.says) {
			t.Errorf("%s with %.20q: %d %.100s", c.method, c.body, status, body)
		}
	}
	// a table file that changes on the disk
	c, err := db.engine.Copy()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range c.Files() {
		if !strings.HasSuffix(f.Name, ".sst") {
			continue
		}
		content, err := os.ReadFile(filepath.Join(dir, f.Name))
		if err != nil {
			t.Fatal(err)
		}
		content[len(content)/2] ^= 1
		if err := os.WriteFile(filepath.Join(dir, f.Name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	answer, err := http.Post(url, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if _, err := io.Copy(io.Discard, answer.Body); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("a backup of a damaged file ends with %v", err)
	}
}

// serving returns the address of a server of the database.
func serving(t testing.TB, db *DB) string {
	t.Helper()
	server := httptest.NewServer(db.Handler())
	t.Cleanup(server.Close)
	return server.URL
}
