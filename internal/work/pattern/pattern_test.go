package pattern

import (
	"errors"
	"strings"
	"testing"
)

// An event in the form that Lambda filters.
const record = `{
	"eventID": "c4ca4238a0b923820dcc509a6f75849b", "eventName": "MODIFY", "eventVersion": "1.1", "eventSource": "aws:dynamodb",
	"dynamodb": {
		"ApproximateCreationDateTime": 1479499740,
		"Keys": {"id": {"S": "order#7"}},
		"NewImage": {
			"id": {"S": "order#7"}, "status": {"S": "Open"}, "total": {"N": "101"}, "note": {"NULL": true}, "empty": {"S": ""}, "file": {"S": "a/lib/x.PNG"},
			"address": {"M": {"city": {"S": "Zürich"}, "ip": {"S": "10.0.0.33"}, "ip6": {"S": "2001:0db8:0:0::1"}}},
			"lines": {"L": [
				{"M": {"sku": {"S": "A"}, "count": {"N": "1"}}},
				{"M": {"sku": {"S": "B"}, "count": {"N": "2"}, "gift": {"BOOL": true}}}
			]},
			"tags": {"SS": ["red", "green"]}, "none": {"L": []}
		},
		"SizeBytes": 301.8, "StreamViewType": "NEW_IMAGE"
	},
	"userIdentity": null, "escaped\u002dname": "a\"b\\c\u00e9"
}`

// Each test of the language: the examples of AWS's documentation, applied to stream records.
func TestMatch(t *testing.T) {
	image := func(inner string) string { return `{"dynamodb": {"NewImage": ` + inner + `}}` }
	for _, test := range []struct {
		pattern string
		want    bool
	}{
		{`{"eventName": ["MODIFY"]}`, true},
		{`{"eventName": ["INSERT", "MODIFY"]}`, true},
		{`{"eventName": ["modify"]}`, false},
		{`{"eventName": [{"exactly": "MODIFY"}]}`, true},
		{`{"eventName": ["MODIFY"], "eventSource": ["aws:sqs"]}`, false},
		{`{"eventName": ["MODIFY"], "eventSource": ["aws:dynamodb"]}`, true},
		{`{"nothing": ["x"]}`, false},
		{`{"eventName": {"S": ["MODIFY"]}}`, false},
		{`{"dynamodb": ["MODIFY"]}`, false},
		{`{"userIdentity": [null]}`, true},
		{`{"userIdentity": ["null"]}`, false},
		{`{"eventName": [null]}`, false},
		{`{"escaped-name": ["a\"b\\cé"]}`, true},
		{image(`{"empty": {"S": [""]}}`), true},
		{image(`{"status": {"S": [""]}}`), false},
		{image(`{"note": {"NULL": [true]}}`), true},
		{image(`{"note": {"NULL": [false]}}`), false},

		{image(`{"id": {"S": [{"prefix": "order#"}]}}`), true},
		{image(`{"id": {"S": [{"prefix": "Order#"}]}}`), false},
		{image(`{"id": {"S": [{"prefix": ""}]}}`), true},
		{image(`{"id": {"S": [{"prefix": {"equals-ignore-case": "ORDER#"}}]}}`), true},
		{image(`{"total": {"N": [{"prefix": "10"}]}}`), true},
		{image(`{"file": {"S": [{"suffix": ".PNG"}]}}`), true},
		{image(`{"file": {"S": [{"suffix": ".png"}]}}`), false},
		{image(`{"file": {"S": [{"suffix": {"equals-ignore-case": ".png"}}]}}`), true},
		{image(`{"status": {"S": [{"equals-ignore-case": "oPEN"}]}}`), true},
		{image(`{"address": {"M": {"city": {"S": [{"equals-ignore-case": "zÜRICH"}]}}}}`), true},
		{image(`{"address": {"M": {"city": {"S": [{"suffix": {"equals-ignore-case": "ÜRICH"}}]}}}}`), true},

		{image(`{"file": {"S": [{"wildcard": "*/lib/*"}]}}`), true},
		{image(`{"file": {"S": [{"wildcard": "a*x*G"}]}}`), true},
		{image(`{"file": {"S": [{"wildcard": "*"}]}}`), true},
		{image(`{"file": {"S": [{"wildcard": "a/lib/x.PNG"}]}}`), true},
		{image(`{"file": {"S": [{"wildcard": "a*lib"}]}}`), false},
		{image(`{"file": {"S": [{"wildcard": "a/lib/x.PNG*G"}]}}`), false},
		{image(`{"file": {"S": [{"wildcard": "a\\*"}]}}`), false},

		{image(`{"status": {"S": [{"anything-but": "Closed"}]}}`), true},
		{image(`{"status": {"S": [{"anything-but": "Open"}]}}`), false},
		{image(`{"status": {"S": [{"anything-but": ["Closed", "Open"]}]}}`), false},
		{image(`{"status": {"S": [{"anything-but": {"prefix": "Op"}}]}}`), false},
		{image(`{"status": {"S": [{"anything-but": {"prefix": ["X", "Y"]}}]}}`), true},
		{image(`{"file": {"S": [{"anything-but": {"suffix": ".PNG"}}]}}`), false},
		{image(`{"status": {"S": [{"anything-but": {"equals-ignore-case": ["OPEN"]}}]}}`), false},
		{image(`{"file": {"S": [{"anything-but": {"wildcard": "*/lib/*"}}]}}`), false},
		{image(`{"file": {"S": [{"anything-but": {"wildcard": "*/bin/*"}}]}}`), true},
		{image(`{"missing": {"S": [{"anything-but": "x"}]}}`), false},
		// another type passes anything-but
		{image(`{"note": {"NULL": [{"anything-but": "true"}]}}`), true},
		{`{"dynamodb": {"SizeBytes": [{"anything-but": 301.8}]}}`, false},
		{`{"dynamodb": {"SizeBytes": [{"anything-but": [1, 2]}]}}`, true},
		{`{"eventName": [{"anything-but": 5}]}`, true},

		{`{"dynamodb": {"SizeBytes": [3.018e2]}}`, true},
		{`{"dynamodb": {"SizeBytes": [301.80]}}`, true},
		{`{"dynamodb": {"SizeBytes": ["301.8"]}}`, false},
		{`{"dynamodb": {"SizeBytes": [{"numeric": ["=", 301.8]}]}}`, true},
		{`{"dynamodb": {"SizeBytes": [{"numeric": [">", 301, "<=", 301.8]}]}}`, true},
		{`{"dynamodb": {"SizeBytes": [{"numeric": ["<", 301.8]}]}}`, false},
		{`{"dynamodb": {"SizeBytes": [{"numeric": [">=", 301.800001]}]}}`, false},
		// as encoding/json writes it
		{`{"dynamodb": {"SizeBytes": [{"numeric": ["\u003e", 0]}]}}`, true},
		{`{"dynamodb": {"ApproximateCreationDateTime": [{"numeric": [">=", 1479499740]}]}}`, true},
		{image(`{"total": {"N": [{"numeric": [">", 100]}]}}`), false}, // a string in this language
		{image(`{"total": {"N": [101]}}`), false},
		{image(`{"total": {"N": ["101"]}}`), true},
		{image(`{"total": {"N": [{"numeric": [">", 100]}, {"anything-but": "42"}]}}`), true},

		{image(`{"address": {"M": {"ip": {"S": [{"cidr": "10.0.0.0/24"}]}}}}`), true},
		{image(`{"address": {"M": {"ip": {"S": [{"cidr": "10.0.1.0/24"}]}}}}`), false},
		{image(`{"address": {"M": {"ip6": {"S": [{"cidr": "2001:db8::/32"}]}}}}`), true},
		{image(`{"address": {"M": {"ip6": {"S": ["2001:db8::1"]}}}}`), true},
		{image(`{"id": {"S": [{"cidr": "10.0.0.0/24"}]}}`), false},

		{image(`{"status": {"S": [{"exists": true}]}}`), true},
		{image(`{"missing": {"S": [{"exists": true}]}}`), false},
		{image(`{"missing": {"S": [{"exists": false}]}}`), true},
		{image(`{"status": {"S": [{"exists": false}]}}`), false},
		{image(`{"status": [{"exists": true}]}`), false}, // an object is no leaf
		{image(`{"status": [{"exists": false}]}`), true},
		{image(`{"none": {"L": [{"exists": false}]}}`), true}, // neither is an empty array
		{image(`{"none": {"L": [{"exists": true}]}}`), false},
		{`{"dynamodb": {"OldImage": {"a": {"S": [{"exists": false}]}, "b": {"S": [{"exists": false}]}}}}`, true},
		{`{"userIdentity": [{"exists": true}]}`, true},
		{`{"userIdentity": {"type": [{"exists": false}]}}`, true},
		{image(`{"missing": {"S": [{"exists": false}, "x"]}}`), true},
		{image(`{"status": {"S": [{"exists": false}, "Open"]}}`), true},
		{image(`{"status": {"S": [{"exists": false}, "x"]}}`), false},

		{image(`{"tags": {"SS": ["green"]}}`), true},
		{image(`{"tags": {"SS": ["blue"]}}`), false},
		{image(`{"tags": {"SS": [{"anything-but": "green"}]}}`), true}, // another element passes
		{image(`{"tags": {"SS": [{"anything-but": ["green", "red"]}]}}`), false},
		{image(`{"lines": {"L": {"M": {"sku": {"S": ["B"]}}}}}`), true},
		{image(`{"lines": {"L": {"M": {"sku": {"S": ["B"]}, "count": {"N": ["2"]}}}}}`), true},
		// one element must satisfy both
		{image(`{"lines": {"L": {"M": {"sku": {"S": ["B"]}, "count": {"N": ["1"]}}}}}`), false},
		{image(`{"lines": {"L": {"M": {"sku": {"S": ["A"]}, "gift": {"BOOL": [{"exists": false}]}}}}}`), false},
		{image(`{"lines": {"L": {"M": {"sku": {"S": ["A"]}, "wrap": {"BOOL": [{"exists": false}]}}}}}`), true},

		{`{"$or": [{"eventName": ["INSERT"]}, {"eventSource": ["aws:dynamodb"]}]}`, true},
		{`{"$or": [{"eventName": ["INSERT"]}, {"eventSource": ["aws:sqs"]}]}`, false},
		{`{"eventVersion": ["1.1"], "$or": [{"eventName": ["INSERT"]}, {"eventSource": ["aws:dynamodb"], "dynamodb": {"$or": [{"SizeBytes": [1]}, {"StreamViewType": ["NEW_IMAGE"]}]}}]}`, true},
		{image(`{"lines": {"L": {"M": {"$or": [{"sku": {"S": ["A"]}}, {"gift": {"BOOL": [true]}}], "count": {"N": ["2"]}}}}}`), true},
		{`{"dynamodb": {"NewImage": {"lines": {"L": {"M": {"sku": {"S": ["A"]}}}}}}, "$or": [
			{"dynamodb": {"NewImage": {"lines": {"L": {"M": {"count": {"N": ["2"]}}}}}}}, {"eventName": ["INSERT"]}]}`, false}, // the same element, even from inside $or
	} {
		p, err := Compile(test.pattern)
		if err != nil {
			t.Errorf("%s: %v", test.pattern, err)
			continue
		}
		if got, err := p.Match([]byte(record)); got != test.want || err != nil {
			t.Errorf("%s: %v, %v", test.pattern, got, err)
		}
	}
}

// Several patterns are ORed; no pattern matches everything.
func TestSeveral(t *testing.T) {
	for _, test := range []struct {
		patterns []string
		want     bool
	}{
		{nil, true},
		{[]string{`{"eventName": ["INSERT"]}`, `{"eventName": ["MODIFY"]}`}, true},
		{[]string{`{"eventName": ["INSERT"]}`, `{"eventName": ["REMOVE"]}`}, false},
	} {
		p, err := Compile(test.patterns...)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := p.Match([]byte(record)); got != test.want || err != nil {
			t.Errorf("%q: %v, %v", test.patterns, got, err)
		}
	}
}

// Every invalid pattern is refused with a sentence that names the place and the reason.
func TestRefused(t *testing.T) {
	for pattern, want := range map[string]string{
		``:                         "it is incomplete JSON",
		`null`:                     "it is not a JSON object",
		`"x"`:                      "it is not a JSON object",
		`[{"eventName": ["x"]}]`:   "it is not a JSON object",
		`{}`:                       "it is an empty object; a pattern must test something",
		`{"a": {}}`:                `"a" is an empty object; a pattern must test something`,
		`{"a": []}`:                `"a" is an empty array, which nothing can match`,
		`{"a": {"b": "c"}}`:        `"a.b" must be an object or an array`,
		`{"eventName": "INSERT"}`:  `"eventName" must be an object or an array`,
		`{"a": [["b"]]}`:           `"a" has an array in its array; only strings, numbers, true, false, null and tests are allowed`,
		`{"a": ["b"]`:              "it is incomplete JSON",
		`{"a": ["b"]} x`:           "something follows the JSON object",
		`{"a": ["b"]}{"a": ["b"]}`: "something follows the JSON object",
		`{"a": ["b"], "a": ["c"]}`: `"a" is given twice`,
		`{"a": ["b"], "$or": [{"a": ["c"]}, {"d": ["e"]}]}`: `"a" is given twice`,
		`{"a": [{"prefix": 5}]}`:                            `"a": prefix takes a string`,
		`{"a": [{"prefix": {"suffix": "x"}}]}`:              `"a": prefix takes a string or {"equals-ignore-case": a string}`,
		`{"a": [{"prefix": "x", "suffix": "y"}]}`:           `a test in "a" has more than one member; a second test is an object of its own`,
		`{"a": [{}]}`:                                  `"a" has an empty object where a test should be`,
		`{"a": [{"regex": "x"}]}`:                      `"a": unknown test "regex"`,
		`{"a": [{"exists": "yes"}]}`:                   `"a": exists takes true or false`,
		`{"a": [{"wildcard": "a**b"}]}`:                `"a": wildcard: two stars in a row are not allowed`,
		`{"a": [{"wildcard": "a\\b"}]}`:                `"a": wildcard: a backslash stands before a star or a backslash only`,
		`{"a": [{"wildcard": "a\\"}]}`:                 `"a": wildcard: a backslash stands before a star or a backslash only`,
		`{"a": [{"anything-but": []}]}`:                `"a": anything-but takes no empty list`,
		`{"a": [{"anything-but": null}]}`:              `"a": anything-but takes strings only or numbers only; null is not a number from -5e9 to 5e9 with at most six digits after the point`,
		`{"a": [{"anything-but": [1, "x"]}]}`:          `"a": anything-but takes strings only or numbers only; "x" is not a number from -5e9 to 5e9 with at most six digits after the point`,
		`{"a": [{"anything-but": ["x", 1]}]}`:          `"a": anything-but: exactly takes a string`,
		`{"a": [{"anything-but": {"prefix": ""}}]}`:    `"a": anything-but takes no empty prefix`,
		`{"a": [{"anything-but": {"cidr": "x"}}]}`:     `"a": anything-but takes strings, numbers, or an object with one of prefix, suffix, equals-ignore-case and wildcard`,
		`{"a": [{"numeric": [">"]}]}`:                  `"a": numeric takes ["=", n], one bound such as [">", n], or two such as [">", n, "<=", m]`,
		`{"a": [{"numeric": ["<", 5, ">", 1]}]}`:       `"a": numeric: "<" is not an operator that can stand there`,
		`{"a": [{"numeric": [">", 5, "<", 5]}]}`:       `"a": numeric: no number lies between the bounds`,
		`{"a": [{"numeric": [">", 5000000001]}]}`:      `"a": numeric: 5000000001 is not a number from -5e9 to 5e9 with at most six digits after the point`,
		`{"a": [{"numeric": [">", 0.0000001]}]}`:       `"a": numeric: 0.0000001 is not a number from -5e9 to 5e9 with at most six digits after the point`,
		`{"a": [{"numeric": [">", "5"]}]}`:             `"a": numeric: "5" is not a number from -5e9 to 5e9 with at most six digits after the point`,
		`{"a": [{"cidr": "10.0.0.0"}]}`:                `"a": cidr takes a block of addresses such as 10.0.0.0/24, not "10.0.0.0"`,
		`{"$or": {"a": ["b"]}}`:                        "$or must be an array of patterns",
		`{"$or": [{"a": ["b"]}]}`:                      "$or needs at least two patterns",
		`{"$or": [{"a": ["b"]}, "c"]}`:                 "$or must be an array of patterns",
		`{"$or": [{"prefix": ["b"]}, {"a": ["b"]}]}`:   `"prefix" is the name of a test and cannot be a member inside $or`,
		strings.Repeat(`{"a":`, 101) + `["b"]`:         "it is nested deeper than 100 levels",
		`{"a": ["` + strings.Repeat("x", 4096) + `"]}`: "it has 4107 characters; the limit is 4096",
		many(11): "the alternatives of $or make more than 1000 combinations",
	} {
		_, err := Compile(`{"ok": [true]}`, pattern)
		var e *Error
		if !errors.As(err, &e) || e.Message != want || e.Pattern != 1 {
			t.Errorf("%.100s: %v\nwant %s", pattern, err, want)
		}
	}
	if _, err := Compile(`{"a": [["b"=1]}`); err == nil {
		t.Error("took what is not JSON")
	}
	if _, err := Compile(many(9), many(9)); err == nil {
		t.Error("took too many branches in all")
	}
}

// many returns a pattern with 2^n combinations.
func many(n int) string {
	var b strings.Builder
	b.WriteString(`{"x": ["y"]`)
	for i := range n {
		name := string(rune('a' + i))
		b.WriteString(`, "` + name + `": {"$or": [{"l": ["1"]}, {"r": ["2"]}]}`)
	}
	return b.String() + "}"
}

// An event that is no JSON object is an error, not a mismatch.
func TestBadEvent(t *testing.T) {
	p, err := Compile(`{"a": ["b"]}`)
	if err != nil {
		t.Fatal(err)
	}
	for _, event := range []string{``, `[]`, `null`, `{`, `{"a"`, `{"a":`, `{"a":"b`, `{"a":"b"`, `{"a":"b"]`, `{"a":b}`, `{"a":tru}`, `{a:1}`, `{"a":"b"} x`, `{"x":[1,{"y":2}`,
		`{"a":"\u12"}`, `{"a":` + strings.Repeat("[", 2000) + `}`} {
		if got, err := p.Match([]byte(event)); err == nil {
			t.Errorf("%.40s: %v", event, got)
		}
	}
}
