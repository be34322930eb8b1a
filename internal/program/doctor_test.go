package program

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly/internal/testkit"
	"github.com/mayflydb/mayfly/internal/ttl"
	"github.com/mayflydb/mayfly/internal/work/judge"
	"github.com/mayflydb/mayfly/internal/work/transfer"
)

// runDoctor runs mayfly doctor --json in this process.
func runDoctor(t *testing.T, args ...string) (r doctorReport) {
	t.Helper()
	var out, wrong bytes.Buffer
	if code := run(t.Context(), append([]string{"doctor", "--json"}, args...), &out, &wrong); code != exitOK {
		t.Fatalf("exit code %d: %s", code, wrong.String())
	}
	r.Survey = &judge.Survey{}
	if err := json.Unmarshal(out.Bytes(), &r); err != nil {
		t.Fatal(err)
	}
	return r
}

// kindsOf returns the number of items of each kind.
func kindsOf(r doctorReport) map[string]int64 {
	kinds := map[string]int64{}
	for _, v := range r.Values {
		kinds[v.Kind] = v.Items
	}
	return kinds
}

// keyedTable creates a table with the string key "id" and returns its side.
func keyedTable(t *testing.T, db *dynamodb.Client, name string) (transfer.Side, transfer.Table) {
	t.Helper()
	table, err := transfer.Keyed("id", "S", "", "")
	if err != nil {
		t.Fatal(err)
	}
	table.TableName = name
	side := sideOf(db, name)
	if err := side.Create(t.Context(), table); err != nil {
		t.Fatal(err)
	}
	return side, table
}

// A sample estimates the table: its numbers are near the true ones. All of it is exact.
func TestDoctorSamples(t *testing.T) {
	t.Parallel()
	s, db := memoryServer(t)
	side, table := keyedTable(t, db, "many")
	const items = 6000
	soon := time.Now().Add(40 * time.Minute).Unix()
	var lines []string
	for i := range items {
		value := fmt.Sprint(soon)
		if i%4 == 0 {
			value += "000"
		}
		lines = append(lines, fmt.Sprintf(`{"id":{"S":"item-%d"},"expires":{"N":"%s"}}`, i, value))
	}
	put(t, side, table, lines)
	args := []string{"--endpoint", s.url, "--table", "many", "--attribute", "expires"}
	r := runDoctor(t, append(args, "--all")...)
	if r.Items != items || !r.Whole || r.Scale != 1 || kindsOf(r)["milliseconds"] != items/4 || kindsOf(r)["good"] != items*3/4 || r.Buckets[0].Items != items*3/4 {
		t.Errorf("all: %d items, whole %t, scale %g, %v", r.Items, r.Whole, r.Scale, r.Values)
	}
	if len(r.Cliffs) != 1 || r.Cliffs[0].Items != items*3/4 || r.Cliffs[0].Minute.Unix() != soon-soon%60 {
		t.Errorf("cliffs: %v, want one at %d", r.Cliffs, soon)
	}
	if same := runDoctor(t, args...); !same.Whole || same.Items != items { // smaller than the sample
		t.Errorf("without --all: %d items, whole %t", same.Items, same.Whole)
	}
	r = runDoctor(t, append(args, "--sample", "1600")...)
	if r.Items < 800 || r.Items > 1700 || r.Whole || math.Abs(float64(r.Items)*r.Scale-items) > 1 {
		t.Errorf("a sample: %d items, whole %t, scale %g", r.Items, r.Whole, r.Scale)
	}
	if bad := float64(kindsOf(r)["milliseconds"]) * r.Scale; math.Abs(bad-items/4) > items/10 {
		t.Errorf("a sample estimates %.0f mistakes, and there are %d", bad, items/4)
	}
	var out, wrong bytes.Buffer
	if code := run(t.Context(), append([]string{"doctor", "--sample", "1600"}, args...), &out, &wrong); code != exitOK {
		t.Fatal(wrong.String())
	}
	for _, want := range []string{"read a sample of ", "; numbers with ~ are estimates for about 6000;", "good          ~", "\ncliff: ~"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, &out)
		}
	}
}

// --max-rcu bounds the rate: the table has 100 items of one half unit, so 25 units a second take two
// seconds, less what one page of each call may have taken before the first pause.
func TestDoctorKeepsItsRate(t *testing.T) {
	t.Parallel()
	s, db := memoryServer(t)
	side, table := keyedTable(t, db, "slow")
	var lines []string
	for i := range 100 {
		lines = append(lines, fmt.Sprintf(`{"id":{"S":"%02d"},"text":{"S":"%s"}}`, i, strings.Repeat("x", 4080)))
	}
	put(t, side, table, lines)
	began := time.Now()
	r := runDoctor(t, "--endpoint", s.url, "--table", "slow", "--attribute", "expires", "--max-rcu", "25")
	if took := time.Since(began); took < time.Second || kindsOf(r)["absent"] != 100 {
		t.Errorf("it took %v for %v", took, r.Values)
	}
}

// doctor works at another implementation, which has no TTL.
func TestDoctorDynalite(t *testing.T) {
	t.Parallel()
	url := testkit.Dynalite(t)
	other, err := endpointFlags{Endpoint: url}.connect(t.Context(), serviceDynamoDB)
	if err != nil {
		t.Fatal(err)
	}
	side, table := keyedTable(t, other.DynamoDB(), "peer")
	past := time.Now().Add(-time.Hour).Unix()
	put(t, side, table, []string{
		`{"id":{"S":"a"},"expires":{"N":"4102444800"}}`, `{"id":{"S":"b"},"expires":{"S":"4102444800"}}`, `{"id":{"S":"c"},"expires":{"N":"` + strconv.FormatInt(past, 10) + `"}}`, `{"id":{"S":"d"}}`,
	})
	r := runDoctor(t, "--endpoint", url, "--table", "peer", "--attribute", "expires")
	if got, want := fmt.Sprint(kindsOf(r)), "map[absent:1 good:2 string:1]"; got != want || r.TTLAttribute != "" || r.Overdue.Items != 1 || r.Overdue.Oldest.Unix() != past {
		t.Errorf("got %s, want %s; %+v", got, want, r.Overdue)
	}
	var out, wrong bytes.Buffer
	if code := run(t.Context(), []string{"explain", "--endpoint", url, "--table", "peer", "--key", "b", "--attribute", "expires"}, &out, &wrong); code != exitOK || !strings.Contains(out.String(), `expires = {"S":"4102444800"} is a string`) {
		t.Errorf("exit code %d: %s%s", code, &out, &wrong)
	}
}

// The server and doctor judge alike: /metrics and the report have the same counts.
func TestDoctorAgreesWithServer(t *testing.T) {
	t.Parallel()
	s, db := memoryServer(t)
	for attribute, items := range map[string][]string{
		"expires": {
			`"expires":{"N":"4102444800"}`, `"expires":{"N":"4102444800.5"}`, `"expires":{"NULL":true}`, `"other":{"N":"1"}`, `"m":{"M":{"expires":{"S":"1"}}}`,
			`"expires":{"N":"4102444800000"}`, `"expires":{"N":"4102444800000000"}`, `"expires":{"N":"4102444800000000000"}`, `"expires":{"N":"1E+40"}`,
			`"expires":{"N":"0"}`, `"expires":{"N":"-5"}`, `"expires":{"N":"3600"}`, `"expires":{"N":"100000000000.00001"}`, `"expires":{"S":"4102444800"}`, `"expires":{"BOOL":true}`, `"expires":{"M":{"expires":{"N":"1"}}}`,
			`"m":{"M":{"expires":{"N":"1"}}}`, `"EXPIRES":{"N":"1"}`, `"Expires":{"S":"1"},"m":{"M":{"expires":{"N":"1"}}}`, `"m":{"M":{"Expires":{"N":"1"}}}`,
		},
		"a.b.c": {
			`"a":{"M":{"b":{"M":{"c":{"N":"1"}}}}}`, `"a":{"M":{"b.c":{"N":"1"}}}`, `"a":{"M":{"b":{"M":{"d":{"N":"1"}}}}}`, `"a":{"S":"b"}`, `"x":{"M":{"a.b.c":{"N":"1"}}}`, `"A.b.c":{"N":"1"}`,
		},
	} {
		name := strings.ReplaceAll(attribute, ".", "-")
		side, table := keyedTable(t, db, name)
		_, err := db.UpdateTimeToLive(t.Context(), &dynamodb.UpdateTimeToLiveInput{TableName: &name, TimeToLiveSpecification: &types.TimeToLiveSpecification{AttributeName: &attribute, Enabled: aws.Bool(true)}})
		if err != nil {
			t.Fatal(err)
		}
		var lines []string
		for i, attributes := range items {
			lines = append(lines, fmt.Sprintf(`{"id":{"S":"%d"},%s}`, i, attributes))
		}
		put(t, side, table, lines)
		_, metrics, err := exchange("GET", s.url+"/metrics", "")
		if err != nil {
			t.Fatal(err)
		}
		r := runDoctor(t, "--endpoint", s.url, "--table", name)
		kinds := kindsOf(r)
		if r.mistakes() < 4 {
			t.Errorf("%s: doctor finds %v", attribute, kinds)
		}
		for reason := ttl.Good; int(reason) < ttl.Reasons; reason++ {
			series := fmt.Sprintf("mayfly_ttl_suspicious_values_total{reason=%q,table=%q} ", reason, name)
			_, value, counted := strings.Cut(metrics, series)
			value, _, _ = strings.Cut(value, "\n")
			if counted != (reason.Mistake() && kinds[reason.String()] > 0) || counted && value != fmt.Sprint(kinds[reason.String()]) {
				t.Errorf("%s, %s: the server counts %q, and doctor %d", attribute, reason, value, kinds[reason.String()])
			}
		}
	}
}

// Bars are left out of a narrow window.
func TestDoctorNarrow(t *testing.T) {
	r := &doctorReport{Survey: judge.NewSurvey("expires", []string{"id"}, 0), Whole: true}
	r.Buckets[0].Items, r.Buckets[1].Items = 1000, 1
	for width, want := range map[int]int{80: bucketCells + 1, 40: 0} {
		var b strings.Builder
		r.writeBuckets(&b, width)
		if got := strings.Count(b.String(), "█"); got != want {
			t.Errorf("%d cells: %d blocks, want %d\n%s", width, got, want, &b)
		}
	}
}
