package guard

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly/guard/internal/stream"
	"github.com/mayflydb/mayfly/internal/testkit"
	"github.com/mayflydb/mayfly/internal/work/attr"
	"github.com/mayflydb/mayfly/internal/work/ensure"
	"github.com/mayflydb/mayfly/internal/work/lease"
)

// divided is a member of a fleet that wants so many partitions.
func (w *world) divided(name string, partitions int) Options {
	o := w.member(name)
	o.Partitions = partitions
	return o
}

// divisions returns the stored divisions, as division/partitions.
func (w *world) divisions() string {
	w.t.Helper()
	out, err := w.DynamoDB().GetItem(context.Background(), &dynamodb.GetItemInput{
		TableName: aws.String(stream.TableName), ConsistentRead: aws.Bool(true),
		Key: map[string]types.AttributeValue{"part": s(w.tableARN()), "at": s("divisions")},
	})
	must(w.t, err)
	var all []string
	for _, d := range strings.Fields(attr.String(out.Item["divisions"])) {
		parts := strings.Split(d, "/")
		all = append(all, parts[0]+"/"+parts[1])
	}
	return strings.Join(all, " ")
}

// scansRequested returns the number of scans that were requested in all.
func (w *world) scansRequested() int64 {
	w.t.Helper()
	out, err := w.DynamoDB().GetItem(context.Background(), &dynamodb.GetItemInput{
		TableName: aws.String(stream.TableName), ConsistentRead: aws.Bool(true),
		Key: map[string]types.AttributeValue{"part": s(w.tableARN()), "at": s("settings")},
	})
	must(w.t, err)
	return attr.Integer(out.Item["scans"])
}

// notedAt returns the number of deadlines in each division.
func (w *world) notedAt() map[string]int {
	w.t.Helper()
	n := map[string]int{}
	out, err := w.DynamoDB().Scan(context.Background(), &dynamodb.ScanInput{TableName: aws.String(stream.TableName), ConsistentRead: aws.Bool(true), FilterExpression: aws.String("attribute_exists(tag)")})
	must(w.t, err)
	for _, item := range out.Items {
		place := strings.TrimPrefix(attr.String(item["part"]), w.tableARN()+"/")
		division, _, later := strings.Cut(place, ".")
		if !later {
			division = "1"
		}
		n[division]++
	}
	return n
}

// olderLayout makes the deadline table as older versions made it, with a number of partitions that was
// the same for every table: 16.
func (w *world) olderLayout(partitions int) {
	w.t.Helper()
	_, err := ensure.Table(w.t.Context(), w.DynamoDB(), ensure.Spec{Name: stream.TableName, Key: "part", Sort: "at"})
	must(w.t, err)
	_, err = w.DynamoDB().PutItem(w.t.Context(), &dynamodb.PutItemInput{TableName: aws.String(stream.TableName), Item: map[string]types.AttributeValue{
		"part": s(w.tableARN()), "at": s("settings"), "born": n(fmt.Sprint(w.now().UnixMilli())), "partitions": n(fmt.Sprint(partitions)), "stream": s(w.streamARN()), "epoch": n("1"), "scans": n("1"),
	}})
	must(w.t, err)
}

// The number of partitions grows while workers run, in a new table and in that of an older version.
// No deadline is lost or early, before the growth or after it, near or far, renewed, moved to an
// earlier time or removed, and also if a worker dies, or does not notice the growth for a while.
// When the old partitions are empty, they end.
func TestPartitionsGrow(t *testing.T) {
	t.Parallel()
	for _, older := range []bool{false, true} {
		t.Run(fmt.Sprintf("older layout %v", older), func(t *testing.T) {
			if older && testing.Short() {
				t.Skip("48 partitions for a day, among three workers, take long under the race detector")
			}
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				first, second := "2", "3"
				few, many, divisions := 4, 8, "2/4 3/8"
				if older {
					few = testkit.Size(4, 16) // a day of 48 partitions among three workers takes ten seconds
					many, divisions = 2*few, fmt.Sprintf("1/%d 2/%d", few, 2*few)
					first, second = "1", "2"
					w.olderLayout(few)
				}
				w.fill("scanned", 20, w.in(100))
				// it does not notice the growth
				unaware := &cable{}
				unaware.before = func(operation, table string) error {
					if unaware.isHeld() && operation == "GetItem" && table == stream.TableName {
						return errors.New("by the test")
					}
					return nil
				}
				o := w.divided("a", few)
				o.DB, o.Streams = unaware.db(w.db), unaware.streams(w.streams)
				w.start(o)
				w.awaitShares(fmt.Sprint("a:", few))
				awaitScanned(t, w.DynamoDB())
				b := w.join("b")
				w.awaitShares(fmt.Sprintf("a:%d b:%d", few/2, few/2))
				for _, kind := range []string{"kept", "renewed", "nearer", "removed"} {
					w.fill(kind, 20, w.in(200))
				}
				await(t, "all is known", func() bool { return w.notedAt()[first] == 100 })
				unaware.setHeld(true)
				c := w.start(w.divided("c", many))
				await(t, "b and c share the new division", func() bool {
					var a, b, c int
					_, err := fmt.Sscanf(w.shares(), "a:%d b:%d c:%d", &a, &b, &c)
					return err == nil && a+b+c == few+many && b >= many/2 && c >= many/2
				})
				for i := range 20 {
					w.renew(fmt.Sprint("renewed", i), w.in(400))
					w.renew(fmt.Sprint("nearer", i), w.in(50))
					w.remove(fmt.Sprint("removed", i))
				}
				w.fill("later", 60, w.in(200))
				w.settle()
				if at := w.notedAt(); at[first] == 0 || at[second] == 0 {
					t.Errorf("%v deadlines in the divisions; want some in both", at)
				}
				w.advance(49 * time.Second)
				w.settle()
				if n := w.count(); n != 20+60+60 {
					t.Fatalf("%d items are left before any is due", n)
				}
				w.advance(2 * time.Second)
				await(t, "the items that were moved nearer are gone", func() bool { return w.count() == 120 })
				b.setCut(true) // it dies
				w.fill("last", 20, w.in(149))
				w.advance(50 * time.Second)
				await(t, "what the scan has found is gone", func() bool { return w.count() == 120 && !strings.Contains(w.names(), "scanned") })
				w.advance(98 * time.Second)
				w.settle()
				if n := w.count(); n != 120 {
					t.Fatalf("%d of 120 items are left at 199 s", n)
				}
				w.advance(2 * time.Second)
				await(t, "all but the renewed items are gone", func() bool { return w.count() == 20 })
				unaware.setHeld(false)
				w.advance(200 * time.Second)
				await(t, "all is gone", func() bool { return w.count() == 0 })
				// the unaware worker has left rows of removed items, which are tried once more
				await(t, "no deadline is left", func() bool { w.advance(10 * time.Second); return len(w.notedAt()) == 0 })
				b.setCut(false)
				for range 5 { // the workers' watermarks pass, and the old directories empty
					w.advance(4 * time.Hour)
					w.settle()
					time.Sleep(11 * time.Second) // of virtual time: they look at the divisions
				}
				if got := w.divisions(); got != divisions {
					t.Errorf("after 20 hours the divisions are %s", got)
				}
				await(t, "the old division has ended", func() bool { w.advance(time.Hour); return w.divisions() == fmt.Sprint(second, "/", many) })
				await(t, "only the leases of the new one are held", func() bool {
					var a, b, c int
					_, err := fmt.Sscanf(w.shares(), "a:%d b:%d c:%d", &a, &b, &c)
					return err == nil && a+b+c == many
				})
				await(t, "the old division's leases are gone", func() bool {
					w.advance(10 * time.Minute)
					consumer := "partitions" + map[string]string{"1": "", "2": "/2"}[first]
					rows, err := lease.New(w.DynamoDB(), w.fleetName(consumer), lease.Options{}).Rows(t.Context())
					must(t, err)
					return len(rows) == 0
				})
				if n := w.scansRequested(); n != 1 {
					t.Errorf("%d scans were requested; want only the first", n)
				}
				w.put("again", w.in(30))
				w.settle()
				w.advance(30 * time.Second)
				await(t, "all is gone", func() bool { return w.count() == 0 })
				must(t, c.stop())
			})
		})
	}
}
