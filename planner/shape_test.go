package planner

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestReadShape(t *testing.T) {
	for _, x := range []struct {
		name, file string
		want       []Point
		start      time.Time
		units      bool
	}{
		{"minutes", "minute,writes,reads\n0,1,2\n1,3,4\n", []Point{{1, 2}, {3, 4}}, time.Unix(0, 0), false},
		{"a row holds until the next, and the last as long as the closest two are apart", "minute,writes\n10,5\n13,7\n15,1\n", []Point{{5, 0}, {5, 0}, {5, 0}, {7, 0}, {7, 0}, {1, 0}, {1, 0}}, time.Unix(600, 0), false},
		{"timestamps, spellings, spaces, comments", "# from a page\nTime, Reads/s , writes_per_s\n2026-11-22T00:01:00Z,1.5,2e1\n2026-11-22T02:02:00+02:00,0,0\n", []Point{{20, 1.5}, {}}, time.Date(2026, 11, 22, 0, 1, 0, 0, time.UTC), false},
		{"one row", "minute,reads\n0,9\n", []Point{{0, 9}}, time.Unix(0, 0), false},
		{"CloudWatch's sums of five minutes, with a gap", "timestamp,ConsumedReadCapacityUnits,ConsumedWriteCapacityUnits\n2026-11-22T00:00:00Z,300,600\n2026-11-22T00:05:00Z,0,3000\n2026-11-22T00:15:00Z,300,0\n",
			[]Point{{2, 1}, {2, 1}, {2, 1}, {2, 1}, {2, 1}, {10, 0}, {10, 0}, {10, 0}, {10, 0}, {10, 0}, {}, {}, {}, {}, {}, {0, 1}, {0, 1}, {0, 1}, {0, 1}, {0, 1}}, time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC), true},
		{"a byte order mark", "\ufeffminute,writes\n0,1\n", []Point{{1, 0}}, time.Unix(0, 0), false},
	} {
		s, err := ReadShape(strings.NewReader(x.file))
		if err != nil {
			t.Errorf("%s: %v", x.name, err)
			continue
		}
		if !cmp.Equal(s.Points, x.want) || !s.Start.Equal(x.start) || s.Units != x.units {
			t.Errorf("%s: %v from %v, %v", x.name, s.Points, s.Start, s.Units)
		}
	}
}

func TestShapesThatAreNone(t *testing.T) {
	for _, x := range []struct{ file, says string }{
		{"", "the file is empty; it must begin with a heading such as minute,writes,reads"},
		{"minute,writes\n", "the file has a heading but no rows"},
		{"writes,reads\n1,2\n", "line 1: the column minute or timestamp is missing"},
		{"minute\n1\n", "line 1: the column writes or reads is missing"},
		{"minute,puts\n1,2\n", `line 1: unknown column "puts"; use minute or timestamp, with writes and reads, or ConsumedWriteCapacityUnits and ConsumedReadCapacityUnits`},
		{"minute,writes,Writes\n1,2,3\n", `line 1: column "Writes" repeats another column`},
		{"minute,timestamp,writes\n", `line 1: column "timestamp" repeats another column`},
		{"minute,writes,ConsumedReadCapacityUnits\n", "line 1: writes and reads cannot be mixed with ConsumedWriteCapacityUnits and ConsumedReadCapacityUnits"},
		{"minute,writes\n0,1\n1\n", "line 3: wrong number of fields"},
		{"minute,writes\n0,1\n0,2\n", "line 3: its time is not after the row before: sort the rows by time, each minute once"},
		{"minute,writes\n5,1\n4,2\n", "line 3: its time is not after the row before: sort the rows by time, each minute once"},
		{"minute,writes\nnoon,1\n", `line 2: minute: "noon" is not a whole number of 0 or more`},
		{"minute,writes\n-1,1\n", `line 2: minute: "-1" is not a whole number of 0 or more`},
		{"timestamp,writes\n2026-11-22 00:01,1\n", `line 2: timestamp: "2026-11-22 00:01" is not a time such as 2026-11-22T00:01:00Z`},
		{"timestamp,writes\n2026-11-22T00:01:30Z,1\n", `line 2: timestamp: "2026-11-22T00:01:30Z" is not a whole minute`},
		{"minute,writes\n0,NaN\n", `line 2: writes: "NaN" is not a number between 0 and 1e+09`},
		{"minute,writes\n0,-3\n", `line 2: writes: "-3" is not a number between 0 and 1e+09`},
		{"minute,writes\n0,Inf\n", `line 2: writes: "Inf" is not a number between 0 and 1e+09`},
		{"minute,reads\n0,\n", `line 2: reads: "" is not a number between 0 and 1e+09`},
		{"minute,writes\n0,1\n527040,1\n", "line 3: it is more than 527040 minutes (366 days) after the first row"},
		{"minute,writes\n0,1\n300000,1\n", "with its last row of 300000 minutes the shape exceeds 527040 minutes (366 days)"},
		{"minute,writes\n0,\"1\n", `line 2: extraneous or missing " in quoted-field`},
	} {
		_, err := ReadShape(strings.NewReader(x.file))
		if err == nil || err.Error() != x.says {
			t.Errorf("%q\n got %v\nwant %s", x.file, err, x.says)
		}
		var line *LineError
		if strings.HasPrefix(x.says, "line") && !errors.As(err, &line) {
			t.Errorf("%q: the error has no line", x.file)
		}
	}
}

func FuzzShape(f *testing.F) {
	for _, seed := range []string{"minute,writes,reads\n0,1,2\n10,3,4\n", "timestamp,writes\n2026-11-22T00:01:00Z,1\n", "timestamp,ConsumedWriteCapacityUnits\n2026-11-22T00:00:00Z,600\n2026-11-22T00:05:00Z,1\n", "minute,reads\n2147483647,1\n"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, file string) {
		s, err := ReadShape(strings.NewReader(file))
		if err != nil {
			return
		}
		if err := s.check(); err != nil {
			t.Fatalf("it is read, and not good: %v", err)
		}
	})
}

// endless is a reader without an end, like a device.
type endless struct{ read int }

func (e *endless) Read(to []byte) (int, error) {
	clear(to)
	e.read += len(to)
	return len(to), nil
}

// ReadShape reads no further than the largest shape.
func TestShapesFileHasALimit(t *testing.T) {
	file := &endless{}
	if _, err := ReadShape(file); err == nil || err.Error() != "the file is larger than 67108864 bytes" || file.read > shapeBytesMax+1<<20 {
		t.Errorf("%v, after %d bytes", err, file.read)
	}
}

// Traffic close to zero counts as zero, because its mean could be a division by zero.
func TestLeastTraffic(t *testing.T) {
	s, err := ReadShape(strings.NewReader("minute,writes,reads\n0,1e-300,5e-324\n"))
	if err != nil || s.Points[0] != (Point{}) {
		t.Errorf("%v, %v", s, err)
	}
	if err := (&Shape{Points: []Point{{Reads: 1e-300}}}).check(); err == nil || err.Error() != "shape: the traffic of minute 0 is less than one request in 30 years" {
		t.Error(err)
	}
}

// A year's file is read quickly, and a shape of units costs as much as its units.
func TestShapeOfUnits(t *testing.T) {
	var file strings.Builder
	file.WriteString("minute,ConsumedWriteCapacityUnits,ConsumedReadCapacityUnits\n")
	for m := range minutesPerMonth {
		fmt.Fprintf(&file, "%d,%d,%d\n", m, 60*1000, 60*500)
	}
	s, err := ReadShape(strings.NewReader(file.String()))
	if err != nil {
		t.Fatal(err)
	}
	r := made(t, Workload{ItemBytes: 3000, Shape: s, Retention: time.Hour, Indexes: []Index{{Name: "keys", Projection: KeysOnly}}}, USEast1)
	if r.Tracks[0].Demand != 1000 || r.Tracks[1].Demand != 500 {
		t.Errorf("%v and %v units", r.Tracks[0].Demand, r.Tracks[1].Demand)
	}
	// 3 units per write: 333 writes per second, each with an entry in the index.
	if got := r.Tracks[2].Demand; got < 333.3 || got > 333.4 || r.WritesPerS < 333.3 || r.WritesPerS > 333.4 {
		t.Errorf("%v entries and %v writes a second", got, r.WritesPerS)
	}
}
