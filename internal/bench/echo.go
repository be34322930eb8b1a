package bench

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
)

// The echo reference: a server process whose handler reads the request and writes a configured
// answer. A request with the path setPath configures it: its body becomes the answer's body, and
// its header fields with setPrefix the answer's header.
const (
	setPath   = "/set"
	setPrefix = "Echo-"
)

// RoleEcho is the argument of "bench --role" with which Run starts the echo reference.
const RoleEcho = "echo"

type echoAnswer struct {
	header http.Header
	body   []byte
}

// echoHandler returns the handler of the echo reference.
func echoHandler() http.Handler {
	var current atomic.Pointer[echoAnswer]
	current.Store(new(echoAnswer))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		if r.URL.Path == setPath {
			a := &echoAnswer{header: http.Header{}, body: body}
			for name, values := range r.Header {
				if name, ok := strings.CutPrefix(name, setPrefix); ok {
					a.header[http.CanonicalHeaderKey(name)] = values
				}
			}
			current.Store(a)
			return
		}
		a := current.Load()
		maps.Copy(w.Header(), a.header)
		w.Write(a.body) // fails only if the client is gone
	})
}

// ServeEcho serves the echo reference until ctx is done, and prints its address, as startChild
// expects.
func ServeEcho(ctx context.Context, listener net.Listener, out io.Writer) error {
	fmt.Fprintf(out, "%s%s\n", listeningOn, listener.Addr())
	server := &http.Server{Handler: echoHandler()}
	stop := context.AfterFunc(ctx, func() { server.Close() })
	defer stop()
	if err := server.Serve(listener); ctx.Err() == nil {
		return err
	}
	return nil
}

// learn configures the echo server with an endpoint's answer.
func (e *endpoint) learn(ctx context.Context, a answer) error {
	var fields []string
	for _, name := range []string{"Content-Type", "X-Amzn-Requestid", "X-Amz-Crc32", "Server"} {
		if value := headerField(a.head, name); value != nil {
			fields = append(fields, setPrefix+name+": "+string(value))
		}
	}
	request := appendRequest(nil, e.address, "POST "+setPath, apiHeader("set", fields...), a.body)
	_, err := e.succeed(ctx, "configure echo", request)
	return err
}
