package cron

import (
	"bufio"
	"errors"
	"os"
	"strings"
	"testing"
	"time"
)

// FuzzParse: any text is an expression that keeps the laws, or an *Error with a reason. An
// expression of a rule is also one of a schedule.
func FuzzParse(f *testing.F) {
	for _, file := range []string{"testdata/accepted.txt", "testdata/refusals.txt", "testdata/occurrences.txt"} {
		for _, text := range seeds(f, file) {
			f.Add(text, uint8(1), int64(1_806_000_000_000))
		}
	}
	f.Fuzz(func(t *testing.T, text string, zoneIndex uint8, millis int64) {
		zone, err := Zone(zoneNames[int(zoneIndex)%len(zoneNames)])
		if err != nil {
			t.Fatal(err)
		}
		e, err := Parse(text, zone)
		if err != nil {
			var wrong *Error
			if !errors.As(err, &wrong) || wrong.Text != text || wrong.Reason == "" || len(wrong.Reason) > 600 || e != (Expression{}) {
				t.Fatalf("%q: %#v", text, err)
			}
			if _, err := ParseRule(text); err == nil {
				t.Fatalf("%q is an expression of a rule only", text)
			}
			return
		}
		if e.String() != text || e.Kind() == 0 || (e.Kind() == Rate) != (e.Interval() >= minInterval) {
			t.Fatalf("%q: %q, %v, %v", text, e.String(), e.Kind(), e.Interval())
		}
		// A duration cannot span the time to a far anchor, so stay within a few centuries of now.
		anchor := time.UnixMilli(millis % (250 * 366 * 24 * 3600 * 1000))
		found := steps(e, anchor, anchor.Add(-time.Hour), 3)
		for i, at := range found {
			if i > 0 && !at.After(found[i-1]) || e.Kind() == Cron && at.In(zone).Second() != 0 {
				t.Fatalf("%q from %v: %v", text, anchor, found)
			}
		}
		if len(found) > 0 {
			latest := found[len(found)-1]
			if last, ok := e.Last(anchor, anchor.Add(-time.Hour), latest); !ok || !last.Equal(latest) {
				t.Fatalf("%q from %v: the last up to %v is %v", text, anchor, latest, last)
			}
		}
	})
}

// seeds adds the expressions of a table to the corpus.
func seeds(f *testing.F, file string) (texts []string) {
	opened, err := os.Open(file)
	if err != nil {
		f.Fatal(err)
	}
	defer opened.Close()
	for lines := bufio.NewScanner(opened); lines.Scan(); {
		text := lines.Text()
		if text == "" || strings.HasPrefix(text, "#") || strings.HasPrefix(text, "= ") {
			continue
		}
		if end := strings.LastIndexByte(text, ')'); end >= 0 {
			text = text[:end+1]
		}
		texts = append(texts, strings.TrimPrefix(text, "rule "))
	}
	return texts
}
