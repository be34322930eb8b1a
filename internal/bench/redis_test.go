package bench

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// fakeRedis has the few commands of Redis that the bench uses.
type fakeRedis struct {
	mu          sync.Mutex // guards the following
	notify      string
	keys        map[string]string
	subscribers []io.Writer
}

// serveRedis starts a fake Redis and returns its URL.
func serveRedis(t *testing.T) (*fakeRedis, string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	f := &fakeRedis{notify: "KA", keys: map[string]string{}}
	go func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			go f.serve(c)
		}
	}()
	return f, "redis://" + listener.Addr().String()
}

// serve answers the commands of a connection. A command is an array of bulk strings.
func (f *fakeRedis) serve(c net.Conn) {
	defer c.Close()
	in := bufio.NewReader(c)
	text := func() string {
		line, _ := in.ReadString('\n')
		return strings.TrimSpace(line)
	}
	for {
		n, err := strconv.Atoi(strings.TrimPrefix(text(), "*"))
		if err != nil {
			return
		}
		words := make([]string, n)
		for i := range words {
			text() // the length: no word here has a line's end
			words[i] = text()
		}
		f.mu.Lock()
		io.WriteString(c, f.answer(words, c))
		f.mu.Unlock()
	}
}

func (f *fakeRedis) answer(words []string, c io.Writer) string {
	bulk := func(text string) string { return fmt.Sprintf("$%d\r\n%s\r\n", len(text), text) }
	switch command := strings.Join(words[:min(2, len(words))], " "); {
	case command == "INFO server":
		return bulk("# Server\r\nredis_version:7.0.15\r\nredis_mode:standalone\r\n")
	case command == "CONFIG GET" && words[2] == "appendonly":
		return "*2\r\n" + bulk(words[2]) + bulk("no")
	case command == "CONFIG GET":
		return "*2\r\n" + bulk(words[2]) + bulk(f.notify)
	case command == "CONFIG SET":
		f.notify = words[3]
		return "+OK\r\n"
	case words[0] == "SUBSCRIBE":
		f.subscribers = append(f.subscribers, c)
		return "*3\r\n" + bulk("subscribe") + bulk(words[1]) + ":1\r\n"
	case words[0] == "SET":
		f.keys[words[1]] = words[2]
		if len(words) == 5 && words[3] == "PXAT" {
			ms, _ := strconv.ParseInt(words[4], 10, 64)
			time.AfterFunc(time.Until(time.UnixMilli(ms)), func() { f.expire(words[1]) })
		}
		return "+OK\r\n"
	case words[0] == "GET" && f.keys[words[1]] == "":
		return "$-1\r\n"
	case words[0] == "GET":
		return bulk(f.keys[words[1]])
	case words[0] == "DEL":
		delete(f.keys, words[1])
		return ":1\r\n"
	}
	return "-ERR unknown command\r\n"
}

func (f *fakeRedis) expire(key string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.keys, key)
	for _, c := range f.subscribers {
		fmt.Fprintf(c, "*3\r\n$7\r\nmessage\r\n$%d\r\n%s\r\n$%d\r\n%s\r\n", len(redisChannel), redisChannel, len(key), key)
	}
}

// Keys expire at whole seconds and beside calls, with every notification counted once. Afterwards
// the server is as it was.
func TestRedis(t *testing.T) {
	fake, url := serveRedis(t)
	r := &run{Options: Options{Quick: true, Only: []string{experimentExpiry}, Progress: func(Step) {}}, report: new(Report)}
	var err error
	if r.redis, err = openRedis(t.Context(), url, "bench-1-", false); err != nil {
		t.Fatal(err)
	}
	other := time.AfterFunc(time.Second, func() { fake.expire("item-0000000001") }) // of another user
	defer other.Stop()
	for _, x := range []expiryExperiment{
		{name: experimentExpiry, items: 1500, spread: 2 * time.Second, whole: true},
		{name: experimentBurst, items: 500, callsPerS: callsFew},
	} {
		found, err := timerServer{r.redis}.expire(t.Context(), r, x)
		if err != nil {
			t.Fatal(err)
		}
		if found.sum() != 0 || found.Stream == nil || found.AtOnce == 0 || found.Items != x.items || r.report.Errors > 0 {
			t.Errorf("%+v, %v", found, r.report.Problems)
		}
		if calls := x.callsPerS > 0; calls != (found.ReaderPerS > 0) || calls != (len(found.Foreground) == 2 && found.Foreground[0].IdleCalls > 0) {
			t.Errorf("%+v", found)
		}
	}
	if about := r.timers()[0].describe(); about.Version != "7.0.15" || about.Durability != "memory" || about.URL != url {
		t.Errorf("%+v", about)
	}
	if err := r.redis.close(); err != nil {
		t.Fatal(err)
	}
	fake.mu.Lock()
	defer fake.mu.Unlock()
	if fake.notify != "KA" || len(fake.keys) > 0 {
		t.Errorf("left behind: notifications %q, %d keys", fake.notify, len(fake.keys))
	}
}

// A server other than Redis is refused, and so is another machine.
func TestRedisIsRefused(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	go func() {
		for c, err := listener.Accept(); err == nil; c, err = listener.Accept() {
			io.WriteString(c, "HTTP/1.1 400 Bad Request\r\n\r\n")
			c.Close()
		}
	}()
	for url, says := range map[string]string{
		"redis://" + listener.Addr().String(): "does not answer as Redis does",
		"redis://192.0.2.1":                   ErrNotLoopback.Error(),
		"redis://user:secret@127.0.0.1":       "redis://host:port",
		"http://127.0.0.1:6379":               "redis://host:port",
	} {
		if _, err := openRedis(context.Background(), url, "bench-1-", false); err == nil || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", url, err)
		}
	}
}

// An answer is a text, or the last text of an array. Anything else is an error.
func TestRedisAnswers(t *testing.T) {
	for text, want := range map[string]string{
		"+OK\r\n": "OK", ":7\r\n": "7", "$3\r\na\nb\r\n": "a\nb", "$-1\r\n": "", "*2\r\n$1\r\na\r\n*1\r\n+b\r\n": "b", "*-1\r\n": "",
		"-ERR no\r\n": "ERR no", "?\r\n": errRedisForm.Error(), "\n": errRedisForm.Error(), "$x\r\n": errRedisForm.Error(), "$99999999999\r\n": errRedisForm.Error(),
		"$3\r\na": io.ErrUnexpectedEOF.Error(), "": io.EOF.Error(),
	} {
		got, err := (&redisConn{&conn{in: bufio.NewReader(strings.NewReader(text))}}).answer()
		if err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
