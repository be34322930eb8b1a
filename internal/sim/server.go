package sim

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"

	"github.com/mayflydb/mayfly"
	"github.com/mayflydb/mayfly/internal/sdk"
	"github.com/mayflydb/mayfly/internal/store/engine"
	"github.com/mayflydb/mayfly/internal/store/kv"
)

// Errors of requests that reach no server, or whose server dies.
var (
	errDown  = errors.New("connection refused")
	errReset = errors.New("connection reset")
)

// directory is the path of a server's data on its disk.
const directory = "mayfly-torture"

// server is a database server: a row of lives on one disk.
type server struct {
	seed    uint64
	options mayfly.Options

	// wentBack is called if a start finds that the machine's clock has gone back. Nil: not called.
	wentBack func(from, to int64)

	mu      sync.Mutex
	life    *life         // nil: it is down; guarded by mu
	lives   uint64        // guarded by mu
	started time.Time     // when the life began, or its last pause ended, by its clock; guarded by mu
	shown   time.Time     // the last instant of the clock of the life before; guarded by mu
	paused  chan struct{} // closed at the end of the pause; nil: there is none; guarded by mu
}

// life is the time of a server from a start to a crash, or a clean stop.
type life struct {
	db   *mayfly.DB
	disk *disk
}

// start opens the database on what a disk holds.
func (s *server) start(fs *kv.CrashFS) error {
	s.mu.Lock()
	s.lives++
	n := s.lives
	s.mu.Unlock()
	l := &life{disk: newDisk(fs, s.seed, n)}
	unmount := kv.Mount(directory, l.disk)
	db, err := mayfly.Open(directory, s.options)
	unmount()
	if err != nil {
		return fmt.Errorf("start %d: %w", n, err)
	}
	l.db = db
	s.mu.Lock()
	s.life, s.started = l, db.Clock().Now()
	from, to := s.shown, s.started
	s.mu.Unlock()
	if s.wentBack != nil && time.Now().Before(from) {
		s.wentBack(from.UnixMilli(), to.UnixMilli())
	}
	return nil
}

// millis is the database's time: while the server is down, that of its end.
func (s *server) millis() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.life != nil:
		return s.life.db.Clock().Now().UnixMilli()
	case s.shown.IsZero():
		return time.Now().UnixMilli()
	}
	return s.shown.UnixMilli()
}

// hurry makes the clock of the machine run ahead until the end of this life. Then it is set right, so
// the next life finds that it has gone back. A clock that is ahead by much already is left alone: a
// server does not start if its machine's clock is more than a minute behind.
func (s *server) hurry(rate int) error {
	c := s.now().db.Clock()
	if rate <= 1 || c.State().Offset > aheadMost {
		return nil
	}
	return c.SetRate(float64(rate))
}

const aheadMost = 10 * time.Second

// pause stops the whole server, as SIGSTOP does, or a laptop that is closed. Requests wait. Its clock
// then jumps to the machine's, so all deadlines that have passed meanwhile are due at once.
func (s *server) pause(d time.Duration) error {
	l := s.now()
	c := l.db.Clock()
	over := make(chan struct{})
	s.mu.Lock()
	s.paused = over
	s.mu.Unlock()
	c.Freeze()
	time.Sleep(d)
	// a clock moves by whole microseconds of real time, so it makes this in one step
	if jump := time.Since(c.Now()).Microseconds(); jump > 0 {
		if err := c.SetRate(float64(jump)); err != nil {
			return fmt.Errorf("end a pause: %w", err)
		}
		time.Sleep(time.Microsecond)
	}
	if err := c.SetRate(1); err != nil {
		return fmt.Errorf("end a pause: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.started, s.paused = c.Now(), nil
	close(over)
	return nil
}

// awake waits for the end of a pause.
func (s *server) awake() {
	s.mu.Lock()
	paused := s.paused
	s.mu.Unlock()
	if paused != nil {
		<-paused
	}
}

// now returns the present life, or nil.
func (s *server) now() *life {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.life
}

// upSince is the instant of the last start, or of the end of a pause since then, by the database's clock.
func (s *server) upSince() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.started
}

// end takes the server from the network.
func (s *server) end() *life {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.life
	if l != nil {
		s.shown = l.db.Clock().Now()
	}
	s.life = nil
	return l
}

// crash ends the present life as a power cut does, or kill -9, and starts another one.
func (s *server) crash(down time.Duration) error {
	l := s.end()
	after := l.disk.AfterCrash() // cuts now, unless the cut was before
	_ = l.db.Close()             // only ends goroutines: nothing reaches the disk
	time.Sleep(down)
	return s.start(after)
}

// restart ends the present life cleanly, and starts another one.
func (s *server) restart() error {
	l := s.end()
	if err := l.db.Close(); err != nil {
		return fmt.Errorf("stop: %w", err)
	}
	return s.start(l.disk.AfterCrash())
}

// RoundTrip passes a request to the present life. An answer that had not left at the cut never
// leaves.
func (s *server) RoundTrip(r *http.Request) (*http.Response, error) {
	s.awake()
	l := s.now()
	if l == nil {
		return nil, errDown
	}
	answer, err := l.db.Transport().RoundTrip(r)
	if o, _ := r.Context().Value(opKey{}).(*op); o != nil && (l.disk.isFailing() || l.disk.WasCut()) {
		o.hurt.Store(true)
	}
	if s.now() == l && !l.disk.WasCut() {
		return answer, err
	}
	if err == nil {
		_ = answer.Body.Close()
	}
	return nil, errReset
}

// clients returns clients whose requests go through a transport.
func clients(through http.RoundTripper) (*dynamodb.Client, *dynamodbstreams.Client) {
	db, streams, _ := sdk.InProcess(through, "us-east-1")
	return db, streams
}

// check stops the server and verifies each relation of its files.
func (s *server) check(report func(string)) error {
	l := s.end()
	if err := l.db.Close(); err != nil {
		return fmt.Errorf("stop: %w", err)
	}
	return engine.Check(context.Background(), l.disk.AfterCrash(), directory, func(_, _ int64) {}, func(f engine.Fault) { report(f.String()) })
}
