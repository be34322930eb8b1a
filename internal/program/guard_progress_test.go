package program

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/mayflydb/mayfly/guard"
)

// progressing is a guardProgress without a terminal, whose clock the test moves.
func progressing(json bool) (p *guardProgress, now *time.Time, out, log *bytes.Buffer) {
	now, out, log = new(time.Time), &bytes.Buffer{}, &bytes.Buffer{}
	*now = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	text := slog.NewTextHandler(log, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}})
	p = &guardProgress{lines: &guardLines{out: out, json: json}, log: slog.New(text), bar: &sharedBar{bar: newBar(out)}, now: func() time.Time { return *now }}
	return p, now, out, log
}

// Without a terminal, the log has a line every ten seconds about a long activity, and one about its
// end. The end of a first scan is always logged.
func TestGuardProgressInTheLog(t *testing.T) {
	p, now, out, log := progressing(false)
	want := func(lines ...string) {
		t.Helper()
		p.redraw()
		if got := strings.TrimSpace(log.String()); got != strings.Join(lines, "\n") {
			t.Errorf("at %v the log has\n%s\nand not\n%s", now.Format("15:04:05"), got, strings.Join(lines, "\n"))
		}
		log.Reset()
	}
	tell := p.observer("orders")
	tell(guard.Progress{Doing: guard.WholeScan, Done: 10, Total: 20, Unit: "items"})
	tell(guard.Progress{Doing: guard.WholeScan, Done: 20, Total: 20, Unit: "items", Ended: true})
	want() // too short to be logged
	tell(guard.Progress{Doing: guard.FirstScan, Done: 20, Total: 20, Unit: "items", Ended: true})
	want(`level=INFO msg="first scan is done" table=orders items=20 seconds=0`)
	tell(guard.Progress{Doing: guard.WholeScan, Done: 10, Total: 100, Unit: "items"})
	*now = now.Add(9 * time.Second)
	want()
	tell(guard.Progress{Doing: guard.WholeScan, Done: 40, Total: 100, Unit: "items"})
	p.observer("carts")(guard.Progress{Doing: guard.CatchUp, Done: 7, Unit: "items"})
	*now = now.Add(time.Second)
	want(`level=INFO msg="scan continues" table=orders items=40 ofAbout=100 seconds=10 timeLeft=20s`)
	*now = now.Add(9 * time.Second)
	want(`level=INFO msg="catch-up continues" table=carts items=7 seconds=10`)
	tell(guard.Progress{Doing: guard.WholeScan, Done: 120, Total: 100, Unit: "items"})
	*now = now.Add(time.Second)
	want(`level=INFO msg="scan continues" table=orders items=120 ofAbout=120 seconds=20`)
	tell(guard.Progress{Doing: guard.WholeScan, Done: 130, Total: 100, Unit: "items", Ended: true})
	p.observer("carts")(guard.Progress{Doing: guard.CatchUp, Done: 8, Unit: "items", Left: true})
	want(`level=INFO msg="scan is done" table=orders items=130 seconds=20`, `level=INFO msg="catch-up is left to other workers" table=carts items=8 seconds=11`)
	tell(guard.Progress{Doing: guard.BoundingTime, Done: 600, Total: 950, Unit: "ms", Within: 400 * time.Millisecond})
	*now = now.Add(10 * time.Second)
	want(`level=INFO msg="clock bounds continues" table=orders within=400ms seconds=10`)
	if out.Len() > 0 {
		t.Errorf("to standard output it writes %q", out)
	}
}

// With --json they are objects among the others.
func TestGuardProgressAsJSON(t *testing.T) {
	p, now, out, log := progressing(true)
	tell := p.observer("orders")
	tell(guard.Progress{Doing: guard.FirstScan, Done: 10, Total: 100, Unit: "items"})
	*now = now.Add(12 * time.Second)
	tell(guard.Progress{Doing: guard.FirstScan, Done: 40, Total: 100, Unit: "items"})
	p.redraw()
	tell(guard.Progress{Doing: guard.FirstScan, Done: 99, Total: 100, Unit: "items", Ended: true})
	p.redraw()
	p.redraw()
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 2 || log.Len() > 0 {
		t.Fatalf("it prints %q, and logs %q", lines, log)
	}
	for i, want := range []string{
		`,"table":"orders","progress":"first scan","done":40,"total":100,"unit":"items","seconds":12,"seconds_left":24}`,
		`,"table":"orders","progress":"first scan","done":99,"total":100,"unit":"items","ended":true,"seconds":12}`,
	} {
		if !strings.HasPrefix(lines[i], `{"at":"`) || !strings.HasSuffix(lines[i], want) {
			t.Errorf("it prints %s and not %s", lines[i], want)
		}
	}
}
