package sim

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

var (
	runFor  = flag.Duration("for", 0, "the time that TestTorture takes; 0: a few episodes")
	runSeed = flag.Uint64("seed", 1, "the seed of TestTorture")
	only    = flag.Int("episode", -1, "the only episode of TestTorture")
	workers = flag.Int("workers", 2, "processes at once")
)

// childName is the first argument of a process of this binary that runs episodes.
const childName = "episodes"

// noFault is its second argument if the program is whole, and otherwise the name of a fault.
const noFault = "none"

func TestMain(m *testing.M) {
	if len(os.Args) > 4 && os.Args[1] == childName {
		if fault := os.Args[2]; fault != noFault && !inject(fault) {
			fmt.Fprintf(os.Stderr, "there is no fault %s in this build\n", fault)
			os.Exit(2)
		}
		var seed, number uint64
		if _, err := fmt.Sscan(os.Args[3]+" "+os.Args[4], &seed, &number); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(2)
		}
		Child(seed, number, os.Stdout)
	}
	os.Exit(m.Run())
}

// testOptions are the options of a run by this binary.
func testOptions(fault string) Options {
	self := func(seed, number uint64) []string {
		return []string{os.Args[0], childName, fault, fmt.Sprint(seed), fmt.Sprint(number)}
	}
	return Options{Self: self, Loose: testing.Short(), Replay: "go test ./internal/sim -run TestTorture -seed %d -episode %d", Seed: *runSeed, Workers: *workers}
}

// TestTorture runs the system through crashes and faults, and judges all its answers.
func TestTorture(t *testing.T) {
	o := testOptions(noFault)
	o.For, o.Episodes = *runFor, 0
	if *runFor == 0 {
		if o.Episodes = 4; testing.Short() { // under the race detector an episode takes fifteen times as long
			o.Episodes = 1
		}
	}
	if *only >= 0 {
		o.First, o.Episodes = uint64(*only), 1
		o.Done = func(r Result) { t.Logf("trace %s", r.Trace) }
	}
	report, err := Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range report.Findings {
		t.Errorf("replay: %s", f.Replay)
		for _, v := range f.Violations {
			t.Log(v)
		}
	}
	c := report.Counts
	t.Logf("%.0f s: %+v", report.Seconds, c)
	if n := c.Episodes; n > 0 && (c.Crashes < 5*n || c.Expirations < 2000*n || c.Renewed < 10*n || c.Reads < 100*n || c.Unknown < n) {
		t.Errorf("too mild: %+v", c)
	}
	if n := c.Episodes; n >= 10 && (c.DiskFull < n/2 || c.Roomless < n || c.Damages < n) { // few of each in an episode
		t.Errorf("too mild: %+v", c)
	}
	if c.Episodes == 0 {
		t.Error("no episode ran")
	}
}

// TestSameAgain: an episode that runs again, in another environment, gives the same answers and
// records, to the last bit.
func TestSameAgain(t *testing.T) {
	if testing.Short() {
		t.Skip("the race detector has goroutines and threads of its own")
	}
	for number := range uint64(2) {
		var traces []string
		for n := range 2 {
			t.Setenv("A_PLACE_ON_THE_STACK", strings.Repeat("x", 5000*n)) // an environment is above the stack, and moves it
			o := testOptions(noFault)
			o.First, o.Episodes = number, 1
			o.Done = func(r Result) { traces = append(traces, r.Trace) }
			report, err := Run(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			if !report.Exact {
				if os.Getenv("FULL_TESTS") == "1" {
					t.Fatal("the episode was not run under control")
				}
				t.Skip("this machine does not let a process be controlled")
			}
		}
		if traces[0] != traces[1] {
			t.Errorf("episode %d: traces %v", number, traces)
		}
	}
}

// TestOutcomeOf: only a process that ends by itself tells something of the laws.
func TestOutcomeOf(t *testing.T) {
	for _, c := range []struct {
		script        string
		finding, fail string
	}{
		{script: "echo '{\"trace\":\"1\"}'"},
		{script: "echo '{\"trace\":\"1\",\"violations\":[{\"law\":\"NeverEarly\"}]}'; exit 1", finding: "NeverEarly"},
		{script: "echo panic: oh >&2; exit 2", finding: "panic: oh"},
		{script: "echo '{\"trace\":\"1\"}'; echo WARNING: DATA RACE >&2; exit 66", fail: "DATA RACE"},
		{script: "kill -9 $$", fail: "killed"},
	} {
		o := Options{Self: func(_, _ uint64) []string { return []string{"/bin/sh", "-c", c.script} }, Loose: true, Episodes: 1, Workers: 1}
		report, err := Run(t.Context(), o)
		if c.fail == "" != (err == nil) || err != nil && !strings.Contains(err.Error(), c.fail) {
			t.Errorf("%s: error %v, want %q", c.script, err, c.fail)
		}
		if got := fmt.Sprint(report.Findings); c.finding == "" != (len(report.Findings) == 0) || !strings.Contains(got, c.finding) {
			t.Errorf("%s: findings %s, want %q", c.script, got, c.finding)
		}
	}
}
