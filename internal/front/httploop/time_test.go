package httploop

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mayflydb/mayfly/internal/front/intake"
	"github.com/mayflydb/mayfly/internal/front/wire"
)

// bench is a server in a bubble of time, whose clients hold the other ends of pipes.
type bench struct {
	*testing.T
	listener *handedListener
	looped   atomic.Int64
	passed   atomic.Int64 // to net/http
	log      bytes.Buffer
	stop     context.CancelFunc
	served   chan error
	release  chan struct{} // closed by a test
	start    time.Time

	connections *Connections
}

// inBubble runs a test against a server whose plain requests do answers; nil means echo.
func inBubble(t *testing.T, do func(*bench, context.Context, *wire.Request) *wire.Response, test func(b *bench)) {
	limited(t, math.MaxInt32, nil, do, test)
}

// admission is Options.Admit.
type admission = func(context.Context, *wire.Request, int64) (*intake.Hold, *wire.Response)

// limited is inBubble for a server with limits.
func limited(t *testing.T, connections int, admit admission, do func(*bench, context.Context, *wire.Request) *wire.Response, test func(b *bench)) {
	if do == nil {
		do = func(_ *bench, ctx context.Context, in *wire.Request) *wire.Response { return echo(ctx, in) }
	}
	synctest.Test(t, func(t *testing.T) {
		b := &bench{T: t, listener: newHandedListener(&net.TCPAddr{}), served: make(chan error, 1), release: make(chan struct{}), start: time.Now(), connections: NewConnections(connections)}
		ctx, stop := context.WithCancel(t.Context())
		b.stop = stop
		go func() {
			defer close(b.served)
			b.served <- Serve(ctx, b.listener, Options{
				Do: func(ctx context.Context, in *wire.Request) *wire.Response {
					b.looped.Add(1)
					return do(b, ctx, in)
				},
				Fallback: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					b.passed.Add(1)
					if r.URL.Path == "/events" {
						<-r.Context().Done()
					}
					echoHandler(w, r)
				}),
				Now: time.Now, Logger: slog.New(slog.NewTextHandler(&b.log, nil)),
				Admit: admit, Connections: b.connections,
			})
		}()
		test(b)
		stop()
		<-b.served
	})
}

// client is the other end of a connection.
type client struct {
	net.Conn
	*bench
	in *bufio.Reader
}

func (b *bench) connect() *client { return b.connectFrom("") }

// connectFrom connects from an address, and waits until the server has taken note.
func (b *bench) connectFrom(address string) *client {
	ours, theirs := net.Pipe()
	b.Cleanup(func() { ours.Close() })
	b.listener.pass(addressed{theirs, address})
	synctest.Wait()
	return &client{Conn: ours, bench: b, in: bufio.NewReader(ours)}
}

// addressed is a connection from an address of the test's.
type addressed struct {
	net.Conn
	from string
}

func (a addressed) RemoteAddr() net.Addr { return address(a.from) }

type address string

func (address) Network() string  { return "tcp" }
func (a address) String() string { return string(a) + ":1234" }

// send sends without waiting for the server to read.
func (c *client) send(text string) {
	go c.Write([]byte(text))
	synctest.Wait()
}

// answer reads an answer.
func (c *client) answer() (status int, body string, close bool) {
	c.Helper()
	answer, err := http.ReadResponse(c.in, nil)
	if err != nil {
		c.Fatal(err)
	}
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		c.Fatal(err)
	}
	return answer.StatusCode, string(text), answer.Close
}

// wantClosed waits until the server closes the connection, without another byte, and checks the
// time.
func (c *client) wantClosed(earliest, latest time.Duration) {
	c.Helper()
	if left := c.wantEnd(earliest, latest); left != "" {
		c.Errorf("the connection ends with %q", left)
	}
}

// wantEnd is wantClosed for a connection that may get bytes before it closes, which it returns.
func (c *client) wantEnd(earliest, latest time.Duration) string {
	c.Helper()
	left, err := io.ReadAll(c.in)
	if err != nil {
		c.Error(err)
	}
	if took := time.Since(c.start); took < earliest || took > latest {
		c.Errorf("closed after %v, not between %v and %v", took, earliest, latest)
	}
	return string(left)
}

func (c *client) wantAnswer(body string, loops int64) {
	c.Helper()
	if status, got, _ := c.answer(); status != 200 || !strings.HasSuffix(got, "\n"+body) {
		c.Errorf("answer %d %q", status, got)
	}
	if n := c.looped.Load(); n != loops {
		c.Errorf("the loop has answered %d requests, not %d", n, loops)
	}
}

func TestSilentClient(t *testing.T) {
	inBubble(t, nil, func(b *bench) { b.connect().wantClosed(headerLimit, headerLimit) })
}

// A used connection is closed when it has been idle for the limit, however often it was used
// before.
func TestIdleClient(t *testing.T) {
	inBubble(t, nil, func(b *bench) {
		c := b.connect()
		const times = 500
		for n := range times {
			time.Sleep(time.Second)
			c.send(post("x"))
			c.wantAnswer("x", int64(n+1))
		}
		c.wantClosed(times*time.Second+idleLimit, times*time.Second+idleLimit)
	})
}

// Headers that come too slowly end the connection, wherever they stop. net/http answers those that
// stop in the first line.
func TestSlowHeaders(t *testing.T) {
	head := post("")
	for at := range len(head) - 1 {
		inBubble(t, nil, func(b *bench) {
			c := b.connect()
			c.send(head[:at])
			c.wantEnd(headerLimit, headerLimit+wholeLimit)
		})
		inBubble(t, nil, func(b *bench) {
			c := b.connect()
			c.send(post("x"))
			c.wantAnswer("x", 1)
			c.send(head[:at])
			least, most := headerLimit, headerLimit+wholeLimit
			if at < peeked {
				least, most = headerLimit, idleLimit // net/http begins to count then
			}
			c.wantEnd(least, most)
		})
	}
	inBubble(t, nil, func(b *bench) {
		c := b.connect()
		var dripped sync.WaitGroup
		dripped.Go(func() {
			for i := range len(head) {
				if _, err := c.Write([]byte{head[i]}); err != nil {
					return
				}
				time.Sleep(headerLimit / 20)
			}
		})
		c.wantEnd(headerLimit, headerLimit+wholeLimit)
		dripped.Wait()
	})
}

// A body may come slowly, up to a limit, and in several pieces.
func TestSlowBody(t *testing.T) {
	inBubble(t, nil, func(b *bench) {
		c := b.connect()
		head, body, _ := strings.Cut(post("slow"), "\r\n\r\n")
		c.send(head)
		time.Sleep(wholeLimit * 3 / 10)
		c.send("\r\n\r\n" + body[:1])
		time.Sleep(wholeLimit * 3 / 10)
		c.send(body[1:])
		c.wantAnswer("slow", 1)
		c.send(head + "\r\n\r\n" + body[:1])
		time.Sleep(requestLimit - time.Second)
		c.send(body[1:])
		c.wantAnswer("slow", 2)
	})
	inBubble(t, nil, func(b *bench) {
		c := b.connect()
		c.send(strings.TrimSuffix(post("never"), "r"))
		if status, _, _ := c.answer(); status != http.StatusRequestTimeout {
			t.Errorf("status %d", status)
		}
		c.wantClosed(requestLimit, requestLimit+wholeLimit)
	})
}

// A request that is incomplete in time does not count against the next one.
func TestRepeatedlySlow(t *testing.T) {
	inBubble(t, nil, func(b *bench) {
		c := b.connect()
		for n := range 20 {
			in := post("slow")
			c.send(in[:len(in)-2])
			time.Sleep(wholeLimit * 9 / 10)
			c.send(in[len(in)-2:])
			c.wantAnswer("slow", int64(n+1))
		}
	})
}

// When the server stops, all idle connections close at once, and a running request gets its answer;
// then Serve returns.
func TestStop(t *testing.T) {
	do := func(b *bench, ctx context.Context, in *wire.Request) *wire.Response {
		if string(in.Body) == "wait" {
			<-b.release
		}
		return echo(ctx, in)
	}
	inBubble(t, do, func(b *bench) {
		idle, fresh, handed, waits, slow := b.connect(), b.connect(), b.connect(), b.connect(), b.connect()
		idle.send(post("x"))
		idle.wantAnswer("x", 1)
		handed.send(post("x") + raw("OPTIONS / HTTP/1.1", "Host: h"))
		handed.wantAnswer("x", 2)
		if status, _, _ := handed.answer(); status != 200 {
			t.Errorf("status %d", status)
		}
		waits.send(post("wait") + post("too late"))
		in := post("slow")
		slow.send(in[:len(in)-2])
		b.stop()
		synctest.Wait()
		idle.wantClosed(0, 0)
		fresh.wantClosed(0, 0)
		handed.wantClosed(0, 0)
		time.Sleep(wholeLimit / 2)
		slow.send(in[len(in)-2:])
		time.Sleep(finishLimit / 2)
		close(b.release)
		for body, c := range map[string]*client{"wait": waits, "slow": slow} {
			if status, got, close := c.answer(); status != 200 || !strings.HasSuffix(got, body) || !close {
				t.Errorf("%s: %d %q, close %t", body, status, got, close)
			}
			c.wantClosed(wholeLimit/2+finishLimit/2, wholeLimit/2+finishLimit/2)
		}
		if err := <-b.served; err != nil || time.Since(b.start) >= finishLimit {
			t.Errorf("%v after %v", err, time.Since(b.start))
		}
		if b.looped.Load() != 4 {
			t.Errorf("the loop has answered %d requests", b.looped.Load())
		}
	})
}

// A stream of events ends at once: its page may stay open for days.
func TestStopEndsEvents(t *testing.T) {
	for accept, want := range map[string]time.Duration{"text/event-stream": 0, "*/*": finishLimit} {
		inBubble(t, nil, func(b *bench) {
			c := b.connect()
			c.send(raw("GET /events HTTP/1.1", "Host: h", "Accept: "+accept))
			b.stop()
			if status, _, close := c.answer(); status != 200 || !close {
				t.Errorf("%s: status %d, close %t", accept, status, close)
			}
			c.wantClosed(want, want)
			if err := <-b.served; err != nil {
				t.Error(err)
			}
		})
	}
}

// A request that does not end by itself is cancelled, and abandoned if it does not end then.
func TestStopCancels(t *testing.T) {
	inBubble(t, func(_ *bench, ctx context.Context, in *wire.Request) *wire.Response {
		<-ctx.Done()
		return echo(ctx, in)
	}, func(b *bench) {
		c := b.connect()
		c.send(post("x"))
		b.stop()
		c.wantAnswer("x", 1)
		c.wantClosed(finishLimit, finishLimit)
		if err := <-b.served; err != nil {
			t.Error(err)
		}
	})
	inBubble(t, func(b *bench, ctx context.Context, in *wire.Request) *wire.Response {
		<-b.release
		return echo(ctx, in)
	}, func(b *bench) {
		c := b.connect()
		c.send(post("x"))
		b.stop()
		c.wantClosed(finishLimit+abandonLimit, finishLimit+abandonLimit)
		if err := <-b.served; err != nil {
			t.Error(err)
		}
		close(b.release)
	})
}

// A fault of the loop ends only its connection.
func TestPanic(t *testing.T) {
	inBubble(t, func(_ *bench, ctx context.Context, in *wire.Request) *wire.Response {
		if string(in.Body) == "x" {
			panic("a fault")
		}
		return echo(ctx, in)
	}, func(b *bench) {
		c, other := b.connect(), b.connect()
		c.send(post("x"))
		c.wantClosed(0, 0)
		other.send(post("y"))
		other.wantAnswer("y", 2)
		b.stop()
		if err := <-b.served; err != nil || !strings.Contains(b.log.String(), "a fault") {
			t.Errorf("%v, log %s", err, b.log.String())
		}
	})
}

// tired is a listener that at first lacks a resource.
type tired struct {
	net.Listener
	errors []error
}

type passing struct{ error }

func (passing) Temporary() bool { return true }

func (l *tired) Accept() (net.Conn, error) {
	if len(l.errors) == 0 {
		return l.Listener.Accept()
	}
	err := l.errors[0]
	l.errors = l.errors[1:]
	return nil, err
}

func TestListenerFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conns := newHandedListener(&net.TCPAddr{})
		listener := &tired{conns, []error{passing{io.ErrNoProgress}, passing{io.ErrNoProgress}}}
		var log bytes.Buffer
		served := make(chan error, 1)
		go func() {
			served <- Serve(t.Context(), listener, Options{Do: echo, Fallback: http.HandlerFunc(echoHandler), Now: time.Now, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		}()
		one := newScript([]byte(post("x")), 1)
		conns.pass(one)
		if got := one.answers(t); !strings.Contains(got, "200 OK") {
			t.Error(got)
		}
		conns.Close()
		if err := <-served; !errors.Is(err, net.ErrClosed) || !strings.HasPrefix(err.Error(), "accept connections: ") {
			t.Errorf("got %v", err)
		}
		if strings.Count(log.String(), "accepting a connection failed") != 2 {
			t.Errorf("log: %s", log.String())
		}
	})
}

// The loop never reads a body beyond the limit.
func TestOversizedBody(t *testing.T) {
	for length, want := range map[int]verdict{bodyMax: plain, bodyMax + 1: doubtful} {
		if got := new(head).read([]byte(raw("POST / HTTP/1.1", "Host: h", fmt.Sprint("Content-Length: ", length))), routed); got != want {
			t.Errorf("a body of %d bytes: %d", length, got)
		}
	}
}

// A connection that becomes idle while the server stops does not wait for another request: the loop
// that closes idle connections may have passed it already.
func TestIdleWhileStopping(t *testing.T) {
	s := newServer(Options{Fallback: http.HandlerFunc(echoHandler), Now: time.Now, Logger: slog.New(slog.DiscardHandler)}, t.Context(), &net.TCPAddr{})
	s.stopping.Store(true)
	ours, theirs := net.Pipe()
	defer ours.Close()
	if err := newConn(newPeer(s, theirs)).read(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("got %v", err)
	}
}
