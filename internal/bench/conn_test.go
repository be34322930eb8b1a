package bench

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func dialTest(t *testing.T, address string) *conn {
	t.Helper()
	c, err := dial(context.Background(), address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.close)
	return c
}

// The client reads responses of net/http: with a length, in chunks, without a body, small and
// large, one after the other on one connection.
func TestCallReadsAnswers(t *testing.T) {
	large := bytes.Repeat([]byte("0123456789abcdef"), 1<<16)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		switch r.Header.Get("X-Amz-Target") {
		case "large":
			w.Write(large)
		case "chunks":
			for range 3 {
				w.Write(large[:1000])
				http.NewResponseController(w).Flush()
			}
		case "none":
			w.WriteHeader(http.StatusNoContent)
		case "error":
			http.Error(w, "no", http.StatusBadRequest)
		case "close":
			w.Header().Set("Connection", "close")
		default:
			w.Write(body)
		}
	}))
	defer server.Close()
	address := strings.TrimPrefix(server.URL, "http://")
	c := dialTest(t, address)
	for range 2 {
		for _, tt := range []struct {
			target string
			status int
			body   string
		}{
			{"echo", 200, `{"a":1}`},
			{"large", 200, string(large)},
			{"chunks", 200, strings.Repeat(string(large[:1000]), 3)},
			{"none", 204, ""},
			{"error", 400, "no\n"},
		} {
			a, err := c.call(rawRequest(address, tt.target, `{"a":1}`))
			if err != nil || a.status != tt.status || string(a.body) != tt.body || a.closes {
				t.Fatalf("%s: status %d, %d bytes, closes %v, error %v", tt.target, a.status, len(a.body), a.closes, err)
			}
			if got := headerField(a.head, "date"); len(got) == 0 {
				t.Errorf("%s: no date in %q", tt.target, a.head)
			}
		}
	}
	if a, err := c.call(rawRequest(address, "close", "")); err != nil || !a.closes {
		t.Errorf("closing: %v %v", a.closes, err)
	}
}

// A response that is not HTTP, or incomplete, is an error, and neither a hang nor a panic.
func TestCallRefusesOtherAnswers(t *testing.T) {
	for _, reply := range []string{
		"", "hello\r\n\r\n", "HTTP/1.1 2x0 OK\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabc", "HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n7fffffff\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: 2000000000\r\n\r\n", "HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 2*headMax),
	} {
		ours, theirs := net.Pipe()
		go func() {
			theirs.Read(make([]byte, 1024))
			io.WriteString(theirs, reply)
			theirs.Close()
		}()
		c := &conn{net: ours}
		if a, err := c.call([]byte("POST / HTTP/1.1\r\n\r\n")); err == nil {
			t.Errorf("%.60q: got %d %q", reply, a.status, a.body)
		}
		c.close()
	}
}

func FuzzCall(f *testing.F) {
	f.Add([]byte("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"))
	f.Add([]byte("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n"))
	f.Fuzz(func(t *testing.T, reply []byte) {
		ours, theirs := net.Pipe()
		go func() {
			theirs.Read(make([]byte, 16))
			theirs.Write(reply)
			theirs.Close()
		}()
		c := &conn{net: ours}
		defer c.close()
		a, err := c.call([]byte("x"))
		if err == nil && len(a.body) > len(reply) {
			t.Fatalf("a body of %d bytes out of %d", len(a.body), len(reply))
		}
	})
}
