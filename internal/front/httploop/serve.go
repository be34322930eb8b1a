package httploop

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mayflydb/mayfly/internal/clock"
	"github.com/mayflydb/mayfly/internal/front/wire"
)

const (
	headerLimit  = 10 * time.Second // to send a request's headers
	requestLimit = 2 * time.Minute  // to send all of a request, up to 16 MB
	idleLimit    = 3 * time.Minute  // longer than the SDKs keep idle connections
	// for a request to be complete, before net/http waits for the rest
	wholeLimit   = time.Second
	headerBytes  = 64 << 10
	finishLimit  = 5 * time.Second // for running requests when the server stops
	abandonLimit = 2 * time.Second // for them to end after they are cancelled
)

// Options configure Serve. All but Routed and Date are required.
type Options struct {
	// Do answers the plain requests.
	Do func(ctx context.Context, in *wire.Request) *wire.Response

	// Routed reports the paths, besides "/", whose requests Do answers. nil: none.
	Routed func(path string) bool

	// Fallback answers all other requests, through net/http.
	Fallback http.Handler

	// Now returns the time of the machine's clock, for the limits of idle connections and of
	// incomplete requests.
	Now func() time.Time

	// Date returns the time for the Date header. Default: Now.
	Date func() time.Time

	Logger *slog.Logger
}

// Serve answers requests on the listener until ctx is done or the listener fails. It returns the
// listener's error, or nil after ctx was done. It closes the listener and all connections before it
// returns, which takes up to finishLimit and abandonLimit together. A request that ignores its
// cancelled context may still be running then. net/http serves TLS connections, with HTTP/2 if the
// listener offers that.
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

	mu struct {
		sync.Mutex
		conns map[*conn]struct{} // the connections that the loop serves
	}
}

func newServer(o Options, requests context.Context, addr net.Addr) *server {
	if o.Routed == nil {
		o.Routed = func(string) bool { return false }
	}
	if o.Date == nil {
		o.Date = o.Now
	}
	s := &server{Options: o, requests: requests, handed: newHandedListener(addr)}
	s.mu.conns = map[*conn]struct{}{}
	s.fallback = &http.Server{
		Handler:           o.Fallback,
		ReadHeaderTimeout: headerLimit,
		ReadTimeout:       requestLimit,
		IdleTimeout:       idleLimit,
		MaxHeaderBytes:    headerBytes,
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
			s.start(nc)
		case ctx.Err() == nil && errors.As(err, &passing) && passing.Temporary():
			pause = min(max(2*pause, 5*time.Millisecond), acceptPauseMax)
			s.Logger.Warn("accepting a connection failed", "error", err, "again_in", pause)
			clock.Pause(pause, ctx.Done())
		default:
			return err
		}
	}
}

// start serves a connection in its own goroutine.
func (s *server) start(nc net.Conn) {
	c := newConn(s, nc)
	s.mu.Lock()
	s.mu.conns[c] = struct{}{}
	s.mu.Unlock()
	s.running.Go(c.serve)
}

// forget removes a connection that the loop no longer serves.
func (s *server) forget(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.mu.conns, c)
}

// each calls f for every connection that the loop serves. It holds the lock meanwhile, so f must
// neither wait nor call start or forget.
func (s *server) each(f func(*conn)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.mu.conns {
		f(c)
	}
}

// finish closes idle connections and waits for running requests. It releases those that wait for
// stream records, which return an empty page at once, and cancels those that run longer than
// finishLimit. It closes the connections of those that do not end within abandonLimit either, and
// returns without waiting for them.
func (s *server) finish(release, cancelRequests func()) error {
	// before the release, so that the answers announce the end of the connection
	s.stopping.Store(true)
	s.each((*conn).closeIdle)
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
	s.each(func(c *conn) { c.Close() })
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
