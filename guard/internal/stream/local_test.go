package stream

import (
	"fmt"
	"io/fs"
	"log/slog"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly"
	"github.com/mayflydb/mayfly/guard/internal/armed"
	"github.com/mayflydb/mayfly/guard/internal/pace"
	"github.com/mayflydb/mayfly/guard/internal/strategy"
	"github.com/mayflydb/mayfly/guard/internal/table"
	"github.com/mayflydb/mayfly/internal/work/ensure"
)

// localOptions are deadlinesOptions of mayfly guard run --deadlines.
var localOptions = mayfly.Options{DatabaseOnly: true, Durability: mayfly.Async, CacheBytes: 4 << 20, MemTableBytes: 8 << 20}

// localStore returns a strategy with a table of its own, in a directory. "": in memory.
func localStore(t testing.TB, dir string, options mayfly.Options) *Strategy {
	t.Helper()
	db, err := mayfly.Open(dir, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	})
	e := &strategy.Env{Log: slog.New(slog.DiscardHandler), Table: &table.Table{}}
	s := &Strategy{Reader: e.NewReader(0), local: true, inserts: pace.New(0, 0), store: &store{
		db: db.DynamoDB(), spec: deadlinesSpec, label: "arn:aws:dynamodb:eu-central-1:123456789012:table/orders/2030-01-01T00:00:00.000"}}
	s.divide([]*division{{number: 2, partitions: partitionsDefault, spread: spreadDefault}})
	if _, err := ensure.Table(t.Context(), s.store.db, deadlinesSpec); err != nil {
		t.Fatal(err)
	}
	return s
}

// pageOf returns a page of rows that a scan, or records from number 1 on, have shown. The deadlines
// are spread over a day.
func pageOf(from, count int, scanned bool) (rows []*row) {
	for i := from; i < from+count; i++ {
		by := ""
		if !scanned {
			by = byOf(1, fmt.Sprint(i+1))
		}
		at := 1893456000_000 + int64(i*7919%86400)*1000
		rows = append(rows, rowOf(armed.Entry{Key: armed.Key(fmt.Sprintf("S\x01item#%010d", i)), At: at}, by, 0))
	}
	return rows
}

// A scan never overwrites the row of a record, however the two coincide, and writes all others: in a
// worker's own table and in that of a fleet, in transactions and one by one.
func TestScanOverwritesNoRecord(t *testing.T) {
	for _, c := range []struct {
		name          string
		local, singly bool
	}{{"local", true, false}, {"fleet", false, false}, {"fleet, one by one", false, true}} {
		t.Run(c.name, func(t *testing.T) {
			s := localStore(t, "", mayfly.Options{})
			s.local = c.local
			s.singly.Store(c.singly)
			scanOverwritesNoRecord(t, s)
		})
	}
}

func scanOverwritesNoRecord(t *testing.T, s *Strategy) {
	const count = 500
	for range 10 {
		// the records know half of the rows, before or while the scan writes all
		before, meanwhile := pageOf(0, count/4, false), pageOf(count/4, count/4, false)
		must(t, s.put(t.Context(), before, nil))
		var both sync.WaitGroup
		for i := range len(meanwhile) / batchMax {
			both.Go(func() {
				if err := s.put(t.Context(), meanwhile[i*batchMax:(i+1)*batchMax], nil); err != nil {
					t.Error(err)
				}
			})
		}
		both.Go(func() {
			if err := s.put(t.Context(), pageOf(0, count, true), nil); err != nil {
				t.Error(err)
			}
		})
		both.Wait()
		for i, e := range pageOf(0, count, true) {
			found := 0
			d := s.store.newest()
			must(t, s.store.query(t.Context(), s.store.bucket(d, d.partitionOf(e.key), d.bucketOf(e.key, e.at)), "0", "~", 0, func(item map[string]types.AttributeValue) bool {
				r, err := readRow(item)
				must(t, err)
				if r.key != e.key {
					return true
				}
				found++
				if i < count/2 && r.by != byOf(1, fmt.Sprint(i+1)) {
					t.Errorf("the row of record %d is from %q", i+1, r.by)
				}
				return true
			}))
			if found != 1 {
				t.Fatalf("row %d is there %d times", i, found)
			}
		}
		must(t, s.put(t.Context(), nil, pageOf(0, count, true)))
	}
}

// A worker's own store has tables of few bytes for each row, and logs no larger than its two
// memtables.
func TestDirectoryIsSmall(t *testing.T) {
	if testing.Short() {
		t.Skip("200,000 rows take some seconds")
	}
	const count = 200_000
	dir := t.TempDir()
	s := localStore(t, dir, localOptions)
	for i := 0; i < count; i += 1000 {
		must(t, s.put(t.Context(), pageOf(i, 1000, false), nil))
	}
	logs, tables := sizes(t, dir)
	for range 300 { // the last compactions may be under way, and replaced tables not deleted yet
		if tables <= 100*count {
			break
		}
		time.Sleep(100 * time.Millisecond)
		logs, tables = sizes(t, dir)
	}
	t.Logf("tables of %d bytes for each row, %d MB of logs", tables/count, logs>>20)
	if tables > 100*count || logs > 2*localOptions.MemTableBytes+1<<20 {
		t.Errorf("%d rows take %d bytes in tables and %d in logs", count, tables, logs)
	}
}

// sizes returns the bytes of a store's logs and tables.
func sizes(t testing.TB, dir string) (logs, tables int64) {
	t.Helper()
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return nil // the store has removed the file meanwhile
		}
		info, err := d.Info()
		switch {
		case err != nil:
		case filepath.Ext(name) == ".log":
			logs += info.Size()
		case filepath.Ext(name) == ".sst":
			tables += info.Size()
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return logs, tables
}

// Writing the rows of scans and records into a worker's own table.
func BenchmarkPutLocal(b *testing.B) {
	for _, scanned := range []bool{true, false} {
		b.Run(fmt.Sprintf("scan=%v", scanned), func(b *testing.B) {
			s := localStore(b, b.TempDir(), localOptions)
			n := 0
			for b.Loop() {
				if err := s.put(b.Context(), pageOf(n, 1000, scanned), nil); err != nil {
					b.Fatal(err)
				}
				n += 1000
			}
			b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "rows/s")
		})
	}
}
