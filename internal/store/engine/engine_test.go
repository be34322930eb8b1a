package engine

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/mayflydb/mayfly/internal/clock"
	"github.com/mayflydb/mayfly/internal/store/dynamo"
	"github.com/mayflydb/mayfly/internal/store/kv"
)

// epoch is the instant at which most tests start, with the clock frozen.
var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// db is an engine under test with its reaper running.
type db struct {
	*Engine
	t    testing.TB
	stop func() error
}

// frozenClock returns a clock that is frozen at exactly epoch. A clock that is started and then
// frozen may show a millisecond more.
func frozenClock() *clock.Clock { return clock.NewFrozenAt(epoch) }

// openMemory opens a memory engine with a frozen clock.
func openMemory(t testing.TB, change ...func(*Options)) *db {
	o := Options{Clock: frozenClock(), Durability: kv.Memory}
	for _, f := range change {
		f(&o)
	}
	d := open(t, o)
	t.Cleanup(func() { d.close() })
	return d
}

func open(t testing.TB, o Options) *db {
	t.Helper()
	e, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	return run(t, e)
}

func run(t testing.TB, e *Engine) *db {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- e.Run(ctx) }()
	d := &db{Engine: e, t: t}
	d.stop = sync.OnceValue(func() error { cancel(); return <-done })
	return d
}

func (d *db) close() {
	d.t.Helper()
	if d.stop == nil {
		return
	}
	if err := d.stop(); err != nil {
		d.t.Errorf("run: %v", err)
	}
	d.stop = nil
	if err := d.Engine.Close(); err != nil {
		d.t.Errorf("close: %v", err)
	}
}

// table creates a table with partition key pk (S), sort key sk (N), TTL attribute ttl, an index by
// g (S), and a stream.
func (d *db) table(name string, change ...func(*TableDesc)) *Table {
	d.t.Helper()
	desc := TableDesc{
		Namespace: "default", Name: name,
		Key: KeySchema{
			Partition: []KeyAttr{{"pk", dynamo.KindString}},
			Sort:      []KeyAttr{{"sk", dynamo.KindNumber}},
		},
		Indexes: []IndexDesc{{
			Name: "byG", Global: true, Projection: Projection{Type: "ALL"},
			Key: KeySchema{Partition: []KeyAttr{{"g", dynamo.KindString}}},
		}},
		TTL:    TTLDesc{Attribute: "ttl"},
		Stream: StreamSpec{ViewType: "NEW_AND_OLD_IMAGES"},
	}
	for _, f := range change {
		f(&desc)
	}
	t, err := d.CreateTable(context.Background(), desc)
	if err != nil {
		d.t.Fatal(err)
	}
	return t
}

// item returns an item of name, value pairs: a string is an S, an int an N.
func item(pairs ...any) dynamo.Item {
	var b dynamo.Builder
	for i := 0; i < len(pairs); i += 2 {
		switch v := pairs[i+1].(type) {
		case string:
			b.Set(pairs[i].(string), dynamo.AppendString(nil, v))
		case int:
			b.Set(pairs[i].(string), number(strconv.Itoa(v)))
		default:
			panic(fmt.Sprintf("item: %T", v))
		}
	}
	return b.Item()
}

func number(text string) dynamo.Value {
	n, err := dynamo.AppendNumber(nil, []byte(text))
	if err != nil {
		panic(err)
	}
	return dynamo.AppendN(nil, n)
}

// unix returns an instant d after epoch, in whole epoch seconds.
func unix(d time.Duration) int { return int(epoch.Add(d).Unix()) }

func (d *db) put(t *Table, it dynamo.Item) *Write {
	d.t.Helper()
	w := &Write{Table: t, Key: keyOf(d.t, t, it), ReadOld: true, Decide: func(dynamo.Item, Instant) (dynamo.Item, error) { return it, nil }}
	if err := d.Write(context.Background(), w); err != nil {
		d.t.Fatal(err)
	}
	return w
}

func (d *db) delete(t *Table, it dynamo.Item) *Write {
	d.t.Helper()
	w := &Write{Table: t, Key: keyOf(d.t, t, it), ReadOld: true, Decide: func(dynamo.Item, Instant) (dynamo.Item, error) { return nil, nil }}
	if err := d.Write(context.Background(), w); err != nil {
		d.t.Fatal(err)
	}
	return w
}

func keyOf(t testing.TB, tab *Table, it dynamo.Item) Key {
	t.Helper()
	k, err := tab.Desc().KeyOf(it)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// get returns an item, or nil if it does not exist.
func (d *db) get(t *Table, it dynamo.Item) (out dynamo.Item) {
	d.t.Helper()
	err := d.Read(context.Background(), func(v *View) (err error) {
		out, _, err = v.Get(t, keyOf(d.t, t, it))
		return err
	})
	if err != nil {
		d.t.Fatal(err)
	}
	return out
}

// items returns the items of a range.
func (d *db) items(t *Table, r Range) (out []dynamo.Item) {
	d.t.Helper()
	err := d.Read(context.Background(), func(v *View) error {
		out = nil
		return v.Range(t, r, func(it dynamo.Item) (bool, error) {
			out = append(out, append(dynamo.Item{}, it...))
			return true, nil
		})
	})
	if err != nil {
		d.t.Fatal(err)
	}
	return out
}

// records returns every durable record of the table's present stream, shard by shard, parents
// first.
func (d *db) records(t *Table) (out []Record) {
	d.t.Helper()
	s := t.Desc().Stream
	desc, err := d.StreamByLabel("default", t.Desc().Name, s.Label)
	if err != nil {
		d.t.Fatal(err)
	}
	for _, sh := range desc.Shards {
		for from := sh.Trimmed + 1; ; {
			page, err := d.Records(context.Background(), desc.ID, sh.No, from, 1000, 1<<20, 0)
			if err != nil {
				d.t.Fatal(err)
			}
			out = append(out, page.Records...)
			if len(page.Records) == 0 {
				break
			}
			from = page.Next
		}
	}
	return out
}

func (d *db) advance(by time.Duration) AdvanceReport {
	d.t.Helper()
	r, err := d.Advance(context.Background(), by, 30*time.Second)
	if err != nil || r.Unfinished {
		d.t.Fatalf("advance: %+v %v", r, err)
	}
	return r
}

func (d *db) verify() {
	d.t.Helper()
	if err := d.Verify(context.Background()); err != nil {
		d.t.Error(err)
	}
}

func TestPutExpireRecord(t *testing.T) {
	d := openMemory(t)
	tab := d.table("events")
	a := item("pk", "a", "sk", 1, "g", "x", "ttl", unix(10*time.Second))
	d.put(tab, a)
	if got := d.get(tab, a); got.String() != a.String() {
		t.Fatalf("got %v", got)
	}
	d.verify()
	ix := tab.Desc().Index("byG")
	byG := Range{Index: ix, Partition: []dynamo.Value{dynamo.AppendString(nil, "x")}}
	if got := d.items(tab, byG); len(got) != 1 {
		t.Fatalf("index has %d", len(got))
	}
	d.advance(9999 * time.Millisecond)
	if d.get(tab, a) == nil {
		t.Fatal("gone before its deadline")
	}
	d.advance(time.Millisecond)
	if d.get(tab, a) != nil || len(d.items(tab, byG)) != 0 || len(d.items(tab, Range{})) != 0 {
		t.Fatal("there at its deadline")
	}
	rs := d.records(tab)
	if len(rs) != 2 || rs[0].Event != Insert || rs[1].Event != Remove || !rs[1].Service || rs[1].Old.String() != a.String() {
		t.Fatalf("records: %+v", rs)
	}
	d.verify()
}

func TestRefused(t *testing.T) {
	d := openMemory(t)
	tab := d.table("events")
	a := item("pk", "a", "sk", 1)
	no := errors.New("no")
	w := &Write{Table: tab, Key: keyOf(t, tab, a), Decide: func(dynamo.Item, Instant) (dynamo.Item, error) { return nil, no }}
	ok := &Write{Table: tab, Key: keyOf(t, tab, item("pk", "b", "sk", 1)), Decide: func(dynamo.Item, Instant) (dynamo.Item, error) { return item("pk", "b", "sk", 1), nil }}
	if err := d.Write(context.Background(), ok, w); !errors.Is(err, ErrRefused) || w.Err != no || ok.Err != nil {
		t.Fatal(err, w.Err, ok.Err)
	}
	if d.get(tab, item("pk", "b", "sk", 1)) != nil {
		t.Fatal("half a batch was applied")
	}
}
