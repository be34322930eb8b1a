package mayfly

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mayflydb/mayfly/internal/descriptor"
	"github.com/mayflydb/mayfly/internal/front/admin"
	"github.com/mayflydb/mayfly/internal/front/httploop"
	"github.com/mayflydb/mayfly/internal/front/intake"
	"github.com/mayflydb/mayfly/internal/front/wire"
	"github.com/mayflydb/mayfly/internal/store/engine"
)

// Server serves a database for tests, which a request can empty: POST /_mayfly/reset. With
// ServerOptions.Separate it serves a database for each access key and region. `mayfly serve` is a
// Server. A program whose tests open a database each needs none: DB.Serve does the rest.
type Server struct {
	dir     string
	options Options
	with    ServerOptions
	peers   *httploop.Connections // of all databases and listeners

	// the database that answers all requests; nil while a reset runs, and with Separate
	only atomic.Pointer[DB]

	mu struct {
		sync.RWMutex // a reset holds it
		first        *tenant
		all          map[tenantName]*tenant // with Separate: the others
		closed       bool
	}
	failed    chan struct{} // closed when a database has stopped by itself, or a reset has failed
	failure   error         // the reason; set before failed is closed
	failOnce  sync.Once
	closeOnce sync.Once
	closeErr  error
}

// ServerOptions configure a Server, besides the options of its databases.
type ServerOptions struct {
	// Separate keeps the data of each access key and region apart, in up to 100 databases, as DynamoDB
	// Local does without -sharedDb. An access key then has letters, digits, "-" and "_". In a
	// directory, each database has a subdirectory KEY_REGION. The endpoints below /_mayfly/clock move
	// the clocks of all. /readyz, and /metrics without a key, show only a database without data. The
	// Console asks for an access key, and shows its data in us-east-1; KEY/REGION as the user name
	// chooses another region. It cannot be used with Credentials. Default: all requests see the same
	// data.
	Separate bool

	// AuthForm refuses requests whose authentication lacks a part, as AWS does before it checks the
	// signature. The signature itself is checked only with Credentials. Default: requests need no
	// authentication.
	AuthForm bool

	// LikeLocal answers GET / with status 400, as DynamoDB Local does. Default: 200, as at AWS.
	LikeLocal bool

	// Opened is called with each database before it is served, also after a reset. The function that
	// it returns is called before the database is closed. Default: no call.
	Opened func(db *DB) (end func() error, err error)
}

// tenant is a database of a Server.
type tenant struct {
	db    *DB
	dir   string
	close func() error // once
}

// OpenServer opens the database of a Server, as Open does.
func OpenServer(dir string, options Options, with ServerOptions) (*Server, error) {
	if with.Separate && len(options.Credentials) > 0 {
		return nil, errors.New("mayfly: Separate and Credentials cannot be used together: with Credentials, policies separate the keys")
	}
	s := &Server{
		dir: dir, options: options.withDefaults(dir), with: with,
		peers: httploop.NewConnections(descriptor.ForConnections()), failed: make(chan struct{}),
	}
	if err := s.openFirst(); err != nil {
		return nil, err
	}
	return s, nil
}

// openFirst opens the first database. The caller holds the lock, unless the server is new.
func (s *Server) openFirst() error {
	dir := s.dir
	if s.with.Separate {
		dir = "" // it answers requests without a key, and the endpoints for operators
	}
	o := s.options
	o.first = true
	first, err := s.open(dir, o)
	if err != nil {
		return err
	}
	s.mu.first, s.mu.all = first, map[tenantName]*tenant{}
	if !s.with.Separate {
		s.only.Store(first.db)
	}
	return nil
}

func (s *Server) open(dir string, o Options) (*tenant, error) {
	o.server = s
	if dir == "" {
		o.Durability = Memory
	}
	db, err := Open(dir, o)
	if err != nil {
		return nil, err
	}
	end := func() error { return nil }
	if s.with.Opened != nil {
		if end, err = s.with.Opened(db); err != nil {
			return nil, errors.Join(err, db.Close())
		}
	}
	t := &tenant{db: db, dir: dir, close: sync.OnceValue(func() error { return errors.Join(end(), db.Close()) })}
	go func() {
		<-db.ran // at its end, or when it is closed
		select {
		case <-db.failed:
			s.fail(db.failure)
		default:
		}
	}()
	return t, nil
}

func (s *Server) fail(err error) {
	s.failOnce.Do(func() {
		s.failure = err
		close(s.failed)
	})
}

// DB returns the database that answers requests. A reset closes it. With ServerOptions.Separate it
// is a database without data.
func (s *Server) DB() *DB {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.mu.first.db
}

// Failed returns a channel that is closed when a database of the server has stopped by itself, or
// could not be opened after a reset. Err returns the reason.
func (s *Server) Failed() <-chan struct{} { return s.failed }

// hasFailed reports whether failed is closed.
func (s *Server) hasFailed() bool {
	select {
	case <-s.failed:
		return true
	default:
		return false
	}
}

// Err returns nil while the server accepts requests, and otherwise the reason why it does not.
func (s *Server) Err() error {
	if s.hasFailed() {
		return s.failure
	}
	return s.DB().Err()
}

// Serve serves as DB.Serve does, until ctx is done.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	err := serveUntil(ctx, l, s.failed, httploop.Options{
		Do: func(ctx context.Context, in *wire.Request) *wire.Response {
			return s.serving(in.Header, in.Query).server.Do(ctx, in)
		},
		Admit: func(ctx context.Context, in *wire.Request, bytes int64) (*intake.Hold, *wire.Response) {
			return s.serving(in.Header, in.Query).server.Admit(ctx, in, bytes)
		},
		Routed:      func(path string) bool { return s.DB().server.Routed(path) },
		Fallback:    http.HandlerFunc(s.answer),
		Connections: s.peers,
		Now:         time.Now,
		Date:        func() time.Time { return s.DB().Clock().Now() },
		Logger:      s.options.Logger,
	})
	if s.hasFailed() {
		err = errors.Join(fmt.Errorf("mayfly: the server has stopped: %w", s.failure), err)
	}
	return err
}

// answer answers a request that the loop hands to net/http, or one of the console.
func (s *Server) answer(w http.ResponseWriter, r *http.Request) {
	db := s.DB()
	if path := r.URL.Path; !admin.Serves(path) || path == admin.DeadlinesPath || path == "/metrics" {
		db = s.serving(r.Header, r.URL.RawQuery)
	}
	db.Handler().ServeHTTP(w, r)
}

// askKey returns a handler that passes requests to next with the access key that the browser asks its
// user for. Without one, pages would show the data of a key that the user may never have used.
func askKey(next http.Handler) http.Handler {
	if next == nil {
		return nil
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		key, _, _ := r.BasicAuth()
		if key == "" {
			w.Header().Set("WWW-Authenticate", `Basic realm="mayfly: an access key as the user name", charset="UTF-8"`)
			http.Error(w, "This server keeps the data of each access key and region apart. As the user name, enter an access key, or KEY/REGION for another region than us-east-1. Any password will do.", http.StatusUnauthorized)
			return
		}
		r = r.WithContext(r.Context()) // a copy
		r.Header = r.Header.Clone()
		r.SetBasicAuth(key, "") // there is no password to check, or to protect
		next.ServeHTTP(w, r)
	})
}

// serving returns the database that answers a request. During a reset it waits for the new one.
func (s *Server) serving(h wire.Header, query string) *DB {
	switch db := s.only.Load(); {
	case db != nil:
		return db
	case !s.with.Separate:
		return s.DB()
	}
	t, err := s.tenantOf(h, query)
	if t == nil || err != nil {
		return s.DB() // which answers with the error
	}
	return t.db
}

// Reset removes all data and puts the clock back to its start: it closes the databases, empties their
// directories and opens a new one. Requests wait meanwhile, except those in progress, which end or
// fail. If the new database cannot be opened, the server has failed.
func (s *Server) Reset(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.mu.closed:
		return errClosed
	case s.hasFailed():
		return fmt.Errorf("mayfly: the server has stopped: %w", s.failure)
	}
	s.only.Store(nil)
	if err := s.closeAll(); err != nil {
		s.options.Logger.Error("a database did not close without errors before a reset", "error", err)
	}
	err := s.wipe()
	if err == nil {
		err = s.openFirst()
	}
	if err != nil {
		err = fmt.Errorf("mayfly: reset: %w", err)
		s.fail(err)
	}
	return err
}

var errClosed = errors.New("mayfly: the server is closed")

// reset is Reset for the endpoint. It returns the state of the new clock.
func (s *Server) reset(ctx context.Context) (admin.ClockState, error) {
	if err := s.Reset(ctx); err != nil {
		return admin.ClockState{}, err
	}
	return admin.ClockState(s.DB().Clock().State()), nil
}

// closeAll closes all databases. The caller holds the lock.
func (s *Server) closeAll() error {
	err := s.mu.first.close()
	for _, t := range s.mu.all {
		err = errors.Join(err, t.close())
	}
	return err
}

// wipe empties the directories of all databases, which are closed.
func (s *Server) wipe() error {
	dirs := []string{s.dir}
	switch {
	case s.dir == "":
		return nil
	case s.with.Separate:
		var err error
		if dirs, err = s.tenantDirectories(); err != nil {
			return err
		}
	}
	for _, dir := range dirs {
		if err := engine.Wipe(engine.Options{Dir: dir, FS: s.options.fs, ReserveBytes: s.options.reserve, Logger: s.options.Logger}); err != nil {
			return err
		}
	}
	return nil
}

// Close closes the databases. Serve must have returned. Further calls do nothing.
func (s *Server) Close() error {
	s.closeOnce.Do(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.mu.closed = true
		s.closeErr = s.closeAll()
	})
	return s.closeErr
}
