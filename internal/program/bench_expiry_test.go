package program

import (
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/mayflydb/mayfly/internal/bench/expirybench"
)

// freeAddress returns a port of this machine that no server uses at present.
func freeAddress(t *testing.T) (host, port string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	host, port, _ = net.SplitHostPort(l.Addr().String())
	return host, port
}

// scoreStarted scores a server that the run starts and kills.
func scoreStarted(t *testing.T, data string, wantCode int) *expirybench.Report {
	t.Helper()
	host, port := freeAddress(t)
	page := filepath.Join(t.TempDir(), "score.html")
	stdout, stderr, code := runBench(t, "expiry", "--endpoint", "http://"+host+":"+port, "--start", "mayfly serve --port "+port+" "+data,
		"--quick", "--wait", "20s", "--name", "started", "--configured", "the test's", "--only", "calls,cost,survival", "--json", "--page", page)
	var r expirybench.Report
	if err := json.Unmarshal([]byte(stdout), &r); err != nil || code != wantCode {
		t.Fatalf("exit %d, %v\n%s%s", code, err, stdout, stderr)
	}
	if r.Endpoint.Name != "started" || r.Endpoint.Configured != "the test's" || !strings.Contains(r.Command, `bench expiry`) || !strings.Contains(r.Command, `--configured 'the test'\''s' `) || r.Endpoint.PID == 0 {
		t.Errorf("%+v, %s", r.Endpoint, r.Command)
	}
	if text, err := os.ReadFile(page); err != nil || !strings.HasPrefix(string(text), "<!doctype html>") {
		t.Errorf("the page is %.100q, %v", text, err)
	}
	return &r
}

// A server on disk survives the kill: nothing acknowledged is lost, what expired meanwhile is gone and
// recorded once, and the cost and the latency of other calls are known.
func TestBenchExpiryKill(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("--start needs a shell")
	}
	t.Parallel()
	r := scoreStarted(t, "--data "+t.TempDir(), 0)
	if v := r.Survival; v == nil || v.Acknowledged == 0 || v.Lost > 0 || v.StillSeen > 0 || v.LastGoneMS == nil || v.Records != v.Expired || v.RecordsLost > 0 || v.RecordsDoubled > 0 || v.BackS <= 0 {
		t.Errorf("survival: %+v", v)
	}
	if c := r.Cost; c == nil || runtime.GOOS == "linux" && (c.Unknown != "" || c.Items != 1000) {
		t.Errorf("cost: %+v", c)
	}
	if len(r.Calls) == 0 && len(r.LeftOut) == 1 { // the machine was too busy to begin a phase on time
		return
	}
	if len(r.Calls) != 2 || r.Calls[0].IdleP50MS <= 0 || r.Calls[0].BurstP99MS < r.Calls[0].BurstP50MS || r.Calls[0].Failed > 0 {
		t.Errorf("calls: %+v", r.Calls)
	}
}

// A server that keeps its data in memory loses all in the kill, which is a fault.
func TestBenchExpiryKillLoses(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("--start needs a shell")
	}
	t.Parallel()
	host, port := freeAddress(t)
	stdout, stderr, code := runBench(t, "expiry", "--endpoint", "http://"+host+":"+port, "--start", "mayfly serve --memory --port "+port, "--quick", "--only", "survival")
	if code != 1 || !strings.Contains(stdout, "FAULT: ") || !strings.Contains(stdout, "acknowledged items are lost after a kill") {
		t.Fatalf("exit %d\n%s%s", code, stdout, stderr)
	}
}

// A server that does not start is an error with its output.
func TestBenchExpiryStartFails(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("--start needs a shell")
	}
	t.Parallel()
	host, port := freeAddress(t)
	_, stderr, code := runBench(t, "expiry", "--endpoint", "http://"+host+":"+port, "--start", "echo out of order; false")
	if code != 1 || !strings.Contains(stderr, "--start: the server ended") || !strings.Contains(stderr, "out of order") {
		t.Errorf("exit %d, %s", code, stderr)
	}
}

// A server that answers before the start, or after the kill, is not the one that the run starts.
func TestBenchExpiryStartsAnother(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("--start needs a shell")
	}
	t.Parallel()
	host, port := freeAddress(t)
	file := filepath.Join(t.TempDir(), "pid")
	t.Cleanup(func() { // the server outlives the kill of its shell
		text, err := os.ReadFile(file)
		if err != nil {
			t.Error(err)
			return
		}
		if pid, err := strconv.Atoi(strings.TrimSpace(string(text))); err != nil {
			t.Error(err)
		} else if p, err := os.FindProcess(pid); err == nil {
			_ = p.Kill()
		}
	})
	score := func() string {
		_, stderr, code := runBench(t, "expiry", "--endpoint", "http://"+host+":"+port, "--quick", "--only", "survival",
			"--start", "sh -c 'mayfly serve --memory --port "+port+" > /dev/null 2>&1 & echo $! > "+file+"; wait'")
		if code != 1 {
			t.Errorf("exit %d", code)
		}
		return stderr
	}
	if stderr := score(); !strings.Contains(stderr, "the endpoint still answers after the kill of process") {
		t.Error(stderr)
	}
	if stderr := score(); !strings.Contains(stderr, "answers at http://"+host+":"+port+" already") {
		t.Error(stderr)
	}
}
