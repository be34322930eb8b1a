package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mayflydb/mayfly/internal/invariant"
	"github.com/mayflydb/mayfly/internal/store/dynamo"
	"github.com/mayflydb/mayfly/internal/store/kv"
)

// gate delays or fails every sync of a disk.
type gate struct {
	disk *kv.CrashFS
	mu   sync.Mutex
	cond sync.Cond
	shut bool
	err  error // the error of failed syncs
}

// gatedOpen opens an engine whose syncs pass an open gate.
func gatedOpen(t testing.TB) (*gate, *db) {
	g := &gate{disk: kv.NewCrashFS()}
	g.cond.L = &g.mu
	g.disk.BeforeSync = g.pass
	return g, run(t, must(Open(crashOptions(g.disk)))(t))
}

func must(e *Engine, err error) func(t testing.TB) *Engine {
	return func(t testing.TB) *Engine {
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
}

func (g *gate) pass(string) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	for g.shut {
		g.cond.Wait()
	}
	return g.err
}

func (g *gate) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.shut = true
}

// open releases all waiting and later syncs, with err if it is not nil.
func (g *gate) open(err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.shut, g.err = false, err
	g.cond.Broadcast()
}

// running tracks which of several calls have returned.
type running struct {
	wg       sync.WaitGroup
	returned atomic.Int32
	mu       sync.Mutex
	answers  map[string]string // the result of each call, by name
	errs     map[string]error
}

func newRunning() *running { return &running{answers: map[string]string{}, errs: map[string]error{}} }

// start runs a call.
func (r *running) start(name string, call func() (string, error)) {
	r.wg.Go(func() {
		answer, err := call()
		r.mu.Lock()
		defer r.mu.Unlock()
		r.answers[name], r.errs[name] = answer, err
		r.returned.Add(1)
	})
}

// settle leaves running calls ample time to return. No test fails because it was too short.
func settle() {
	for range 2000 {
		runtime.Gosched()
	}
}

// early returns the answers so far, by name.
func (r *running) early() map[string]string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.answers)
}

// TestNothingLostAckFollowsSync: no write is acknowledged before its sync, single or in a batch,
// through any call.
func TestNothingLostAckFollowsSync(t *testing.T) {
	holds(t, func(t testing.TB) {
		g, d := gatedOpen(t)
		tab := d.table("events")
		d.put(tab, item("pk", "old", "sk", 1))
		g.close()
		before := d.lastCommit.Load()
		r := newRunning()
		ctx := context.Background()
		const writers = 20
		for i := range writers {
			a, b := item("pk", fmt.Sprint("a", i), "sk", 1, "g", "x", "ttl", unix(time.Hour)), item("pk", fmt.Sprint("b", i), "sk", 1)
			r.start(fmt.Sprint("batch ", i), func() (string, error) { return "", d.Write(ctx, set(t, tab, a), set(t, tab, b)) })
		}
		r.start("delete", func() (string, error) { return "", d.Write(ctx, unset(t, tab, item("pk", "old", "sk", 1))) })
		for d.lastCommit.Load() < before+writers+1 {
			runtime.Gosched()
		}
		settle()
		if early := r.early(); len(early) > 0 {
			t.Errorf("acknowledged before the sync: %v", early)
		}
		g.open(nil)
		r.wg.Wait()
		for name, err := range r.errs {
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		d.close()
	}, invariant.AckBeforeSync)
}

// TestNothingLostAnswerFollowsSync: an answer that depends on an unsynced commit waits for the
// sync; other answers do not.
func TestNothingLostAnswerFollowsSync(t *testing.T) {
	holds(t, func(t testing.TB) {
		g, d := gatedOpen(t)
		tab := d.table("events")
		a := item("pk", "a", "sk", 1, "g", "x")
		other := item("pk", "other", "sk", 1, "g", "y")
		d.put(tab, other)
		d.put(tab, item("pk", "expiring", "sk", 1, "ttl", unix(time.Hour)))
		ctx := context.Background()
		g.close()
		r := newRunning()
		r.start("write", func() (string, error) { return "", d.Write(ctx, set(t, tab, a)) })
		for applied := dynamo.Item(nil); applied == nil; _, applied = d.stored(tab, a) {
			runtime.Gosched()
		}
		read := func(name string, rng Range) {
			r.start(name, func() (answer string, err error) {
				err = d.Read(ctx, func(v *View) error {
					answer = ""
					return v.Range(tab, rng, func(it dynamo.Item) (bool, error) { answer += it.String(); return true, nil })
				})
				return answer, err
			})
		}
		get := func(name string, key dynamo.Item, read func(context.Context, func(*View) error) error) {
			r.start(name, func() (answer string, err error) {
				err = read(ctx, func(v *View) error {
					it, _, err := v.Get(tab, keyOf(t, tab, key))
					answer = it.String()
					return err
				})
				return answer, err
			})
		}
		get("get", a, d.Read)
		get("snapshot", a, d.ReadSnapshot)
		read("query", Range{Partition: []dynamo.Value{dynamo.AppendString(nil, "a")}})
		read("scan", Range{})
		read("index query", Range{Index: tab.Desc().Index("byG"), Partition: []dynamo.Value{dynamo.AppendString(nil, "x")}})
		r.start("refused write", func() (string, error) {
			no := errors.New("no")
			w := refuse(t, tab, a, no)
			if err := d.Write(ctx, w); !errors.Is(err, ErrRefused) {
				return "", err
			}
			return "", nil
		})
		r.start("unchanged write", func() (string, error) { return "", d.Write(ctx, set(t, tab, a)) })
		get("get of another", other, d.Read)
		read("query of another", Range{Partition: []dynamo.Value{dynamo.AppendString(nil, "other")}})
		for r.returned.Load() < 2 {
			runtime.Gosched()
		}
		settle()
		for name, answer := range r.early() {
			if name != "get of another" && name != "query of another" {
				t.Errorf("%s was answered with %q before the sync", name, answer)
			}
		}
		if n := len(d.records(tab)); n != 2 {
			t.Errorf("a reader of the stream sees %d records, of which 2 are on disk", n)
		}
		g.open(nil)
		r.wg.Wait()
		for name, err := range r.errs {
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		if r.answers["get"] != a.String() || r.answers["scan"] == "" {
			t.Errorf("answers: %v", r.answers)
		}
		d.close()
	}, invariant.ServeUndurable)
}

// TestNothingLostHidingIsDurable: a read that hides an item by the clock is answered once no crash
// can bring the item back.
func TestNothingLostHidingIsDurable(t *testing.T) {
	holds(t, func(t testing.TB) {
		g, d := gatedOpen(t)
		tab := d.table("events")
		a := item("pk", "a", "sk", 1, "ttl", unix(time.Second))
		d.put(tab, a)
		d.still()
		g.close()
		if err := d.clock.Advance(time.Second); err != nil {
			t.Fatal(err)
		}
		r := newRunning()
		r.start("get", func() (answer string, err error) {
			err = d.Read(context.Background(), func(v *View) error {
				it, _, err := v.Get(tab, keyOf(t, tab, a))
				answer = it.String()
				return err
			})
			return answer, err
		})
		r.start("refused write", func() (string, error) {
			w := refuse(t, tab, a, errors.New("there is none"))
			if err := d.Write(context.Background(), w); !errors.Is(err, ErrRefused) {
				return "", err
			}
			return "", nil
		})
		r.start("delete", func() (string, error) { return "", d.Write(context.Background(), unset(t, tab, a)) })
		settle()
		if early := r.early(); len(early) > 0 {
			t.Errorf("%v answered that it is gone, before a later instant is on disk", early)
		}
		g.open(nil)
		r.wg.Wait()
		if r.errs["get"] != nil || r.errs["refused write"] != nil || r.errs["delete"] != nil || r.answers["get"] != dynamo.Item(nil).String() {
			t.Errorf("%v %v", r.answers, r.errs)
		}
		g.disk.CutNow()
		_ = d.Engine.Close() // after the cut
		e := must(Open(crashOptions(g.disk.AfterCrash())))(t)
		again := run(t, e)
		if again.get(again.reopened("events"), a) != nil {
			t.Error("it came back after a crash")
		}
		again.close()
	}, invariant.ServeUndurable)
}

// Tables and streams are shown once no crash can take them back.
func TestCatalogueAnswersAreDurable(t *testing.T) {
	g, d := gatedOpen(t)
	d.table("first")
	ctx := context.Background()
	g.close()
	commits := d.lastCommit.Load()
	r := newRunning()
	r.start("create", func() (string, error) {
		_, err := d.CreateTable(ctx, TableDesc{Namespace: "default", Name: "second", Key: recordSchema, Stream: StreamSpec{ViewType: "KEYS_ONLY"}})
		return "", err
	})
	for d.lastCommit.Load() == commits {
		runtime.Gosched()
	}
	r.start("table", func() (string, error) { _, err := d.Table("default", "second"); return "", err })
	r.start("streams", func() (string, error) { s, err := d.Streams(); return fmt.Sprint(len(s)), err })
	r.start("names", func() (string, error) {
		names, _, err := d.TableNames("default", "", 10)
		return fmt.Sprint(names), err
	})
	settle()
	if early := r.early(); len(early) > 0 {
		t.Errorf("answered before the sync: %v", early)
	}
	g.open(nil)
	r.wg.Wait()
	for name, err := range r.errs {
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	d.close()
}

// The end of a shard is reported once no crash can open it again.
func TestEndOfShardIsDurable(t *testing.T) {
	g, d := gatedOpen(t)
	tab := d.table("events")
	stream := d.stream(tab)
	g.close()
	commits := d.lastCommit.Load()
	r := newRunning()
	r.start("disable", func() (string, error) {
		_, err := d.Alter(context.Background(), "default", "events", func(td *TableDesc, _ Instant) error {
			td.Stream.ViewType = ""
			return nil
		})
		return "", err
	})
	for d.lastCommit.Load() == commits {
		runtime.Gosched()
	}
	r.start("records", func() (string, error) {
		page, err := d.Records(context.Background(), stream.ID, 1, 1, 10, 1<<20, 0)
		return fmt.Sprint(page.End), err
	})
	settle()
	if early := r.early(); len(early) > 0 {
		t.Errorf("answered before the sync: %v", early)
	}
	g.open(nil)
	r.wg.Wait()
	if r.errs["disable"] != nil || r.errs["records"] != nil || r.answers["records"] != "true" {
		t.Errorf("%v %v", r.answers, r.errs)
	}
	d.close()
}

// A failed sync stops the store: every waiting and every later call returns ErrStopped, and no
// earlier acknowledged write is lost.
func TestFailedSync(t *testing.T) {
	g, d := gatedOpen(t)
	tab := d.table("events")
	acked := item("pk", "acked", "sk", 1, "g", "x", "ttl", unix(time.Hour))
	d.put(tab, acked)
	stream := d.stream(tab)
	ctx := context.Background()
	g.close()
	commits := d.lastCommit.Load()
	r := newRunning()
	for i := range 5 {
		r.start(fmt.Sprint("write ", i), func() (string, error) { return "", d.Write(ctx, set(t, tab, item("pk", fmt.Sprint(i), "sk", 1))) })
	}
	for d.lastCommit.Load() < commits+5 {
		runtime.Gosched()
	}
	scan := func() error {
		return d.Read(ctx, func(v *View) error {
			return v.Range(tab, Range{}, func(dynamo.Item) (bool, error) { return true, nil })
		})
	}
	for _, sh := range stream.Shards {
		r.start(fmt.Sprint("records ", sh.No), func() (string, error) {
			_, err := d.Records(ctx, stream.ID, sh.No, d.NextSeq(), 1, 1, time.Hour)
			return "", err
		})
	}
	r.start("scan", func() (string, error) { return "", scan() })
	settle()
	g.open(errors.New("the disk is broken"))
	r.wg.Wait()
	for name, err := range r.errs {
		if !errors.Is(err, ErrStopped) {
			t.Errorf("%s waited for the sync that failed: %v", name, err)
		}
	}
	<-d.Failed()
	_, created := d.CreateTable(ctx, TableDesc{Namespace: "default", Name: "new", Key: recordSchema})
	_, read := d.Records(ctx, stream.ID, 1, 1, 1, 1, 0)
	_, stats := tab.Stats(ctx)
	for what, err := range map[string]error{
		"write": d.Write(ctx, set(t, tab, item("pk", "late", "sk", 1))), "create": created, "read": scan(), "records": read, "stats": stats, "err": d.Err(),
	} {
		if !errors.Is(err, ErrStopped) {
			t.Errorf("%s after the failure: %v", what, err)
		}
	}
	if err := d.stop(); !errors.Is(err, ErrStopped) {
		t.Errorf("run: %v", err)
	}
	if err := d.Engine.Close(); err == nil {
		t.Error("close says nothing of the failure")
	}
	after := run(t, must(Open(crashOptions(g.disk.AfterCrash())))(t))
	defer after.close()
	tab = after.reopened("events")
	if it := after.get(tab, acked); it.String() != acked.String() {
		t.Errorf("acknowledged before the failure, and now %v", it)
	}
	after.verify()
}

// A store that fails in the background reports it.
func TestFailedFlush(t *testing.T) {
	g, d := gatedOpen(t)
	d.put(d.table("events"), item("pk", "a", "sk", 1))
	g.open(errors.New("the disk is broken"))
	_ = d.kv.Flush() // the store's state shows its outcome
	<-d.Failed()
	if err := d.stop(); !errors.Is(err, ErrStopped) {
		t.Errorf("run: %v", err)
	}
	_ = d.Engine.Close()
}

// In async durability a write is answered at once, and a clean stop keeps it.
func TestAsync(t *testing.T) {
	dir := newDirectory(func(o *Options) { o.Durability = kv.Async })
	d := dir.open(t)
	tab := d.table("events")
	a := item("pk", "a", "sk", 1)
	d.put(tab, a)
	if d.get(tab, a) == nil || len(d.records(tab)) != 1 {
		t.Error("not seen")
	}
	d.close()
	d = dir.open(t)
	if d.get(d.reopened("events"), a) == nil {
		t.Error("lost by a clean end")
	}
}

// TestSnapshotIsOneState: everything that one ReadSnapshot shows existed at one moment. Here item b
// is written seconds after item a has gone, between the two passes of a read that began while a
// existed.
func TestSnapshotIsOneState(t *testing.T) {
	d := openMemory(t)
	tab := d.table("events")
	d.still()
	x := item("pk", "x", "sk", 1, "ttl", unix(time.Second))
	a := item("pk", "a", "sk", 1, "ttl", unix(3*time.Second))
	b := item("pk", "b", "sk", 1)
	d.put(tab, x)
	d.put(tab, a)
	if err := d.clock.Advance(time.Second); err != nil {
		t.Fatal(err)
	}
	looks := 0
	var gotA, gotB dynamo.Item
	err := d.ReadSnapshot(context.Background(), func(v *View) (err error) {
		// hidden by the clock: the read runs again
		if _, _, err := v.Get(tab, keyOf(t, tab, x)); err != nil {
			return err
		}
		if looks++; looks == 1 {
			if err := d.clock.Advance(5 * time.Second); err != nil {
				return err
			}
			d.put(tab, b)
		}
		if gotA, _, err = v.Get(tab, keyOf(t, tab, a)); err != nil {
			return err
		}
		gotB, _, err = v.Get(tab, keyOf(t, tab, b))
		return err
	})
	if err != nil || looks != 2 {
		t.Fatalf("%d looks: %v", looks, err)
	}
	if gotA != nil && gotB != nil {
		t.Errorf("a, gone at 3 s, and b, written at 6 s, were never there at once: %v, %v", gotA, gotB)
	}
}
