package bench

import (
	"bytes"
	"slices"
	"testing"
	"time"
)

// Removals are found in mayfly's pages, and with another order and spacing.
func TestRemovalsAreFound(t *testing.T) {
	page := `{"Records":[` +
		`{"eventID":"1","eventName":"INSERT","dynamodb":{"Keys":{"pk":{"S":"item-0000000001"}},"NewImage":{"pk":{"S":"item-0000000001"}}}},` +
		`{"eventID":"2","eventName":"REMOVE","dynamodb":{"Keys":{"pk":{"S":"item-0000000042"}},"OldImage":{"pk":{"S":"item-0000000043"}}}},` +
		`{"eventName" : "REMOVE", "dynamodb" : {"Keys" : {"sk":{"N":"1"}, "pk":{"S":"item-1234567890"}}}},` +
		`{"eventName":"REMOVE","dynamodb":{"Keys":{"pk":{"S":"other"}}}},` +
		`{"eventName":"MODIFY"}],"NextShardIterator":"abc|1"}`
	var got []int
	eachRemoved([]byte(page), func(item int) { got = append(got, item) })
	if !slices.Equal(got, []int{42, 1234567890}) {
		t.Errorf("%v", got)
	}
	var next string
	if !member([]byte(page), "NextShardIterator", &next) || next != "abc|1" {
		t.Errorf("next iterator %s", next)
	}
	if member([]byte(`{"Records":[]}`), "NextShardIterator", &next) {
		t.Error("there is no next iterator")
	}
}

func FuzzRemovals(f *testing.F) {
	f.Add([]byte(`{"eventName":"REMOVE","Keys":{"pk":{"S":"item-0000000001"}}}`))
	f.Fuzz(func(t *testing.T, page []byte) {
		removals := 0
		if eachRemoved(page, func(int) { removals++ }); removals > bytes.Count(page, valueGone) {
			t.Fatalf("%d removals in %q", removals, page)
		}
		var next string
		member(page, "NextShardIterator", &next)
	})
}

// Deadlines are spread evenly over milliseconds, or as many share each whole second.
func TestPlan(t *testing.T) {
	p := &plan{first: time.UnixMilli(1_800_000_000_250), spread: 2 * time.Second, items: 4}
	for item, want := range []string{"1800000000.250", "1800000000.750", "1800000001.250", "1800000001.750"} {
		if got := p.text(item); got != want {
			t.Errorf("item %d: %s, want %s", item, got, want)
		}
	}
	p = &plan{first: time.Unix(1_800_000_000, 0), spread: 2 * time.Second, items: 4, whole: true}
	for item, want := range []string{"1800000000", "1800000000", "1800000001", "1800000001"} {
		if got := p.text(item); got != want {
			t.Errorf("item %d in whole seconds: %s, want %s", item, got, want)
		}
	}
	if got := p.last(); !got.Equal(time.Unix(1_800_000_001, 0)) {
		t.Errorf("last %v", got)
	}
	p.start(1000, 1000)
	if ahead := time.Until(p.first); !p.first.Equal(p.first.Truncate(time.Second)) || ahead < time.Second+settleTime-time.Second/2 {
		t.Errorf("the first deadline is %v ahead, at %v", ahead, p.first)
	}
}

// A watch detects early, repeated and missing records, and ignores records of other items.
func TestWatch(t *testing.T) {
	p := &plan{first: time.Unix(1000, 0), spread: 4 * time.Second, items: 4}
	w := newWatch(p)
	w.removed(0, time.Unix(1000, 5e6))
	w.removed(0, time.Unix(1000, 6e6))
	w.removed(1, time.Unix(1000, 0))
	w.removed(2, time.Unix(1002, 7e6))
	w.removed(77, time.Unix(1002, 0))
	w.removed(-1, time.Unix(1002, 0))
	early, twice, lost := w.faults()
	if early != 1 || twice != 1 || lost != 1 {
		t.Errorf("early %d, twice %d, lost %d", early, twice, lost)
	}
	if got := w.summary(time.Unix(1001, 0)); got.Max != 5 {
		t.Errorf("until the second deadline: %+v", got)
	}
	if got := w.summary(time.Unix(1004, 0)); got.P50 < 5 || got.P50 > 5.1 || got.Max != 7 {
		t.Errorf("in all: %+v", got)
	}
	select {
	case <-w.complete:
		t.Error("complete too soon")
	default:
	}
	w.removed(3, time.Unix(1003, 0))
	<-w.complete
	if newWatch(p).summary(time.Unix(2000, 0)) != nil {
		t.Error("a summary of nothing")
	}
}

func TestScrape(t *testing.T) {
	before := parseScrape([]byte(`# HELP x
mayfly_lateness_commit_seconds_bucket{le="0.001"} 10
mayfly_lateness_commit_seconds_bucket{le="0.002"} 10
mayfly_lateness_commit_seconds_bucket{le="+Inf"} 10
`))
	after := parseScrape([]byte(`mayfly_lateness_commit_seconds_bucket{le="0.001"} 60
mayfly_lateness_commit_seconds_bucket{le="0.002"} 108
mayfly_lateness_commit_seconds_bucket{le="+Inf"} 110
TimeToLiveDeletedItemCount{TableName="bench-1"} 1.5e+02
other{TableName="bench-1"} 3
`))
	if got := after.latenessSince(before, 9); got == nil || got.P50 != 1 || got.P99 != 5.5 || got.Max != 9 {
		t.Errorf("got %+v", got)
	}
	if after.ofTable(metricDeleted, "bench-1") != 150 {
		t.Errorf("scraped %v", after)
	}
	if after.latenessSince(after, 9) != nil {
		t.Error("a summary of nothing")
	}
}
