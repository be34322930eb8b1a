package exportfile

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/mayflydb/mayfly/internal/objects"
)

// benchItems returns records of 300 bytes with their newline.
func benchItems() (records [][]byte) {
	text := strings.Repeat("the quick brown fox jumps over the lazy dog ", 10)
	for i := range 100_000 {
		record := fmt.Appendf(nil, `{"Item":{"id":{"S":"customer-%07d"},"at":{"N":"%d"},"name":{"S":"%x"},"open":{"BOOL":true},"note":{"S":"`,
			i*7919%100_000, 1_700_000_000+i*37, i*2_654_435_761)
		record = append(record, text[i%44:][:295-len(record)]...)
		records = append(records, append(record, `"}}}`...))
	}
	return records
}

// benchFile writes a data file of an export.
func benchFile(b *testing.B, store objects.Store, records [][]byte) DataFile {
	b.Helper()
	f, err := NewWriter(store, "01", "", "").Data(context.Background(), "a", func(add func([]byte) error) error {
		for _, record := range records {
			if err := add(record); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
	return f
}

func BenchmarkRead(b *testing.B) {
	records := benchItems()
	store := objects.Dir(b.TempDir())
	f := benchFile(b, store, records)
	s, err := Open(b.Context(), store, "", Format{})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		n := 0
		if _, err := s.Read(b.Context(), s.Files[0], func(Record) error { n++; return nil }); err != nil || n != int(f.ItemCount) {
			b.Fatal(n, err)
		}
	}
	b.ReportMetric(float64(b.N)*float64(len(records))/b.Elapsed().Seconds(), "items/s")
}

func BenchmarkWrite(b *testing.B) {
	records := benchItems()
	store := objects.Dir(b.TempDir())
	b.ReportAllocs()
	for b.Loop() {
		benchFile(b, store, records)
	}
	b.ReportMetric(float64(b.N)*float64(len(records))/b.Elapsed().Seconds(), "items/s")
}
