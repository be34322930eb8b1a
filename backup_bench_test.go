package mayfly

import (
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

var backupMB = flag.Int("backup-mb", 64, "size of the database of BenchmarkBackup, in MB")

// fillMB writes so many megabytes of items that cannot be compressed.
func fillMB(b *testing.B, api *dynamodb.Client, mb int) {
	b.Helper()
	const size, batch = 16 << 10, 25
	random := rand.NewChaCha8([32]byte{1})
	for i := 0; i < mb<<20/size; i += batch {
		var requests []types.WriteRequest
		for j := range batch {
			content := make([]byte, size)
			_, _ = random.Read(content)
			requests = append(requests, types.WriteRequest{PutRequest: &types.PutRequest{Item: map[string]types.AttributeValue{
				"pk": &types.AttributeValueMemberS{Value: fmt.Sprint("item ", i+j)}, "b": &types.AttributeValueMemberB{Value: content},
			}}})
		}
		if _, err := api.BatchWriteItem(b.Context(), &dynamodb.BatchWriteItemInput{RequestItems: map[string][]types.WriteRequest{"things": requests}}); err != nil {
			b.Fatal(err)
		}
	}
}

// copyFiles copies the files of a directory as cp does, with a sync at its end, and returns their
// size.
func copyFiles(b *testing.B, from, to string) (bytes int64) {
	b.Helper()
	entries, err := os.ReadDir(from)
	if err != nil {
		b.Fatal(err)
	}
	for _, e := range entries {
		if filepath.Ext(e.Name()) != ".sst" {
			continue
		}
		in, err := os.Open(filepath.Join(from, e.Name()))
		if err != nil {
			b.Fatal(err)
		}
		out, err := os.Create(filepath.Join(to, e.Name()))
		if err != nil {
			b.Fatal(err)
		}
		n, err := io.Copy(struct{ io.Writer }{out}, struct{ io.Reader }{in})
		if err == nil {
			err = out.Sync()
		}
		if _, shut := in.Close(), out.Close(); err != nil || shut != nil {
			b.Fatal(err, shut)
		}
		bytes += n
	}
	return bytes
}

// p99 is the 99th percentile.
func p99(all []time.Duration) time.Duration {
	if len(all) == 0 {
		return 0
	}
	slices.Sort(all)
	return all[len(all)*99/100]
}

// BenchmarkBackup compares a first backup with a copy of the files, in turn, and measures a second
// backup without changes, and calls of PutItem without and during backups.
//
//	go test -run xxx -bench '^BenchmarkBackup$' -benchtime 5x -backup-mb 1024 .
func BenchmarkBackup(b *testing.B) {
	dir := filepath.Join(b.TempDir(), "data")
	db := open(b, dir, Options{})
	makeTable(b, db.DynamoDB(), "things")
	fillMB(b, db.DynamoDB(), *backupMB)
	var copies, firsts, seconds, quiet, busy []time.Duration
	var size int64
	timed := func(do func()) time.Duration {
		began := time.Now()
		do()
		return time.Since(began)
	}
	// calls puts small items until done is closed.
	calls := func(done <-chan struct{}, into *[]time.Duration) {
		for n := 0; ; n++ {
			select {
			case <-done:
				return
			default:
			}
			*into = append(*into, timed(func() {
				_, err := db.DynamoDB().PutItem(b.Context(), &dynamodb.PutItemInput{TableName: aws.String("things"), Item: map[string]types.AttributeValue{
					"pk": &types.AttributeValueMemberS{Value: fmt.Sprint("small ", n%1000)},
				}})
				if err != nil {
					b.Error(err)
				}
			}))
		}
	}
	during := func(into *[]time.Duration, do func()) {
		done := make(chan struct{})
		var caller sync.WaitGroup
		caller.Go(func() { calls(done, into) })
		do()
		close(done)
		caller.Wait()
	}
	for b.Loop() {
		place, files := b.TempDir(), b.TempDir()
		backup := func() {
			if _, err := db.Backup(b.Context(), place, 0); err != nil {
				b.Fatal(err)
			}
		}
		c, err := db.engine.Copy() // whose files stay while they are copied
		if err != nil {
			b.Fatal(err)
		}
		at, err := filepath.Glob(filepath.Join(dir, ".mayfly-copy-*"))
		if err != nil || len(at) != 1 {
			b.Fatal(at, err)
		}
		copies = append(copies, timed(func() { size = copyFiles(b, at[0], files) }))
		if err := c.Close(); err != nil {
			b.Fatal(err)
		}
		firsts = append(firsts, timed(backup))
		seconds = append(seconds, timed(backup))
		during(&quiet, func() { time.Sleep(firsts[len(firsts)-1]) })
		again := b.TempDir()
		during(&busy, func() {
			if _, err := db.Backup(b.Context(), again, 0); err != nil {
				b.Fatal(err)
			}
		})
		for _, d := range []string{place, files, again} {
			if err := os.RemoveAll(d); err != nil {
				b.Fatal(err)
			}
		}
	}
	median := func(all []time.Duration) float64 {
		slices.Sort(all)
		return all[len(all)/2].Seconds()
	}
	b.ReportMetric(float64(size)/1e6, "MB")
	b.ReportMetric(median(copies), "s/copy")
	b.ReportMetric(median(firsts), "s/backup")
	b.ReportMetric(median(firsts)/median(copies), "backup/copy")
	b.ReportMetric(median(seconds), "s/second-backup")
	b.ReportMetric(float64(p99(quiet).Microseconds())/1e3, "ms-p99-without")
	b.ReportMetric(float64(p99(busy).Microseconds())/1e3, "ms-p99-during")
}
