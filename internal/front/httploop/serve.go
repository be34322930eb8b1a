package httploop

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"net/http"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mayflydb/mayfly/internal/clock"
	"github.com/mayflydb/mayfly/internal/front/intake"
	"github.com/mayflydb/mayfly/internal/front/wire"
)

const (
	headerLimit  = 10 * time.Second // to send a request's headers
	requestLimit = time.Minute      // to send all of a request, up to 16 MB
	idleLimit    = 3 * time.Minute  // longer than the SDKs keep idle connections
	sendLimit    = 25 * time.Second // to take the next sendStep bytes of an answer
	sendStep     = 1 << 20
	// for a request's headers to be complete, before net/http waits for the rest
	wholeLimit   = time.Second
	headerBytes  = 16 << 10        // of a request; a client can send them slowly on each connection
	finishLimit  = 5 * time.Second // for running requests when the server stops
	abandonLimit = 2 * time.Second // for them to end after they are cancelled
)

// Options configure Serve. Fallback, Now and Logger are required.
type Options struct {
	// Do answers the plain requests. nil: Fallback answers all.
	Do func(ctx context.Context, in *wire.Request) *wire.Response

	// Admit decides by the head of a plain request whether to read a body of so many bytes, more
	// than a few KB, and takes room for it. It may wait. If it returns an answer, the body is not
	// read. nil: all bodies are read.
	Admit func(ctx context.Context, in *wire.Request, bytes int64) (*intake.Hold, *wire.Response)

	// Routed reports the paths, besides "/", whose requests Do answers. nil: none.
	Routed func(path string) bool

	// Fallback answers all other requests, through net/http.
	Fallback http.Handler

	// Connections limits the connections of all servers that share it. nil: no limit.
	Connections *Connections

	// Now returns the time of the machine's clock, for the limits of idle connections, of incomplete
	// requests and of answers.
	Now func() time.Time

	// Date returns the time for the Date header. Default: Now.
	Date func() time.Time

	Logger *slog.Logger
}

// Serve answers requests on the listener until ctx is done or the listener fails. It returns the
// listener's error, or nil after ctx was done. It closes the listener and all connections before it
// returns, which takes up to finishLimit and abandonLimit together. A request that ignores its
// cancelled context may still be running then. TLS connections, from a listener of crypto/tls, are
// served like others; net/http serves those that negotiate HTTP/2.
func Serve(ctx context.Context, listener net.Listener, o Options) error {
	requests, cancelRequests := context.WithCancel(context.WithoutCancel(ctx))
	defer cancelRequests()
	stopping, release := context.WithCancel(context.Background())
	defer release()
	s := newServer(o, wire.ReleaseBy(requests, stopping), listener.Addr())
	served := make(chan struct{})
	go func() {
		defer close(served)
		s.fallback.Serve(s.handed) // ends when it is shut down, with an error that says so
	}()
	accepted := make(chan error, 1)
	go func() { accepted <- s.accept(ctx, listener) }()

	var failed error
	select {
	case err := <-accepted:
		failed = fmt.Errorf("accept connections: %w", err)
		listener.Close()
	case <-ctx.Done():
		listener.Close()
		<-accepted // with the error of a closed listener
	}
	err := s.finish(release, cancelRequests)
	<-served
	return errors.Join(failed, err)
}

// server is the state of one call of Serve.
type server struct {
	Options
	requests context.Context // the parent of all requests' contexts
	fallback *http.Server
	handed   *handedListener
	stopping atomic.Bool
	running  sync.WaitGroup // the goroutines of conns
}

func newServer(o Options, requests context.Context, addr net.Addr) *server {
	if o.Routed == nil {
		o.Routed = func(string) bool { return false }
	}
	if o.Date == nil {
		o.Date = o.Now
	}
	if o.Connections == nil {
		o.Connections = NewConnections(math.MaxInt32)
	}
	s := &server{Options: o, requests: requests, handed: newHandedListener(addr)}
	s.fallback = &http.Server{
		Handler:           s.paced(o.Fallback),
		ConnState:         s.handedState,
		ConnContext:       s.connContext,
		ReadHeaderTimeout: headerLimit,
		ReadTimeout:       requestLimit,
		IdleTimeout:       idleLimit,
		MaxHeaderBytes:    headerBytes,
		HTTP2:             &http2Limits,
		BaseContext:       func(net.Listener) context.Context { return requests },
		ErrorLog:          slog.NewLogLogger(o.Logger.Handler(), slog.LevelWarn),
	}
	return s
}

// acceptPauseMax bounds the pauses of a listener that lacks a resource, such as file descriptors.
const acceptPauseMax = time.Second

// accept starts a goroutine for every connection, until the listener fails for good, and returns
// its error.
func (s *server) accept(ctx context.Context, listener net.Listener) error {
	pause := time.Duration(0)
	for {
		nc, err := listener.Accept()
		var passing interface{ Temporary() bool }
		switch {
		case err == nil:
			pause = 0
			s.start(ctx, nc)
		case ctx.Err() == nil && errors.As(err, &passing) && passing.Temporary():
			pause = min(max(2*pause, 5*time.Millisecond), acceptPauseMax)
			s.Logger.Warn("accepting a connection failed", "error", err, "again_in", pause)
			clock.Pause(pause, ctx.Done())
		default:
			return err
		}
	}
}

// keepAlive finds out within a minute that a client's machine has vanished.
var keepAlive = net.KeepAliveConfig{Enable: true, Idle: 15 * time.Second, Interval: 5 * time.Second, Count: 5}

// start waits until there is a place for a connection, and serves it in its own goroutine.
func (s *server) start(ctx context.Context, nc net.Conn) {
	p := newPeer(s, nc)
	if !s.Connections.place(ctx, p) {
		p.Close()
		return
	}
	if tcp, ok := p.transport().(*net.TCPConn); ok {
		tcp.SetKeepAliveConfig(keepAlive) // without it, only such a connection lives longer
	}
	s.running.Go(func() { s.serve(p) })
}

// serve serves a connection until it is closed or passed to net/http.
func (s *server) serve(p *peer) {
	defer func() {
		// Do recovers by itself, so this is a fault of the loop or of the listener's TLS. It costs one
		// connection, not the server.
		if fault := recover(); fault != nil {
			s.Logger.Error("a connection has failed", "panic", fault, "stack", string(debug.Stack()))
			p.Close()
		}
	}()
	switch {
	case p.secure != nil && !s.handshake(p):
		p.Close()
	case p.secure != nil && p.secure.ConnectionState().NegotiatedProtocol == "h2":
		s.Connections.rename(p)
		s.hand(p, p.secure) // net/http serves HTTP/2 only on a connection of this type
	case s.Do == nil:
		s.hand(p, newHandedConn(p, nil))
	default:
		newConn(p).serve()
	}
}

// peers returns the connections of this server.
func (s *server) peers() (all []*peer) {
	s.Connections.each(func(p *peer) {
		if p.server == s {
			all = append(all, p)
		}
	})
	return all
}

// finish closes idle connections and waits for running requests. It releases those that wait for
// stream records, which return an empty page at once, and cancels those that run longer than
// finishLimit. It closes the connections of those that do not end within abandonLimit either, and
// returns without waiting for them.
func (s *server) finish(release, cancelRequests func()) error {
	// before the release, so that the answers announce the end of the connection
	s.stopping.Store(true)
	for _, p := range s.peers() {
		p.closeIdle()
	}
	s.fallback.SetKeepAlivesEnabled(false) // closes net/http's idle connections
	release()
	finished, err := s.drain(finishLimit)
	if finished {
		return err
	}
	cancelRequests()
	if finished, err = s.drain(abandonLimit); finished {
		return err
	}
	for _, p := range s.peers() {
		p.cut()
	}
	return s.fallback.Close()
}

// drain waits until all requests have been answered, the loop's first, since it may pass some to
// net/http. finished is false if the limit passed before.
func (s *server) drain(limit time.Duration) (finished bool, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	ran := make(chan struct{})
	go func() {
		s.running.Wait()
		close(ran)
	}()
	select {
	case <-ran:
	case <-ctx.Done():
		return false, nil
	}
	err = s.fallback.Shutdown(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		return false, nil
	}
	return true, err
}
