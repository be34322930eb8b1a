package httploop

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mayflydb/mayfly/internal/front/intake"
	"github.com/mayflydb/mayfly/internal/front/wire"
)

// isClosed reports whether the server has closed a connection that nothing was written to.
func (c *client) isClosed() bool {
	c.SetReadDeadline(time.Now())
	_, err := c.in.Peek(1)
	c.SetReadDeadline(time.Time{})
	return err == io.EOF
}

// The longest silent connection makes place for a new one, in the loop and in net/http. One that has
// just been used stays.
func TestLongestSilentIsClosed(t *testing.T) {
	limited(t, 4, nil, nil, func(b *bench) {
		oldest, handed, third, fourth := b.connectFrom("a"), b.connectFrom("b"), b.connectFrom("a"), b.connectFrom("b")
		time.Sleep(time.Second)
		handed.send(raw("OPTIONS / HTTP/1.1", "Host: h"))
		handed.answer()
		for _, c := range []*client{oldest, third, fourth} {
			time.Sleep(time.Second)
			c.send(post("x"))
			c.answer()
		}
		oldest.send(post("again"))
		oldest.answer()
		b.connectFrom("c")
		b.connectFrom("d")
		for c, want := range map[*client]bool{oldest: false, handed: true, third: true, fourth: false} {
			if c.isClosed() != want {
				t.Errorf("closed: %v, not %v", !want, want)
			}
		}
		if n := b.connections.ClosedSilent(); n != 2 || b.connections.Open() != 4 {
			t.Errorf("%d were closed, and %d are open", n, b.connections.Open())
		}
	})
}

// net/http has a part of the connections. A new one of its kind takes the place of the longest silent
// of them, and waits until there is one, as long as a client may take for its headers.
func TestHandedAreFew(t *testing.T) {
	limited(t, 10, nil, nil, func(b *bench) {
		b.connections.handedMost = 2
		options := raw("OPTIONS / HTTP/1.1", "Host: h")
		looped, first, second, third := b.connect(), b.connect(), b.connect(), b.connect()
		for _, c := range []*client{looped, first, second} {
			request := options
			if c == looped {
				request = post("x")
			}
			c.send(request)
			c.answer()
		}
		third.send(options)
		if start := time.Now(); true {
			third.answer()
			if wait := time.Since(start); wait < silentFor || wait > silentFor+searchPause {
				t.Errorf("the third waited %v for a silent one", wait)
			}
		}
		if n := b.connections.Open(); n != 3 || looped.isClosed() || first.isClosed() == second.isClosed() {
			t.Errorf("%d are open, and closed are %v %v %v", n, looped.isClosed(), first.isClosed(), second.isClosed())
		}
	})
	limited(t, 10, nil, nil, func(b *bench) {
		b.connections.handedMost = 0
		c := b.connect()
		c.send(raw("OPTIONS / HTTP/1.1", "Host: h"))
		c.wantClosed(headerLimit, headerLimit+searchPause)
		synctest.Wait()
		if n := b.connections.Open(); n != 0 {
			t.Errorf("%d are open", n)
		}
	})
}

// Nothing is read after a chunked request: a proxy that goes by its Content-Length, which net/http does
// not show, may see another request in its body.
func TestChunkedEndsConnection(t *testing.T) {
	limited(t, 10, nil, nil, func(b *bench) {
		c := b.connect()
		c.send(raw("POST / HTTP/1.1", "Host: h", "Content-Length: 3", "Transfer-Encoding: chunked") + "2\r\n{}\r\n0\r\n\r\n" + post("smuggled"))
		if status, _, last := c.answer(); status != http.StatusOK || !last {
			t.Errorf("%d, the last: %v", status, last)
		}
		if n := b.looped.Load() + b.passed.Load(); n != 1 {
			t.Errorf("%d requests were read", n)
		}
	})
}

// A request with more lines than clients send takes no room in the loop.
func TestManyFieldsAreHanded(t *testing.T) {
	for _, test := range []struct {
		lines  int
		looped int64
	}{{fieldsMax - 5, 1}, {fieldsMax + 1, 0}} {
		limited(t, 10, nil, nil, func(b *bench) {
			c := b.connect()
			c.send(post("x", slices.Repeat([]string{"X-A: b"}, test.lines)...))
			if status, _, _ := c.answer(); status != http.StatusOK || b.looped.Load() != test.looped {
				t.Errorf("%d lines: %d, by the loop %d times", test.lines, status, b.looped.Load())
			}
		})
	}
}

// Connections that never had an answer, and those with half a request, make place before others.
func TestUnservedGoFirst(t *testing.T) {
	limited(t, 4, nil, nil, func(b *bench) {
		served := b.connectFrom("a")
		served.send(raw("OPTIONS / HTTP/1.1", "Host: h"))
		served.answer()
		time.Sleep(10 * time.Second)
		mute, half, refused := b.connectFrom("b"), b.connectFrom("b"), b.connectFrom("b")
		time.Sleep(silentFor)
		half.send("POST / HTTP/1.1\r\n")
		time.Sleep(time.Millisecond)
		refused.send(post("x", "X-Amz-Target: fails"))
		refused.answer()
		time.Sleep(silentFor / 2)
		for range 2 {
			b.connectFrom("c")
			time.Sleep(silentFor)
		}
		for c, want := range map[*client]bool{served: false, mute: true, half: true, refused: false} {
			if c.isClosed() != want {
				t.Errorf("closed: %v, not %v", !want, want)
			}
		}
		b.connectFrom("c")
		if served.isClosed() || !refused.isClosed() {
			t.Error("a connection without a success should be closed before one with")
		}
	})
}

// One address has at most three quarters of the places. Beyond that its own longest silent connection
// is closed, and without one the new connection. Clients on this machine have no share.
func TestShareOfAddress(t *testing.T) {
	limited(t, 4, nil, nil, func(b *bench) {
		var slow []*client
		for range 3 {
			c := b.connectFrom("a")
			c.send("POST / HTTP/1.1\r\n")
			slow = append(slow, c)
			time.Sleep(time.Millisecond)
		}
		if c := b.connectFrom("a"); !c.isClosed() || b.connections.Refused() != 1 {
			t.Errorf("refused: %d", b.connections.Refused())
		}
		if b.connections.paused.Load() != time.Now().Add(searchPause).UnixNano() {
			t.Error("each refused connection begins a search")
		}
		other := b.connectFrom("b")
		other.send(post("x"))
		other.wantAnswer("x", 1)
		time.Sleep(silentFor)
		if c := b.connectFrom("a"); c.isClosed() || !slow[0].isClosed() || slow[1].isClosed() || other.isClosed() {
			t.Errorf("closed: the new one %v, its own %v and %v, the other's %v", c.isClosed(), slow[0].isClosed(), slow[1].isClosed(), other.isClosed())
		}
	})
	limited(t, 4, nil, nil, func(b *bench) {
		for range 4 {
			b.connectFrom("127.0.0.1")
		}
		if n := b.connections.Open(); n != 4 || b.connections.Refused() != 0 {
			t.Errorf("%d are open, %d were refused", n, b.connections.Refused())
		}
	})
}

// While all connections are busy a new one waits until one of them is silent or ends.
func TestWaitsForPlace(t *testing.T) {
	do := func(b *bench, ctx context.Context, in *wire.Request) *wire.Response {
		if string(in.Body) == "wait" {
			time.Sleep(5 * time.Second)
		}
		return echo(ctx, in)
	}
	limited(t, 1, nil, nil, func(b *bench) { // a handler of net/http
		c := b.connectFrom("a")
		c.send(post("", "X-Amz-Target: waits", "Pragma: no-cache"))
		late := b.connectFrom("c")
		late.send(post("x"))
		if status, _, _ := c.answer(); status != http.StatusOK {
			t.Errorf("status %d", status)
		}
		late.wantAnswer("x", 1)
	})
	for ending, want := range map[string]time.Duration{"keep-alive": 5*time.Second + silentFor, "close": 5 * time.Second} {
		limited(t, 2, nil, do, func(b *bench) {
			for _, from := range []string{"a", "b"} {
				c := b.connectFrom(from)
				c.send(post("wait", "Connection: "+ending))
				go io.Copy(io.Discard, c) // its answer
			}
			late := b.connectFrom("c")
			late.send(post("x"))
			late.wantAnswer("x", 3)
			if took := time.Since(b.start); took < want || took > want+silentFor/5 {
				t.Errorf("%s: answered after %v", ending, took)
			}
		})
	}
}

// A client that reads nothing loses its connection; one that reads slowly does not, as long as it
// takes a part in time.
func TestSlowReader(t *testing.T) {
	large := func(_ *bench, ctx context.Context, in *wire.Request) *wire.Response {
		return &wire.Response{Status: 200, Body: make([]byte, 3*sendStep)}
	}
	requests := map[string]string{"loop": post("x"), "net/http": raw("GET / HTTP/1.1", "Host: h", "X-Amz-Target: large")}
	for name, request := range requests {
		limited(t, 4, nil, large, func(b *bench) {
			c := b.connect()
			c.send(request)
			time.Sleep(2*sendLimit + time.Second)
			synctest.Wait()
			if n, err := io.Copy(io.Discard, c.in); err != nil || n > sendStep {
				t.Errorf("%s: %d bytes, %v", name, n, err)
			}
		})
	}
	limited(t, 4, nil, large, func(b *bench) {
		c := b.connect()
		for range 2 { // the deadline of one answer does not count for the next
			c.send(post("x"))
			answer, err := http.ReadResponse(c.in, nil)
			for err == nil {
				time.Sleep(sendLimit * 2 / 5)
				_, err = io.CopyN(io.Discard, answer.Body, sendStep/2)
			}
			if err != io.EOF || time.Since(b.start) < sendLimit {
				t.Fatalf("%v after %v", err, time.Since(b.start))
			}
			time.Sleep(time.Minute)
		}
	})
}

// A handler of net/http may take its time: before its answer, within it and before it returns.
func TestSlowHandler(t *testing.T) {
	const long = 2 * sendLimit
	for name, handler := range map[string]http.HandlerFunc{
		"status": func(w http.ResponseWriter, _ *http.Request) { time.Sleep(long); w.WriteHeader(http.StatusNoContent) },
		"body":   func(w http.ResponseWriter, _ *http.Request) { time.Sleep(long); io.WriteString(w, "body") },
		"return": func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "body"); time.Sleep(long) },
		"none":   func(http.ResponseWriter, *http.Request) { time.Sleep(long) },
	} {
		synctest.Test(t, func(t *testing.T) {
			listener, served := newHandedListener(&net.TCPAddr{}), make(chan error, 1)
			ctx, stop := context.WithCancel(t.Context())
			go func() {
				served <- Serve(ctx, listener, Options{Fallback: handler, Now: time.Now, Logger: slog.New(slog.DiscardHandler)})
			}()
			ours, theirs := net.Pipe()
			listener.pass(theirs)
			io.WriteString(ours, raw("GET / HTTP/1.1", "Host: h"))
			if answer, err := http.ReadResponse(bufio.NewReader(ours), nil); err != nil {
				t.Errorf("%s: %v", name, err)
			} else if _, err := io.ReadAll(answer.Body); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			stop()
			<-served
		})
	}
}

// halfClosed is a connection whose client sends no more than reader has.
type halfClosed struct {
	net.Conn
	reader io.Reader
}

func (h halfClosed) Read(p []byte) (int, error) { return h.reader.Read(p) }

// A buffer is not much larger than the room that is taken for it.
func TestNewRoom(t *testing.T) {
	for _, size := range []int{roomMin + 1, headMax, headMax + 1, roomKept / 2, roomKept/2 + 1, roomKept, roomKept + 1, bodyMax} {
		if n := len(newRoom(size)); n < size || n >= 2*size {
			t.Errorf("%d bytes for %d", n, size)
		}
	}
}

// A body that does not fit into the first buffer is read only if the server admits it. The room is
// released before the answer is read, and also if the rest never comes.
func TestAdmission(t *testing.T) {
	budget := intake.NewBudget(intake.LeastBudget)
	var asked []int64
	admit := func(ctx context.Context, in *wire.Request, bytes int64) (*intake.Hold, *wire.Response) {
		asked = append(asked, bytes)
		if in.Header.Get("X-A") == "refuse" {
			return nil, &wire.Response{Status: http.StatusForbidden, Body: []byte("no")}
		}
		hold, _ := budget.Take(ctx, bytes)
		return hold, nil
	}
	limited(t, 4, admit, nil, func(b *bench) {
		c := b.connect()
		sizes := []int{0, roomMin / 2, roomMin, 2 * roomMin, intake.SmallMax, intake.SmallMax + 1, 1 << 20, bodyMax, 1}
		for n, size := range sizes {
			body := strings.Repeat("x", size)
			c.send(post(body))
			if size > roomKept && budget.Used() != 0 {
				t.Errorf("%d bytes are taken for a body while its answer is sent", budget.Used())
			}
			c.wantAnswer(body, int64(n+1))
		}
		want := fmt.Sprint([]int64{roomMin, 2 * roomMin, intake.SmallMax, intake.SmallMax + 1, 1 << 20, bodyMax})
		if fmt.Sprint(asked) != want || budget.Used() != 0 {
			t.Errorf("asked for %v, not %v; %d bytes are still taken", asked, want, budget.Used())
		}
	})
	limited(t, 4, admit, nil, func(b *bench) {
		c := b.connect()
		head, _, _ := strings.Cut(post(strings.Repeat("x", bodyMax)), "\r\n\r\n")
		c.send(head + "\r\n\r\nsome of it")
		if budget.Used() != bodyMax {
			t.Errorf("%d bytes are taken", budget.Used())
		}
		if status, _, close := c.answer(); status != http.StatusRequestTimeout || !close {
			t.Errorf("status %d, close: %v", status, close)
		}
		c.wantClosed(requestLimit, requestLimit)
		if budget.Used() != 0 {
			t.Errorf("%d bytes are still taken", budget.Used())
		}
	})
	// A client that has closed its sending side, with a part of the body missing.
	limited(t, 4, admit, nil, func(b *bench) {
		ours, theirs := net.Pipe()
		body := post(strings.Repeat("x", bodyMax))
		b.listener.pass(halfClosed{theirs, strings.NewReader(body[:len(body)-1])})
		answer, err := http.ReadResponse(bufio.NewReader(ours), nil)
		synctest.Wait()
		if err != nil || answer.StatusCode != http.StatusBadRequest || budget.Used() != 0 {
			t.Errorf("%+v, %v; %d bytes are still taken", answer, err, budget.Used())
		}
		if b.passed.Load() != 0 {
			t.Error("net/http got the part, for which no room is taken any more")
		}
	})
	// Idle connections take no room, not even with the line end that some old clients send.
	limited(t, 4, admit, nil, func(b *bench) {
		c := b.connect()
		body := strings.Repeat("x", intake.SmallMax)
		c.send(post(body) + "\r\n")
		c.wantAnswer(body, 1)
		synctest.Wait()
		if budget.Used() != 0 {
			t.Errorf("%d bytes are still taken", budget.Used())
		}
		c.send(post(body)[:intake.SmallMax]) // with the line end before it
		if budget.Used() != intake.SmallMax {
			t.Errorf("%d bytes are taken", budget.Used())
		}
		c.send(post(body)[intake.SmallMax:] + post("next"))
		c.wantAnswer(body, 3)
		c.wantAnswer("next", 3)
	})
	limited(t, 4, admit, nil, func(b *bench) {
		c := b.connect()
		if _, err := io.WriteString(c, post(strings.Repeat("x", 8<<20), "X-A: refuse")); err == nil {
			t.Error("a pipe has no buffer, so the answer should have come first")
		}
	})
}
