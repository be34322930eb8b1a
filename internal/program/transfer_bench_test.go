package program

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// BenchmarkTransfer exports, imports and copies 50,000 items of about 300 bytes. The server
// is another process.
func BenchmarkTransfer(b *testing.B) {
	const items = 50_000
	dir := b.TempDir()
	file, err := os.Create(filepath.Join(dir, "items"))
	if err != nil {
		b.Fatal(err)
	}
	for i := range items {
		fmt.Fprintf(file, `{"Item":{"pk":{"S":"key-%08d"},"number":{"N":"%d"},"text":{"S":%q},"more":{"S":%q}}}`+"\n", i, i, strings.Repeat("x", 130), strings.Repeat("y", 134))
	}
	if err := file.Close(); err != nil {
		b.Fatal(err)
	}
	for _, verb := range []string{"import", "export", "copy"} {
		b.Run(verb, func(b *testing.B) {
			s, _ := memoryServer(b)
			progress := filepath.Join(b.TempDir(), "p")
			mustTransfer(b, "import", "--endpoint", s.url, "--table", "first", "--from", dir, "--key", "pk:S", "--progress", progress)
			n := 0
			for b.Loop() {
				n++
				switch verb {
				case "import":
					mustTransfer(b, "import", "--endpoint", s.url, "--table", fmt.Sprint("table-", n), "--from", dir, "--key", "pk:S", "--progress", progress)
				case "export":
					mustTransfer(b, "export", "--endpoint", s.url, "--table", "first", "--to", b.TempDir())
				case "copy":
					mustTransfer(b, "copy", "--endpoint", s.url, "--table", "first", "--to-table", fmt.Sprint("table-", n), "--progress", progress)
				}
			}
			b.ReportMetric(float64(items*n)/b.Elapsed().Seconds(), "items/s")
		})
	}
}
