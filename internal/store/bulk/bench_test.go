package bulk

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/mayflydb/mayfly/internal/store/engine"
)

const benchItems = 1_000_000

// BenchmarkBulk imports a million items of 300 bytes from four files, and exports them, on disk:
//
//	go test -run '^$' -bench Bulk -benchtime 3x ./internal/store/bulk
func BenchmarkBulk(b *testing.B) {
	s := start(&testing.T{}, b.TempDir(), b.TempDir())
	s.run()
	defer s.close()
	random := rand.New(rand.NewPCG(1, 1))
	text := make([]byte, 1<<16)
	for i := range text {
		text[i] = "abcdefghijklmnopqrstuvwxyz      "[random.IntN(32)]
	}
	for file := range 4 {
		f, err := os.Create(filepath.Join(s.bucket, fmt.Sprint("in", file)))
		if err != nil {
			b.Fatal(err)
		}
		w := bufio.NewWriter(f)
		for i := range benchItems / 4 {
			fmt.Fprintf(w, `{"Item":{"pk":{"S":"key-%07d"},"n":{"N":"%d"},"text":{"S":"%s"}}}`+"\n", i*4+file, i, text[i%(len(text)-250):][:250])
		}
		if err := w.Flush(); err != nil {
			b.Fatal(err)
		}
		f.Close()
	}
	tables := 0
	for _, indexed := range []bool{false, true} {
		name := fmt.Sprint("indexed-", indexed)
		d := desc("")
		if !indexed {
			d.Indexes = nil
		} else {
			d.Indexes[0].Key = d.Key
		}
		b.Run("import/"+name, func(b *testing.B) {
			for range b.N {
				tables++
				d.Name = fmt.Sprint("table", tables)
				if i := s.importTable(ImportRequest{Table: d, Bucket: "exports", Prefix: "in", Format: "DYNAMODB_JSON", Compression: "NONE"}); i.Imported != benchItems {
					b.Fatalf("%+v", i)
				}
			}
			b.ReportMetric(float64(benchItems*b.N)/b.Elapsed().Seconds(), "items/s")
		})
	}
	_, err := s.engine.Alter(context.Background(), namespace, "table1", func(d *engine.TableDesc, _ engine.Instant) error { d.History.Days = 1; return nil })
	if err != nil {
		b.Fatal(err)
	}
	b.Run("export", func(b *testing.B) {
		for range b.N {
			if e := s.export(ExportRequest{Table: "table1", At: engine.Never, Bucket: "exports", Prefix: "out"}); e.Items != benchItems {
				b.Fatalf("%+v", e)
			}
		}
		b.ReportMetric(float64(benchItems*b.N)/b.Elapsed().Seconds(), "items/s")
	})
}
