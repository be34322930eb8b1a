package stream

import (
	"fmt"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly"
	"github.com/mayflydb/mayfly/guard/internal/armed"
	"github.com/mayflydb/mayfly/guard/internal/table"
	"github.com/mayflydb/mayfly/internal/invariant"
	"github.com/mayflydb/mayfly/internal/work/attr"
	"github.com/mayflydb/mayfly/internal/work/ensure"
)

// open opens a database for the length of a test.
func open(t *testing.T) *dynamodb.Client {
	t.Helper()
	db, err := mayfly.Open("", mayfly.Options{})
	must(t, err)
	t.Cleanup(func() { must(t, db.Close()) })
	return db.DynamoDB()
}

// oneStore returns the store of a table with one division.
func oneStore(db *dynamodb.Client, partitions int) *store {
	s := &store{db: db, spec: deadlinesSpec, label: "table"}
	s.divisions.Store(&[]*division{{number: 2, partitions: partitions, spread: spreadDefault}})
	return s
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestDeliveredAtLeastOnceInTable: in the deadline table an older record never overwrites a newer
// one, and never deletes its row. A worker that resumes after a pause writes an item's old deadline
// and its renewal, while the item has that deadline again. If the table forgot the newer record,
// the deletion would lose the deadline.
func TestDeliveredAtLeastOnceInTable(t *testing.T) {
	law := func() (broken string) {
		s := oneStore(open(t), 16)
		_, err := ensure.Table(t.Context(), s.db, deadlinesSpec)
		must(t, err)
		at := int64(1893459600_000)
		of := func(record string) *row {
			return rowOf(armed.Entry{Key: "S\x01a", At: at, Value: "of " + record}, byOf(1, record), 0)
		}
		must(t, s.put(t.Context(), of("30"))) // the item has the deadline again
		must(t, s.put(t.Context(), of("10"))) // the paused worker's first record
		must(t, s.put(t.Context(), rowOf(armed.Entry{Key: "S\x01a", At: at, Value: "of a scan"}, "", 0)))
		must(t, s.drop(t.Context(), of("20"))) // and then: the item had another deadline
		// the worker's entry has ended
		must(t, s.drop(t.Context(), &row{key: "S\x01a", at: at, tag: tagOf(byOf(1, "10"))}))
		var found []*row
		d := s.newest()
		bucket := s.bucket(d, d.partitionOf("S\x01a"), d.bucketOf("S\x01a", at))
		must(t, s.query(t.Context(), bucket, "0", "~", 0, func(item map[string]types.AttributeValue) bool {
			n, err := readRow(item)
			must(t, err)
			found = append(found, n)
			return true
		}))
		if len(found) != 1 || found[0].by != byOf(1, "30") || found[0].entry().Value != "of 30" {
			return fmt.Sprintf("the table has %+v; want the deadline of record 30", found)
		}
		must(t, s.put(t.Context(), of("40")))
		must(t, s.drop(t.Context(), of("50")))
		must(t, s.query(t.Context(), bucket, "0", "~", 0, func(map[string]types.AttributeValue) bool {
			broken = "a newer record does not delete"
			return false
		}))
		return broken
	}
	t.Run("holds", func(t *testing.T) {
		if broken := law(); broken != "" {
			t.Error(broken)
		}
	})
	if !invariant.Enabled {
		return
	}
	t.Run(invariant.OverwriteNewer.String(), func(t *testing.T) {
		defer inject(invariant.OverwriteNewer)()
		if law() == "" {
			t.Errorf("the law did not notice %v", invariant.OverwriteNewer)
		}
		if !noticed(invariant.OverwriteNewer) {
			t.Errorf("no check noticed %v", invariant.OverwriteNewer)
		}
	})
}

// A row of the deadline table is read back as written, with keys of any length and bytes, and sorts
// by its deadline.
func FuzzRow(f *testing.F) {
	f.Add("S\x01a", int64(1893456000000), "1893456000", "", 7)
	f.Add(strings.Repeat("k", 2000), int64(1893456000001), "1893456000.0001", `{"N":"1"}`, 1)
	f.Add("", int64(0), "", "", 0)
	s := oneStore(nil, 16)
	f.Fuzz(func(t *testing.T, k string, at int64, value, version string, sequence int) {
		at = min(max(at, 1), table.SecondsMax*1000)
		e := rowOf(armed.Entry{Key: armed.Key(k), At: at, Value: value, Version: version}, byOf(1, strings.Repeat("9", max(sequence, 0)%40)), 0)
		item := s.item(e)
		if len(attr.String(item[attrAt])) > 1024 {
			t.Fatalf("the sort key has %d bytes", len(attr.String(item[attrAt])))
		}
		n, err := readRow(item)
		if err != nil || n.key != e.key || n.at != at || n.by != e.by || n.tag != tagOf(e.by) || n.entry().Version != version || value != "" && n.entry().Text() != value {
			t.Errorf("%+v became %+v: %v", e, n, err)
		}
		later := s.item(&row{key: "", at: at + 1})
		if attr.String(later[attrAt]) <= attr.String(item[attrAt]) {
			t.Errorf("%q sorts before %q", attr.String(later[attrAt]), attr.String(item[attrAt]))
		}
		for _, d := range []*division{s.newest(), {number: 1, partitions: 16, spread: 1}} {
			b := d.bucketOf(e.key, at)
			if read, ok := readBucket(d.bucketText(b)); !ok || read != b || minuteOf(b) != minuteOf(at) {
				t.Errorf("bucket %d of %d became %d", b, at, read)
			}
		}
	})
}

// Foreign items are refused.
func FuzzReadRow(f *testing.F) {
	f.Add("000001893456000000/UwFh", "1", []byte("x"))
	f.Add("000001893456000/UwFh", "", []byte(nil))
	f.Add("000001893456000/#ab", "", []byte("x"))
	f.Add("settings", "", []byte(nil))
	f.Fuzz(func(t *testing.T, at, value string, k []byte) {
		n, err := readRow(map[string]types.AttributeValue{attrAt: attr.S(at), attrValue: attr.S(value), attrKey: &types.AttributeValueMemberB{Value: k}})
		if err == nil && (n.at < 0 || n.entry().Text() == "") {
			t.Errorf("%q is taken for %+v", at, n)
		}
	})
}

// Positions of records sort by sequence number. A later stream sorts after an earlier one.
func TestByOf(t *testing.T) {
	order := []string{"", byOf(1, "9"), byOf(1, "10"), byOf(1, "800000000003126276362"), byOf(1, strings.Repeat("9", 40)), byOf(2, "1")}
	for i := range order[1:] {
		if order[i] >= order[i+1] {
			t.Errorf("%q does not sort before %q", order[i], order[i+1])
		}
	}
}

// A request for a scan does not recreate deleted settings. They would lack the number of
// partitions, and guard could not start again.
func TestWishForAScanWithoutSettings(t *testing.T) {
	s := &store{db: open(t), spec: deadlinesSpec, label: "table"}
	_, err := ensure.Table(t.Context(), s.db, deadlinesSpec)
	must(t, err)
	must(t, s.wantScan(t.Context(), Settings{}))
	set, err := s.ensureSettings(t.Context(), 1, "stream")
	must(t, err)
	if set.born != 1 || set.Scans != 1 {
		t.Errorf("the settings are %+v", set)
	}
}
