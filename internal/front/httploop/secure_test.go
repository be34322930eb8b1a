package httploop

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mayflydb/mayfly/internal/front/intake"
	"github.com/mayflydb/mayfly/internal/front/wire"
)

// testTLS returns the settings of a server with a certificate, and those of its client, which does
// not ask for HTTP/2. Both may be changed.
func testTLS() (server, client *tls.Config) {
	m := testCertificate()
	client = m.Client().Transport.(*http.Transport).TLSClientConfig.Clone()
	client.NextProtos = nil
	server = m.TLS.Clone()
	server.NextProtos = []string{"h2", "http/1.1"}
	return server, client
}

// testCertificate is made once, outside of bubbles.
var testCertificate = sync.OnceValue(func() *httptest.Server {
	s := httptest.NewUnstartedServer(nil)
	s.EnableHTTP2 = true
	s.StartTLS()
	s.Close()
	s.Client().Transport.(*http.Transport).TLSClientConfig.ServerName = "example.com" // a name in the certificate
	return s
})

// The loop serves HTTP/1.1 over TLS, and net/http HTTP/2. Both know that the request is secure.
func TestTLS(t *testing.T) {
	var looped atomic.Int64
	fallback := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Secure", fmt.Sprint(r.TLS != nil && r.TLS.HandshakeComplete))
		echoHandler(w, r)
	}
	do := func(ctx context.Context, in *wire.Request) *wire.Response {
		looped.Add(1)
		out := echo(ctx, in)
		out.Header = append(out.Header, wire.Field{Name: "X-Secure", Value: fmt.Sprint(in.Secure)})
		return out
	}
	for name, test := range map[string]struct {
		do             func(context.Context, *wire.Request) *wire.Response
		offers         []string
		method, target string
		proto          string
		looped         int64
	}{
		"HTTP/1.1":                {do, nil, http.MethodPost, "", "HTTP/1.1", 1},
		"HTTP/1.1 by name":        {do, []string{"http/1.1"}, http.MethodPost, "large", "HTTP/1.1", 1},
		"HTTP/1.1 by net/http":    {do, nil, http.MethodPatch, "", "HTTP/1.1", 0},
		"HTTP/1.1 without a loop": {nil, nil, http.MethodPost, "large", "HTTP/1.1", 0},
		"HTTP/2":                  {do, []string{"h2", "http/1.1"}, http.MethodPost, "large", "HTTP/2.0", 0},
		"HTTP/2 without a loop":   {nil, []string{"h2"}, http.MethodPost, "", "HTTP/2.0", 0},
	} {
		t.Run(name, func(t *testing.T) {
			looped.Store(0)
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			server, client := testTLS()
			client.NextProtos = test.offers
			connections := NewConnections(4)
			ctx, stop := context.WithCancel(t.Context())
			served := make(chan error, 1)
			go func() {
				served <- Serve(ctx, tls.NewListener(listener, server), Options{
					Do: test.do, Fallback: http.HandlerFunc(fallback), Now: time.Now, Logger: slog.New(slog.DiscardHandler), Connections: connections,
				})
			}()
			caller := http.Client{Transport: &http.Transport{TLSClientConfig: client, ForceAttemptHTTP2: test.proto == "HTTP/2.0"}}
			for range 2 { // on one connection
				request, err := http.NewRequest(test.method, "https://"+listener.Addr().String(), strings.NewReader("hello"))
				if err != nil {
					t.Fatal(err)
				}
				request.Header.Set("X-Amz-Target", test.target)
				answer, err := caller.Do(request)
				if err != nil {
					t.Fatal(err)
				}
				body, err := io.ReadAll(answer.Body)
				answer.Body.Close()
				text := string(body)
				if test.target == "" && !strings.HasSuffix(text, "\nhello") || test.target == "large" && len(text) != 120_000 {
					t.Errorf("%d bytes: %.200q", len(text), text)
				}
				if err != nil || answer.Proto != test.proto || answer.Header.Get("X-Secure") != "true" {
					t.Errorf("%s, %v, %v", answer.Proto, answer.Header, err)
				}
			}
			if looped.Load() != 2*test.looped {
				t.Errorf("the loop has answered %d requests", looped.Load())
			}
			if n := connections.Open(); n != 1 {
				t.Errorf("%d connections are open", n)
			}
			caller.CloseIdleConnections()
			for limit := time.Now().Add(10 * time.Second); connections.Open() > 0; time.Sleep(time.Millisecond) {
				if time.Now().After(limit) {
					t.Fatal("a closed connection keeps its place")
				}
			}
			stop()
			if err := <-served; err != nil {
				t.Error(err)
			}
		})
	}
}

// connectSecure is connectFrom for a connection over TLS, which has not begun yet.
func (b *bench) connectSecure(address string) net.Conn {
	ours, theirs := net.Pipe()
	b.Cleanup(func() { ours.Close() })
	server, _ := testTLS()
	b.listener.pass(tls.Server(addressed{theirs, address}, server))
	synctest.Wait()
	return ours
}

// secured negotiates TLS on a connection.
func (b *bench) secured(raw net.Conn, protocols ...string) *client {
	b.Helper()
	_, settings := testTLS()
	settings.NextProtos = protocols
	c := tls.Client(raw, settings)
	if err := c.Handshake(); err != nil {
		b.Fatal(err)
	}
	synctest.Wait()
	return &client{Conn: c, bench: b, in: bufio.NewReader(c)}
}

// A handshake has headerLimit, however its bytes come, and the first request the same again.
func TestSlowHandshake(t *testing.T) {
	for _, hello := range []string{"", "\x16", "\x16\x03\x01\x02\x00\x01"} {
		inBubble(t, nil, func(b *bench) {
			raw := b.connectSecure("a")
			io.WriteString(raw, hello)
			if _, err := io.Copy(io.Discard, raw); err != nil || time.Since(b.start) != headerLimit {
				t.Errorf("%q: %v after %v", hello, err, time.Since(b.start))
			}
			synctest.Wait() // the client sees the end before the place is free
			if n := b.connections.Open(); n != 0 {
				t.Errorf("%d connections are open", n)
			}
		})
	}
	inBubble(t, nil, func(b *bench) {
		raw := b.connectSecure("a")
		time.Sleep(headerLimit - time.Second)
		b.secured(raw).wantClosed(2*headerLimit-time.Second, 2*headerLimit-time.Second)
	})
	inBubble(t, nil, func(b *bench) {
		c := b.secured(b.connectSecure("a"))
		for n := range 3 {
			c.send(post("x"))
			c.wantAnswer("x", int64(n+1))
			time.Sleep(idleLimit - time.Second)
		}
		c.wantClosed(3*idleLimit-2*time.Second, 3*idleLimit-2*time.Second)
	})
}

// A connection has its place before the handshake, and gives way like an idle one: also if its client
// reads nothing, so that it cannot be told.
func TestHandshakeGivesWay(t *testing.T) {
	for name, begin := range map[string]func(*bench, net.Conn){
		"silent":     func(*bench, net.Conn) {},
		"handshake":  func(_ *bench, c net.Conn) { io.WriteString(c, "\x16\x03\x01") },
		"negotiated": func(b *bench, c net.Conn) { b.secured(c) },
		"idle": func(b *bench, c net.Conn) {
			s := b.secured(c)
			s.send(post("x"))
			s.wantAnswer("x", b.looped.Load())
		},
	} {
		limited(t, 2, nil, nil, func(b *bench) {
			oldest := b.connectSecure("a")
			begin(b, oldest)
			time.Sleep(time.Second)
			begin(b, b.connectSecure("b"))
			if n := b.connections.Open(); n != 2 {
				t.Errorf("%s: %d connections are open", name, n)
			}
			late := b.secured(b.connectSecure("c"))
			late.send(post("late"))
			late.wantAnswer("late", b.looped.Load())
			if n := b.connections.ClosedSilent(); n != 1 || b.connections.Open() != 2 || time.Since(b.start) != time.Second {
				t.Errorf("%s: %d closed, %d open, after %v", name, n, b.connections.Open(), time.Since(b.start))
			}
			if _, err := oldest.Read(make([]byte, 1)); err != io.EOF {
				t.Errorf("%s: the oldest connection: %v", name, err)
			}
		})
	}
}

// A server that stops does not wait for handshakes and idle connections.
func TestStopSecure(t *testing.T) {
	inBubble(t, nil, func(b *bench) {
		b.connectSecure("a")
		idle, two := b.secured(b.connectSecure("a")), b.secured(b.connectSecure("b"), "h2")
		idle.send(post("x"))
		idle.wantAnswer("x", 1)
		two.send("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00")
		go io.Copy(io.Discard, two)
		synctest.Wait()
		b.stop()
		if err := <-b.served; err != nil || time.Since(b.start) > time.Second || b.connections.Open() != 0 {
			t.Errorf("%v after %v, %d connections are open", err, time.Since(b.start), b.connections.Open())
		}
	})
}

// HTTP without TLS is answered in the form of the API.
func TestPlainToTLS(t *testing.T) {
	for _, request := range []string{post("x"), post(strings.Repeat("x", 1<<20)), raw("GET /healthz HTTP/1.1", "Host: h"), raw("DELETE /schedules/a HTTP/1.1", "Host: h")} {
		inBubble(t, nil, func(b *bench) {
			c := &client{Conn: b.connectSecure("a"), bench: b}
			c.in = bufio.NewReader(c)
			c.send(request)
			status, body, closes := c.answer()
			if status != http.StatusBadRequest || !closes || !strings.Contains(body, `"message":"this port speaks TLS; use https://`) {
				t.Errorf("%d %s", status, body)
			}
			c.wantClosed(0, intake.DrainLimit)
		})
	}
	inBubble(t, nil, func(b *bench) { // neither
		c := b.connectSecure("a")
		go io.WriteString(c, "SSH-2.0-OpenSSH_9.6\r\n")
		if got, err := io.ReadAll(c); err != nil || bytes.Contains(got, []byte("HTTP")) {
			t.Errorf("%q, %v", got, err)
		}
	})
}

// A fault in the settings of the listener ends only its connection.
func TestPanicInHandshake(t *testing.T) {
	inBubble(t, nil, func(b *bench) {
		ours, theirs := net.Pipe()
		defer ours.Close()
		b.listener.pass(tls.Server(theirs, &tls.Config{GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { panic("a fault") }}))
		_, settings := testTLS()
		if err := tls.Client(ours, settings).Handshake(); !errors.Is(err, io.EOF) || !strings.Contains(b.log.String(), "a fault") {
			t.Errorf("%v, log %s", err, b.log.String())
		}
		c := b.connect()
		c.send(post("x"))
		c.wantAnswer("x", 1)
	})
}

// A client that reads nothing loses its connection over TLS too.
func TestSlowReaderOverTLS(t *testing.T) {
	large := func(*bench, context.Context, *wire.Request) *wire.Response {
		return &wire.Response{Status: 200, Body: make([]byte, 3*sendStep)}
	}
	limited(t, math.MaxInt32, nil, large, func(b *bench) {
		c := b.secured(b.connectSecure("a"))
		c.send(post("x"))
		time.Sleep(2*sendLimit + 6*time.Second) // the goodbye has 5
		synctest.Wait()
		if n := b.connections.Open(); n != 0 {
			t.Errorf("%d connections are open", n)
		}
	})
}

// Connections over TLS have a part of the places, because they take more memory. A new one takes the
// place of a silent one of them. An address has three quarters of the part.
func TestSecureAreFewer(t *testing.T) {
	limited(t, 100, nil, nil, func(b *bench) {
		b.connections.secureMost = 4
		for range 3 {
			b.secured(b.connectSecure("a"))
		}
		refused := &client{Conn: b.connectSecure("a"), bench: b}
		refused.in = bufio.NewReader(refused)
		if n := b.connections.Refused(); n != 1 || !refused.isClosed() {
			t.Errorf("%d were refused", n)
		}
		b.secured(b.connectSecure("b"))
	})
	limited(t, 10, nil, nil, func(b *bench) {
		b.connections.secureMost = 2
		plain := b.connect()
		first, second := b.secured(b.connectSecure("a")), b.secured(b.connectSecure("b"))
		time.Sleep(silentFor)
		second.send(post("x"))
		second.answer()
		b.secured(b.connectSecure("c"))
		if n := b.connections.Open(); n != 3 || plain.isClosed() || !first.isClosed() || second.isClosed() {
			t.Errorf("%d are open, and closed are %v %v %v", n, plain.isClosed(), first.isClosed(), second.isClosed())
		}
	})
}

// The heads of requests over HTTP/2 have a budget. Beyond it a request is refused at once; when others
// have ended, there is room again.
func TestHeadsOverHTTP2(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server, client := testTLS()
	client.NextProtos = []string{"h2"}
	connections := NewConnections(4)
	const head, fit, more = 10_000, 5, 20
	connections.headsMost = fit*(head+10_000) + 10_000
	started, release := make(chan struct{}, fit+more), make(chan struct{})
	ctx, stop := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() {
		served <- Serve(ctx, tls.NewListener(listener, server), Options{
			Fallback: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { started <- struct{}{}; <-release }),
			Now:      time.Now, Logger: slog.New(slog.DiscardHandler), Connections: connections,
		})
	}()
	caller := http.Client{Transport: &http.Transport{TLSClientConfig: client, ForceAttemptHTTP2: true}}
	call := func() (int, string) {
		request, err := http.NewRequest(http.MethodPost, "https://"+listener.Addr().String(), strings.NewReader("hello"))
		if err != nil {
			return 0, err.Error()
		}
		request.Header.Set("X-A", strings.Repeat("x", head))
		answer, err := caller.Do(request)
		if err != nil {
			return 0, err.Error()
		}
		defer answer.Body.Close()
		text, _ := io.ReadAll(answer.Body)
		return answer.StatusCode, string(text)
	}
	var waiting sync.WaitGroup
	for range fit {
		waiting.Go(func() {
			if status, text := call(); status != http.StatusOK {
				t.Errorf("one with room: %d %s", status, text)
			}
		})
	}
	for range fit {
		<-started
	}
	for range more {
		if status, text := call(); status != http.StatusServiceUnavailable || !strings.Contains(text, "#ServiceUnavailable") {
			t.Errorf("one without room: %d %s", status, text)
		}
	}
	close(release)
	waiting.Wait()
	if status, text := call(); status != http.StatusOK || connections.heads.Load() != 0 {
		t.Errorf("afterwards: %d %s, and heads of %d bytes", status, text, connections.heads.Load())
	}
	caller.CloseIdleConnections()
	stop()
	if err := <-served; err != nil {
		t.Error(err)
	}
}
