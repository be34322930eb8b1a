package intake

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// The rest of a refused body, which arrives after DrainLimit, is not taken for another request.
func TestRefusedBodyIsNoRequest(t *testing.T) {
	seen := make(chan string, 10)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen <- r.URL.Path
		if r.URL.Path == "/refused" {
			// with little left of DrainLimit
			Refuse(w, r, time.Now().Add(100*time.Millisecond-DrainLimit), func() { w.WriteHeader(http.StatusForbidden) })
		}
	}))
	defer s.Close()
	c, err := net.Dial("tcp", strings.TrimPrefix(s.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(DrainLimit)); err != nil {
		t.Fatal(err)
	}
	inner := "POST /smuggled HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n"
	fmt.Fprintf(c, "POST /refused HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n", len(inner))
	in := bufio.NewReader(c)
	first, err := http.ReadResponse(in, nil)
	if err != nil || first.StatusCode != http.StatusForbidden {
		t.Fatalf("%+v, %v", first, err)
	}
	if !first.Close {
		t.Error("the answer does not announce the end of the connection")
	}
	time.Sleep(300 * time.Millisecond)
	io.WriteString(c, inner)
	if _, err := io.ReadAll(first.Body); err != nil {
		t.Error(err)
	}
	if left, _ := io.ReadAll(in); len(left) > 0 {
		t.Errorf("another answer: %q", left)
	}
	close(seen)
	for path := range seen {
		if path != "/refused" {
			t.Errorf("the body was taken for a request to %s", path)
		}
	}
}

// A client that waits for permission to send its body gets all of the answer at once, also one of
// unknown length.
func TestRefusedExpectation(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		Refuse(w, r, time.Now(), func() {
			w.WriteHeader(http.StatusRequestEntityTooLarge)
			http.NewResponseController(w).Flush()
		})
	}))
	defer s.Close()
	c, err := net.Dial("tcp", strings.TrimPrefix(s.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(DrainLimit / 2)); err != nil {
		t.Fatal(err)
	}
	io.WriteString(c, "POST / HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 20000000\r\n\r\n")
	answer, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(answer.Body); err != nil || answer.StatusCode != http.StatusRequestEntityTooLarge {
		t.Errorf("status %d, %v", answer.StatusCode, err)
	}
}
