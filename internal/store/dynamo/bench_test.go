package dynamo

import "testing"

// benchItem is a device reading of 8 attributes and 405 bytes, not in canonical order.
const benchItem = `{"pk":{"S":"device#7f3a9c21-55d0-4b1e-9a77-0c2f8de41b06"},"sk":{"N":"1761667200123"},` +
	`"temperature":{"N":"21.375"},"humidity":{"N":"48.2"},"status":{"S":"ok: nominal, battery charged"},` +
	`"expiresAt":{"N":"1761670800"},"tags":{"SS":["outdoor","north","solar"]},` +
	`"location":{"M":{"lat":{"N":"52.520008"},"lon":{"N":"13.404954"},"site":{"S":"roof of the old observatory, west wing"},` +
	`"indoor":{"BOOL":false}}}}`

func BenchmarkItemFromJSON(b *testing.B) {
	b.ReportAllocs()
	b.SetBytes(int64(len(benchItem)))
	var (
		j    JSON
		dst  []byte
		body = []byte(benchItem)
	)
	for b.Loop() {
		j.Reset(body)
		out, invalid, fatal := j.AppendItem(dst[:0])
		if invalid != nil || fatal != nil {
			b.Fatal(invalid, fatal)
		}
		dst = out
	}
}

func BenchmarkItemToJSON(b *testing.B) {
	b.ReportAllocs()
	it, _, _ := NewJSON([]byte(benchItem)).AppendItem(nil)
	var dst []byte
	for b.Loop() {
		dst = AppendItemJSON(dst[:0], it)
	}
	if len(dst) != len(benchItem) {
		b.Fatalf("%d bytes of JSON, want %d", len(dst), len(benchItem))
	}
}

func BenchmarkItemGet(b *testing.B) {
	b.ReportAllocs()
	it, _, _ := NewJSON([]byte(benchItem)).AppendItem(nil)
	for b.Loop() {
		if Item(it).Get("status") == nil {
			b.Fatal("no status")
		}
	}
}

func BenchmarkItemSize(b *testing.B) {
	b.ReportAllocs()
	it, _, _ := NewJSON([]byte(benchItem)).AppendItem(nil)
	for b.Loop() {
		if Item(it).Size() == 0 {
			b.Fatal("no size")
		}
	}
}

func BenchmarkAppendNumber(b *testing.B) {
	b.ReportAllocs()
	text := []byte("1761667200123")
	var dst []byte
	for b.Loop() {
		dst, _ = AppendNumber(dst[:0], text)
	}
}

func BenchmarkAddNumbers(b *testing.B) {
	b.ReportAllocs()
	x, _ := AppendNumber(nil, []byte("1761667200123"))
	y, _ := AppendNumber(nil, []byte("0.75"))
	var dst []byte
	for b.Loop() {
		dst, _ = AddNumbers(dst[:0], x, y)
	}
}
