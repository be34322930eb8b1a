package httploop

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mayflydb/mayfly/internal/front/wire"
)

// echo is a Do that answers with its request.
func echo(_ context.Context, in *wire.Request) *wire.Response {
	out := new(bytes.Buffer)
	fmt.Fprintf(out, "%s %q %q host %q\n", in.Method, in.Path, in.Query, in.Host)
	for _, name := range []string{
		"accept-encoding", "Authorization", "Cache-Control", "connection", "Content-Type", "Keep-Alive", "Origin", "x-a", "X-Amz-Target", "Te",
	} {
		if values := in.Header.Values(name); len(values) > 0 {
			fmt.Fprintf(out, "%s %q %q\n", name, in.Header.Get(name), values)
		}
	}
	out.Write(in.Body)
	response := &wire.Response{Status: http.StatusOK, Body: out.Bytes(), Header: []wire.Field{{Name: "Content-Type", Value: "text/plain"}}}
	switch target := in.Header.Get("X-Amz-Target"); target {
	case "unsized":
		response.Status, response.Body, response.Header = http.StatusRequestEntityTooLarge, nil, nil
	case "waits":
		time.Sleep(5 * time.Second)
	case "fails":
		response.Status = http.StatusInternalServerError
	case "large":
		response.Body = bytes.Repeat([]byte("large "), 20_000)
	}
	return response
}

// echoHandler is echo behind net/http, as wire.Server does it.
func echoHandler(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Server", "Server")
	body, err := io.ReadAll(r.Body)
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	out := echo(r.Context(), &wire.Request{
		Method: r.Method, Path: r.URL.EscapedPath(), Query: r.URL.RawQuery, Host: r.Host, Header: r.Header, Body: body,
	})
	for _, f := range out.Header {
		w.Header().Set(f.Name, f.Value)
	}
	if out.Unsized() {
		w.WriteHeader(out.Status)
		http.NewResponseController(w).Flush()
		return
	}
	w.Header().Set("Content-Length", fmt.Sprint(len(out.Body)))
	w.WriteHeader(out.Status)
	w.Write(out.Body)
}

// script is a connection whose client sends bytes, a few at a time, and then nothing more. It never
// blocks.
type script struct {
	net.Conn // nil: the other methods are unused
	step     int
	done     chan struct{} // closed when the server has finished with it
	once     sync.Once
	mu       struct {
		sync.Mutex
		in  []byte
		out bytes.Buffer
	}
}

func newScript(in []byte, step int) *script {
	s := &script{step: step, done: make(chan struct{})}
	s.mu.in = in
	return s
}

func (s *script) Read(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.mu.in) == 0 {
		return 0, io.EOF
	}
	n := copy(p[:min(len(p), s.step)], s.mu.in)
	s.mu.in = s.mu.in[n:]
	return n, nil
}

func (s *script) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.out.Write(p)
}

func (s *script) Close() error                     { s.once.Do(func() { close(s.done) }); return nil }
func (s *script) CloseWrite() error                { return s.Close() }
func (s *script) SetDeadline(time.Time) error      { return nil }
func (s *script) SetReadDeadline(time.Time) error  { return nil }
func (s *script) SetWriteDeadline(time.Time) error { return nil }
func (s *script) RemoteAddr() net.Addr             { return &net.TCPAddr{} }
func (s *script) LocalAddr() net.Addr              { return &net.TCPAddr{} }

// answers returns the answers once the server has finished, without the headers that differ each
// time, and with sorted headers.
func (s *script) answers(t testing.TB) string {
	select {
	case <-s.done:
	case <-time.After(time.Minute):
		t.Fatal("the server does not finish with a connection")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	unread := bufio.NewReader(bytes.NewReader(s.mu.out.Bytes()))
	var out strings.Builder
	for {
		answer, err := http.ReadResponse(unread, nil)
		if err != nil {
			left, _ := io.ReadAll(unread)
			fmt.Fprintf(&out, "%v %q", err, left)
			return out.String()
		}
		body, err := io.ReadAll(answer.Body)
		date := answer.Header.Get("Date")
		if _, bad := http.ParseTime(date); bad != nil && date != "" {
			t.Errorf("date %q", date)
		}
		answer.Header.Del("Date")
		fmt.Fprintf(&out, "%s %s date %t, length %d %q, close %t\n%v\n%q %v\n\n", answer.Proto, answer.Status, date != "",
			answer.ContentLength, answer.TransferEncoding, answer.Close, answer.Header, body, err)
	}
}

// both are the loop in front of net/http, and net/http alone.
type both struct {
	loop, alone *handedListener // listeners whose connections the test passes in
	looped      atomic.Int64    // the number of requests that the loop has answered
}

func newBoth(t testing.TB) *both {
	b := &both{loop: newHandedListener(&net.TCPAddr{}), alone: newHandedListener(&net.TCPAddr{})}
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() {
		served <- Serve(ctx, b.loop, Options{
			Do: func(ctx context.Context, in *wire.Request) *wire.Response {
				b.looped.Add(1)
				return echo(ctx, in)
			},
			Routed:   routed,
			Fallback: http.HandlerFunc(echoHandler), Now: time.Now, Logger: slog.New(slog.DiscardHandler),
		})
	}()
	alone := newServer(Options{Fallback: http.HandlerFunc(echoHandler), Now: time.Now, Logger: slog.New(slog.DiscardHandler)}, ctx, &net.TCPAddr{}).fallback
	go alone.Serve(b.alone)
	t.Cleanup(func() {
		cancel()
		if err := <-served; err != nil {
			t.Error(err)
		}
		alone.Close()
	})
	return b
}

// routed reports the paths of TestSameAsNetHTTP that the loop serves.
func routed(path string) bool {
	first, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	return first == "schedules" || first == "tags"
}

// compare sends the same bytes to both, and returns how many requests the loop answered itself.
func (b *both) compare(t testing.TB, in []byte, step int) (looped int64) {
	one, other := newScript(in, step), newScript(in, len(in)+1)
	before := b.looped.Load()
	b.loop.pass(one)
	b.alone.pass(other)
	got, want := one.answers(t), other.answers(t)
	if got != want {
		t.Errorf("sent %q, %d bytes at a time\n\nthe loop:\n%.2000s\n\nnet/http:\n%.2000s", short(in), step, got, want)
	}
	return b.looped.Load() - before
}

func short(b []byte) []byte { return b[:min(len(b), 1000)] }

// post returns a plain request with additional header lines.
func post(body string, lines ...string) string {
	head := []string{"POST / HTTP/1.1", "Host: localhost:8000", "Content-Type: application/x-amz-json-1.0"}
	head = append(head, lines...)
	return strings.Join(append(head, fmt.Sprintf("Content-Length: %d", len(body))), "\r\n") + "\r\n\r\n" + body
}

// raw joins lines and ends the head.
func raw(lines ...string) string { return strings.Join(lines, "\r\n") + "\r\n\r\n" }

// plainRequests are requests that the loop answers, with their number.
var plainRequests = map[string]struct {
	looped int64
	in     string
}{
	"usual":                    {1, post(`{"TableName":"t"}`, "X-Amz-Target: DynamoDB_20120810.GetItem", "Accept-Encoding: identity", "User-Agent: some (client) of \"ours\"")},
	"no body":                  {1, post("")},
	"no blank":                 {1, post("x", "X-A:b")},
	"many blanks":              {1, post("x", "X-A: \t b \t c  \t")},
	"empty value":              {1, post("x", "X-A:", "Origin: ")},
	"repeated header":          {1, post("x", "X-A: 1", "x-a: 2", "X-a: 1")},
	"any case":                 {1, raw("POST / HTTP/1.1", "hOST: h", "content-LENGTH: 0", "CONNECTION: Keep-Alive")},
	"every character of names": {1, post("x", "!#$%&'*+-.^_`|~09azAZ: b")},
	"every printable value":    {1, post("x", "X-A:  !\"#$%&'()*+,-./09:;<=>?@AZ[\\]^_`az{|}~")},
	"IPv6 host":                {1, raw("POST / HTTP/1.1", "Host: [::1]:8000", "Content-Length: 0")},
	"keep-alive":               {1, post("x", "Connection: keep-alive", "Keep-Alive: timeout=5")},
	"close":                    {1, post("x", "Connection: close") + post("not read")},
	"close and keep-alive":     {1, post("x", "Connection: close", "Connection: keep-alive") + post("not read")},
	"pipelined":                {3, post("one") + post("") + post("three")},
	"body like a head":         {2, post(post("x")) + post("y")},
	"zeros before the length":  {1, raw("POST / HTTP/1.1", "Host: h", "Content-Length: 00000002") + "{}"},
	"a line between":           {4, post("one") + "\r\n" + post("two") + "\n" + post("three") + "\r\n\r\n" + post("four")},
	"lines at the end":         {1, post("one") + "\r\n\r\n"},
	"a line at the end":        {1, post("one") + "\n"},
	"a scrap at the end":       {1, post("one") + "0"},
	"scraps at the end":        {1, post("one") + "POS"},
	"lines and scraps":         {1, post("one") + "\r\nP"},
	"unsized":                  {2, post("x", "X-Amz-Target: unsized") + post("y")},
	"fails":                    {2, post("x", "X-Amz-Target: fails") + post("y")},
	"large answer":             {2, post("x", "X-Amz-Target: large") + post("y")},
	"large request":            {3, post(strings.Repeat("large ", 20_000)) + post("y") + post(strings.Repeat("x", 2*roomMin))},
	"as many headers as fit":   {1, post("x", "X-A: "+strings.Repeat("x", headMax-200))},
	"get":                      {1, raw("GET /schedules/a HTTP/1.1", "Host: h")},
	"get with a length":        {2, raw("GET /schedules HTTP/1.1", "Host: h", "Content-Length: 2") + "{}" + post("x")},
	"put":                      {1, raw("PUT /schedules/a HTTP/1.1", "Host: h", "Content-Length: 2") + "{}"},
	"delete":                   {2, raw("DELETE /schedules/a?clientToken=x&groupName=a.b HTTP/1.1", "Host: h") + raw("DELETE /tags/a HTTP/1.1", "Host: h", "Content-Length: 0")},
	"post to a path":           {1, raw("POST /schedules/a HTTP/1.1", "Host: h", "Content-Length: 2") + "{}"},
	"paths and none":           {4, raw("GET /schedules HTTP/1.1", "Host: h") + post("x") + raw("GET /tags/ HTTP/1.1", "Host: h") + post("y")},
	"escaped path":             {1, raw("GET /tags/arn:aws:scheduler:us-east-1:000000000000:schedule-group%2Fa.b%3a~_- HTTP/1.1", "Host: h")},
	"dots and slashes":         {3, raw("GET /schedules/.. HTTP/1.1", "Host: h") + raw("GET /schedules/./../a HTTP/1.1", "Host: h") + raw("GET /schedules// HTTP/1.1", "Host: h")},
	"queries":                  {3, raw("GET /schedules? HTTP/1.1", "Host: h") + raw("GET /schedules?a=%zz&b=c+d&&=?,% HTTP/1.1", "Host: h") + raw("GET /schedules?TagKeys=a&TagKeys=b%20c HTTP/1.1", "Host: h")},
	"escaped zero":             {1, raw("GET /schedules/%00%ff HTTP/1.1", "Host: h")},
	"a long path":              {1, raw("GET /schedules/"+strings.Repeat("x", headMax-200)+" HTTP/1.1", "Host: h")},
}

// doubtfulRequests are requests that net/http answers.
var doubtfulRequests = map[string]string{
	"GET":                     raw("GET / HTTP/1.1", "Host: h"),
	"HEAD":                    raw("HEAD / HTTP/1.1", "Host: h"),
	"OPTIONS":                 raw("OPTIONS / HTTP/1.1", "Host: h", "Origin: o", "Access-Control-Request-Method: POST"),
	"OPTIONS *":               raw("OPTIONS * HTTP/1.1", "Host: h"),
	"CONNECT":                 raw("CONNECT h:1 HTTP/1.1", "Host: h"),
	"small letters":           raw("post / HTTP/1.1", "Host: h", "Content-Length: 0"),
	"another path":            raw("POST /x HTTP/1.1", "Host: h", "Content-Length: 0"),
	"another path's get":      raw("GET /x/schedules HTTP/1.1", "Host: h"),
	"no escape":               raw("GET /schedules/% HTTP/1.1", "Host: h"),
	"half an escape":          raw("GET /schedules/%2 HTTP/1.1", "Host: h"),
	"no number":               raw("GET /schedules/a%2xb HTTP/1.1", "Host: h"),
	"HEAD of a path":          raw("HEAD /schedules/a HTTP/1.1", "Host: h"),
	"PATCH of a path":         raw("PATCH /schedules/a HTTP/1.1", "Host: h", "Content-Length: 0"),
	"OPTIONS of a path":       raw("OPTIONS /schedules/a HTTP/1.1", "Host: h"),
	"DELETES of a path":       raw("DELETES /schedules/a HTTP/1.1", "Host: h"),
	"path without a slash":    raw("GET schedules/a HTTP/1.1", "Host: h"),
	"path behind two slashes": raw("GET //schedules/a HTTP/1.1", "Host: h"),
	"a path's URL":            raw("GET http://h/schedules/a HTTP/1.1", "Host: h"),
	"a path's fragment":       raw("GET /schedules/a#b HTTP/1.1", "Host: h"),
	"a path's other sign":     raw("GET /schedules/a@b HTTP/1.1", "Host: h"),
	"a path's other letter":   raw("GET /schedules/\u00e4 HTTP/1.1", "Host: h"),
	"a path's blank":          raw("GET /schedules/a b HTTP/1.1", "Host: h"),
	"a query's blank":         raw("GET /schedules?a b HTTP/1.1", "Host: h"),
	"a query's other sign":    raw("GET /schedules?a;b HTTP/1.1", "Host: h"),
	"a path in 1.0":           raw("GET /schedules/a HTTP/1.0", "Host: h"),
	"a path's bare feed":      strings.Replace(raw("GET /schedules/a HTTP/1.1", "Host: h"), "\r", "", 1),
	"post without length":     raw("POST /schedules/a HTTP/1.1", "Host: h"),
	"put without length":      raw("PUT /schedules/a HTTP/1.1", "Host: h"),
	"get, chunked":            raw("GET /schedules/a HTTP/1.1", "Host: h", "Transfer-Encoding: chunked") + "0\r\n\r\n",
	"get without host":        raw("GET /schedules/a HTTP/1.1"),
	"a path that is too long": raw("GET /schedules/"+strings.Repeat("x", headMax)+" HTTP/1.1", "Host: h"),
	"ends in the path":        "GET /sche",
	"ends behind the line":    "GET /schedules HTTP/1.1\r\n",
	"query":                   raw("POST /?a=b HTTP/1.1", "Host: h", "Content-Length: 0"),
	"whole URL":               raw("POST http://other/ HTTP/1.1", "Host: h", "Content-Length: 0"),
	"two slashes":             raw("POST // HTTP/1.1", "Host: h", "Content-Length: 0"),
	"no path":                 raw("POST  HTTP/1.1", "Host: h", "Content-Length: 0"),
	"two blanks":              raw("POST  / HTTP/1.1", "Host: h", "Content-Length: 0"),
	"1.0":                     raw("POST / HTTP/1.0", "Content-Length: 0"),
	"1.0 kept alive":          raw("POST / HTTP/1.0", "Connection: keep-alive", "Content-Length: 0") + post("x"),
	"1.2":                     raw("POST / HTTP/1.2", "Host: h", "Content-Length: 0"),
	"HTTP/2":                  "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
	"garbage":                 "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
	"line before the first":   "\r\n" + post("x"),
	"blank before":            " " + post("x"),
	"no headers":              "POST / HTTP/1.1\r\n\r\n",
	"no length":               raw("POST / HTTP/1.1", "Host: h"),
	"no host":                 raw("POST / HTTP/1.1", "Content-Length: 0"),
	"no value of host":        raw("POST / HTTP/1.1", "Host:", "Content-Length: 0"),
	"two hosts":               raw("POST / HTTP/1.1", "Host: h", "Host: h", "Content-Length: 0"),
	"host with a path":        raw("POST / HTTP/1.1", "Host: h/x", "Content-Length: 0"),
	"host with a blank":       raw("POST / HTTP/1.1", "Host: a b", "Content-Length: 0"),
	"host with a user":        raw("POST / HTTP/1.1", "Host: a@b", "Content-Length: 0"),
	"length twice":            raw("POST / HTTP/1.1", "Host: h", "Content-Length: 2", "Content-Length: 2") + "{}",
	"lengths that differ":     raw("POST / HTTP/1.1", "Host: h", "Content-Length: 2", "Content-Length: 1") + "{}",
	"length list":             raw("POST / HTTP/1.1", "Host: h", "Content-Length: 2, 2") + "{}",
	"empty length":            raw("POST / HTTP/1.1", "Host: h", "Content-Length:") + "{}",
	"length with a sign":      raw("POST / HTTP/1.1", "Host: h", "Content-Length: +2") + "{}",
	"negative length":         raw("POST / HTTP/1.1", "Host: h", "Content-Length: -2") + "{}",
	"hexadecimal length":      raw("POST / HTTP/1.1", "Host: h", "Content-Length: 0x2") + "{}",
	"length with a fraction":  raw("POST / HTTP/1.1", "Host: h", "Content-Length: 2.0") + "{}",
	"length of many digits":   raw("POST / HTTP/1.1", "Host: h", "Content-Length: 0000000002") + "{}",
	"length beyond 64 bits":   raw("POST / HTTP/1.1", "Host: h", "Content-Length: 99999999999999999999") + "{}",
	"length beyond the limit": raw("POST / HTTP/1.1", "Host: h", fmt.Sprint("Content-Length: ", bodyMax+1)) + "{}",
	"chunked":                 raw("POST / HTTP/1.1", "Host: h", "Transfer-Encoding: chunked") + "2\r\n{}\r\n0\r\n\r\n" + post("x"),
	"chunked and a length":    raw("POST / HTTP/1.1", "Host: h", "Content-Length: 3", "Transfer-Encoding: chunked") + "2\r\n{}\r\n0\r\n\r\n" + post("x"),
	"chunked, hidden":         raw("POST / HTTP/1.1", "Host: h", "Content-Length: 3", "Transfer-Encoding : chunked") + "0\r\n\r\n",
	"another coding":          raw("POST / HTTP/1.1", "Host: h", "Content-Length: 2", "Transfer-Encoding: identity") + "{}",
	"trailer":                 raw("POST / HTTP/1.1", "Host: h", "Trailer: X-A", "Content-Length: 2") + "{}",
	"expects to continue":     raw("POST / HTTP/1.1", "Host: h", "Expect: 100-continue", "Content-Length: 2") + "{}",
	"expects a miracle":       raw("POST / HTTP/1.1", "Host: h", "Expect: miracle", "Content-Length: 2") + "{}",
	"upgrade":                 raw("POST / HTTP/1.1", "Host: h", "Connection: Upgrade", "Upgrade: websocket", "Content-Length: 2") + "{}",
	"upgrade unconnected":     raw("POST / HTTP/1.1", "Host: h", "Upgrade: websocket", "Content-Length: 2") + "{}",
	"connection list":         post("x", "Connection: keep-alive, close"),
	"connection with names":   post("x", "Connection: X-A", "X-A: b"),
	"pragma":                  post("x", "Pragma: no-cache"),
	"folded":                  post("x", "X-A: b", " c"),
	"folded at once":          raw("POST / HTTP/1.1", " Host: h", "Content-Length: 0"),
	"no colon":                post("x", "X-A"),
	"no name":                 post("x", ": b"),
	"blank in the name":       post("x", "X A: b"),
	"blank behind the name":   post("x", "X-A : b"),
	"other name":              post("x", "X-\u00e4: b"),
	"other value":             post("x", "X-A: \u00e4"),
	"control character":       post("x", "X-A: b\x01"),
	"zero":                    post("x", "X-A: b\x00"),
	"delete":                  post("x", "X-A: b\x7f"),
	"bare return":             post("x", "X-A: b\rc"),
	"bare returns":            post("x", "X-A: b\r\r"),
	"bare line feeds":         strings.ReplaceAll(post("x"), "\r", ""),
	"one bare line feed":      strings.Replace(post("x", "X-A: b"), "b\r\n", "b\n", 1),
	"ends in bare line feeds": "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 0\n\n" + post("x"),
	"ends in one bare one":    "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\n" + post("x"),
	"first line unreturned":   "POST / HTTP/1.1\nHost: h\r\nContent-Length: 0\r\n\r\n",
	"more than fits":          post("x", "X-A: "+strings.Repeat("x", headMax)),
	"more than is allowed":    post("x", "X-A: "+strings.Repeat("x", 2*headerBytes)),
	"ends in the first line":  "POST / HT",
	"ends in a header":        "POST / HTTP/1.1\r\nHost: h\r\nX-",
	"ends before the body":    raw("POST / HTTP/1.1", "Host: h", "Content-Length: 2"),
	"ends in the body":        raw("POST / HTTP/1.1", "Host: h", "Content-Length: 2") + "{",
}

// For any bytes, the loop answers as net/http does: in one piece, byte by byte, and after a plain
// request. The loop serves exactly the plain requests.
func TestSameAsNetHTTP(t *testing.T) {
	b := newBoth(t)
	for name, test := range plainRequests {
		for _, step := range []int{len(test.in), 1, 7} {
			if looped := b.compare(t, []byte(test.in), step); looped != test.looped {
				t.Errorf("%s, by %d bytes: the loop has answered %d requests, not %d", name, step, looped, test.looped)
			}
		}
	}
	for name, in := range doubtfulRequests {
		for _, step := range []int{len(in), 1, 7} {
			if looped := b.compare(t, []byte(in), step); looped != 0 {
				t.Errorf("%s, by %d bytes: the loop has answered %d requests", name, step, looped)
			}
			want := int64(1)
			if in[0] == '\r' {
				want = 2 // a line end is allowed there
			}
			if looped := b.compare(t, []byte(post("before")+in), step); looped != want {
				t.Errorf("%s behind a plain one, by %d bytes: the loop has answered %d requests", name, step, looped)
			}
		}
	}
	get := raw("GET /schedules HTTP/1.1", "Host: h")
	for n := range 7 {
		for _, before := range []string{post("x"), get} { // net/http skips line ends only after a POST
			for _, ends := range []string{"\n", "\r"} {
				for _, step := range []int{1000, 1} {
					b.compare(t, []byte(before+strings.Repeat(ends, n)+post("y")), step)
					b.compare(t, []byte(before+strings.Repeat(ends, n)), step)
				}
			}
		}
	}
	b.compare(t, nil, 1)
}

// For any bytes, in any pieces, both understand the same.
func FuzzLoop(f *testing.F) {
	seed := func(in string) {
		if len(in) < roomMin {
			f.Add([]byte(in), uint8(0))
			f.Add([]byte(post("before")+in), uint8(3))
		}
	}
	for _, test := range plainRequests {
		seed(test.in)
	}
	for _, in := range doubtfulRequests {
		seed(in)
	}
	b := newBoth(f)
	f.Fuzz(func(t *testing.T, in []byte, step uint8) {
		if step == 0 {
			b.compare(t, in, len(in)+1)
			return
		}
		b.compare(t, in, int(step))
	})
}

func TestEqualFold(t *testing.T) {
	for c := range 256 {
		for d := range 256 {
			a, b := string([]byte{'x', byte(c)}), string([]byte{'X', byte(d)})
			if got, want := equalFold(a, b), bytes.Equal(lower(a), lower(b)); got != want {
				t.Errorf("%q and %q: %t", a, b, got)
			}
		}
	}
	if equalFold("a", "ab") {
		t.Error("a beginning is not the whole")
	}
}

func lower(s string) []byte {
	b := slices.Clone([]byte(s))
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
	return b
}
