package planner

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"
)

var (
	pageItems = []float64{1e6, 1e8, 1e10}
	pageRates = []float64{10, 1e3, 1e5}
)

// TestGuardPage compares the computed parts of docs/guard-sizing.md with the model; -update rewrites
// them.
func TestGuardPage(t *testing.T) {
	const path = "../docs/guard-sizing.md"
	old, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	text := string(old)
	for name, made := range map[string]string{"example": pageExample(t), "model": pageLoads(t), "measured figures": pageMeasured(), "limits": pageLimits(t)} {
		begin, end := "<!-- made of the "+name+" -->\n", "<!-- end of the "+name+" -->"
		before, rest, ok := strings.Cut(text, begin)
		_, after, closed := strings.Cut(rest, end)
		if !ok || !closed {
			t.Fatalf("%s has no part made of the %s", path, name)
		}
		text = before + begin + "\n" + made + "\n" + end + after
	}
	if *update {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if text != string(old) {
		t.Errorf("%s is outdated; run go test ./planner -run TestGuardPage -update", path)
	}
}

func sized(t *testing.T, l GuardLoad) *GuardPlan {
	t.Helper()
	p, err := SizeGuard(l, Default())
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func pageExample(t *testing.T) string {
	var b bytes.Buffer
	if err := sized(t, GuardLoad{Items: 1e8, Expirations: 1000}).WriteText(&b); err != nil {
		t.Fatal(err)
	}
	return "```text\n" + b.String() + "```\n"
}

func pageLoads(t *testing.T) string {
	var b strings.Builder
	for _, rate := range pageRates {
		fmt.Fprintf(&b, "### %s expirations a second\n\n", number(rate))
		b.WriteString("| Items | Strategy | Fits | Workers | Partitions, shards | Lease, pass | Late | Memory, each | Disk | Write units/s | Read units/s | An hour | First scan |\n")
		b.WriteString("|--:|---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n")
		var why []string
		for _, items := range pageItems {
			p := sized(t, GuardLoad{Items: items, Expirations: rate})
			for i := range p.Options {
				o := &p.Options[i]
				if !o.Fits {
					why = append(why, fmt.Sprintf("- %s items, `%s`: %s", millions(items), o.Strategy, strings.Join(o.Why, "; ")))
				}
				c := o.columns()
				first := c["first scan"]
				if first != "" {
					first += ", " + c["its cost"]
				}
				fmt.Fprintf(&b, "| %s | `%s` | %s | %s | %s | %s | %s, %s | %s | %s | %s | %s | %s | %s |\n", millions(items), o.Strategy, c["fits"], c["workers"], c["partitions, shards"], c["lease, pass"],
					c["late, whole seconds, p50"], c["late, whole seconds, p99"], c["memory, each"], c["disk"], c["write units/s"], c["read units/s"], c["an hour"], first)
			}
		}
		if len(why) > 0 {
			b.WriteString("\nWhy not:\n\n" + strings.Join(why, "\n") + "\n")
		}
		b.WriteString("\n")
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// columns returns the cells by their headings.
func (o *GuardSize) columns() map[string]string {
	all := map[string]string{}
	for i, c := range o.cells() {
		all[guardHeading()[i]] = c
	}
	return all
}

func pageMeasured() string {
	const follow, local = "go test -run xxx -bench Follow -benchtime 20000x ./guard", "mayfly guard --deadlines DIR --max-rcu 1000000"
	var b strings.Builder
	fmt.Fprintf(&b, "Measured on %s, on two cores that guard shared with the endpoint:\n\n| Figure of one worker | Value | Command |\n|---|--:|---|\n", guardMeasured)
	for _, row := range []struct {
		name    string
		value   string
		command string
	}{
		{"removals a second", number(removalsPerS), "go test -run xxx -bench 'Remove/batch_0' -benchtime 20000x ./guard"},
		{"stream records a second, to rows of `mayfly.deadlines`", number(recordsPerS), follow},
		{"the same, to its own directory", number(localRecordsPerS), follow},
		{"items of a first scan a second, to rows of `mayfly.deadlines`", number(scannedPerS), "mayfly guard --strategy stream"},
		{"the same, to its own directory; also taken for scans without rows", number(localScannedPerS), local},
		{fmt.Sprintf("lateness at %s a second, spread, p50 and p99", number(lateRate)), fmt.Sprintf("%.1f ms, %.1f ms", lateP50*1000, lateP99*1000), "mayfly bench --only guard"},
		{"memory of an idle worker", size(idleBytes), "mayfly bench --only guard"},
		{"memory of an armed deadline, besides its key", number(armedBytes) + " bytes", "mayfly bench --only guard"},
		{"the same, of the stream strategy", number(armedRowBytes) + " bytes", local},
		{"memory of a worker with a directory of 1,000,000 deadlines, none of them armed", size(localBytes), local},
		{"disk of a deadline in `--deadlines DIR`, with a key of 20 bytes, at most", number(diskRowBytes) + " bytes", "go test ./guard/internal/stream -run TestDirectoryIsSmall"},
	} {
		fmt.Fprintf(&b, "| %s | %s | `%s` |\n", row.name, row.value, row.command)
	}
	return b.String()
}

// highest returns the highest rate, with two digits, that fits; 0 if none does.
func highest(t *testing.T, items float64, strategy int) float64 {
	fits := func(rate float64) bool {
		return sized(t, GuardLoad{Items: items, Expirations: rate}).Options[strategy].Fits
	}
	best := 0.0
	for scale := 1.0; scale < expirationsMax; scale *= 10 {
		for digits := 10.0; digits < 100; digits++ {
			if rate := digits / 10 * scale; fits(rate) {
				best = rate
			}
		}
	}
	return best
}

func pageLimits(t *testing.T) string {
	var b strings.Builder
	b.WriteString("The most expirations a second that fit, with two digits:\n\n| Items |")
	for _, way := range guardWays {
		fmt.Fprintf(&b, " `%s` |", way)
	}
	b.WriteString("\n|--:|" + strings.Repeat("--:|", len(guardWays)) + "\n")
	for _, items := range pageItems {
		fmt.Fprintf(&b, "| %s |", millions(items))
		for i := range guardWays {
			if rate := highest(t, items, i); rate > 0 {
				fmt.Fprintf(&b, " %s |", number(rate))
			} else {
				b.WriteString(" none |")
			}
		}
		b.WriteString("\n")
	}
	return b.String()
}
