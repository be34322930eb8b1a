package planner

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func made(t *testing.T, w Workload, prices string) *Report {
	t.Helper()
	p, err := embedded(prices)
	if err != nil {
		t.Fatal(err)
	}
	r, err := Make(w, p)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestPriceTables(t *testing.T) {
	for _, name := range []string{USEast1, USEast1From2018} {
		p, err := embedded(name)
		if err != nil || p.Region != "us-east-1" {
			t.Fatalf("%s: %v", name, err)
		}
		// A table survives its own JSON.
		text, err := json.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		again, err := ReadPrices(bytes.NewReader(text))
		if err != nil || !cmp.Equal(p, again) {
			t.Errorf("%s: %v\n%s", name, err, cmp.Diff(p, again))
		}
	}
	if _, err := Table("mars-1"); err == nil || err.Error() != `unknown price table "mars-1"; built in are us-east-1 and us-east-1-2018` {
		t.Error(err)
	}
}

func TestPricesThatAreNone(t *testing.T) {
	good, _ := Table(USEast1)
	with := func(old, new string) string {
		if !strings.Contains(string(good), old) {
			t.Fatalf("the table has no %q", old)
		}
		return strings.Replace(string(good), old, new, 1)
	}
	for _, x := range []struct{ file, says string }{
		{"", "the price table is empty"},
		{"{", "the price table cannot be read: line 1, column 2: it is neither YAML nor JSON: did not find expected node content"},
		{with("gb_month: 0.25", "gb_months: 0.25"), "the price table cannot be read: line 13, column 3: unknown setting gb_months"},
		{with("  gb_month: 0.25\n", ""), "storage.gb_month is missing"},
		{with("write_per_million: 0.625", "write_per_million: free"), `"free" is not a number`},
		{with("write_per_million: 0.625", "write_per_million: -1"), "on_demand.write_per_million: -1 is not between 0 and 1e+15"},
		{with("write_per_million: 0.625", "write_per_million: .inf"), "on_demand.write_per_million: +Inf is not between 0 and 1e+15"},
		{with("write_per_million: 0.625", "write_per_million: .nan"), "on_demand.write_per_million is missing"},
		{with("gb_bytes: 1000000000", "gb_bytes: 0"), "storage.gb_bytes: must be above 0"},
		{with("since: 2024-11-01", "since: yesterday"), `since: "yesterday" is not a date such as 2024-11-01`},
		{with("region: us-east-1\n", ""), "region is missing"},
		{string(good) + "---\nregion: another\n", "line 25, column 1: a second document begins here"},
		{strings.Repeat("#", pricesMax+1), "a price table must not exceed 65536 bytes"},
	} {
		if _, err := ReadPrices(strings.NewReader(x.file)); err == nil || !strings.Contains(err.Error(), x.says) {
			t.Errorf("got %v\nwant %s", err, x.says)
		}
	}
}

func FuzzPrices(f *testing.F) {
	good, _ := Table(USEast1)
	f.Add(string(good))
	f.Add(`{"region":"x","since":"2024-11-01","source":"y"}`)
	f.Fuzz(func(t *testing.T, file string) {
		p, err := ReadPrices(strings.NewReader(file))
		if err != nil {
			return
		}
		r, err := Make(Workload{Writes: 100, ItemBytes: 100, Mix: Mix{Eventual: 5}, Retention: time.Hour}, p)
		if err != nil {
			t.Fatal(err)
		}
		if v := r.Modes.OnDemandUSD + r.Modes.AutoscaledUSD + r.StorageUSD; math.IsNaN(v) || math.IsInf(v, 0) || v < 0 {
			t.Fatalf("it costs %v", v)
		}
		if _, err := json.Marshal(r); err != nil {
			t.Fatal(err)
		}
		if err := r.WritePage(io.Discard); err != nil {
			t.Fatal(err)
		}
	})
}

func TestWorkloadsThatAreNone(t *testing.T) {
	for _, x := range []struct {
		w    Workload
		says string
	}{
		{Workload{ItemBytes: 1}, "no traffic: set writes or reads"},
		{Workload{Writes: 1}, "item size: 0 bytes is not between 1 and 409600 (400 KB)"},
		{Workload{Writes: 1, ItemBytes: 409_601}, "item size: 409601 bytes is not between 1 and 409600 (400 KB)"},
		{Workload{Writes: -1, ItemBytes: 1}, "writes: -1 is not between 0 and 1e+09 a second"},
		{Workload{Writes: 1e-300, ItemBytes: 1}, "writes: 1e-300 a second is less than one request in 30 years"},
		{Workload{Writes: math.NaN(), ItemBytes: 1}, "writes: NaN is not between 0 and 1e+09 a second"},
		{Workload{Mix: Mix{Strong: math.Inf(1)}, ItemBytes: 1}, "strong reads: +Inf is not between 0 and 1e+09 a second"},
		{Workload{Writes: 1, ItemBytes: 1, Updates: 1.5}, "updates: 1.5 is not between 0 and 1"},
		{Workload{Writes: 1, ItemBytes: 1, HottestKey: -0.1}, "hottest key: -0.1 is not between 0 and 1"},
		{Workload{Writes: 1, ItemBytes: 1, Expiring: 0.5}, "expiring: it needs a retention"},
		{Workload{Writes: 1, ItemBytes: 1, Retention: -time.Second}, "retention: -1s is not between 0 and 100 years"},
		{Workload{Writes: 1, ItemBytes: 1, Items: -1}, "items: -1 is not between 0 and 1e+15"},
		{Workload{Writes: 1, ItemBytes: 10, KeyBytes: 20}, "key size: 20 bytes is more than the item's 10"},
		{Workload{Writes: 1, ItemBytes: 1, StreamReaders: 101}, "stream readers: 101 is not between 0 and 100"},
		{Workload{Writes: 1, ItemBytes: 1, Indexes: []Index{{Name: "a"}}}, `index "a": a name must have 3 to 255 of a-z, A-Z, 0-9, _, . and -`},
		{Workload{Writes: 1, ItemBytes: 1, Indexes: []Index{{Name: "abc"}, {Name: "abc"}}}, `index "abc" is listed twice`},
		{Workload{Writes: 1, ItemBytes: 1, Indexes: []Index{{Name: "abc", Projection: "SOME"}}}, `index "abc": unknown projection "SOME"; use ALL, KEYS_ONLY or INCLUDE`},
		{Workload{Writes: 1, ItemBytes: 1, Indexes: []Index{{Name: "abc", Projection: Include}}}, `index "abc": projection INCLUDE needs the size of an entry (bytes=)`},
		{Workload{Writes: 1, ItemBytes: 9, Indexes: []Index{{Name: "abc", EntryBytes: 5}}}, `index "abc": an entry of projection ALL has the item's size`},
		{Workload{Writes: 1, ItemBytes: 1, Indexes: make([]Index, 21)}, "21 global indexes are too many; the limit is 20"},
		{Workload{Writes: 1, ItemBytes: 1, Scaling: Scaling{Target: 0.95}}, "target: 0.95 is not between 0.2 and 0.9 (20 to 90 %)"},
		{Workload{Writes: 1, ItemBytes: 1, Scaling: Scaling{Band: 0.7}}, "band: 0.7 is not below the target 0.7"},
		{Workload{Writes: 1, ItemBytes: 1, Scaling: Scaling{MinWrite: 50_000}}, "capacity for writes: 50000 to 40000 is not a range of whole units from 1 to 10000000"},
		{Workload{Writes: 1, ItemBytes: 1, Scaling: Scaling{MinRead: 1.5}}, "capacity for reads: 1.5 to 40000 is not a range of whole units"},
		{Workload{Writes: 1, ItemBytes: 1, Scaling: Scaling{Delay: 61}}, "delay: 61 minutes are more than 60"},
		{Workload{Writes: 1, ItemBytes: 1, Sweep: Sweep{Period: time.Millisecond}}, "period: 1ms is not between 1s and 30 days"},
		{Workload{Writes: 1, ItemBytes: 1, Sweep: Sweep{Workers: -1}}, "workers: -1 is not between 1 and 1000"},
		{Workload{ItemBytes: 1, Shape: &Shape{}}, "shape: 0 minutes are not between 1 and 527040"},
		{Workload{ItemBytes: 1, Shape: &Shape{Points: []Point{{-1, 0}}}}, "shape: the traffic of minute 0 is not between 0 and 1e+09 a second"},
	} {
		if _, err := Make(x.w, Default()); err == nil || !strings.Contains(err.Error(), x.says) {
			t.Errorf("got %v\nwant %s", err, x.says)
		}
	}
	// The error reports all problems together.
	_, err := Make(Workload{Writes: 1, Updates: 2, HottestKey: 3}, Default())
	if err == nil || len(strings.Split(err.Error(), "\n")) != 3 {
		t.Errorf("not three complaints: %v", err)
	}
}

func TestReadIndex(t *testing.T) {
	for text, want := range map[string]Index{
		"byDay":                                {Name: "byDay"},
		"byDay=keys_only,share=0.2":            {Name: "byDay", Projection: KeysOnly, Share: 0.2},
		"m=INCLUDE,bytes=200, keys=1,reads=50": {Name: "m", Projection: Include, EntryBytes: 200, Keys: 1, Reads: 50},
		"byOrder=ALL,local,moves=1":            {Name: "byOrder", Projection: All, Local: true, Moves: 1},
	} {
		if got, err := ReadIndex(text); err != nil || got != want {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
	for text, says := range map[string]string{
		"":            `"" has no name; write an index as byDay=ALL, followed by settings such as ,share=0.2`,
		"=ALL":        `"=ALL" has no name; write an index as byDay=ALL, followed by settings such as ,share=0.2`,
		"a,keys=some": `index "a": keys: "some" is not a whole number of 1 or more`,
		"a,share=-1":  `index "a": share: "-1" is not a number of 0 or more`,
		"a,share=0":   `index "a": share: must be above 0`,
		"a,share=NaN": `index "a": share: "NaN" is not a number of 0 or more`,
		"a,size=3":    `index "a": unknown setting "size=3"; use bytes=, share=, moves=, reads=, keys= or local`,
		"a,":          `index "a": unknown setting ""; use bytes=, share=, moves=, reads=, keys= or local`,
	} {
		if _, err := ReadIndex(text); err == nil || err.Error() != says {
			t.Errorf("%q: got %v, want %s", text, err, says)
		}
	}
}

func FuzzIndex(f *testing.F) {
	for _, seed := range []string{"byDay", "byDay=KEYS_ONLY,share=0.2", "m=INCLUDE,bytes=200,keys=1,reads=50", "a,local"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		x, err := ReadIndex(text)
		if err != nil {
			return
		}
		r, err := Make(Workload{Writes: 100, ItemBytes: 1000, Updates: 0.3, Indexes: []Index{x}}, Default())
		if err == nil && !(r.Modes.OnDemandUSD >= 0 && r.Modes.AutoscaledUSD >= 0) {
			t.Fatalf("%q costs %v and %v", text, r.Modes.OnDemandUSD, r.Modes.AutoscaledUSD)
		}
	})
}

func TestReadScrape(t *testing.T) {
	const server = `# HELP mayfly_consumed_units_total x
mayfly_consumed_units_total{TableName="o\"rders",index="",kind="read"} 7.5 1700000000000
mayfly_consumed_units_total{TableName="o\"rders",index="",kind="write"} 1e1
mayfly_consumed_units_total{TableName="o\"rders",index="byDay",kind="write"} 1000
mayfly_consumed_units_total{TableName="notes",index="",kind="write"} 3
mayfly_requests_total{code="OK",operation="PutItem"} 100
mayfly_table_expiry{TableName="notes",delay="",mode="strict",seed=""} 1
`
	const guarded = `mayfly_guard_consumed_units_total{TableName="orders",kind="write"} 30.5
mayfly_guard_consumed_units_total{TableName="orders",kind="read"} 10
mayfly_guard_consumed_units_total{TableName="other",kind="write"} 9
`
	var crowd strings.Builder
	for i := range 7 {
		fmt.Fprintf(&crowd, "mayfly_consumed_units_total{TableName=\"t%d\",index=\"\",kind=\"read\"} 1\n", i)
	}
	for _, x := range []struct {
		text, table string
		want        Scrape
		says        string
	}{
		{server, "", Scrape{`o"rders`: {10, 7.5}, "notes": {3, 0}}, ""},
		{server, `o"rders`, Scrape{`o"rders`: {10, 7.5}}, ""},
		{guarded, "orders", Scrape{"orders": {30.5, 10}}, ""},
		{guarded + server, "orders", Scrape{"orders": {30.5, 10}}, ""},
		{"mayfly_store_failed 0\n", "", Scrape{}, ""}, // there is no table yet
		{server, "orders", nil, `table orders not found in it; it has notes, o"rders`},
		{crowd.String(), "orders", nil, "table orders not found in it; it has t0, t1, t2, t3, t4 and 2 more"},
		{"mayfly_store_failed 0\n", "orders", nil, "table orders not found in it; it has no tables"},
		{guarded, "", nil, "these are metrics of guard, which counts each table separately: choose one with --table (orders, other)"},
		{"mayfly_table_expiry{TableName=\"notes\"} 1\n", "", nil, "it has no mayfly_consumed_units_total: that mayfly is too old to count units; upgrade it"},
		{"<html>", "", nil, "it has no metrics of mayfly; mayfly serve has /metrics on its own port, mayfly guard on --metrics-port"},
		{"mayfly_consumed_units_total{index=OK} 1\n", "", nil, `line 1: invalid sample "{index=OK} 1"; expected a line such as {TableName="orders"} 17`},
		{"\nmayfly_consumed_units_total{index=\"OK\n", "", nil, `line 2: invalid sample "{index=\"OK"; expected a line such as {TableName="orders"} 17`},
		{"mayfly_consumed_units_total{kind=\"read\"} many\n", "", nil, `line 1: invalid sample "{kind=\"read\"} many"; expected a line such as {TableName="orders"} 17`},
		{"mayfly_" + strings.Repeat("x", scrapeLineMax), "", nil, "a line is longer than 1048576 bytes: this is not a metrics page"},
	} {
		got, err := ReadScrape(strings.NewReader(x.text), x.table)
		switch {
		case x.says != "" && (err == nil || err.Error() != x.says):
			t.Errorf("got %v\nwant %s", err, x.says)
		case x.says == "" && (err != nil || !maps.Equal(got, x.want)):
			t.Errorf("%+v, %v, want %+v", got, err, x.want)
		}
	}
	before, after := Scrape{"a": {10, 5}, "gone": {50, 50}}, Scrape{"a": {130, 5}, "new": {0, 60}}
	if p, ok := after.Since(before, 60); !ok || p != (Point{2, 1}) {
		t.Errorf("%v, %v", p, ok)
	}
	if _, ok := before.Since(after, 60); ok {
		t.Error("a counter has fallen, and that is taken for traffic")
	}
}

func FuzzScrape(f *testing.F) {
	f.Add(`mayfly_consumed_units_total{TableName="t",index="",kind="write"} 30.5`, "")
	f.Add(`mayfly_guard_consumed_units_total{TableName="t",kind="write"} 30.5`, "t")
	f.Fuzz(func(t *testing.T, text, table string) {
		s, err := ReadScrape(strings.NewReader(text), table)
		if err != nil {
			return
		}
		if p, ok := s.Since(nil, 60); !ok || !(p.Writes >= 0 && p.Reads >= 0) || math.IsInf(p.Writes+p.Reads, 0) {
			t.Fatalf("%+v", s)
		}
	})
}
