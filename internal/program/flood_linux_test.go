package program

import (
	"bytes"
	"compress/gzip"
	"context"
	"flag"
	"fmt"
	"io"
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

// floods are the attacks of TestFlood. None needs credentials where none are configured.
var floods = []struct {
	name        string
	full, short int // connections at once
	attack      func(ctx context.Context, c net.Conn)
}{
	{"slow heads", 2000, 200, func(ctx context.Context, c net.Conn) {
		for _, b := range []byte(announced("ListTables", 2, "")) {
			if _, err := c.Write([]byte{b}); err != nil || !pause(ctx, 100*time.Millisecond) {
				return
			}
		}
	}},
	{"half-sent bodies", 200, 60, func(ctx context.Context, c net.Conn) {
		const size = 15 << 20
		if send(c, announced("BatchWriteItem", size, ""), blanks()[:size-64<<10]) {
			drain(ctx, c)
		}
	}},
	{"half-sent chunks", 200, 60, func(ctx context.Context, c net.Conn) {
		const size = 15 << 20
		head := "POST / HTTP/1.1\r\nHost: h\r\nX-Amz-Target: DynamoDB_20120810.BatchWriteItem\r\nTransfer-Encoding: chunked\r\n\r\n"
		if send(c, head+fmt.Sprintf("%x\r\n", size), blanks()[:size-64<<10]) {
			drain(ctx, c)
		}
	}},
	{"small bodies without an end", 2000, 400, func(ctx context.Context, c net.Conn) {
		if send(c, announced("PutItem", 64<<10, ""), blanks()[:63<<10]) {
			drain(ctx, c)
		}
	}},
	{"unread answers", 200, 60, func(ctx context.Context, c net.Conn) {
		if send(c, announced("BatchGetItem", len(everyLargeItem), "")+everyLargeItem) {
			pause(ctx, time.Minute)
		}
	}},
	{"idle connections", 9500, 1000, func(ctx context.Context, c net.Conn) {
		if send(c, announced("ListTables", 2, "")+"{}") {
			drain(ctx, c)
		}
	}},
	{"pipelined scans", 50, 10, func(ctx context.Context, c net.Conn) {
		scan := announced("Scan", len(scanFlooded), "") + scanFlooded
		if send(c, strings.Repeat(scan, 1000)) {
			drain(ctx, c)
		}
	}},
	{"gzip bombs", 50, 10, func(ctx context.Context, c net.Conn) {
		if bomb := gzipBomb(); send(c, announced("ListTables", len(bomb), "Content-Encoding: gzip\r\n"), bomb) {
			drain(ctx, c)
		}
	}},
	{"large heads", 500, 100, func(ctx context.Context, c net.Conn) {
		if send(c, announced("ListTables", 2, "X-A: "+strings.Repeat("x", 60<<10)+"\r\n")) {
			drain(ctx, c)
		}
	}},
}

const (
	// floodMemory is the most memory of a server under attack, with everything.
	floodMemory = 512 << 20
	// floodSlower is how much slower the 99th percentile of the other client's calls may be.
	floodSlower = 50
	scanFlooded = `{"TableName":"flooded"}` // its answer has 1 MB
)

// everyLargeItem asks for 16 MB.
var everyLargeItem = func() string {
	var keys []string
	for n := range 42 {
		keys = append(keys, fmt.Sprintf(`{"pk":{"S":"%d"}}`, n))
	}
	return `{"RequestItems":{"flooded":{"Keys":[` + strings.Join(keys, ",") + `]}}}`
}()

var gzipBomb = sync.OnceValue(func() []byte {
	var out bytes.Buffer
	packer := gzip.NewWriter(&out)
	for range 1 << 10 {
		packer.Write(make([]byte, 1<<20))
	}
	packer.Close()
	return out.Bytes()
})

var blanks = sync.OnceValue(func() []byte { return bytes.Repeat([]byte(" "), 16<<20) })

// announced is the head of a call with a body of so many bytes, and perhaps more lines.
func announced(operation string, size int, lines string) string {
	return fmt.Sprintf("POST / HTTP/1.1\r\nHost: h\r\nContent-Type: application/x-amz-json-1.0\r\nX-Amz-Target: DynamoDB_20120810.%s\r\n%sContent-Length: %d\r\n\r\n", operation, lines, size)
}

func send(c net.Conn, head string, body ...[]byte) bool {
	for _, part := range append([][]byte{[]byte(head)}, body...) {
		if _, err := c.Write(part); err != nil {
			return false
		}
	}
	return true
}

// drain reads until the server closes the connection.
func drain(_ context.Context, c net.Conn) { io.Copy(io.Discard, c) }

// attack keeps so many connections to a server busy until ctx is done. It returns the number of
// connections made.
func attack(ctx context.Context, address string, connections int, with func(context.Context, net.Conn)) (made int) {
	var all sync.WaitGroup
	var mu sync.Mutex
	for range connections {
		all.Go(func() {
			for pause(ctx, 10*time.Millisecond) {
				c, err := new(net.Dialer).DialContext(ctx, "tcp", address)
				if err != nil {
					continue
				}
				mu.Lock()
				made++
				mu.Unlock()
				c.(*net.TCPConn).SetReadBuffer(4 << 10)
				ends := context.AfterFunc(ctx, func() { c.Close() })
				with(ctx, c)
				ends()
				c.Close()
			}
		})
	}
	all.Wait()
	return made
}

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
			during(func(ctx context.Context) { made = attack(ctx, address, connections, f.attack) })
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
