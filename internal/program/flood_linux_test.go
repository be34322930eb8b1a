package program

import (
	"context"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mayflydb/mayfly/internal/testkit"
)

var flood = flag.Bool("flood", false, "give TestFlood its full counts and times, and check the latency of the other client")

const (
	// floodMemory is the most memory of a server under attack, with everything.
	floodMemory = 512 << 20
	// floodSlower is how much slower the 99th percentile of the other client's calls may be.
	floodSlower = 50
)

// Clients that attack a server in every way that this file knows do not exceed its memory, and
// another client is served all the while. Afterwards everything is free again.
func TestFlood(t *testing.T) {
	s := serveDir(t, t.TempDir())
	fillFlooded(t, s.url)
	address := strings.TrimPrefix(s.url, "http://")
	last := time.Second
	switch {
	case *flood:
		last = 30 * time.Second
	case testkit.Full():
		last = 3 * time.Second
	}
	v := &victim{url: s.url}
	during := func(f func(ctx context.Context)) {
		ctx, cancel := context.WithTimeout(t.Context(), last)
		defer cancel()
		var working sync.WaitGroup
		working.Go(func() { v.work(ctx) })
		f(ctx)
		working.Wait()
	}
	during(func(context.Context) {})
	idle := percentile(v.took, 99)
	v.took = nil
	t.Logf("idle: p99 %v", idle)
	for _, f := range floods {
		t.Run(f.name, func(t *testing.T) {
			connections := f.short
			if *flood {
				connections = f.full
			}
			resetPeak(t, s.command.Process.Pid)
			made := 0
			during(func(ctx context.Context) { made = attackFrom(ctx, t, address, f.name, connections) })
			peak, p99 := peakMemory(t, s.command.Process.Pid), percentile(v.took, 99)
			v.took = nil
			t.Logf("%d connections at once, %d in all: at most %d MB; p99 %v, %.0f times idle", connections, made, peak>>20, p99, float64(p99)/float64(idle))
			if peak > floodMemory {
				t.Errorf("the server takes %d MB", peak>>20)
			}
			if len(v.errors) > 0 {
				t.Errorf("%d errors of the other client, such as %s", len(v.errors), v.errors[0])
				v.errors = nil
			}
			if *flood && p99 > floodSlower*idle {
				t.Errorf("p99 is %.0f times as long as without an attack", float64(p99)/float64(idle))
			}
			recovered(t, s.url)
		})
	}
	if code, err := s.stop(os.Interrupt); err != nil || code != "0" {
		t.Errorf("exited with %s, %v: %s", code, err, s.logged())
	}
}

// fillFlooded makes a table with 16 MB in 42 items, and a small one.
func fillFlooded(t *testing.T, url string) {
	t.Helper()
	for _, table := range []string{"flooded", "small"} {
		callDynamoDB(t, url, "CreateTable", `{"TableName":"`+table+`","BillingMode":"PAY_PER_REQUEST","KeySchema":[{"AttributeName":"pk","KeyType":"HASH"}],"AttributeDefinitions":[{"AttributeName":"pk","AttributeType":"S"}]}`)
	}
	for n := range 42 {
		callDynamoDB(t, url, "PutItem", fmt.Sprintf(`{"TableName":"flooded","Item":{"pk":{"S":"%d"},"text":{"S":"%s"}}}`, n, strings.Repeat("x", 390_000)))
	}
}

// recovered waits until the server has forgotten an attack: no connection but the test's own is
// left, and no memory is taken.
func recovered(t *testing.T, url string) {
	t.Helper()
	var left string
	for limit := time.Now().Add(90 * time.Second); time.Now().Before(limit); time.Sleep(100 * time.Millisecond) {
		_, metrics, err := exchange(http.MethodGet, url+"/metrics", "")
		if err != nil {
			t.Fatal(err)
		}
		left = ""
		for line := range strings.SplitSeq(metrics, "\n") {
			name, value, _ := strings.Cut(line, " ")
			n, _ := strconv.ParseFloat(value, 64)
			if name == "mayfly_connections" && n > 3 || (name == "mayfly_request_body_bytes" || name == "mayfly_answer_bytes") && n > 0 {
				left += line + "\n"
			}
		}
		if left == "" {
			callDynamoDB(t, url, "BatchGetItem", everyLargeItem)
			return
		}
	}
	t.Errorf("after the attack, the server still has\n%s", left)
}

// peakMemory returns the most memory of a process since resetPeak.
func peakMemory(t *testing.T, pid int) (bytes int64) {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.SplitSeq(string(status), "\n") {
		if kb, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			n, err := strconv.ParseInt(strings.Fields(kb)[0], 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			return n << 10
		}
	}
	t.Fatal("the peak of the memory is unknown")
	return 0
}

// resetPeak lets the peak begin anew; see proc(5), clear_refs.
func resetPeak(t *testing.T, pid int) {
	t.Helper()
	if err := os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", pid), []byte("5"), 0); err != nil {
		t.Log("the peak is that of the whole run:", err)
	}
}

// Clients that use up all connections leave the store the file descriptors that it needs.
func TestConnectionsLeaveDescriptors(t *testing.T) {
	command := exec.Command("sh", "-c", `ulimit -n 200; exec mayfly "$@"`, "sh", "serve", "--port", "0", "--data", t.TempDir())
	s, err := startCommand(command)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.kill)
	fillFlooded(t, s.url)
	ctx, cancel := context.WithCancel(t.Context())
	var attacking sync.WaitGroup
	attacking.Go(func() {
		attack(ctx, strings.TrimPrefix(s.url, "http://"), 300, func(ctx context.Context, c net.Conn) {
			if send(c, "POST / HTTP/1.1\r\nHost: x\r\n") {
				drain(ctx, c)
			}
		})
	})
	for n := range 500 { // the first flush came after 328
		callDynamoDB(t, s.url, "PutItem", fmt.Sprintf(`{"TableName":"flooded","Item":{"pk":{"S":"%d"},"text":{"S":"%s"}}}`, n, strings.Repeat("x", 100_000)))
	}
	cancel()
	attacking.Wait()
	if code, err := s.stop(os.Interrupt); err != nil || code != "0" || strings.Contains(s.logged(), "too many open files") {
		t.Errorf("exited with %s, %v: %.2000s", code, err, s.logged())
	}
}

// A client that vanishes without a word, as if its machine had lost its power, keeps its connection for
// less than a minute. With -flood, the test runs in a network of its own, from which it removes the
// client's address; that needs the right to make one. Otherwise it looks at the timer of the system that
// sends the probes.
func TestVanishedClient(t *testing.T) {
	const inside, address, limit = "MAYFLY_TEST_NETWORK", "10.9.9.9", time.Minute
	if !*flood {
		s := serveDir(t, t.TempDir())
		c, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		send(c, announced("ListTables", 2, "")+"{}")
		if connections(t, s.url) == 0 {
			t.Fatal("no connection is open")
		}
		if probe := nextProbe(t, c.RemoteAddr(), c.LocalAddr()); probe <= 0 || probe > 15*time.Second {
			t.Errorf("the server probes its client after %v", probe)
		}
		return
	}
	if os.Getenv(inside) == "" {
		command := exec.Command("unshare", "-rn", os.Args[0], "-test.run", "^TestVanishedClient$", "-test.v", "-flood")
		command.Env = append(os.Environ(), inside+"=1")
		out, err := command.CombinedOutput()
		t.Logf("%s", out)
		if err != nil {
			t.Error(err)
		}
		return
	}
	ip := func(arguments ...string) {
		t.Helper()
		if out, err := exec.Command("ip", arguments...).CombinedOutput(); err != nil {
			t.Fatalf("ip %v: %v: %s", arguments, err, out)
		}
	}
	ip("link", "set", "lo", "up")
	ip("addr", "add", address+"/32", "dev", "lo")
	s := serveDir(t, t.TempDir())
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(address)}}
	for _, sent := range []string{announced("ListTables", 2, "") + "{}", announced("PutItem", 60<<10, "") + "{"} {
		c, err := d.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		send(c, sent)
	}
	if n := connections(t, s.url); n < 2 {
		t.Fatalf("%d connections are open", n)
	}
	ip("addr", "del", address+"/32", "dev", "lo")
	began := time.Now()
	for connections(t, s.url) > 1 { // the test's own
		if time.Since(began) > limit {
			t.Fatalf("after %v, the server still has its connections", time.Since(began))
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Logf("the server has noticed after %v", time.Since(began))
}

// connections returns how many connections a server has.
func connections(t *testing.T, url string) (n int) {
	t.Helper()
	_, metrics, err := exchange(http.MethodGet, url+"/metrics", "")
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(metrics, "\nmayfly_connections ")
	if _, err := fmt.Sscan(after, &n); err != nil {
		t.Fatal(err)
	}
	return n
}

// nextProbe returns the time until the system sends a keep-alive probe on a connection, by proc(5)'s
// table of them, or 0 if it sends none.
func nextProbe(t *testing.T, local, remote net.Addr) time.Duration {
	t.Helper()
	table, err := os.ReadFile("/proc/net/tcp")
	if err != nil {
		t.Fatal(err)
	}
	port := func(a net.Addr) int { return a.(*net.TCPAddr).Port }
	ends := fmt.Sprintf("0100007F:%04X 0100007F:%04X ", port(local), port(remote)) // on 127.0.0.1
	_, row, found := strings.Cut(string(table), ends)
	var state, timer, ticks int
	if _, err := fmt.Sscanf(row, "%x %x:%x %x:%x", &state, new(int), new(int), &timer, &ticks); !found || err != nil {
		t.Fatalf("no connection %s in %s (%v)", ends, table, err)
	}
	const keepAlive = 2
	if timer != keepAlive {
		return 0
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}
