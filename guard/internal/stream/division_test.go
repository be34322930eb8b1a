package stream

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly/guard/internal/armed"
	"github.com/mayflydb/mayfly/guard/internal/strategy"
	"github.com/mayflydb/mayfly/guard/internal/table"
	"github.com/mayflydb/mayfly/internal/work/attr"
	"github.com/mayflydb/mayfly/internal/work/ensure"
	"github.com/mayflydb/mayfly/internal/work/lease"
)

// still is arming at an instant, in ms. Each armed deadline takes room.
type still struct {
	arming
	set *armed.Set
	now int64
}

func (g *still) Now() int64         { return g.now }
func (g *still) Rejected() bool     { return false }
func (g *still) Disarm(k armed.Key) { g.set.Disarm(k) }
func (g *still) Arm(e armed.Entry) {
	g.arming.Arm(e)
	g.set.Arm(e)
}

// dividedStrategy returns a strategy with a deadline table and these divisions. It may arm so many
// deadlines.
func dividedStrategy(t *testing.T, g *still, most int, all ...*division) *Strategy {
	t.Helper()
	db := open(t)
	g.set = armed.New()
	g.set.Most = most
	for _, spec := range []ensure.Spec{deadlinesSpec, {Name: "orders", Key: "pk"}} {
		_, err := ensure.Table(t.Context(), db, spec)
		must(t, err)
	}
	guarded, err := table.Describe(t.Context(), db, "orders")
	must(t, err)
	s := New(&strategy.Env{Guard: g, Armed: g.set, DB: db, Table: guarded, Log: slog.New(slog.DiscardHandler)}, nil)
	s.divide(all)
	return s
}

// If there is no room for all deadlines of a minute that is spread over several partition keys, those
// that are armed are the earliest, and the next poll begins at the first of the others.
func TestPollWithoutRoom(t *testing.T) {
	const start, rows, room = 1893456000_000, 100, 30
	g := &still{now: start + minute} // all are overdue
	s := dividedStrategy(t, g, room, &division{number: 2, partitions: 1, spread: spreadDefault, since: start})
	p := s.store.newest().parts[0]
	var all []*row
	for i := range rows {
		k, err := s.Table.KeyOf(map[string]types.AttributeValue{"pk": attr.S(fmt.Sprint(i))})
		must(t, err)
		all = append(all, &row{key: k, at: start + int64(i), p: p})
	}
	must(t, s.noteBuckets(t.Context(), all))
	must(t, s.put(t.Context(), all, nil))
	p.begin(start)
	o := &owner{partition: p, from: start}
	must(t, o.poll(t.Context()))
	armedAt := func() (at []int64) {
		for _, e := range g.entries {
			at = append(at, e.At-start)
		}
		slices.Sort(at)
		return at
	}
	if at := armedAt(); len(at) != room || at[room-1] != room-1 || o.from != start+room {
		t.Errorf("armed are %v, and the next poll begins at %d", at, o.from-start)
	}
	g.set.Most = rows
	must(t, o.poll(t.Context()))
	if at := armedAt(); len(at) != rows {
		t.Errorf("with room for all, %d of %d are armed: %v", len(at), rows, at)
	}
}

// Two divisions may have a row of the same item and instant, with different versions of the item.
// Both are tried, the newer one first, and a renewal takes both out.
func TestDivisionsWithTheSameInstant(t *testing.T) {
	for _, newerFirst := range []bool{false, true} {
		g := &still{now: 500}
		s := dividedStrategy(t, g, 10, &division{number: 1, partitions: 1, spread: 1}, &division{number: 2, partitions: 2, spread: 1})
		older, newer := s.store.live()[0].parts[0], s.store.live()[1].parts[s.store.newest().partitionOf("S\x01a")]
		version := func(v string) *row { return &row{key: "S\x01a", at: 1000, tag: 1, texts: &texts{version: v}} }
		find := func(newerFirst bool) {
			if !newerFirst {
				older.armFound(version("1"), false)
			}
			newer.armFound(version("2"), false)
			if newerFirst {
				older.armFound(version("1"), false)
			}
		}
		find(newerFirst)
		for _, want := range []string{"2", "1"} {
			batch, _ := g.set.Take(1000, 10)
			if len(batch) != 1 || batch[0].Version != want {
				t.Fatalf("tried is %+v; want version %s", batch, want)
			}
			g.set.End(batch[0], armed.Refused)
		}
		for _, r := range s.toClean() {
			r.cleaned()
		}
		find(newerFirst)
		s.disarm([]*row{{key: "S\x01a", at: 1000, by: byOf(1, "9")}})
		if n := g.set.Len(); n != 0 || len(s.shelfOf("S\x01a").items) != 0 {
			t.Errorf("%d deadlines are armed after a renewal", n)
		}
	}
}

// A division does not end while one of its workers does not know of a newer one: that worker writes
// its deadlines into it.
func TestDivisionOfUnawareWorkers(t *testing.T) {
	s := dividedStrategy(t, &still{now: 1}, 10, &division{number: 1, partitions: 2, spread: 1}, &division{number: 2, partitions: 4, spread: 1})
	must(t, s.store.replaceSettings(t.Context(), Settings{}, Settings{born: 1, partitions: 2, stream: "s", epoch: 1, Scans: 1}))
	must(t, s.store.replaceDivisions(t.Context(), "", s.store.live()))
	end := func() string {
		t.Helper()
		all, text, err := s.store.readDivisions(t.Context(), Settings{})
		must(t, err)
		must(t, s.endDivision(t.Context(), all, text))
		_, text, err = s.store.readDivisions(t.Context(), Settings{})
		must(t, err)
		return text
	}
	meet := func(kind string) {
		t.Helper()
		leases := lease.New(s.store.db, s.store.name(kind), lease.Options{Owner: "old"})
		rows, err := leases.Rows(t.Context())
		must(t, err)
		_, err = lease.NewCrew(leases).Meet(t.Context(), rows)
		must(t, err)
	}
	meet("partitions")
	if text := end(); text != divisionsText(s.store.live()) {
		t.Errorf("under a worker that knows only division 1, the divisions became %q", text)
	}
	meet("partitions/2")
	if text := end(); text != divisionsText(s.store.live()[1:]) {
		t.Errorf("with aware workers only, the divisions became %q", text)
	}
}

// If someone deletes the item of the divisions, a running worker stores it again. Without one, the
// next worker requests a scan, since it does not know the places of the deadlines.
func TestDivisionsDeleted(t *testing.T) {
	s := dividedStrategy(t, &still{now: 10 * minute}, 10, &division{number: 2, partitions: 2, spread: 1}, &division{number: 3, partitions: 4, spread: 1})
	set := Settings{born: 1, stream: "s", epoch: 1, Scans: 1, scanned: 1}
	must(t, s.store.replaceSettings(t.Context(), Settings{}, set))
	s.watchDivisions(t.Context())
	_, text, err := s.store.readDivisions(t.Context(), set)
	must(t, err)
	if text != divisionsText(s.store.live()) {
		t.Errorf("stored are %q", text)
	}
	_, err = s.store.db.DeleteItem(context.Background(), &dynamodb.DeleteItemInput{TableName: &s.store.spec.Name, Key: s.store.divisionsKey()})
	must(t, err)
	all, err := s.store.ensureDivisions(t.Context(), s.Now(), set, 0)
	must(t, err)
	if after, _, err := s.store.readSettings(t.Context()); err != nil || after.Scans != 2 || len(all) != 1 {
		t.Errorf("%d divisions, and settings %+v, %v", len(all), after, err)
	}
}
