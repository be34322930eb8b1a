package guard

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/mayflydb/mayfly"
	"github.com/mayflydb/mayfly/guard/internal/audit"
	"github.com/mayflydb/mayfly/guard/internal/stream"
	"github.com/mayflydb/mayfly/internal/work/attr"
	"github.com/mayflydb/mayfly/internal/work/lease"
)

// bubbled runs a test with a world in virtual time.
func bubbled(t *testing.T, test func(*testing.T, *world)) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t}
		withWindows(w)
		db, err := mayfly.Open("", mayfly.Options{Expiry: mayfly.ExpiryAWS, ExpiryDelay: "fixed:8784h"})
		must(t, err)
		w.DB, w.db, w.streams = db, db.DynamoDB(), db.Streams()
		w.createTable(worldTable)
		test(t, w)
		must(t, db.Close())
	})
}

// leasesIn returns the rows of a table of leases as "strategy name", without the workers' own.
func leasesIn(t *testing.T, db *dynamodb.Client, like string) (all []string) {
	t.Helper()
	out, err := db.Scan(context.Background(), &dynamodb.ScanInput{TableName: aws.String(lease.TableName), ConsistentRead: aws.Bool(true)})
	must(t, err)
	for _, item := range out.Items {
		consumer, shard := attr.String(item["consumer"]), attr.String(item["shard"])
		if strings.Contains(consumer, like) && !lease.IsCrew(shard) {
			all = append(all, consumer[strings.Index(consumer, "/"+worldTable)+1:]+" "+shard)
		}
	}
	slices.Sort(all)
	return all
}

// The leases of a finished scan are deleted, and it is not repeated: neither by workers that start
// then, nor by one whose lease has gone. A scan that is requested later is made.
func TestScansLeaveNoLeases(t *testing.T) {
	t.Parallel()
	bubbled(t, func(t *testing.T, w *world) {
		for i := range 50 {
			w.put(fmt.Sprint("far", i), fmt.Sprint(time.Now().Add(100*time.Hour).Unix()))
		}
		start := func(name string, alone bool) (*guarding, func() int) {
			l := newLine(nil)
			g, err := New(l.lay(Options{
				DB: w.db, Streams: w.streams, Table: worldTable, Attribute: "ttl", Strategy: Stream, Owner: name, Alone: alone, LocalClock: true,
			}))
			must(t, err)
			return w.run(g, nil), func() int { return sentOf([]*line{l})["Scan "+worldTable] }
		}
		a, scansA := start("a", false)
		b, scansB := start("b", false)
		time.Sleep(10 * time.Second)
		first := scansA() + scansB() // another worker may get a half-finished segment
		if first < stream.Segments || len(leasesIn(t, w.db, "/scan")) != stream.Segments {
			t.Errorf("at first there are %d scans and the leases %v", first, leasesIn(t, w.db, "/scan"))
		}
		time.Sleep(time.Minute)
		if rows := leasesIn(t, w.db, "/scan"); len(rows) != 0 {
			t.Errorf("of the first scan there are %v", rows)
		}
		g := a.Guard
		s, isStream := g.readiness.runs.(*stream.Strategy)
		if !isStream {
			t.Fatal("it is another strategy")
		}
		set, err := s.ReadSettings(t.Context())
		must(t, err)
		// as a worker that was paused since before the end of the scan
		must(t, s.ScanAll(t.Context(), set))
		if n := scansA() + scansB(); n != first {
			t.Errorf("a scan that was done is made again: there are %d", n)
		}
		must(t, a.stop())
		must(t, b.stop())
		for _, alone := range []bool{false, true} {
			c, scansC := start("c", alone)
			time.Sleep(time.Minute)
			if rows, n := leasesIn(t, w.db, "/scan"), scansC(); len(rows) != 0 || n != 0 {
				t.Errorf("alone: %v: there are %d scans and %v", alone, n, rows)
			}
			must(t, c.Guard.readiness.runs.(*stream.Strategy).Trimmed(t.Context()))
			time.Sleep(2 * time.Minute)
			if rows, n := leasesIn(t, w.db, "/scan"), scansC(); len(rows) != 0 || n != stream.Segments {
				t.Errorf("alone: %v: one more was wanted, and there are %d scans and %v", alone, n, rows)
			}
			must(t, c.stop())
		}
	})
}

// If the guarded table is deleted, its leases and checkpoints are deleted too; if it was created
// again, others may need them.
func TestDeletedTablesLeaveNoLeases(t *testing.T) {
	t.Parallel()
	for _, strategy := range []Strategy{Stream, Index, Scan} {
		t.Run(fmt.Sprint(strategy), func(t *testing.T) {
			bubbled(t, func(t *testing.T, w *world) {
				w.put("far", fmt.Sprint(time.Now().Add(time.Hour).Unix()), text(windowAttribute, Window(time.Now().Add(time.Hour).Unix(), time.Minute)))
				ends := make(chan error, 2)
				var all []*Guard
				for i := range 2 {
					g, err := New(Options{
						DB: w.db, Streams: w.streams, Table: worldTable, Attribute: "ttl", Strategy: strategy, Owner: fmt.Sprint(i), LocalClock: true,
					})
					must(t, err)
					all = append(all, g)
					go func() { ends <- g.Run(context.Background()) }()
				}
				time.Sleep(audit.After + time.Minute)
				before := len(leasesIn(t, w.db, "guard/"))
				if before == 0 || strategy == Stream && len(leasesIn(t, w.db, "/"+audit.Name)) == 0 {
					t.Fatalf("the leases are %v", leasesIn(t, w.db, "guard/"))
				}
				// as if it was created again after this worker missed it
				all[0].leaveNothing(t.Context(), &Problem{Code: NoTable})
				if n := len(leasesIn(t, w.db, "guard/")); n != before {
					t.Errorf("%d of %d leases are left, and the table is there", n, before)
				}
				w.deleteTable()
				for range 2 {
					if err, p := <-ends, (*Problem)(nil); !errors.As(err, &p) || p.Code != NoTable {
						t.Errorf("guard ended with %v", err)
					}
				}
				if rows := leasesIn(t, w.db, "guard/"); len(rows) > 0 {
					t.Errorf("there are the leases %v", rows)
				}
			})
		})
	}
}
