package sim

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"

	"github.com/mayflydb/mayfly"
	"github.com/mayflydb/mayfly/internal/sdk"
	"github.com/mayflydb/mayfly/internal/store/kv"
)

// Errors of requests that reach no server, or whose server dies.
var (
	errDown  = errors.New("connection refused")
	errReset = errors.New("connection reset")
)

// directory is the path of the server's data on its disk.
const directory = "mayfly-torture"

// reserveBytes is the room that a server keeps for a full disk: a third more than a memtable of
// 1 MB, as it does on a real one.
const reserveBytes = 4 << 20 / 3

// server is a database server: a row of lives on one disk.
type server struct {
	seed      uint64
	directory string // the path of its data on its disk
	options   mayfly.Options
	room      kv.Room // on its disk

	// wentBack is called if a start finds that the machine's clock has gone back. Nil: not called.
	wentBack func(from, to int64)

	mu      sync.Mutex
	life    *life         // nil: it is down; guarded by mu
	lives   uint64        // guarded by mu
	started time.Time     // when the life began, or its last pause ended, by its clock; guarded by mu
	shown   time.Time     // the last instant of the clock of the life before; guarded by mu
	paused  chan struct{} // closed at the end of the pause; nil: there is none; guarded by mu

	full atomic.Bool // the disk is full, or the server has not noticed yet that it has room again
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
	l := &life{disk: newDisk(fs, &s.room, s.seed, n)}
	unmount := kv.Mount(s.directory, l.disk, reserveBytes)
	db, err := mayfly.Open(s.directory, s.options)
	unmount()
	if errors.Is(err, mayfly.ErrNoSpace) && s.room.IsShort() {
		s.room.Clear()
		return s.start(l.disk.AfterCrash())
	}
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

// millis is the database's time. While the server is down, it is the time at which it ended.
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

// fill makes another program use up the disk, all but so many bytes.
func (s *server) fill(free int64) {
	s.full.Store(true)
	s.room.Fill(free)
}

// refill ends a full disk, and waits until the server accepts writes again by itself.
func (s *server) refill() error {
	s.room.Clear()
	handler, status := s.now().db.Handler(), ""
	err := await(func() (bool, error) {
		answer := httptest.NewRecorder()
		handler.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/readyz", nil))
		status = answer.Body.String()
		return status == "ready\n", nil
	})
	if err != nil {
		return fmt.Errorf("wait for a server with room on its disk: %w; it says %q", err, status)
	}
	s.full.Store(false)
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
	fs, err := s.stop()
	if err != nil {
		return err
	}
	return s.start(fs)
}

// RoundTrip passes a request to the present life. An answer that had not left at the cut never
// leaves.
func (s *server) RoundTrip(r *http.Request) (*http.Response, error) {
	s.awake()
	l := s.now()
	if l == nil {
		return nil, errDown
	}
	full := s.full.Load()
	answer, err := l.db.Transport().RoundTrip(r)
	if o, _ := r.Context().Value(opKey{}).(*op); o != nil {
		if l.disk.isFailing() || l.disk.WasCut() {
			o.hurt.Store(true)
		}
		if full || s.full.Load() {
			o.full.Store(true)
		}
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

// stop ends the last life cleanly, and returns the content of the disk.
func (s *server) stop() (*kv.CrashFS, error) {
	l := s.end()
	if err := l.db.Close(); err != nil {
		return nil, fmt.Errorf("stop: %w", err)
	}
	return l.disk.AfterCrash(), nil
}
