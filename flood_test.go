package mayfly

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// dial returns a connection to a server, and a reader of its answers.
func dial(t *testing.T, url string) (net.Conn, *bufio.Reader) {
	t.Helper()
	c, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if err := c.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	return c, bufio.NewReader(c)
}

// announce is the head of a request with a body of so many bytes.
func announce(size int, lines ...string) string {
	head := append([]string{"POST / HTTP/1.1", "Host: localhost", "X-Amz-Target: DynamoDB_20120810.BatchWriteItem"}, lines...)
	return strings.Join(append(head, fmt.Sprint("Content-Length: ", size)), "\r\n") + "\r\n\r\n"
}

// A client that sends all of its request before it reads gets the answer to a refused body, through
// the loop and through net/http.
func TestRefusalArrives(t *testing.T) {
	url := serve(t, open(t, "", Options{Credentials: []Credential{{AccessKey: "key", SecretKey: "secret"}}}))
	for _, test := range []struct {
		name   string
		size   int
		lines  []string
		status int
		text   string
	}{
		{"unknown", 15 << 20, nil, 400, "MissingAuthenticationToken"},
		{"unknown, over net/http", 15 << 20, []string{"Pragma: no-cache"}, 400, "MissingAuthenticationToken"},
		{"too large", 17 << 20, nil, 413, ""},
		{"much too large", 48 << 20, nil, 413, ""},
	} {
		c, in := dial(t, url)
		if _, err := io.WriteString(c, announce(test.size, test.lines...)+strings.Repeat(" ", test.size)); err != nil {
			t.Errorf("%s: the rest of the request: %v", test.name, err)
			continue
		}
		answer, err := http.ReadResponse(in, nil)
		if err != nil {
			t.Errorf("%s: %v", test.name, err)
			continue
		}
		body, _ := io.ReadAll(answer.Body)
		if answer.StatusCode != test.status || !strings.Contains(string(body), test.text) {
			t.Errorf("%s: %d %s", test.name, answer.StatusCode, body)
		}
	}
}

// A client without a known access key gets its answer before it has sent a large body.
func TestStrangerSendsLittle(t *testing.T) {
	url := serve(t, open(t, "", Options{Credentials: []Credential{{AccessKey: "key", SecretKey: "secret"}}}))
	for _, lines := range [][]string{nil, {"Pragma: no-cache"}, {"Expect: 100-continue"}} {
		c, in := dial(t, url)
		if _, err := io.WriteString(c, announce(16<<20, lines...)); err != nil {
			t.Fatal(err)
		}
		answer, err := http.ReadResponse(in, nil)
		if err != nil || answer.StatusCode != 400 {
			t.Errorf("%q: %+v, %v", lines, answer, err)
		}
	}
}
