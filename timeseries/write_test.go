package timeseries

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mayflydb/mayfly/internal/work/attr"
)

// Samples survive a round trip, to the nanosecond and to the last bit, also if several share an
// instant.
func TestSamplesComeBack(t *testing.T) {
	x := newWorld(t, Spec{Retention: time.Hour})
	at := start.Add(-time.Second - 1)
	want := []Sample{
		{Device: "roof", Time: at, Values: map[string]float64{"a": 0.1, "b": -math.Pi * 1e100, "ttl2": 1e-130, "c": 1 << 60}},
		{Device: "roof", Time: start, Values: map[string]float64{"a": 1}},
		{Device: "roof", Time: start, Values: map[string]float64{"a": 2}},
		{Device: "roof", Time: start, Values: map[string]float64{"a": 2}, Tags: map[string]string{"unit": "°C", "a": `"`}},
		{Device: "roof", Time: start, Values: map[string]float64{"a": 1}, Sequence: 1},
		{Device: "roof", Time: start, Values: map[string]float64{"a": 1}, Sequence: 4_000_000_000},
		{Device: "roof", Time: start.Add(time.Minute), Values: map[string]float64{"a": 0}},
	}
	x.write(want...)
	x.write(want...) // writing twice stores once
	x.write(Sample{Device: "roof", Time: start.Add(time.Minute), Values: map[string]float64{"a": math.Copysign(0, -1)}})
	got := all(t, x.r.Range(t.Context(), Query{Device: "roof"}))
	if len(got) != len(want) || !slices.IsSortedFunc(got, func(a, b Sample) int { return a.Time.Compare(b.Time) }) {
		t.Fatalf("got %d samples: %v", len(got), got)
	}
	for _, s := range got {
		s.Key = ""
		if !slices.ContainsFunc(want, func(w Sample) bool { return cmp.Equal(w, s) }) {
			t.Errorf("nobody wrote %+v", s)
		}
	}
}

// A sample disappears at the millisecond at which its retention ends, from range, latest and the
// metric's index, and from the tables.
func TestRetentionIsExact(t *testing.T) {
	x := newWorld(t, Spec{Retention: 30 * 24 * time.Hour, Metrics: []string{"temperature"}})
	x.write(temperature("roof", 250*time.Millisecond, 1), temperature("roof", time.Second, 2))
	x.write(temperature("cellar", -time.Second, 3))
	look := func() (n [3]int) {
		n[0] = len(all(t, x.r.Range(t.Context(), Query{Device: "roof"}))) + len(all(t, x.r.Range(t.Context(), Query{Device: "cellar"})))
		latest, err := x.r.Latest(t.Context(), "roof", "cellar", "attic")
		must(t, err)
		n[1] = len(latest)
		n[2] = len(all(t, x.r.Metric(t.Context(), MetricQuery{Metric: "temperature", From: start.Add(-time.Hour), To: start.Add(time.Hour)})))
		return n
	}
	for _, step := range []struct {
		by   time.Duration
		want [3]int
	}{
		{0, [3]int{3, 2, 3}},
		{30*24*time.Hour - time.Second - time.Millisecond, [3]int{3, 2, 3}},
		{time.Millisecond, [3]int{2, 1, 2}},
		{time.Second + 249*time.Millisecond, [3]int{2, 1, 2}},
		{time.Millisecond, [3]int{1, 1, 1}},
		{750 * time.Millisecond, [3]int{0, 0, 0}},
	} {
		x.advance(step.by)
		if got := look(); got != step.want {
			t.Errorf("at %s there are %v, want %v", x.db.Clock().Now(), got, step.want)
		}
	}
}

// Invalid samples are refused, each with its reason; the rest of the call is written.
func TestRefusedSamples(t *testing.T) {
	x := newWorld(t, Spec{Retention: time.Hour, Ahead: time.Minute})
	good := temperature("roof", 0, 1)
	bad := []struct {
		sample Sample
		reason Reason
	}{
		{Sample{Device: "", Time: start, Values: good.Values}, ReasonDevice},
		{Sample{Device: "a#shard07", Time: start, Values: good.Values}, ReasonDevice},
		{Sample{Device: "a#shard00", Time: start, Values: good.Values}, ReasonDevice},
		{Sample{Device: "\xff", Time: start, Values: good.Values}, ReasonDevice},
		{Sample{Device: "a", Values: good.Values}, ReasonTime},
		{temperature("a", -time.Hour, 1), ReasonExpired},
		{temperature("a", time.Minute+1, 1), ReasonFuture},
		{Sample{Device: "a", Time: start}, ReasonNoValues},
		{temperature("a", 0, math.NaN()), ReasonNumber},
		{temperature("a", 0, math.Inf(-1)), ReasonNumber},
		{temperature("a", 0, 1e126), ReasonNumber},
		{temperature("a", 0, 1e-131), ReasonNumber},
		{Sample{Device: "a", Time: start, Values: map[string]float64{"ttl": 1}}, ReasonMetric},
		{Sample{Device: "a", Time: start, Values: map[string]float64{"metric#x": 1}}, ReasonMetric},
		{Sample{Device: "a", Time: start, Values: good.Values, Tags: map[string]string{"\xff": ""}}, ReasonTags},
	}
	var samples []Sample
	for _, b := range bad {
		samples = append(samples, b.sample)
	}
	samples = append(samples, good)
	err := x.w.Write(t.Context(), samples...)
	var partly *WriteError
	if !errors.As(err, &partly) || len(partly.Refused) != len(bad) || partly.Err != nil || len(partly.Unwritten) > 0 {
		t.Fatalf("got %v", err)
	}
	for i, r := range partly.Refused {
		if r.Index != i || r.Err.Reason != bad[i].reason {
			t.Errorf("sample %d was refused because %q (%v), want %q", r.Index, r.Err.Reason, r.Err, bad[i].reason)
		}
	}
	if got := says(all(t, x.r.Range(t.Context(), Query{Device: "roof"}))); !slices.Equal(got, []string{"roof 0s 1"}) {
		t.Errorf("got %v", got)
	}
}

// The latest sample is the newest, in any order of writes and with any number of writers.
func TestLatestIsTheNewest(t *testing.T) {
	x := newWorld(t, Spec{})
	other := x.writer(WriterOptions{Parallel: 1})
	check := func(want float64) {
		t.Helper()
		latest, err := x.r.Latest(t.Context(), "roof")
		must(t, err)
		if got := latest["roof"].Values["temperature"]; got != want {
			t.Errorf("the latest is %v, want %v", got, want)
		}
	}
	x.write(temperature("roof", 5, 5), temperature("roof", 9, 9), temperature("roof", 7, 7))
	check(9)
	must(t, other.Write(t.Context(), temperature("roof", 8, 8)))
	check(9)
	must(t, other.Write(t.Context(), temperature("roof", 10, 10)))
	check(10)
	x.write(temperature("roof", 3, 3))
	check(10)

	done := make(chan error)
	for i := range 40 {
		w := []*Writer{x.w, other}[i%2]
		go func() { done <- w.Write(t.Context(), temperature("roof", time.Duration(100+i), float64(i))) }()
	}
	for range 40 {
		must(t, <-done)
	}
	check(39)
	if n := len(all(t, x.r.Range(t.Context(), Query{Device: "roof"}))); n != 46 {
		t.Errorf("%d samples", n)
	}
}

// Without latest items readers query the shards.
func TestLatestWithoutItems(t *testing.T) {
	x := newWorld(t, Spec{NoLatest: true})
	var devices []string
	for i := range 7 {
		device := fmt.Sprint("device-", i)
		devices = append(devices, device)
		x.write(temperature(device, 2, float64(i)), temperature(device, 1, -1))
	}
	latest, err := x.r.Latest(t.Context(), append(devices, "nobody")...)
	must(t, err)
	for i, device := range devices {
		if got := latest[device].Values["temperature"]; got != float64(i) {
			t.Errorf("%s: %v", device, got)
		}
	}
	if len(latest) != 7 {
		t.Errorf("%d devices", len(latest))
	}
	for _, err := range x.r.AllLatest(t.Context()) {
		if !errors.Is(err, ErrNoLatest) {
			t.Errorf("got %v", err)
		}
	}
}

// A deadline is rounded up to the millisecond, never down.
func TestEpoch(t *testing.T) {
	for at, want := range map[time.Duration]string{0: "1893499200", 1: "1893499200.001", time.Millisecond: "1893499200.001", 250 * time.Millisecond: "1893499200.25", time.Second - 1: "1893499201"} {
		got := attr.SecondsText(start.Add(at))
		back, err := readEpoch(got)
		if got != want || err != nil || back.Before(start.Add(at)) || back.Sub(start.Add(at)) >= time.Millisecond {
			t.Errorf("%s is %s, read as %s, %v; want %s", at, got, back, err, want)
		}
	}
}
