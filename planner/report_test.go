package planner

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"flag"
	"io"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "write what the tests compare with anew")

// weekly returns traffic with days, a weekend, and a spike too short for autoscaling.
func weekly() *Shape {
	s := &Shape{Start: time.Date(2026, 11, 2, 0, 0, 0, 0, time.UTC)}
	for m := range 7 * 24 * 60 {
		v := 600 - 500*math.Cos(2*math.Pi*float64(m)/1440)
		if m >= 5*1440 {
			v /= 3
		}
		p := Point{Writes: v, Reads: 3 * v}
		if m%1440 >= 60 && m%1440 < 75 { // a nightly job
			p.Writes += 3000
		}
		s.Points = append(s.Points, p)
	}
	return s
}

func orders() Workload {
	return Workload{
		ItemBytes: 1500, Shape: weekly(), Mix: Mix{Eventual: 3, Strong: 1}, Updates: 0.4, Renewals: 0.5, Retention: 7 * 24 * time.Hour, StreamReaders: 1, HottestKey: 0.12,
		Indexes: []Index{{Name: "byDay", Projection: KeysOnly, Keys: 1}, {Name: "byCustomer", Moves: 0.1, Reads: 20}},
	}
}

// TestReport compares the text with testdata/report.txt; -update rewrites the file.
func TestReport(t *testing.T) {
	var got bytes.Buffer
	if err := made(t, orders(), USEast1).WriteText(&got); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join("testdata", "report.txt")
	if *update {
		if err := os.WriteFile(path, got.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got.String() != string(want) {
		t.Errorf("it is not %s any more; look, and run with -update:\n%s", path, &got)
	}
}

func TestReportAsJSON(t *testing.T) {
	r := made(t, orders(), USEast1)
	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	var again Report
	if err := json.Unmarshal(text, &again); err != nil {
		t.Fatal(err)
	}
	if again.Modes != r.Modes || again.StorageUSD != r.StorageUSD || len(again.Tracks) != 6 || again.Tracks[0].USD != r.Tracks[0].USD || again.Expiry[1].PerMillion != r.Expiry[1].PerMillion {
		t.Errorf("%s", text)
	}
	for _, member := range []string{`"on_demand_usd"`, `"autoscaled_usd"`, `"cheaper"`, `"usd_per_million"`, `"throttled_units"`, `"shards"`, `"region":"us-east-1"`} {
		if !bytes.Contains(text, []byte(member)) {
			t.Errorf("there is no %s", member)
		}
	}
}

// The page is well-formed, loads nothing, has shapes in each chart, and escapes names of users.
func TestPage(t *testing.T) {
	w := orders()
	p := Default()
	p.Region, p.Source = `<script>alert("here")</script>`, `a & b`
	r, err := Make(w, p)
	if err != nil {
		t.Fatal(err)
	}
	var page bytes.Buffer
	if err := r.WritePage(&page); err != nil {
		t.Fatal(err)
	}
	if path := os.Getenv("MAYFLY_PLAN_PAGE"); path != "" { // for a look at the page
		if err := os.WriteFile(path, page.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	text := page.String()
	if strings.Contains(text, "<script") || regexp.MustCompile(`(src|href|url|@import)\s*[=(]`).MatchString(text) {
		t.Error("it has scripts, or asks for something")
	}
	d := xml.NewDecoder(strings.NewReader(text))
	d.Entity = xml.HTMLEntity
	inside, seen := "", map[string]map[string]int{} // elements by chart
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("the page is not well-formed: %v", err)
		}
		switch x := token.(type) {
		case xml.StartElement:
			if x.Name.Local == "svg" {
				for _, a := range x.Attr {
					if a.Name.Local == "aria-label" {
						inside = a.Value
						seen[inside] = map[string]int{}
					}
				}
			}
			if inside != "" {
				seen[inside][x.Name.Local]++
			}
			for _, a := range x.Attr {
				if strings.Contains(a.Value, "NaN") || strings.Contains(a.Value, "Inf") {
					t.Errorf("%s of %s is %q", a.Name.Local, x.Name.Local, a.Value)
				}
			}
		case xml.EndElement:
			if x.Name.Local == "svg" {
				inside = ""
			}
		}
	}
	for title, element := range map[string]string{
		"Cost by utilisation of provisioned capacity": "polyline", "writes of the table: capacity and demand": "circle", "reads of the table: capacity and demand": "polygon", "Cost of a million expiries": "rect",
	} {
		if seen[title][element] == 0 {
			t.Errorf("the chart %q has no %s: %v", title, element, seen)
		}
	}
	if !strings.Contains(text, "&lt;script&gt;") || !strings.Contains(text, "a &amp; b") {
		t.Error("names are not escaped")
	}
}

// All figures of a report are finite for any traffic, and its outputs are valid.
func TestFiguresAreFinite(t *testing.T) {
	for _, w := range []Workload{
		{Writes: 1e-9, ItemBytes: 1}, {Mix: Mix{Eventual: 1e9}, ItemBytes: 409_600}, {Writes: 1e9, ItemBytes: 409_600, Retention: retentionMax, Renewals: 1e6},
		{ItemBytes: 10, Shape: &Shape{Points: make([]Point, 3)}, Retention: time.Second, Mix: Mix{Strong: 1}}, {Writes: 5, Updates: 1, ItemBytes: 10, Retention: time.Hour},
		{Writes: rateMin, ItemBytes: 10, Retention: time.Hour, Expiring: 1e-300, Indexes: []Index{{Name: "few", Share: 1e-300, Reads: 1e9}}}, {Mix: Mix{Strong: rateMin}, ItemBytes: 10, Indexes: []Index{{Name: "few", Reads: 1e9}}},
	} {
		r := made(t, w, USEast1)
		if _, err := json.Marshal(r); err != nil {
			t.Errorf("%+v: %v", w, err)
		}
		var page bytes.Buffer
		if err := r.WritePage(&page); err != nil || strings.Contains(page.String(), "NaN") || strings.Contains(page.String(), "Inf") {
			t.Errorf("%+v: %v, %d bytes", w, err, page.Len())
		}
		if err := r.WriteText(&page); err != nil {
			t.Error(err)
		}
	}
}
