package guard

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly/guard/journal"
)

// undoing returns options for a guard with a journal in a directory.
func (w *world) undoing(dir string) Options {
	o := w.options(Scan)
	o.Undo = journal.Dir(dir)
	return o
}

// remover starts a guard with a journal. The test arms by itself: see expire.
func (w *world) remover(dir string, change ...func(*Options)) *guarding {
	w.t.Helper()
	o := w.undoing(dir)
	for _, f := range change {
		f(&o)
	}
	return w.startIdle(o)
}

// expire arms items and waits until they are gone.
func (w *world) expire(r *guarding, names ...string) {
	w.t.Helper()
	for _, name := range names {
		r.arm(r.entry(w, name))
	}
	for _, name := range names {
		r.await(name+" is removed", func() bool { return !w.has(name) })
	}
	r.await("all have ended", func() bool { return r.armed.Len() == 0 })
}

// putBack puts back what was removed in the world's time so far.
func (w *world) putBack(dir string, change ...func(*PutBackOptions)) (PutBackReport, error) {
	o := PutBackOptions{DB: w.db, Table: worldTable, Journal: journal.Dir(dir), From: epoch, To: epoch.AddDate(1, 0, 0), TTL: KeepTTL, MaxWCU: 1e6, clock: w.local}
	for _, f := range change {
		f(&o)
	}
	return PutBack(w.t.Context(), o, nil)
}

// wantPutBack puts back and compares the report.
func (w *world) wantPutBack(dir string, want PutBackReport, change ...func(*PutBackOptions)) {
	w.t.Helper()
	got, err := w.putBack(dir, change...)
	must(w.t, err)
	if got != want {
		w.t.Errorf("put back: %+v; want %+v", got, want)
	}
}

var allTypes = map[string]types.AttributeValue{
	"s": s("text\n<é>"), "n": n("1.50E+2"), "b": &types.AttributeValueMemberB{Value: []byte{0, 255}}, "bool": &types.AttributeValueMemberBOOL{Value: true},
	"null": &types.AttributeValueMemberNULL{Value: true}, "l": &types.AttributeValueMemberL{Value: []types.AttributeValue{n("1"), s("")}},
	"m": &types.AttributeValueMemberM{Value: map[string]types.AttributeValue{"x": n("2")}}, "ss": &types.AttributeValueMemberSS{Value: []string{"a", "b"}},
	"ns": &types.AttributeValueMemberNS{Value: []string{"1", "2"}}, "bs": &types.AttributeValueMemberBS{Value: [][]byte{{1}, {2}}},
}

// Removed items come back as they were, with every type of attribute, with and without a sort key.
func TestUndo(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		with  []func(*world)
		items []string
	}{"partition key": {nil, []string{"a", "b", "c"}}, "sort key": {[]func(*world){withSort}, []string{"a/1", "a/2", "b/1"}}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, c.with...)
			dir := t.TempDir()
			was := map[string]any{}
			for _, item := range c.items {
				w.put(item, w.in(-1), allTypes)
				was[item] = w.get(item)
			}
			r := w.remover(dir)
			w.expire(r, c.items...)
			must(t, r.stop())
			w.wantPutBack(dir, PutBackReport{PutBack: 3})
			for _, item := range c.items {
				if got := w.get(item); !reflect.DeepEqual(got, was[item]) {
					t.Errorf("%s is %v; it was %v", item, got, was[item])
				}
			}
			w.wantPutBack(dir, PutBackReport{InUse: 3}) // again
		})
	}
}

// The span is from an instant, inclusive, until another one.
func TestUndoSpan(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	dir := t.TempDir()
	r := w.remover(dir)
	for _, name := range []string{"a", "b", "c"} {
		w.put(name, w.in(-1))
		w.expire(r, name)
		w.advance(time.Minute)
	}
	must(t, r.stop())
	span := func(o *PutBackOptions) { o.From, o.To = epoch.Add(time.Minute), epoch.Add(2*time.Minute) }
	w.wantPutBack(dir, PutBackReport{PutBack: 1}, span)
	if w.has("a") || !w.has("b") || w.has("c") {
		t.Error("not only b is back")
	}
}

// If a key was removed several times, its last image comes back; a key in use stays as it is.
func TestUndoLastImage(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	dir := t.TempDir()
	r := w.remover(dir)
	for i := range 3 {
		for _, name := range []string{"a", "used"} {
			w.put(name, w.in(-1), map[string]types.AttributeValue{"round": n(fmt.Sprint(i))})
			w.expire(r, name)
		}
		w.advance(40 * time.Minute) // in several files
	}
	must(t, r.stop())
	w.put("used", "", map[string]types.AttributeValue{"round": s("new")})
	for _, most := range []int{0, 5} { // the second run takes several passes
		w.remove("a")
		w.wantPutBack(dir, PutBackReport{PutBack: 1, InUse: 1, Older: 4}, func(o *PutBackOptions) { o.notesMost = most })
		if got := w.get("a")["round"]; !reflect.DeepEqual(got, n("2")) {
			t.Errorf("a comes back from round %v; want the last", got)
		}
		if got := w.get("used")["round"]; !reflect.DeepEqual(got, s("new")) {
			t.Errorf("the item in use is of round %v", got)
		}
	}
}

// A TTL is kept, removed or extended. The mark of an expiry does not come back.
func TestUndoTTL(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	dir := t.TempDir()
	old := w.in(-1)
	w.put("a", old)
	r := w.remover(dir, func(o *Options) { o.Mark = "mark" })
	w.expire(r, "a")
	must(t, r.stop())
	for _, c := range []struct {
		ttl  TTLChange
		want any
	}{{KeepTTL, n(old)}, {RemoveTTL, nil}, {ExtendTTL, n(w.in(3600))}} {
		w.wantPutBack(dir, PutBackReport{PutBack: 1}, func(o *PutBackOptions) { o.TTL, o.Extend = c.ttl, time.Hour })
		item := w.get("a")
		if got := item["ttl"]; c.want == nil && got != nil || c.want != nil && !reflect.DeepEqual(got, c.want) {
			t.Errorf("with %s the TTL is %v; want %v", c.ttl, got, c.want)
		}
		if item["mark"] != nil {
			t.Errorf("with %s the mark is back", c.ttl)
		}
		w.remove("a")
	}
}

// A dry run writes nothing and counts the keys in use.
func TestUndoDryRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	dir := t.TempDir()
	w.put("a", w.in(-1))
	w.put("used", w.in(-1))
	r := w.remover(dir)
	w.expire(r, "a", "used")
	must(t, r.stop())
	w.put("used", "")
	var found []Restored
	w.wantPutBack(dir, PutBackReport{PutBack: 1, InUse: 1}, func(o *PutBackOptions) {
		o.DryRun, o.TTL = true, ""
		o.Found = func(r Restored) { found = append(found, r) }
	})
	want := []Restored{{Key: `{"pk":{"S":"a"}}`, Removed: epoch, Deadline: epoch.Add(-time.Second), Confirmed: true}}
	if w.has("a") || !reflect.DeepEqual(found, want) {
		t.Errorf("a is back: %t; found %+v, want %+v", w.has("a"), found, want)
	}
}

// The image is durable before the delete: when the endpoint gets the delete, PutBack would find it.
// A process that dies there leaves an image without an outcome: the item is put back if it is gone,
// and left alone if it is there.
func TestUndoCrash(t *testing.T) {
	t.Parallel()
	for _, deleted := range []bool{false, true} {
		t.Run(fmt.Sprint("deleted ", deleted), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			dir, copied := t.TempDir(), filepath.Join(t.TempDir(), "copy")
			w.put("a", w.in(-1))
			copies := atomic.Bool{}
			w.via(func(r *http.Request, send func(*http.Request) (*http.Response, error)) (*http.Response, error) {
				if operation(r) == "DeleteItem" && copies.CompareAndSwap(false, true) {
					if err := os.CopyFS(copied, os.DirFS(dir)); err != nil { // the disk at the crash
						t.Error(err)
					}
				}
				return send(r)
			})
			r := w.remover(dir)
			w.expire(r, "a")
			must(t, r.stop())
			want := PutBackReport{PutBack: 1, Unconfirmed: 1}
			if !deleted {
				w.put("a", w.in(-1))
				want = PutBackReport{InUse: 1}
			}
			w.wantPutBack(copied, want)
		})
	}
}

// The answer to a delete is lost. The next attempt finds no item, which is not recorded as the
// outcome of the first: the item comes back.
func TestUndoLostAnswer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	dir := t.TempDir()
	w.put("a", w.in(-1))
	lost := atomic.Bool{}
	w.via(func(r *http.Request, send func(*http.Request) (*http.Response, error)) (*http.Response, error) {
		answer, err := send(r)
		if operation(r) == "DeleteItem" && lost.CompareAndSwap(false, true) {
			return nil, errors.New("the connection broke")
		}
		return answer, err
	})
	r := w.remover(dir)
	w.expire(r, "a")
	must(t, r.stop())
	w.wantPutBack(dir, PutBackReport{PutBack: 1, Unconfirmed: 1})
}

// An item that is renewed or deleted by its owner between image and delete was not removed by guard,
// and does not come back.
func TestUndoKept(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	dir := t.TempDir()
	w.put("renewed", w.in(-1))
	w.put("deleted", w.in(-1))
	later := w.in(3600)
	w.via(func(r *http.Request, send func(*http.Request) (*http.Response, error)) (*http.Response, error) {
		if operation(r) == "DeleteItem" {
			w.renew("renewed", later)
			w.remove("deleted")
		}
		return send(r)
	})
	r := w.remover(dir, func(o *Options) { o.Concurrency = 1 })
	r.arm(r.entry(w, "renewed"))
	r.arm(r.entry(w, "deleted"))
	r.awaitCount(Refused, 2)
	must(t, r.stop())
	w.remove("renewed") // by its owner, later
	w.wantPutBack(dir, PutBackReport{})
	if w.count() != 0 {
		t.Error("an item that its owner has deleted is back")
	}
}

// A throttled delete is repeated. Only the last attempt removes the item.
func TestUndoThrottled(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	dir := t.TempDir()
	w.put("a", w.in(-1))
	left := atomic.Int64{}
	left.Store(2)
	w.via(func(r *http.Request, send func(*http.Request) (*http.Response, error)) (*http.Response, error) {
		if operation(r) == "DeleteItem" && left.Add(-1) >= 0 {
			return fault(r, http.StatusBadRequest, "ProvisionedThroughputExceededException"), nil
		}
		return send(r)
	})
	r := w.remover(dir)
	w.expire(r, "a")
	must(t, r.stop())
	w.wantPutBack(dir, PutBackReport{PutBack: 1})
}

// An item that changes between image and delete comes back in its last state.
func TestUndoChanged(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	dir := t.TempDir()
	ttl := w.in(-1)
	w.put("a", ttl, map[string]types.AttributeValue{"state": s("first")})
	w.via(func(r *http.Request, send func(*http.Request) (*http.Response, error)) (*http.Response, error) {
		if operation(r) == "DeleteItem" {
			w.put("a", ttl, map[string]types.AttributeValue{"state": s("last")})
		}
		return send(r)
	})
	r := w.remover(dir)
	w.expire(r, "a")
	must(t, r.stop())
	w.wantPutBack(dir, PutBackReport{PutBack: 1}, func(o *PutBackOptions) { o.TTL, o.Extend = ExtendTTL, time.Hour })
	if item := w.get("a"); !reflect.DeepEqual(item["state"], s("last")) || !reflect.DeepEqual(item["ttl"], n(w.in(3600))) {
		t.Errorf("the item comes back as %v", item)
	}
}

// While the journal cannot be written, nothing is removed, and a problem says so. Guard goes on when
// it can be written again.
func TestUndoUnwritable(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	dir := filepath.Join(t.TempDir(), "journal")
	w.put("a", w.in(-1))
	r := w.remover(dir)
	must(t, os.Remove(dir)) // the check has made it
	must(t, os.WriteFile(dir, nil, 0o644))
	r.arm(r.entry(w, "a"))
	r.awaitCount(Retried, 2)
	if open := r.Problems(); len(open) != 1 || open[0].Code != NoJournal {
		t.Errorf("the problems are %v", open)
	}
	if !w.has("a") {
		t.Fatal("an item without an image is removed")
	}
	must(t, os.Remove(dir))
	r.await("a is removed", func() bool { return !w.has("a") })
	r.await("the problem has passed", func() bool { return len(r.Problems()) == 0 })
	must(t, r.stop())
	w.wantPutBack(dir, PutBackReport{PutBack: 1})
}

// While the journal cannot be written, outcomes beyond a limit are dropped. They are counted, and the
// first one is logged.
func TestUndoDropsOutcomes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	dir := filepath.Join(t.TempDir(), "journal")
	var mu sync.Mutex
	var lines bytes.Buffer
	o := w.undoing(dir)
	o.Logger = slog.New(slog.NewTextHandler(lockedWriter{&mu, &lines}, nil))
	r := w.startIdle(o)
	must(t, os.Remove(dir))
	must(t, os.WriteFile(dir, nil, 0o644))
	logged := func() int {
		mu.Lock()
		defer mu.Unlock()
		return strings.Count(lines.String(), "it will lack outcomes of removals")
	}
	for range 2 {
		for range 20_000 {
			r.undo.Note(journal.Entry{Kind: journal.Kept, ID: "a", Table: "t", Key: []byte("{}")})
		}
		if n := r.Stats().OutcomesDropped; n == 0 {
			t.Fatal("no outcome is dropped")
		}
		r.await("it is logged", func() bool { return logged() > 0 })
	}
	must(t, r.stop())
	if n := logged(); n != 1 {
		t.Errorf("it is logged %d times", n)
	}
}

// A journal that cannot be used at the start ends guard.
func TestUndoAtStart(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	file := filepath.Join(t.TempDir(), "file")
	must(t, os.WriteFile(file, nil, 0o644))
	g, err := New(w.undoing(file))
	must(t, err)
	var p *Problem
	if err := g.Run(t.Context()); !errors.As(err, &p) || p.Code != NoJournal {
		t.Errorf("guard ends with %v", err)
	}
}

// Two workers share a directory, and their removals come back together.
func TestUndoTwoWorkers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	dir := t.TempDir()
	var names []string
	one, two := w.remover(dir), w.remover(dir)
	for i := range 40 {
		names = append(names, fmt.Sprint("item-", i))
		w.put(names[i], w.in(-1))
	}
	for _, name := range names { // both try to remove most items
		e := one.entry(w, name)
		one.arm(e)
		two.arm(e)
	}
	for _, r := range []*guarding{one, two} {
		r.await("all have ended", func() bool { return r.armed.Len() == 0 })
		must(t, r.stop())
	}
	got, err := w.putBack(dir)
	must(t, err)
	if got.PutBack != 40 || got.Unconfirmed != 0 || w.count() != 40 {
		t.Errorf("%+v of 40 items, and %d are there", got, w.count())
	}
}

// Damage costs the entries that it hits, and is counted. The other items come back.
func TestUndoDamage(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	dir := t.TempDir()
	r := w.remover(dir)
	for i := range 5 {
		name := fmt.Sprint("item-", i)
		w.put(name, w.in(-1))
		w.expire(r, name)
	}
	must(t, r.stop())
	files, err := filepath.Glob(filepath.Join(dir, "*", "*"))
	must(t, err)
	data, err := os.ReadFile(files[0])
	must(t, err)
	at := bytes.Index(data, []byte(`"item-2"`))
	data[at+1] ^= 1
	must(t, os.WriteFile(files[0], append(data, "0123"...), 0o644))
	w.wantPutBack(dir, PutBackReport{PutBack: 4, Lost: 1, Damaged: 1, Torn: 1})
	if w.has("item-2") {
		t.Error("a damaged image is back")
	}
}

// A run that is interrupted can be repeated until all items are back.
func TestUndoInterrupted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	dir := t.TempDir()
	var names []string
	for i := range 60 {
		names = append(names, fmt.Sprint("item-", i))
		w.put(names[i], w.in(-1))
	}
	r := w.remover(dir)
	w.expire(r, names...)
	must(t, r.stop())
	ctx, cancel := context.WithCancel(t.Context())
	puts := atomic.Int64{}
	w.via(func(r *http.Request, send func(*http.Request) (*http.Response, error)) (*http.Response, error) {
		if operation(r) == "PutItem" && puts.Add(1) == 20 {
			cancel()
		}
		return send(r)
	})
	o := PutBackOptions{DB: w.db, Table: worldTable, Journal: journal.Dir(dir), From: epoch, To: epoch.Add(time.Hour), TTL: RemoveTTL, MaxWCU: 1e6}
	first, err := PutBack(ctx, o, nil)
	if !errors.Is(err, context.Canceled) || first.PutBack == 0 || first.PutBack == 60 {
		t.Fatalf("the first run ends with %+v, %v", first, err)
	}
	second, err := PutBack(t.Context(), o, nil)
	must(t, err)
	if w.count() != 60 || second.PutBack+second.InUse != 60 {
		t.Errorf("%d items are back after %+v and %+v", w.count(), first, second)
	}
}

// The endpoint's refusal of one item does not stop the others; a refusal of the call ends the run.
func TestUndoRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	dir := t.TempDir()
	w.put("a", w.in(-1))
	w.put("b", w.in(-1))
	r := w.remover(dir)
	w.expire(r, "a", "b")
	must(t, r.stop())
	code := "AccessDeniedException"
	puts := atomic.Int64{}
	w.via(func(r *http.Request, send func(*http.Request) (*http.Response, error)) (*http.Response, error) {
		if operation(r) == "PutItem" && (puts.Add(1) == 1 || code == "AccessDeniedException") {
			return fault(r, http.StatusBadRequest, code), nil
		}
		return send(r)
	})
	var p *Problem
	if _, err := w.putBack(dir); !errors.As(err, &p) || p.Code != AccessDenied {
		t.Errorf("without permission the run ends with %v", err)
	}
	code = "ValidationException"
	puts.Store(0)
	w.wantPutBack(dir, PutBackReport{PutBack: 1, Failed: 1})
	puts.Store(0)
	code = "ThrottlingException"
	w.wantPutBack(dir, PutBackReport{PutBack: 1, InUse: 1}) // throttled once
}

// Entries of other tables are counted and left alone.
func TestUndoOtherTable(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	dir := t.TempDir()
	w.createTable("others")
	w.put("a", w.in(-1))
	r := w.remover(dir)
	w.expire(r, "a")
	must(t, r.stop())
	w.wantPutBack(dir, PutBackReport{Others: 2}, func(o *PutBackOptions) { o.Table = "others" })
}

// Contradictions of the journal with other options are refused, and so is a run of PutBack without a
// choice for the TTL.
func TestUndoOptions(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for want, change := range map[string]func(*Options){
		"Undo: a journal needs removals one by one": func(o *Options) { o.Batch = 25 },
		"Undo: with the schedule strategy":          func(o *Options) { o.Strategy = Schedule },
	} {
		o := w.undoing(t.TempDir())
		change(&o)
		if _, err := New(o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error is %v; want %s", err, want)
		}
	}
	for want, change := range map[string]func(*PutBackOptions){
		`TTL: "" is not keep, remove or extend`: func(o *PutBackOptions) { o.TTL = "" },
		"TTL: 0s is not between":                func(o *PutBackOptions) { o.TTL = ExtendTTL },
		"From: 2030-01-01T00:00:00Z is not":     func(o *PutBackOptions) { o.To = epoch },
	} {
		if _, err := w.putBack(t.TempDir(), change); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error is %v; want %s", err, want)
		}
	}
}
