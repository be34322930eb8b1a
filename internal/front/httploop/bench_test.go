package httploop

import (
	"bytes"
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// BenchmarkRequest measures a request and its answer over a socket, by the loop and by net/http,
// without and with TLS, with a client that costs almost nothing.
func BenchmarkRequest(b *testing.B) {
	call := post(strings.Repeat("x", 400), "X-Amz-Target: DynamoDB_20120810.GetItem", "Accept-Encoding: identity", "User-Agent: bench")
	options := Options{Do: echo, Routed: routed, Fallback: http.HandlerFunc(echoHandler), Now: time.Now, Logger: slog.New(slog.DiscardHandler)}
	for _, server := range []struct {
		name  string
		serve func(context.Context, net.Listener) error
	}{
		{"loop", func(ctx context.Context, l net.Listener) error { return Serve(ctx, l, options) }},
		{"nethttp", func(ctx context.Context, l net.Listener) error {
			return newServer(options, ctx, l.Addr()).fallback.Serve(l)
		}},
	} {
		path := strings.Replace(call, "POST /", "POST /schedules/a-name", 1)
		b.Run(server.name+"/call", func(b *testing.B) { benchmarkRequest(b, server.serve, false, call) })
		b.Run(server.name+"/path", func(b *testing.B) { benchmarkRequest(b, server.serve, false, path) })
		b.Run(server.name+"/call/tls", func(b *testing.B) { benchmarkRequest(b, server.serve, true, call) })
	}
}

func benchmarkRequest(b *testing.B, serve func(context.Context, net.Listener) error, secure bool, request string) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer listener.Close()
	c, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	if secure {
		server, client := testTLS()
		listener, c = tls.NewListener(listener, server), tls.Client(c, client)
	}
	go serve(b.Context(), listener)
	in, answer := []byte(request), make([]byte, 4096)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := c.Write(in); err != nil {
			b.Fatal(err)
		}
		for n := 0; !bytes.HasSuffix(answer[:n], []byte("xxxx")); {
			more, err := c.Read(answer[n:]) // TLS sends a connection's first answers in several records
			if n += more; err != nil {
				b.Fatal(err)
			}
		}
	}
}
