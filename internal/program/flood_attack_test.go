package program

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

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
	{"idle connections", 20_000, 1000, func(ctx context.Context, c net.Conn) {
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
	{"heads without an end", 18_000, 1000, func(ctx context.Context, c net.Conn) {
		if send(c, "POST / HTTP/1.1\r\nHost: h\r\n"+strings.Repeat("x: y\r\n", 15<<10/6)) {
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
	scanFlooded = `{"TableName":"flooded"}` // its answer has 1 MB
	// attackPause is the time until an attacker connects again.
	attackPause = 10 * time.Millisecond
	// attackersMost is the most connections of one process that attacks.
	attackersMost = 10_000
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
			for pause(ctx, attackPause) {
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

// Attack is the program that attacks a server, until its input ends:
//
//	attack <address> <name of a flood> <connections>
//
// It prints the number of connections that it made.
func Attack() {
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	connections, err := strconv.Atoi(os.Args[3])
	for _, f := range floods {
		if err == nil && f.name == os.Args[2] {
			fmt.Println(attack(ctx, os.Args[1], connections, f.attack))
			return
		}
	}
	panic(fmt.Sprint("there is no such flood: ", os.Args))
}

// attackFrom attacks a server from other processes, until ctx is done, and returns the number of
// connections made. Attackers would be on other machines: they have the lowest priority, so that the
// figures are the server's.
func attackFrom(ctx context.Context, t *testing.T, address, flood string, connections int) (made int) {
	var attackers []*exec.Cmd
	var outputs []*bytes.Buffer
	for left := connections; left > 0; left -= attackersMost {
		out := &bytes.Buffer{}
		c := exec.Command("nice", "-n", "19", "attack", address, flood, strconv.Itoa(min(left, attackersMost)))
		c.Stdout, c.Stderr = out, os.Stderr
		input, err := c.StdinPipe()
		if err == nil {
			err = c.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		context.AfterFunc(ctx, func() { input.Close() })
		attackers, outputs = append(attackers, c), append(outputs, out)
	}
	for i, c := range attackers {
		if err := c.Wait(); err != nil {
			t.Fatal(err)
		}
		n, err := strconv.Atoi(strings.TrimSpace(outputs[i].String()))
		if err != nil {
			t.Fatal(err)
		}
		made += n
	}
	return made
}
