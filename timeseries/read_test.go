package timeseries

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

// A range begins at its first instant and ends before its last, in both orders, and a page
// continues the one before.
func TestRange(t *testing.T) {
	x := newWorld(t, Spec{Ahead: 24 * time.Hour})
	var written []Sample
	for i := range 60 {
		written = append(written, temperature("roof", time.Duration(i/2)*time.Second, float64(i))) // two at each instant
	}
	rand.New(rand.NewPCG(1, 2)).Shuffle(len(written), func(i, j int) { written[i], written[j] = written[j], written[i] })
	x.write(written...)
	x.write(temperature("roof2", 0, 1), temperature("roo", 0, 1))

	count := func(q Query) int {
		t.Helper()
		q.Device = "roof"
		got := all(t, x.r.Range(t.Context(), q))
		sorted := slices.IsSortedFunc(got, func(a, b Sample) int {
			if q.Newest {
				a, b = b, a
			}
			return a.Time.Compare(b.Time)
		})
		if !sorted {
			t.Errorf("%+v is out of order: %v", q, says(got))
		}
		for after, n := "", 0; ; n++ { // the same in pages of every size
			q := q
			q.Limit, q.After = 7, after
			page, err := x.r.Page(t.Context(), q)
			must(t, err)
			for i, s := range page.Samples {
				if s.Key != got[n*7+i].Key {
					t.Errorf("sample %d of page %d is %s", i, n, s.Key)
				}
			}
			if after = page.Next; after == "" {
				if n*7+len(page.Samples) != len(got) && q.Limit != 0 {
					t.Errorf("%d pages have not %d samples", n+1, len(got))
				}
				break
			}
		}
		return len(got)
	}
	for _, newest := range []bool{false, true} {
		for _, c := range []struct {
			from, to time.Duration
			want     int
		}{
			{0, 30 * time.Second, 60}, {0, 29 * time.Second, 58}, {1, 30 * time.Second, 58}, {time.Second, 2 * time.Second, 2}, {time.Second, time.Second, 0},
			{time.Second, time.Second + 1, 2}, {time.Hour, 2 * time.Hour, 0}, {-time.Hour, 1, 2},
		} {
			if got := count(Query{From: start.Add(c.from), To: start.Add(c.to), Newest: newest}); got != c.want {
				t.Errorf("from %s to %s there are %d, want %d", c.from, c.to, got, c.want)
			}
		}
		if got := count(Query{Newest: newest}); got != 60 {
			t.Errorf("without bounds there are %d", got)
		}
		if got := count(Query{Newest: newest, Metrics: []string{"pressure"}}); got != 0 {
			t.Errorf("of another metric there are %d", got)
		}
		if got := count(Query{Newest: newest, Metrics: []string{"pressure", "temperature"}}); got != 60 {
			t.Errorf("of the metric there are %d", got)
		}
	}
	if got := all(t, x.r.Range(t.Context(), Query{Device: "roof", Newest: true, Limit: 1})); len(got) != 1 || got[0].Time != start.Add(29*time.Second) {
		t.Errorf("the newest is %v", says(got))
	}
}

// A place belongs to its device and order; others are refused.
func TestPlaces(t *testing.T) {
	x := newWorld(t, Spec{})
	x.write(temperature("roof", 0, 1), temperature("roof", 1, 2))
	page, err := x.r.Page(t.Context(), Query{Device: "roof", Limit: 1})
	must(t, err)
	for _, q := range []Query{
		{Device: "cellar", After: page.Next}, {Device: "roof", Newest: true, After: page.Next}, {Device: "roof", After: "x"}, {Device: "roof", After: page.Next + "A"},
		{Device: "roof", After: "e30"},
	} {
		if _, err := x.r.Page(t.Context(), q); !errors.Is(err, ErrPlace) {
			t.Errorf("%+v: %v", q, err)
		}
	}
	for _, q := range []Query{
		{Device: ""}, {Device: "roof", Limit: -1}, {Device: "roof", From: start, To: start.Add(-1)}, {Device: "roof", Metrics: []string{"ttl"}},
	} {
		if _, err := x.r.Page(t.Context(), q); err == nil {
			t.Errorf("%+v is not refused", q)
		}
	}
}

func FuzzPlace(f *testing.F) {
	q := Query{Device: "roof"}
	s := Sample{Device: "roof", Time: start, Values: map[string]float64{"a": 1}}
	s.Key = sortKey(&s, "")
	f.Add(PlaceAfter(q, s))
	f.Add(MetricPlaceAfter(MetricQuery{Metric: "a"}, s))
	f.Add("e30")
	f.Fuzz(func(t *testing.T, text string) {
		m := MetricQuery{Metric: "a", After: text}
		if behind, err := readMetricPlace(&m); err == nil && behind != nil {
			m.After = MetricPlaceAfter(m, *behind)
			if again, err := readMetricPlace(&m); err != nil || again.Key != behind.Key || again.Device != behind.Device {
				t.Errorf("%q gives %+v, and that %+v, %v", text, behind, again, err)
			}
		}
		if key, err := readPlace(text, &q); err == nil {
			again, err := readPlace(PlaceAfter(q, Sample{Key: key}), &q)
			if err != nil || again != key {
				t.Errorf("%q gives %q, and that %q, %v", text, key, again, err)
			}
		}
	})
}

// A metric's index returns the samples of all devices, day by day, over several shards.
func TestMetricAcrossDevices(t *testing.T) {
	x := newWorld(t, Spec{Metrics: []string{"temperature", "wind"}, MetricShards: 3, Ahead: 100 * time.Hour})
	for device := range 10 {
		for hour := range 60 {
			s := temperature(fmt.Sprint("device-", device), time.Duration(hour)*time.Hour+time.Duration(device), float64(hour))
			s.Values["pressure"] = 1
			x.write(s)
		}
	}
	for _, newest := range []bool{false, true} {
		got := all(t, x.r.Metric(t.Context(), MetricQuery{Metric: "temperature", From: start.Add(time.Hour), To: start.Add(59 * time.Hour), Newest: newest}))
		sorted := slices.IsSortedFunc(got, func(a, b Sample) int {
			if newest {
				a, b = b, a
			}
			return a.Time.Compare(b.Time)
		})
		if len(got) != 580 || !sorted || len(got[0].Values) != 1 {
			t.Errorf("%d samples, sorted %v, values %v", len(got), sorted, got[0].Values)
		}
	}
	if got := all(t, x.r.Metric(t.Context(), MetricQuery{Metric: "temperature", From: start, To: start.Add(time.Hour), Limit: 3})); len(got) != 3 {
		t.Errorf("%d samples", len(got))
	}
	if got := all(t, x.r.Metric(t.Context(), MetricQuery{Metric: "wind", From: start, To: start.Add(time.Hour)})); len(got) != 0 {
		t.Errorf("%d samples of what nobody has measured", len(got))
	}
	for _, err := range x.r.Metric(t.Context(), MetricQuery{Metric: "pressure", From: start, To: start.Add(time.Hour)}) {
		if err == nil {
			t.Error("a metric without an index is not refused")
		}
	}
}

// The pages of a metric across devices have the samples of Metric, at every length and in both
// orders: also if many devices have the same Key in one shard or in several, over several days, and
// after the last sample has expired. Places of other queries are refused.
func TestMetricPages(t *testing.T) {
	x := newWorld(t, Spec{Metrics: []string{"temperature", "wind"}, MetricShards: 3, Ahead: 100 * time.Hour})
	var written []Sample
	for device := range 17 { // at each instant all devices have the same value, and so one Key
		for hour := range 4 {
			s := temperature(fmt.Sprintf("device-%02d", (device*7)%17), time.Duration(hour)*13*time.Hour, 20)
			s.Values["wind"] = float64(hour)
			written = append(written, s)
		}
	}
	x.write(written...)
	for _, newest := range []bool{false, true} {
		q := MetricQuery{Metric: "temperature", From: start, To: start.Add(100 * time.Hour), Newest: newest}
		want := all(t, x.r.Metric(t.Context(), q))
		if len(want) != len(written) || !slices.IsSortedFunc(want, func(a, b Sample) int {
			if newest {
				a, b = b, a
			}
			return byKeyAndDevice(&a, &b)
		}) {
			t.Fatalf("%d samples, want %d in order", len(want), len(written))
		}
		for _, limit := range []int{1, 2, 16, 17, 18, len(want) - 1, len(want), len(want) + 1, 0} {
			var got []Sample
			q := q
			q.Limit, q.After = limit, ""
			for {
				page, err := x.r.MetricPage(t.Context(), q)
				must(t, err)
				if limit > 0 && len(page.Samples) > limit || len(page.Samples) == 0 {
					t.Fatalf("a page of %d has %d", limit, len(page.Samples))
				}
				got = append(got, page.Samples...)
				if q.After = page.Next; q.After == "" {
					break
				}
			}
			if len(got) != len(want) {
				t.Fatalf("pages of %d have %d samples, want %d", limit, len(got), len(want))
			}
			for i := range got {
				if byKeyAndDevice(&got[i], &want[i]) != 0 {
					t.Fatalf("in pages of %d sample %d is %s of %s, want %s of %s", limit, i, got[i].Key, got[i].Device, want[i].Key, want[i].Device)
				}
			}
		}
		narrow := q // after a sample before the range it begins at the range's start
		narrow.From, narrow.To = start.Add(time.Hour), start.Add(30*time.Hour)
		for i, s := range want {
			narrow.After = MetricPlaceAfter(narrow, s)
			n := 0
			for _, rest := range want[i+1:] {
				if !rest.Time.Before(narrow.From) && rest.Time.Before(narrow.To) {
					n++
				}
			}
			if got := all(t, x.r.Metric(t.Context(), narrow)); len(got) != n {
				t.Fatalf("behind %s of %s there are %d, want %d", s.Key, s.Device, len(got), n)
			}
		}
		place := MetricPlaceAfter(q, want[3])
		for _, wrong := range []MetricQuery{
			{Metric: "wind", After: place, Newest: newest}, {Metric: "temperature", After: place, Newest: !newest}, {Metric: "temperature", After: "x", Newest: newest},
			{Metric: "temperature", After: PlaceAfter(Query{Device: want[3].Device, Newest: newest}, want[3]), Newest: newest},
		} {
			wrong.From, wrong.To = q.From, q.To
			if _, err := x.r.MetricPage(t.Context(), wrong); !errors.Is(err, ErrPlace) {
				t.Errorf("%+v: %v", wrong, err)
			}
		}
		if _, err := x.r.Page(t.Context(), Query{Device: want[3].Device, Newest: newest, After: place}); !errors.Is(err, ErrPlace) {
			t.Errorf("a place of a metric in a device's range: %v", err)
		}
	}
	if _, err := x.r.MetricPage(t.Context(), MetricQuery{Metric: "temperature", From: start, To: start, Limit: -1}); err == nil {
		t.Error("a limit below 0 is not refused")
	}
}

// The place for the longest device name, with every character escaped, can be read again.
func TestLongestPlace(t *testing.T) {
	s := Sample{Device: strings.Repeat("\x01", deviceMax), Time: start, Values: map[string]float64{"a": 1}}
	s.Key = sortKey(&s, "")
	q := Query{Device: s.Device}
	if key, err := readPlace(PlaceAfter(q, s), &q); err != nil || key != s.Key {
		t.Errorf("it gives %q, %v", key, err)
	}
}

// Buckets begin at multiples of their length, and days at the zone's midnight.
func TestRollup(t *testing.T) {
	x := newWorld(t, Spec{Ahead: 1000 * 24 * time.Hour})
	berlin, err := time.LoadLocation("Europe/Berlin")
	must(t, err)
	day := time.Date(2030, 3, 30, 23, 0, 0, 0, time.UTC) // midnight in Berlin, before a day of 23 hours
	var samples []Sample
	for i := range 48 * 60 {
		samples = append(samples, Sample{Device: "roof", Time: day.Add(time.Duration(i) * time.Minute), Values: map[string]float64{"m": float64(i)}})
	}
	x.write(samples...)
	rollup := func(every time.Duration, zone *time.Location, newest bool) []Bucket {
		return all(t, Rollup(x.r.Range(t.Context(), Query{Device: "roof", Newest: newest}), every, zone))
	}
	if b := rollup(Minute, nil, false); len(b) != 48*60 || b[7].Stats["m"] != (Stat{1, 7, 7, 7}) {
		t.Errorf("minutes: %d, %v", len(b), b[7])
	}
	if b := rollup(Hour, nil, true); len(b) != 48 || b[46].Stats["m"] != (Stat{60, 60, 119, 89.5}) || !b[46].Start.Equal(day.Add(time.Hour)) {
		t.Errorf("hours: %d, %v", len(b), b[46])
	}
	b := rollup(Day, berlin, false)
	if len(b) != 3 || b[0].Stats["m"].Count != 23*60 || b[1].Stats["m"].Count != 24*60 || !b[1].Start.Equal(day.Add(23*time.Hour)) {
		t.Errorf("days in Berlin: %v", b)
	}
	if b := rollup(Day, nil, false); len(b) != 3 || b[0].Stats["m"].Count != 60 || b[1].Stats["m"].Count != 24*60 {
		t.Errorf("days: %v", b)
	}
	for _, every := range []time.Duration{0, -1, 7 * time.Hour, 25 * time.Hour, 1500 * time.Millisecond, 400 * Day} {
		for _, err := range Rollup(x.r.Range(t.Context(), Query{Device: "roof"}), every, nil) {
			if err == nil {
				t.Errorf("buckets of %s are not refused", every)
			}
			break
		}
	}
}

// Sort keys survive a round trip, and sort by time.
func FuzzSortKey(f *testing.F) {
	f.Add(int64(0), int64(1), uint32(0))
	f.Add(int64(1<<60), int64(-1), uint32(7))
	f.Fuzz(func(t *testing.T, a, b int64, sequence uint32) {
		one := Sample{Time: time.Unix(0, a).UTC(), Sequence: sequence, Values: map[string]float64{"v": float64(b)}}
		other := Sample{Time: time.Unix(0, b).UTC(), Values: map[string]float64{"v": float64(a)}}
		if one.Time.Year() < 1970 || other.Time.Year() < 1970 {
			return
		}
		key, otherKey := sortKey(&one, ""), sortKey(&other, "{}")
		at, n, err := splitKey(key)
		if err != nil || !at.Equal(one.Time) || n != sequence {
			t.Errorf("%s is read as %s, %d, %v", key, at, n, err)
		}
		if c := one.Time.Compare(other.Time); c != 0 && (key < otherKey) != (c < 0) {
			t.Errorf("%s and %s do not order as time does", key, otherKey)
		}
	})
}
