package program

import (
	"bytes"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/mayflydb/mayfly/internal/bench"
	"github.com/mayflydb/mayfly/internal/bench/expirybench"
	"github.com/mayflydb/mayfly/internal/testkit"
)

// runBench runs the program's bench.
func runBench(t *testing.T, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	command := exec.Command("mayfly", append([]string{"bench"}, args...)...)
	command.Dir = t.TempDir()
	command.Env = append(os.Environ(), "TMPDIR="+command.Dir, "MAYFLY_ACCESS_KEY=must not reach", "MAYFLY_SECRET_KEY=the servers")
	var out, errors bytes.Buffer
	command.Stdout, command.Stderr = &out, &errors
	if err := command.Run(); command.ProcessState == nil {
		t.Fatal(err)
	}
	if left, _ := filepath.Glob(filepath.Join(command.Dir, "mayfly-bench-*")); len(left) > 0 {
		t.Errorf("it leaves %v behind", left)
	}
	return out.String(), errors.String(), command.ProcessState.ExitCode()
}

// A quick run measures everything without a wrong answer, and says so in JSON and in a drawing.
func TestBenchQuick(t *testing.T) {
	if testing.Short() {
		t.Skip("takes half a minute")
	}
	t.Parallel()
	if testkit.Full() {
		quickBench(t)
		return
	}
	// in parts, because most of its time is waiting
	for _, only := range []string{strings.Join(callScenarios(), ",") + ",start", "expiry,drain,schedules", "burst,triggers", "guard"} {
		t.Run(only, func(t *testing.T) {
			t.Parallel()
			quickBench(t, only)
		})
	}
}

// quickBench measures all scenarios, or one list.
func quickBench(t *testing.T, only ...string) {
	charts := filepath.Join(t.TempDir(), "bench.svg")
	args, scenarios := []string{"--quick", "--in-memory", "--json", "--svg", charts}, bench.ScenarioNames()
	if only != nil {
		args, scenarios = append(args, "--only", only[0]), strings.Split(only[0], ",")
	}
	stdout, stderr, code := runBench(t, args...)
	var report bench.Report
	if err := json.Unmarshal([]byte(stdout), &report); err != nil || code != 0 {
		t.Fatalf("exit %d, %v\n%s%s", code, err, stdout, stderr)
	}
	if report.Errors != 0 || !strings.HasPrefix(report.Command, "mayfly bench --quick") || report.Version == "" || report.Machine.CPU == "" && runtime.GOOS == "linux" {
		t.Errorf("%d errors, %v, of %q", report.Errors, report.Problems, report.Command)
	}
	if drawn, err := os.ReadFile(charts); err != nil || !bytes.HasPrefix(drawn, []byte("<svg ")) {
		t.Errorf("charts: %v", err)
	}
	checkCalls(t, &report, scenarios)
	for name, check := range quickChecks {
		if slices.Contains(scenarios, name) {
			check(t, &report)
		}
	}
}

// quickChecks check the scenarios that are not of calls.
var quickChecks = map[string]func(*testing.T, *bench.Report){
	"expiry": checkExpiry, "burst": checkBurst, "drain": checkDrain, "schedules": checkSchedules, "triggers": checkTriggers, "guard": checkGuard, "start": checkStart,
}

func callScenarios() (names []string) {
	for _, name := range bench.ScenarioNames() {
		if quickChecks[name] == nil {
			names = append(names, name)
		}
	}
	return names
}

func checkCalls(t *testing.T, report *bench.Report, scenarios []string) {
	targets := map[string][]string{}
	for _, f := range report.Calls {
		targets[f.Scenario] = append(targets[f.Scenario], f.Target)
		if f.Calls == 0 || f.CallsPerS.Median <= 0 || f.P99MS.Median < f.P50MS.Median {
			t.Errorf("no sense in %+v", f)
		}
	}
	for _, name := range callScenarios() {
		if slices.Contains(scenarios, name) && (!slices.Contains(targets[name], "mayfly") || !slices.Contains(targets[name], "mayfly in memory")) {
			t.Errorf("%s was not measured", name)
		}
	}
	if slices.Contains(scenarios, "get") && (!slices.Contains(targets["get"], bench.TargetEcho) || !slices.Contains(targets["put"], bench.TargetLoop) || len(report.Ratios) == 0) {
		t.Errorf("references are missing: %v", targets)
	}
}

// expiryOf returns the measurements of expiry beside calls, or those without.
func expiryOf(report *bench.Report, beside bool) (all []bench.Expiry) {
	for _, x := range report.Expiry {
		if (x.Foreground != nil) == beside {
			all = append(all, x)
		}
	}
	return all
}

func checkExpiry(t *testing.T, report *bench.Report) {
	all := expiryOf(report, false)
	if len(all) != 3 {
		t.Fatalf("expiry: %+v", report.Expiry)
	}
	for i, atOnce := range []int{2000, 1000, 0} {
		if x := all[i]; x.AtOnce != atOnce || x.Stream == nil || x.Commit == nil {
			t.Errorf("expiry: %+v", x)
		}
	}
}

func checkBurst(t *testing.T, report *bench.Report) {
	all := expiryOf(report, true)
	if len(all) != 2 {
		t.Fatalf("burst: %+v", report.Expiry)
	}
	for i, perS := range []int{200, 1000} {
		if x := all[i]; x.AtOnce != 5000 || x.Stream == nil || x.Commit == nil || x.Beside == nil ||
			len(x.Foreground) != 2 || x.Foreground[0].PerS != perS || x.Foreground[0].DuringCalls == 0 || x.ReaderPerS <= 0 {
			t.Errorf("burst: %+v", x)
		}
	}
}

func checkDrain(t *testing.T, report *bench.Report) {
	if len(report.Drain) != 4 {
		t.Errorf("drain: %+v", report.Drain)
	}
}

func checkSchedules(t *testing.T, report *bench.Report) {
	if s := report.Schedules; s == nil || s.Create.Calls == 0 || len(s.Firings) != 2 || s.Firings[0].LateMS == nil || s.Firings[1].BesideMS == nil || s.Firings[1].PerS <= 0 {
		t.Errorf("schedules: %+v", s)
	}
}

func checkTriggers(t *testing.T, report *bench.Report) {
	if len(report.Delivered) != 1 || report.Delivered[0].PerS <= 0 {
		t.Errorf("triggers: %+v", report.Delivered)
	}
}

func checkGuard(t *testing.T, report *bench.Report) {
	if g := report.Guard; g == nil || len(g.Removals) != 4 || g.Removals[0].LateMS == nil || g.Removals[1].LateMS == nil || g.Removals[2].PerS <= 0 || g.Removals[3].Faults != (bench.Faults{Twice: g.Removals[3].Twice}) || g.Armed == 0 {
		t.Errorf("guard: %+v", g)
	}
}

func checkStart(t *testing.T, report *bench.Report) {
	if report.Start == nil || report.Start.FirstAnswerMS.Median <= 0 || report.Start.DiskBytesPerItem < 100 {
		t.Errorf("start: %+v", report.Start)
	}
}

// The help names every scenario of package bench.
func TestBenchScenarios(t *testing.T) {
	if all := strings.Join(bench.ScenarioNames(), ", "); benchScenarios != all {
		t.Errorf("the help has the scenarios %s, package bench %s", benchScenarios, all)
	}
	if all := strings.Join(expirybench.PartNames(), ", "); benchExpiryParts != all {
		t.Errorf("the help has the parts %s, package expirybench %s", benchExpiryParts, all)
	}
}

// A run of its own goes into the report of another one, which otherwise stays as it was.
func TestBenchMerge(t *testing.T) {
	if testing.Short() {
		t.Skip("takes 6 seconds")
	}
	t.Parallel()
	file := filepath.Join(t.TempDir(), "report.json")
	var whole bench.Report
	if err := json.Unmarshal([]byte(readDoc(t, "docs/report.json")), &whole); err != nil {
		t.Fatal(err)
	}
	whole.Machine.OS, whole.Machine.Arch, whole.Machine.CPUs = runtime.GOOS, runtime.GOARCH, runtime.NumCPU()
	first, err := json.Marshal(&whole)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, first, 0o600); err != nil {
		t.Fatal(err)
	}
	stdout, stderr, code := runBench(t, "--quick", "--burst", "500", "--only", "schedules", "--pending", "3000", "--durability", "memory", "--merge", file)
	if code != 0 || !strings.Contains(stdout, "with 3000 pending and nothing due") || !strings.Contains(stderr, "create 3000 of 3000 pending schedules: ") {
		t.Fatalf("exit %d\n%s%s", code, stdout, stderr)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var merged bench.Report
	if err := json.Unmarshal(text, &merged); err != nil {
		t.Fatal(err)
	}
	s := merged.Schedules
	if s == nil || s.Pending != 3000 || len(s.Firings) != 3 || s.Firings[0].Pending >= s.Pending || s.Firings[1].Pending != s.Pending {
		t.Errorf("schedules: %+v", s)
	}
	if len(merged.Calls) != len(whole.Calls) || merged.Command != whole.Command || len(merged.Parts) == 0 || !slices.Equal(merged.Parts[len(merged.Parts)-1].Of, []string{"schedules"}) {
		t.Errorf("%d calls, %d parts", len(merged.Calls), len(merged.Parts))
	}
}

// Another endpoint is measured in the same rounds, its tables are removed, and the report names its
// missing features.
func TestBenchVersus(t *testing.T) {
	first, err := startServer(t.TempDir(), os.Environ(), "--memory")
	if err != nil {
		t.Fatal(err)
	}
	defer first.kill()
	second, err := startServer(t.TempDir(), os.Environ(), "--memory")
	if err != nil {
		t.Fatal(err)
	}
	defer second.kill()
	stdout, stderr, code := runBench(t, "--quick", "--only", "get,put", "--connections", "2", "--url", "one="+first.url, "--vs", "other@v2:memory="+second.url)
	if code != 0 || !strings.Contains(stdout, "one over others") || !strings.Contains(stdout, "other v2 is "+second.url+" (acknowledged writes are in memory") {
		t.Errorf("exit %d\n%s%s", code, stdout, stderr)
	}
	if !strings.Contains(stderr, "get, 2 connections, other: ") || !strings.Contains(stderr, "of one: 2000 of 2000 items: ") {
		t.Errorf("no progress in\n%s", stderr)
	}
	for _, s := range []*served{first, second} {
		if tables := listTables(t, s.url); tables != `{"TableNames":[]}` {
			t.Errorf("tables are left: %s", tables)
		}
	}
}

func listTables(t *testing.T, url string) string {
	t.Helper()
	request, err := http.NewRequest(http.MethodPost, url, strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/x-amz-json-1.0")
	request.Header.Set("X-Amz-Target", "DynamoDB_20120810.ListTables")
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	var body bytes.Buffer
	body.ReadFrom(answer.Body)
	return body.String()
}

// Wrong answers are counted, shown, and make the run fail.
func TestBenchFailsOnWrongAnswers(t *testing.T) {
	// This endpoint answers every request as if there were no items.
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.Write([]byte("{}")) }))
	defer server.Close()
	stdout, stderr, code := runBench(t, "--quick", "--only", "get", "--connections", "1", "--items", "100", "--url", server.URL)
	if code != exitError || !strings.Contains(stdout, "WRONG ANSWERS") || !strings.Contains(stdout, "an answer lacks items") || !strings.Contains(stderr, "some answers were wrong") {
		t.Errorf("exit %d\n%s%s", code, stdout, stderr)
	}
}

// Impossible options are refused at once, with advice.
func TestBenchRefuses(t *testing.T) {
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody := "http://" + free.Addr().String()
	free.Close()
	for _, tt := range []struct {
		args []string
		says string
		code int
	}{
		{[]string{"--url", "http://192.0.2.1:8000"}, "--allow-remote", exitError},
		{[]string{"--vs", "https://127.0.0.1:8000"}, "http://host:port", exitUsage},
		{[]string{"--url", nobody}, "connection refused", exitError},
		{[]string{"--only", "sing"}, `--only: "sing" is not one of`, exitUsage},
		{[]string{"--rounds=-1"}, "rounds", exitUsage},
		{[]string{"--redis", "redis://127.0.0.1", "--only", "get"}, "--redis works only with the scenarios expiry and burst", exitUsage},
		{[]string{"--redis", "redis://192.0.2.1", "--only", "expiry"}, "--allow-remote", exitError},
		{[]string{"--durability", "perhaps"}, "durability", exitUsage},
		{[]string{"--server-pid", "1"}, "--url", exitUsage},
		{[]string{"--vs", "peer@1:perhaps=http://127.0.0.1:1"}, "perhaps", exitUsage},
		{[]string{"--durability", "memory", "--in-memory"}, "on disk", exitUsage},
		{[]string{"--vs", "echo=http://127.0.0.1:1"}, "reference", exitUsage},
		{[]string{"--dir", "/nowhere/at/all"}, "no such file", exitError},
		{[]string{"--merge", "/nowhere/at/all", "--only", "start"}, "no such file", exitUsage},
		{[]string{"--merge", "/dev/null", "--only", "start"}, "not a report", exitUsage},
		{[]string{"--merge", "/dev/null", "--only", "put"}, "compared within one run", exitUsage},
		{[]string{"--merge", "/dev/null"}, "--merge needs --only", exitUsage},
	} {
		if stdout, stderr, code := runBench(t, tt.args...); code != tt.code || !strings.Contains(stderr, tt.says) || stdout != "" {
			t.Errorf("%v: exit %d\n%s%s", tt.args, code, stdout, stderr)
		}
	}
}
