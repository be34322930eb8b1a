package console

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/mayflydb/mayfly"
)

// watched returns the pages of the same database, with a function that sees each call of an operation
// first.
func (s *site) watched(operation string, see func(r *http.Request)) *site {
	s.t.Helper()
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.Header.Get("X-Amz-Target"), "."+operation) {
			see(r)
		}
		s.db.Handler().ServeHTTP(w, r)
	}))
	s.t.Cleanup(api.Close)
	pages := httptest.NewServer(Handler(Options{Config: aws.Config{Region: "us-east-1"}, URL: api.URL}))
	s.t.Cleanup(pages.Close)
	return visitor(s.t, pages.URL, s.db)
}

// importLines imports a file of lines into the table things.
func (s *site) importLines(text string) answer {
	s.t.Helper()
	return s.upload("table/things/import", url.Values{"token": {s.token()}}, "items.jsonl", []byte(text))
}

// lines returns lines of items with numbered keys.
func lines(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `{"id":"%d"}`+"\n", i)
	}
	return b.String()
}

// TestImportWritesSeveralBatchesAtOnce: the second batch does not wait for the answer to the first.
func TestImportWritesSeveralBatchesAtOnce(t *testing.T) {
	s := open(t, mayfly.Options{})
	s.table("things")
	var calls atomic.Int32
	second := make(chan struct{})
	limit := time.After(30 * time.Second)
	a := s.watched("BatchWriteItem", func(*http.Request) {
		switch calls.Add(1) {
		case 1:
			select {
			case <-second:
			case <-limit:
				t.Error("the batches come one by one")
			}
		case 2:
			close(second)
		}
	}).importLines(lines(1000))
	if a.status != http.StatusSeeOther || a.header.Get("Location") != below+"table/things/import?written=1000" || len(s.contents("things")) != 1000 {
		t.Errorf("the answer is %d %s, and the table has %d items", a.status, a.header.Get("Location"), len(s.contents("things")))
	}
}

// TestImportIsOneAtATime: while an import runs, another one is refused, with its page. Afterwards it is not.
func TestImportIsOneAtATime(t *testing.T) {
	s := open(t, mayfly.Options{})
	s.table("things")
	var pages *site
	var once sync.Once
	pages = s.watched("BatchWriteItem", func(*http.Request) {
		once.Do(func() {
			if text := pages.importLines(lines(1)).refused(t, http.StatusTooManyRequests); !strings.Contains(text, "Another import is running") {
				t.Errorf("the second import is refused with %.300s", text)
			}
		})
	})
	for range 2 {
		if a := pages.importLines(lines(3)); a.status != http.StatusSeeOther {
			t.Errorf("the import has the status %d: %.300s", a.status, a.body)
		}
	}
}

// TestImportStopsAndCounts: an import that fails says how many items were written.
func TestImportStopsAndCounts(t *testing.T) {
	s := open(t, mayfly.Options{})
	s.table("things")
	var calls atomic.Int32
	text := s.watched("BatchWriteItem", func(*http.Request) {
		if calls.Add(1) == 10 {
			_, err := s.db.DynamoDB().DeleteTable(t.Context(), &dynamodb.DeleteTableInput{TableName: aws.String("things")})
			must(t, err)
		}
	}).importLines(lines(1000)).refused(t, http.StatusNotFound)
	if !strings.Contains(text, "of 1,000 items were written") || strings.Contains(text, "1,000 of 1,000") || !strings.Contains(text, "ResourceNotFoundException") {
		t.Errorf("it says %.600s", text)
	}
}

// TestImportChecksAllLinesFirst: a bad line is named, and nothing is written. The same holds for files
// that are too large.
func TestImportChecksAllLinesFirst(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	s := open(t, mayfly.Options{})
	s.table("things")
	for text, want := range map[string]string{
		lines(99) + "\n{\"id\":1}\n":                             "line 101",
		lines(1) + `{"id":"` + strings.Repeat("x", 3<<20) + `"}`: "line 2: it has more than",
		lines(importItems + 1):                                   "more than 50,000 items",
	} {
		if got := s.importLines(text).refused(t, http.StatusBadRequest); !strings.Contains(got, want) || !strings.Contains(got, "Nothing was written") {
			t.Errorf("%.600s; want %q", got, want)
		}
	}
	if got := s.importLines(strings.Repeat("\n", importBytes+1)).refused(t, http.StatusRequestEntityTooLarge); !strings.Contains(got, "mayfly import has no limit") {
		t.Errorf("a large file: %.300s", got)
	}
	if got := s.contents("things"); len(got) > 0 {
		t.Errorf("the table has %.300q", got)
	}
	if left, err := os.ReadDir(os.Getenv("TMPDIR")); err != nil || len(left) > 0 {
		t.Errorf("files are left: %v, %v", left, err)
	}
}

// TestImportKeepsTheLastOfAKey: of several items with a key, the last one counts, as if they were
// written one by one.
func TestImportKeepsTheLastOfAKey(t *testing.T) {
	s := open(t, mayfly.Options{})
	s.table("things")
	var b strings.Builder
	for i := range 500 {
		fmt.Fprintf(&b, `{"id":"%d","n":%d}`+"\n", i%3, i)
	}
	a := s.importLines(b.String())
	if got := strings.Join(s.contents("things"), " "); a.status != http.StatusSeeOther || got != `{"id":{"S":"0"},"n":{"N":"498"}} {"id":{"S":"1"},"n":{"N":"499"}} {"id":{"S":"2"},"n":{"N":"497"}}` {
		t.Errorf("the answer is %d, and the table has %s", a.status, got)
	}
}

// TestImportTakesBoundedMemory: values take ten times as much memory as their text, so that only the
// batches that are being written may be in memory.
func TestImportTakesBoundedMemory(t *testing.T) {
	s := open(t, mayfly.Options{})
	s.table("things")
	var b strings.Builder
	list := strings.TrimSuffix(strings.Repeat(`{"M":{}},`, 100_000), ",")
	for i := range 28 {
		fmt.Fprintf(&b, `{"id":{"S":"%d"},"l":{"L":[%s]}}`+"\n", i, list)
	}
	text := b.String()
	live := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	var mu sync.Mutex
	base, most := live(), uint64(0)
	a := s.watched("BatchWriteItem", func(*http.Request) {
		mu.Lock() // no call is answered before the import reads no further
		defer mu.Unlock()
		for steady := 0; steady < 3; steady++ {
			if now := live(); now > most+1<<20 {
				most, steady = now, 0
			}
		}
	}).importLines(text)
	if a.status != http.StatusSeeOther || len(s.contents("things")) != 28 {
		t.Fatalf("the answer is %d: %.300s", a.status, a.body)
	}
	// the test itself holds the form, and the database the items
	if grown := (most - base) >> 20; grown > 130 {
		t.Errorf("the import takes %d MB", grown)
	}
}
