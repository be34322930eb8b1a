package guard

import (
	"cmp"
	"context"
	"encoding/base64"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/mayflydb/mayfly"
	"github.com/mayflydb/mayfly/guard/internal/stream"
	"github.com/mayflydb/mayfly/internal/work/attr"
	"github.com/mayflydb/mayfly/internal/work/ensure"
)

// everyStore runs a test with the worker's own store, alone with a deadline table at the endpoint,
// and in a fleet; each in a bubble of virtual time.
func everyStore(t *testing.T, test func(*testing.T, *world, Options)) {
	run := func(name string, options func(t *testing.T, w *world) Options) {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				test(t, w, options(t, w))
			})
		})
	}
	run("local", func(t *testing.T, w *world) Options { return w.localOptions(localStore(t)) })
	run("alone", func(_ *testing.T, w *world) Options { return w.options(Stream) })
	run("fleet", func(_ *testing.T, w *world) Options { return w.member("a") })
}

func localStore(t testing.TB) *mayfly.DB {
	db, err := mayfly.Open("", mayfly.Options{})
	must(t, err)
	t.Cleanup(func() { must(t, db.Close()) })
	return db
}

func (w *world) localOptions(store *mayfly.DB) Options {
	o := w.options(Stream)
	o.Deadlines = store.DynamoDB()
	return o
}

// member is one of several workers.
func (w *world) member(name string) Options {
	o := w.options(Stream)
	o.Alone, o.Owner, o.Lease = false, name, time.Second
	return o
}

// names returns the names of the existing items, in order.
func (w *world) names() string {
	w.t.Helper()
	var names []string
	pages := dynamodb.NewScanPaginator(w.DynamoDB(), &dynamodb.ScanInput{TableName: aws.String(worldTable), ConsistentRead: aws.Bool(true)})
	for pages.HasMorePages() {
		page, err := pages.NextPage(context.Background())
		must(w.t, err)
		for _, item := range page.Items {
			names = append(names, attr.String(item["pk"]))
		}
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}

// awaitNames waits until these are the items, and no others.
func (w *world) awaitNames(names string) {
	w.t.Helper()
	got := ""
	defer func() {
		if w.t.Failed() {
			w.t.Logf("there are %q", got)
		}
	}()
	await(w.t, fmt.Sprintf("the items are %q", names), func() bool { got = w.names(); return got == names })
}

// settle waits until guard has handled all earlier writes and due items. It writes an overdue item
// to each of the stream's shards and waits for their removals, which come after the others.
func (w *world) settle() {
	w.t.Helper()
	for i := range 12 {
		w.put(fmt.Sprint("~settle", i), w.in(0))
	}
	await(w.t, "guard has dealt with all", func() bool { return !strings.Contains(w.names(), "~") })
}

// notedIn returns the deadlines in the deadline table, as "key at", in order. The table has its usual
// name, or the given one.
func notedIn(t testing.TB, db *dynamodb.Client, name ...string) (all []string) {
	t.Helper()
	table := cmp.Or(append(name, stream.TableName)...)
	pages := dynamodb.NewScanPaginator(db, &dynamodb.ScanInput{TableName: &table, ConsistentRead: aws.Bool(true)})
	for pages.HasMorePages() {
		page, err := pages.NextPage(context.Background())
		if ensure.Missing(err) {
			return nil
		}
		must(t, err)
		for _, item := range page.Items {
			at, encoded, _ := strings.Cut(attr.String(item["at"]), "/")
			ms, err := strconv.ParseInt(at, 10, 64)
			if key, broken := base64.RawURLEncoding.DecodeString(encoded); err == nil && broken == nil {
				all = append(all, fmt.Sprint(string(key), " ", ms))
			}
		}
	}
	slices.Sort(all)
	return all
}

func awaitNothingNoted(t testing.TB, db *dynamodb.Client) {
	t.Helper()
	var left []string
	defer func() {
		if t.Failed() {
			t.Logf("in the table there are %q", left)
		}
	}()
	await(t, "no deadline is left in the table", func() bool { left = notedIn(t, db); return len(left) == 0 })
}

// awaitScanned waits for the end of the first scan.
func awaitScanned(t testing.TB, db *dynamodb.Client) {
	t.Helper()
	await(t, "the scan is done", func() bool {
		pages := dynamodb.NewScanPaginator(db, &dynamodb.ScanInput{
			TableName: aws.String(stream.TableName), ConsistentRead: aws.Bool(true), FilterExpression: aws.String("attribute_exists(" + "scanned" + ")"),
		})
		tables := 0
		for pages.HasMorePages() {
			page, err := pages.NextPage(context.Background())
			if ensure.Missing(err) {
				return false
			}
			must(t, err)
			for _, item := range page.Items {
				if tables++; attr.Integer(item["scanned"]) < attr.Integer(item["scans"]) {
					return false
				}
			}
		}
		return tables > 0
	})
}

// Law NeverEarly, for the stream strategy: an item goes at its deadline and not a millisecond
// before, whether it existed before guard or came later, was due at once, or in days.
func TestStreamNeverEarly(t *testing.T) {
	t.Parallel()
	test := func(t *testing.T, w *world, o Options) {
		w.put("before", w.in(30))
		w.put("overdue", w.in(-30))
		w.put("none", "")
		w.put("fraction", w.in(30)+".0001")
		w.start(o)
		w.awaitNames("before fraction none")
		w.put("after", w.in(30))
		w.put("days", w.in(20*3600))
		w.put("now", w.in(0))
		w.awaitNames("after before days fraction none")
		w.advance(30*time.Second - time.Millisecond)
		w.settle()
		w.awaitNames("after before days fraction none")
		w.advance(time.Millisecond)
		w.awaitNames("days fraction none")
		w.settle()
		w.awaitNames("days fraction none")
		w.advance(time.Millisecond)
		w.awaitNames("days none")
		w.advance(20*time.Hour - 30*time.Second - 2*time.Millisecond)
		w.settle()
		w.awaitNames("days none")
		w.advance(time.Millisecond)
		w.awaitNames("none")
		awaitNothingNoted(t, o.withDefaults().Deadlines)
	}
	everyStore(t, test)
	t.Run("HTTP", func(t *testing.T) {
		w := newWorld(t, overHTTP)
		test(t, w, w.options(Stream))
	})
}

// Law RenewedLives, for the stream strategy: an item whose deadline was postponed, advanced or
// removed, in any order, goes at the last one and not before.
func TestStreamRenewedLives(t *testing.T) {
	t.Parallel()
	everyStore(t, func(t *testing.T, w *world, o Options) {
		for _, name := range []string{"off", "forward", "away", "back", "deleted", "anew"} {
			w.put(name, w.in(20))
		}
		r := w.start(o)
		awaitScanned(t, o.withDefaults().Deadlines)
		w.renew("off", w.in(100))
		w.renew("forward", w.in(10))
		w.put("away", "")
		w.renew("back", w.in(100))
		w.renew("back", w.in(20))
		w.remove("deleted")
		w.remove("anew")
		w.put("anew", w.in(100))
		w.settle()
		w.advance(10 * time.Second)
		w.awaitNames("anew away back off")
		w.advance(10 * time.Second)
		w.awaitNames("anew away off")
		w.settle()
		w.awaitNames("anew away off")
		w.advance(80 * time.Second)
		w.awaitNames("away")
		awaitNothingNoted(t, o.withDefaults().Deadlines)
		if n := r.Stats().Counts[Refused]; n > 0 && o.Alone {
			t.Errorf("%d refusals", n)
		}
	})
}
