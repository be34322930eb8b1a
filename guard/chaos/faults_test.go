package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

// The same seed makes the same decisions; another seed or strategy makes others.
func TestPlanFollowsFromItsSeed(t *testing.T) {
	decisions := func(seed uint64, strategy string) string {
		p := newPlan(seed, strategy, []string{"lost"})
		p.on.Store(true)
		var all strings.Builder
		for n := range uint64(1000) {
			if p.decide(p.chosen[0], n) != nil {
				fmt.Fprint(&all, n, " ")
			}
		}
		return all.String()
	}
	once := decisions(1, "scan")
	if n := len(strings.Fields(once)); n < 5 || n > 50 {
		t.Errorf("%d of 1,000 requests are lost; the rate is 0.02", n)
	}
	if once != decisions(1, "scan") || once == decisions(2, "scan") || once == decisions(1, "index") {
		t.Error("the decisions do not follow from seed and strategy alone")
	}
}

// Requests in a row share the decisions of a fault with each.
func TestPlanDecidesForSeveral(t *testing.T) {
	p := newPlan(1, "scan", []string{"date"})
	p.on.Store(true)
	each := p.chosen[0].each
	for n := range uint64(1000) {
		first, d := p.decide(p.chosen[0], n/each*each), p.decide(p.chosen[0], n)
		if (first == nil) != (d == nil) || d != nil && first.Uint64() != d.Uint64() {
			t.Fatalf("request %d differs from the first of its %d", n, each)
		}
	}
}

// A request goes through the faults that hit it, and each is counted.
func TestPlanWraps(t *testing.T) {
	defer func(old []fault) { faults = old }(faults)
	var way []string
	add := func(name string, rate float64, only string) {
		faults = append(faults, fault{name: name, rate: rate, only: only, do: func(x *exchange, _ *rand.Rand, pass next) (*answer, error) {
			way = append(way, name)
			return pass(x)
		}})
	}
	faults = nil
	add("outer", 1, "")
	add("never", 0, "")
	add("other", 1, "GetItem")
	add("inner", 1, "PutItem")
	p := newPlan(1, "scan", []string{"outer", "never", "other", "inner"})
	pass := func(*exchange) (*answer, error) {
		way = append(way, "endpoint")
		return nil, nil
	}
	x := &exchange{operation: "PutItem"}
	_, _ = p.wrap(x, pass)(x) // no faults yet
	p.on.Store(true)
	_, _ = p.wrap(x, pass)(x)
	if got := strings.Join(way, " "); got != "endpoint outer inner endpoint" {
		t.Error(got)
	}
	injected, _ := p.counted()
	if got := fmt.Sprint(injected); got != "map[inner:1 outer:1]" {
		t.Error(got)
	}
}

// always returns an answer, and keeps the request's body.
func always(body string, seen *string) next {
	return func(x *exchange) (*answer, error) {
		*seen = string(x.body)
		return &answer{http.StatusOK, http.Header{"X-Amz-Crc32": {"1"}}, []byte(body)}, nil
	}
}

// Each request of a batch is either sent or returned as unprocessed.
func TestSplitBatch(t *testing.T) {
	body := `{"RequestItems":{"t":[1,2,3,4,5,6,7,8]},"ReturnConsumedCapacity":"TOTAL"}`
	for seed := range uint64(20) {
		var seen string
		a, err := splitBatch(&exchange{body: []byte(body)}, rand.New(rand.NewPCG(seed, 0)), always(`{"UnprocessedItems":{"t":[9]}}`, &seen))
		if err != nil || a.header.Get("X-Amz-Crc32") != "" {
			t.Fatal(a, err)
		}
		var in struct{ RequestItems map[string][]int }
		var out struct{ UnprocessedItems map[string][]int }
		if err := json.Unmarshal([]byte(seen), &in); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(a.body, &out); err != nil {
			t.Fatal(err)
		}
		all := slices.Sorted(slices.Values(append(in.RequestItems["t"], out.UnprocessedItems["t"]...)))
		if len(in.RequestItems["t"]) == 0 || fmt.Sprint(all) != "[1 2 3 4 5 6 7 8 9]" || !strings.Contains(seen, "TOTAL") {
			t.Fatalf("sent %s, answered %s", seen, a.body)
		}
	}
}

// A shuffle keeps the order of each key.
func TestShuffle(t *testing.T) {
	record := func(key string, n int) string {
		return fmt.Sprintf(`{"n":%d,"dynamodb":{"Keys":{"k":{"S":"%s"}}}}`, n, key)
	}
	var records []string
	for n := range 12 {
		records = append(records, record(string(rune('a'+n%3)), n))
	}
	var seen string
	a, err := shuffle(&exchange{}, rand.New(rand.NewPCG(1, 0)), always(`{"Records":[`+strings.Join(records, ",")+`],"NextShardIterator":"x"}`, &seen))
	if err != nil {
		t.Fatal(err)
	}
	var out struct {
		Records           []struct{ N int }
		NextShardIterator string
	}
	if err := json.Unmarshal(a.body, &out); err != nil {
		t.Fatal(err)
	}
	last, moved := map[int]int{}, false
	for i, r := range out.Records {
		if moved = moved || r.N != i; last[r.N%3] > r.N {
			t.Errorf("record %d comes after %d", r.N, last[r.N%3])
		}
		last[r.N%3] = r.N
	}
	if len(out.Records) != 12 || !moved || out.NextShardIterator != "x" {
		t.Error(string(a.body))
	}
}

// The last records of the shard come before the new ones.
func TestRepeat(t *testing.T) {
	var seen string
	a, err := repeat(&exchange{before: []json.RawMessage{[]byte("1"), []byte("2")}}, nil, always(`{"Records":[3]}`, &seen))
	if err != nil || string(a.body) != `{"Records":[1,2,3]}` {
		t.Error(a, err)
	}
}

// A wrong Date differs from the true one or is missing, and some are within the allowed skew.
func TestWrongDate(t *testing.T) {
	now := time.Unix(1_900_000_000, 0)
	kinds := map[string]int{}
	for seed := range uint64(200) {
		var seen string
		x := &exchange{maxSkew: time.Second, now: func() time.Time { return now }}
		a, err := wrongDate(x, rand.New(rand.NewPCG(seed, 0)), always("{}", &seen))
		if err != nil {
			t.Fatal(err)
		}
		at, err := http.ParseTime(a.header.Get("Date"))
		switch by := at.Sub(now).Abs(); {
		case err != nil:
			kinds["missing"]++
		case by <= time.Second:
			kinds["within"]++
		case by == 10*time.Second:
			kinds["seconds"]++
		case by == 5*time.Minute:
			kinds["minutes"]++
		default:
			t.Errorf("wrong by %v", by)
		}
	}
	if len(kinds) != 4 {
		t.Error(kinds)
	}
}

// Only a stream whose shards are all closed is corrected.
func TestOpenShards(t *testing.T) {
	const first = `{"StreamDescription":{"Shards":[{"SequenceNumberRange":{"EndingSequenceNumber":"2","StartingSequenceNumber":"1"}}`
	const changed = `{"StreamDescription":{"Shards":[{"SequenceNumberRange":{"StartingSequenceNumber":"1"}}]}}`
	for body, want := range map[string]string{
		first + `]}}`: changed,
		changed:       changed,
		first + `,{"SequenceNumberRange":{"StartingSequenceNumber":"3"}}]}}`: first + `,{"SequenceNumberRange":{"StartingSequenceNumber":"3"}}]}}`,
	} {
		a := &answer{http.StatusOK, http.Header{}, []byte(body)}
		if openShards(a) != (want != body) || string(a.body) != want {
			t.Errorf("%s becomes %s", body, a.body)
		}
	}
}
