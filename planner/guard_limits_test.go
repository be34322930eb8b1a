package planner

import (
	"math"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// The facts about guard agree with its code. It is not imported, as its packages are internal.
func TestGuardFacts(t *testing.T) {
	for _, c := range []struct {
		file, name string
		want       float64
	}{
		{"internal/armed/armed.go", "entriesMax", armedMax}, {"internal/stream/division.go", "PartitionsMax", partitionsMost}, {"internal/stream/division.go", "spreadDefault", keysPerMinute},
		{"internal/strategy/env.go", "LeasesMost", leasesMost}, {"internal/stream/stream.go", "armedAlone", aloneMax}, {"../internal/work/consume/listing.go", "listEvery", listEvery},
		{"../internal/work/consume/keep.go", "saveEvery", saveEvery * 1000}, {"../internal/work/consume/keep.go", "saveShare", saveShare * 1000},
	} {
		text, err := os.ReadFile("../guard/" + c.file)
		if err != nil {
			t.Fatal(err)
		}
		found := regexp.MustCompile(`(?m)^\s*(?:const )?` + c.name + `\s+= ([0-9_]+)`).FindSubmatch(text)
		if found == nil || strings.ReplaceAll(string(found[1]), "_", "") != strconv.FormatFloat(c.want, 'f', -1, 64) {
			t.Errorf("%s has %q; the plan takes %v", c.file, found, c.want)
		}
	}
}

// A partition has four keys for each minute, and each key takes 800 of Amazon's 1,000 write units a
// second. Each deadline is put and deleted.
func TestGuardPartitionKeys(t *testing.T) {
	for _, c := range []struct {
		written float64 // deadlines a second
		want    int
		key     float64 // write units a second
	}{{1600 * 16, 16, 800}, {1600*16 + 1, 32, (3200*16 + 2) / 128.0}, {1600 * 32, 32, 800}, {1600*32 + 1, 64, (3200*32 + 2) / 256.0}} {
		s := &sizing{
			GuardSize: &GuardSize{Strategy: guardStream, Fits: true, StreamShards: 1}, p: Default(), written: c.written,
			l: &GuardLoad{Items: 1e6, Expirations: c.written, ItemBytes: 1024, KeyBytes: 36, Late: time.Second, RoundTrip: time.Millisecond, Lease: time.Minute},
		}
		s.perRemoval = -2.0 / recordsPerS // the workers take no time, so the keys alone decide
		s.stream()
		if s.Partitions != c.want || math.Abs(s.KeyWrites-c.key) > 1e-6 {
			t.Errorf("%v deadlines a second: %d partitions, %v write units for a key; want %d, %v", c.written, s.Partitions, s.KeyWrites, c.want, c.key)
		}
	}
}

// A worker holds 2,000,000 deadlines; a scan leaves 100,000 of them free.
func TestGuardArmedLimit(t *testing.T) {
	const says = "deadlines wait in memory; a worker holds 2,000,000"
	for period, fits := range map[time.Duration]bool{2000 * time.Second: true, 2001 * time.Second: false} { // two periods of 1,000 a second, in two workers
		o := sized(t, GuardLoad{Items: 1e8, Expirations: 1000, Strategy: guardIndex, Period: period}).Options[0]
		if o.Workers != 2 || o.Fits != fits || strings.Contains(strings.Join(o.Why, ";"), says) == fits {
			t.Errorf("a period of %v: %+v", period, o)
		}
	}
	for rate, workers := range map[float64]int{1425: 3, 1426: 4} { // two passes of 2,000 s have 1,900,000 for each worker
		o := sized(t, GuardLoad{Items: 1e7, Expirations: rate, Strategy: guardScan, Pass: 2000 * time.Second}).Options[0]
		if o.Workers != workers {
			t.Errorf("%v a second: %d workers, want %d", rate, o.Workers, workers)
		}
	}
}

// The workers' own rows are read, too: 132 rows of 220 bytes are 8 blocks of 4 KB, and 33 rows are 2.
func TestGuardLeaseRows(t *testing.T) {
	for workers, want := range map[int]float64{1: 0.4 * 2, 100: 40 * 8} {
		s := &sizing{GuardSize: &GuardSize{Workers: workers}, l: &GuardLoad{Lease: 10 * time.Second}}
		s.leases(0, 32)
		if s.ReadUnits != want || s.KeyReads != want || s.WriteUnits != 0.4*float64(workers) {
			t.Errorf("%d workers read %v units a second, want %v: %+v", workers, s.ReadUnits, want, s.GuardSize)
		}
	}
}
