package console_test

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"go.uber.org/goleak"

	"github.com/mayflydb/mayfly"
	"github.com/mayflydb/mayfly/console"
	"github.com/mayflydb/mayfly/internal/testkit"
)

// openWithPages opens a database with a table. pages may be nil.
func openWithPages(t *testing.T, pages func(http.Handler) http.Handler) *mayfly.DB {
	t.Helper()
	db, err := mayfly.Open("", mayfly.Options{Console: pages})
	if err != nil {
		t.Fatal(err)
	}
	_, err = db.DynamoDB().CreateTable(t.Context(), &dynamodb.CreateTableInput{
		TableName: aws.String("orders"), BillingMode: types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("id"), AttributeType: types.ScalarAttributeTypeS}},
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("id"), KeyType: types.KeyTypeHash}},
		StreamSpecification:  &types.StreamSpecification{StreamEnabled: aws.Bool(true), StreamViewType: types.StreamViewTypeNewAndOldImages},
	})
	if err != nil {
		t.Fatal(err)
	}
	return db
}

// openPage opens a page, which must work.
func openPage(t *testing.T, h http.Handler, path string) {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "http://127.0.0.1:8000"+path, nil))
	if w.Code != http.StatusOK {
		t.Fatalf("%s: %d %s", path, w.Code, w.Body)
	}
}

// TestIdleIsFree: without an open page the console does nothing: a simulated day passes without a
// goroutine of its own or a wake-up, before the first page is opened and after the last is left.
func TestIdleIsFree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := openWithPages(t, console.New)
		defer db.Close()
		h := db.Handler()
		idle := func(state string) {
			t.Helper()
			synctest.Wait()
			before := testkit.Wakeups()
			time.Sleep(24 * time.Hour)
			synctest.Wait()
			if n := testkit.Wakeups() - before; n > 100 {
				t.Errorf("%s: %d wake-ups in a day", state, n)
			}
		}
		idle("before the first page")
		openPage(t, h, "/_mayfly/")
		openPage(t, h, "/_mayfly/console/table/orders/stream")
		idle("after the first pages") // the first call of the SDK's client starts goroutines that stay
		goroutines := goleak.IgnoreCurrent()

		for _, path := range []string{"live/now", "live/stream/orders"} {
			ctx, leave := context.WithCancel(t.Context())
			events := httptest.NewRecorder()
			left := make(chan struct{})
			go func() {
				defer close(left)
				h.ServeHTTP(events, httptest.NewRequestWithContext(ctx, http.MethodGet, "http://127.0.0.1:8000/_mayfly/console/"+path, nil))
			}()
			before := testkit.Wakeups()
			time.Sleep(5*time.Minute + time.Millisecond)
			synctest.Wait()
			if n := testkit.Wakeups() - before; n < 20 {
				t.Errorf("%s: the page is followed with %d wake-ups in five minutes, so they are not counted", path, n)
			}
			leave()
			<-left
			if events.Code != http.StatusOK || !strings.HasPrefix(events.Body.String(), "retry: ") || bytes.Contains(events.Body.Bytes(), []byte("problem\"")) {
				t.Errorf("%s: %d %.300s", path, events.Code, events.Body)
			}
			idle(path + " was left")
			if err := goleak.Find(goroutines); err != nil {
				t.Errorf("%s was left: %v", path, err)
			}
		}
	})
}

// liveHeap returns the bytes that are in use.
func liveHeap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // what finalizers and pools released
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// A server with the console, and no page open, uses at most 5 MB more than one without: before the
// first page was opened, and after all of them were.
func TestMemoryWithoutPages(t *testing.T) {
	const most = 5 << 20
	grows := func(pages func(http.Handler) http.Handler, paths ...string) int64 {
		before := liveHeap()
		db := openWithPages(t, pages)
		defer db.Close()
		h := db.Handler()
		for _, path := range paths {
			openPage(t, h, path)
		}
		after := liveHeap()
		runtime.KeepAlive(h)
		return after - before
	}
	paths := []string{
		"/_mayfly/", "/_mayfly/console/tables", "/_mayfly/console/new", "/_mayfly/console/table/orders", "/_mayfly/console/table/orders/items",
		"/_mayfly/console/table/orders/timeline", "/_mayfly/console/table/orders/stream", "/_mayfly/console/partiql", "/_mayfly/console/schedules",
		"/_mayfly/console/triggers", "/_mayfly/console/reminders", "/_mayfly/console/clock",
	}
	grows(console.New, paths...) // what the process makes once
	without := grows(nil)
	with, visited := grows(console.New)-without, grows(console.New, paths...)-without
	t.Logf("a database takes %d KB, the console %d KB, and %d KB after visits", without>>10, with>>10, visited>>10)
	if with > most || visited > most {
		t.Errorf("the console takes %d bytes, and %d after visits; want at most %d", with, visited, most)
	}
}
