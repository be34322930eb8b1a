package expr

import (
	"testing"

	"github.com/mayflydb/mayfly/internal/store/dynamo"
)

// benchItem is a typical item: ten attributes and 400 bytes.
var benchItem = mustItem(`{"pk":"device#0042","sk":"2026-01-01T00:00:00Z","owner":"someone","temperature":21.5,
	"expiresAt":1767225600,"status":"ok","tags":{"SS":["a","b","c"]},"place":{"lat":52.5,"lon":13.4,"city":"Berlin"},
	"history":[1,2,3,4,5],"note":"Lorem ipsum dolor sit amet, consectetur adipiscing elit, sed do eiusmod tempor incididunt ut labore et dolore magna aliqua. Ut enim ad minim veniam, quis nostrud exercitation"}`)

func benchmarkCondition(b *testing.B, text string, names map[string]string, values map[string]dynamo.Value) {
	b.ReportAllocs()
	for b.Loop() {
		s, err := NewSession(names, values)
		if err != nil {
			b.Fatal(err)
		}
		c, err := s.Condition(ConditionExpression, text)
		if err != nil {
			b.Fatal(err)
		}
		if err := s.Unused(); err != nil {
			b.Fatal(err)
		}
		c.Eval(benchItem)
	}
}

// BenchmarkConditionNotExists measures a request's whole work with the most common condition.
func BenchmarkConditionNotExists(b *testing.B) {
	benchmarkCondition(b, "attribute_not_exists(pk)", nil, nil)
}

func BenchmarkConditionCompare(b *testing.B) {
	benchmarkCondition(b, "#s = :ok AND temperature BETWEEN :low AND :high", map[string]string{"#s": "status"},
		mustValues(`{":ok":"ok",":low":20,":high":25}`))
}

// BenchmarkFilter measures the work per item of a Scan with a filter.
func BenchmarkFilter(b *testing.B) {
	s, err := NewSession(map[string]string{"#s": "status"}, mustValues(`{":bad":"bad"}`))
	if err != nil {
		b.Fatal(err)
	}
	c, err := s.Condition(FilterExpression, "#s = :bad AND attribute_exists(place.city)")
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		c.Eval(benchItem)
	}
}

func benchmarkUpdate(b *testing.B, text string, names map[string]string, values map[string]dynamo.Value) {
	b.ReportAllocs()
	for b.Loop() {
		s, err := NewSession(names, values)
		if err != nil {
			b.Fatal(err)
		}
		u, err := s.Update(text)
		if err != nil {
			b.Fatal(err)
		}
		if err := s.Unused(); err != nil {
			b.Fatal(err)
		}
		if _, err := u.Apply(benchItem, nil); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkUpdateSet measures a request's whole work with the most common update.
func BenchmarkUpdateSet(b *testing.B) {
	benchmarkUpdate(b, "SET #a = :v", map[string]string{"#a": "status"}, mustValues(`{":v":"late"}`))
}

func BenchmarkUpdateThree(b *testing.B) {
	benchmarkUpdate(b, "SET temperature = temperature + :d, place.city = :c REMOVE note", nil, mustValues(`{":d":1,":c":"Bonn"}`))
}

func BenchmarkProjection(b *testing.B) {
	s, err := NewSession(nil, nil)
	if err != nil {
		b.Fatal(err)
	}
	p, err := s.Projection("pk, temperature, place.city")
	if err != nil {
		b.Fatal(err)
	}
	var buf []byte
	b.ReportAllocs()
	for b.Loop() {
		buf = p.Apply(buf[:0], benchItem)
	}
}

// BenchmarkParse measures the parsing of a text that is not in the cache.
func BenchmarkParse(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := parseCondition("#s = :ok AND temperature BETWEEN :low AND :high OR NOT attribute_exists(place.city)"); err != nil {
			b.Fatal(err)
		}
	}
}
