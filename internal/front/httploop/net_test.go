package httploop

import (
	"context"
	"crypto/tls"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// net/http serves a listener's TLS connections unchanged.
func TestTLS(t *testing.T) {
	model := httptest.NewUnstartedServer(nil)
	model.EnableHTTP2 = true
	model.StartTLS()
	defer model.Close()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() {
		served <- Serve(ctx, tls.NewListener(listener, model.TLS.Clone()), Options{Do: echo, Fallback: http.HandlerFunc(echoHandler), Now: time.Now, Logger: slog.New(slog.DiscardHandler)})
	}()
	answer, err := model.Client().Post("https://"+listener.Addr().String(), "text/plain", strings.NewReader("hello"))
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil || answer.ProtoMajor != 2 || !strings.HasSuffix(string(body), "\nhello") {
		t.Errorf("%s %q, %v", answer.Proto, body, err)
	}
	stop()
	if err := <-served; err != nil {
		t.Error(err)
	}
}

// BenchmarkRequest measures a request and its answer over a socket, by the loop and by net/http,
// with a client that costs almost nothing.
func BenchmarkRequest(b *testing.B) {
	call := post(strings.Repeat("x", 400), "X-Amz-Target: DynamoDB_20120810.GetItem", "Accept-Encoding: identity", "User-Agent: bench")
	options := Options{Do: echo, Routed: routed, Fallback: http.HandlerFunc(echoHandler), Now: time.Now, Logger: slog.New(slog.DiscardHandler)}
	for name, serve := range map[string]func(context.Context, net.Listener) error{
		"loop": func(ctx context.Context, l net.Listener) error { return Serve(ctx, l, options) },
		"nethttp": func(ctx context.Context, l net.Listener) error {
			return newServer(options, ctx, l.Addr()).fallback.Serve(l)
		},
	} {
		for label, request := range map[string]string{"call": call, "path": strings.Replace(call, "POST /", "POST /schedules/a-name", 1)} {
			b.Run(name+"/"+label, func(b *testing.B) { benchmarkRequest(b, serve, []byte(request)) })
		}
	}
}

func benchmarkRequest(b *testing.B, serve func(context.Context, net.Listener) error, request []byte) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer listener.Close()
	go serve(b.Context(), listener)
	c, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	answer := make([]byte, 4096)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := c.Write(request); err != nil {
			b.Fatal(err)
		}
		if n, err := c.Read(answer); err != nil || !strings.HasSuffix(string(answer[:n]), "xxxx") {
			b.Fatal(err)
		}
	}
}
