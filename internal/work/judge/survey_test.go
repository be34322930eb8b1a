package judge

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/mayflydb/mayfly/internal/ttl"
	"github.com/mayflydb/mayfly/internal/work/attr"
)

// A survey's memory does not grow with the table, and it still finds the fullest minute.
func TestSurveyIsBounded(t *testing.T) {
	s := NewSurvey("expires", []string{"id"}, now)
	key := attr.S(strings.Repeat("k", 2000))
	items := 3 * minutesMost
	for i := range items {
		page := []attr.Item{
			{"id": key, "expires": attr.Int(now/1000 + 60*int64(i+2))},
			{"id": key, "expires": attr.S(strings.Repeat("v", 1000))},
			{"id": attr.Int(i), "expires": attr.Int(now/1000 - int64(i))},
		}
		if i%10 == 0 {
			page = append(page, attr.Item{"id": key, "expires": attr.Int(now/1000 + 30)})
		}
		s.Add(page)
	}
	if len(s.minutes) > minutesMost || len(s.kinds[ttl.String].examples) != mistakeExamples || len(s.Overdue.Examples) != overdueExamples {
		t.Errorf("it keeps %d minutes, %d and %d examples", len(s.minutes), len(s.kinds[ttl.String].examples), len(s.Overdue.Examples))
	}
	if x := s.kinds[ttl.String].examples[0]; len(x.Key) > 4*textMost || len(x.Value) > 4*valueMost {
		t.Errorf("an example has %d and %d bytes", len(x.Key), len(x.Value))
	}
	if o := s.Overdue; o.Items != int64(items) || o.Oldest.Unix() != now/1000-int64(items-1) || !o.Examples[0].Deadline.Equal(*o.Oldest) {
		t.Errorf("overdue: %d since %v, first %v", o.Items, o.Oldest, o.Examples[0])
	}
	all := s.Cliffs(1)
	if len(all) != 1 || all[0].Minute.UnixMilli() != now || all[0].Items > int64(items/10) || all[0].Items < int64(items/10)-5 {
		t.Errorf("cliffs: %v, want one of %d items", all, items/10)
	}
}

// The report has the same examples in every order of the reads.
func TestSurveyExamples(t *testing.T) {
	texts := map[string]bool{}
	for shift := range 7 {
		s := NewSurvey("expires", []string{"id"}, now)
		for i := range 100 {
			n := (i*37 + shift*13) % 100
			s.Add([]attr.Item{{"id": attr.S(fmt.Sprintf("%02d", n)), "expires": attr.Int(now/1000 - int64(n/4))}, {"id": attr.S(fmt.Sprintf("s%02d", n)), "expires": attr.S("")}})
		}
		text, err := json.Marshal([]any{s.Overdue, s.kinds[ttl.String].examples})
		if err != nil {
			t.Fatal(err)
		}
		texts[string(text)] = true
	}
	if len(texts) != 1 {
		t.Errorf("%d reports of one table: %v", len(texts), texts)
	}
}

// A survey counts items by the kind of their values, and coming deadlines by their distance.
func TestSurveyCounts(t *testing.T) {
	s := NewSurvey("e", []string{"id"}, now)
	seconds := now / 1000
	page := []attr.Item{
		{"id": attr.S("1"), "e": attr.Int(seconds + 59)}, {"id": attr.S("2"), "e": attr.Int(seconds + 1)}, {"id": attr.S("3"), "e": attr.Int(seconds)},
		{"id": attr.S("5"), "e": attr.S("x")}, {"id": attr.S("4"), "e": attr.S("y")}, {"id": attr.S("6")}, {"id": attr.S("7"), "e": attr.Int(now)},
	}
	s.Add(page[:3])
	s.Add(page[3:])
	got := map[ttl.Reason]Values{}
	for _, v := range s.Values() {
		got[v.Reason] = v
	}
	if len(got) != 4 || got[ttl.Good].Items != 3 || got[ttl.String].Items != 2 || got[ttl.Absent].Items != 1 || got[ttl.Milliseconds].Items != 1 {
		t.Errorf("kinds: %+v", got)
	}
	if x := got[ttl.String].Examples; len(x) != 2 || x[0].Key != `{"id":{"S":"4"}}` || x[0].Value != `e = {"S":"y"}` || len(got[ttl.Absent].Examples) != 0 {
		t.Errorf("examples: %+v", got)
	}
	coming := int64(0)
	for _, b := range s.Buckets {
		coming += b.Items
	}
	if coming != 2 || s.Buckets[0].Items != 2 || s.Overdue.Items != 1 || s.Items != 7 || s.Bytes <= s.Overdue.Bytes {
		t.Errorf("%d coming, %+v, overdue %+v, %d items, %d bytes", coming, s.Buckets, s.Overdue, s.Items, s.Bytes)
	}
}

// A minute is a cliff if it has many items of the table, or a large share of those that were read.
func TestSurveyCliffs(t *testing.T) {
	s := NewSurvey("e", []string{"id"}, now)
	add := func(minute int64, items int) {
		for range items {
			s.Add([]attr.Item{{"id": attr.S("k"), "e": attr.Int(now/1000 + 60*minute + 1)}})
		}
	}
	add(1, 2)
	add(9, 2)
	if all := s.Cliffs(1); len(all) != 0 {
		t.Errorf("four items make cliffs: %v", all)
	}
	if all := s.Cliffs(cliffItems); len(all) != 2 || !all[0].Minute.Before(all[1].Minute) {
		t.Errorf("a part of a large table: %v", all)
	}
	for minute := range int64(2 * cliffsMost) {
		add(100-minute, 3)
	}
	if all := s.Cliffs(cliffItems); len(all) != cliffsMost || all[0].Items != 3 || !all[0].Minute.Before(all[len(all)-1].Minute) {
		t.Errorf("many cliffs: %v", all)
	}
}
