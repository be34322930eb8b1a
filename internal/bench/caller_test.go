package bench

import (
	"encoding/json"
	"strings"
	"testing"
)

// body returns the JSON of a request.
func body(t *testing.T, raw []byte) map[string]any {
	t.Helper()
	head, text, ok := strings.Cut(string(raw), "\r\n\r\n")
	if !ok {
		t.Fatalf("no body in %q", raw)
	}
	if strings.ContainsAny(text, "<>") || strings.Contains(text, "%s") {
		t.Errorf("a mark is left in %s", text)
	}
	var m map[string]any
	if err := json.Unmarshal([]byte(text), &m); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	if !strings.Contains(head, "Content-Length: "+itoa(len(text))) {
		t.Errorf("the length %d is not in %s", len(text), head)
	}
	return m
}

func itoa(n int) string { b, _ := json.Marshal(n); return string(b) }

// Each scenario's requests are JSON about its table, with different keys in sequence.
func TestScenarioRequests(t *testing.T) {
	for i := range scenarios {
		s := &scenarios[i]
		tab := &table{design: design{name: "tab"}, items: 1000}
		tab.fresh.Store(1000)
		var c caller = &scanCaller{host: "host", table: "tab"}
		if s.name != scenarioScan {
			c = newScenarioCaller(s, "host", tab, 3)
		}
		seen := map[string]bool{}
		for range 3 {
			raw := c.next()
			body(t, raw)
			if !strings.Contains(string(raw), `"tab"`) || !strings.Contains(string(raw), "X-Amz-Target: DynamoDB_20120810."+s.operation+"\r\n") {
				t.Errorf("%s: %s", s.name, raw)
			}
			seen[string(raw)] = true
		}
		if len(seen) != 3 && s.name != scenarioScan {
			t.Errorf("%s: requests repeat", s.name)
		}
		if want := uint64(1000); s.fresh && tab.fresh.Load() != want+uint64(3*s.perCall) {
			t.Errorf("%s: %d keys were taken", s.name, tab.fresh.Load()-want)
		}
	}
}

// Items have the documented size and number of attributes.
func TestItemSize(t *testing.T) {
	s := scenarioNamed(scenarioPut)
	c := newScenarioCaller(s, "host", &table{design: design{name: "tab"}}, 0)
	item := body(t, c.next())["Item"].(map[string]any)
	size := 0
	for name, value := range item {
		size += len(name)
		for kind, v := range value.(map[string]any) {
			switch kind {
			case "S":
				size += len(v.(string))
			case "N":
				digits := strings.TrimLeft(v.(string), "0")
				size += (len(digits)+1)/2 + 1
			case "BOOL":
				size++
			}
		}
	}
	if len(item) != 8 || size > itemBytes || size < itemBytes-5 {
		t.Errorf("%d attributes, %d bytes", len(item), size)
	}
}

func TestAnswersAreJudged(t *testing.T) {
	query := &scenarioCaller{scenario: scenarioNamed(scenarioQuery)}
	if _, err := query.done([]byte(`{"Count":0,"Items":[]}`)); err == nil {
		t.Error("a query without items is right")
	}
	batch := &scenarioCaller{scenario: scenarioNamed(scenarioBatch)}
	if n, err := batch.done([]byte(`{"UnprocessedItems": {}}`)); err != nil || n != batchItems {
		t.Errorf("%d, %v", n, err)
	}
	if _, err := batch.done([]byte(`{"UnprocessedItems":{"tab":[{"PutRequest":{}}]}}`)); err == nil {
		t.Error("unprocessed items are right")
	}
	scan := &scanCaller{host: "host", table: "tab"}
	if n, err := scan.done([]byte(`{"Count": 12, "Items":[],"LastEvaluatedKey" : {"pk":{"S":"x"}},"ScannedCount":12}`)); err != nil || n != 12 {
		t.Errorf("%d, %v", n, err)
	}
	if got := body(t, scan.next())["ExclusiveStartKey"]; got == nil {
		t.Error("a scan does not go on behind its page")
	}
	if n, err := scan.done([]byte(`{"Count":3}`)); err != nil || n != 3 || body(t, scan.next())["ExclusiveStartKey"] != nil {
		t.Errorf("a scan does not begin again: %d, %v", n, err)
	}
	if _, err := scan.done([]byte(`{}`)); err == nil {
		t.Error("a page without a count is right")
	}
}

func FuzzMembers(f *testing.F) {
	f.Add([]byte(`{"Count":1,"LastEvaluatedKey":{"a":{"S":"b"}}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		var n json.Number
		if member(b, "Count", &n) && n != "" && !json.Valid([]byte(n)) {
			t.Fatal(n)
		}
		var o json.RawMessage
		if member(b, "LastEvaluatedKey", &o) && !json.Valid(o) {
			t.Fatalf("%q", o)
		}
	})
}
