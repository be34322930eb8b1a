package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"golang.org/x/sys/unix"
)

// drive makes the calls of all workers until end, in one goroutine that waits for all sockets. That
// takes clearly less CPU, which the servers on this machine need, than a goroutine per worker.
func drive(ctx context.Context, workers []*worker, end time.Time) error {
	poll, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return fmt.Errorf("epoll: %w", err)
	}
	defer unix.Close(poll)
	d := &driver{ctx: ctx, poll: poll, end: end, sockets: make([]*socket, len(workers))}
	defer d.close()
	for i, w := range workers {
		d.sockets[i] = &socket{worker: w, index: i}
		if err := d.open(d.sockets[i]); err != nil {
			return err
		}
	}
	for _, s := range d.sockets {
		d.send(s)
	}
	return d.run()
}

// driver is the loop over the sockets.
type driver struct {
	ctx     context.Context
	poll    int
	end     time.Time
	sockets []*socket
	waiting int // sockets with a pending answer
}

// socket is a worker's connection outside of the runtime's poller, which would wake up for it too.
type socket struct {
	*worker
	index   int
	fd      int
	open    bool
	in      inbox
	sent    time.Time // start of the current request
	rest    []byte    // unsent part of the request
	waiting bool      // for an answer
}

// open takes over the worker's connection as a duplicate descriptor, which the runtime does not
// know.
func (d *driver) open(s *socket) error {
	defer func() {
		s.conn.close()
		s.conn = nil
	}()
	raw, err := s.conn.net.(*net.TCPConn).SyscallConn()
	if err != nil {
		return err
	}
	var duplicated error
	if err := raw.Control(func(fd uintptr) { s.fd, duplicated = unix.FcntlInt(fd, unix.F_DUPFD_CLOEXEC, 0) }); err != nil {
		return err
	}
	if duplicated != nil {
		return duplicated
	}
	s.open = true
	return unix.EpollCtl(d.poll, unix.EPOLL_CTL_ADD, s.fd, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(s.index)})
}

func (s *socket) close() {
	if s.open {
		unix.Close(s.fd)
		s.open = false
	}
}

func (d *driver) close() {
	for _, s := range d.sockets {
		if s != nil {
			s.close()
		}
	}
}

const driverPoll = 100 // milliseconds between checks of the context and the end

var errNoAnswer = errors.New("no answer came")

// run receives answers until none is pending.
func (d *driver) run() error {
	events := make([]unix.EpollEvent, len(d.sockets))
	for d.waiting > 0 {
		n, err := unix.EpollWait(d.poll, events, driverPoll)
		if err != nil && !errors.Is(err, unix.EINTR) {
			return fmt.Errorf("epoll: %w", err)
		}
		if d.ctx.Err() != nil {
			return nil
		}
		for i := range max(n, 0) {
			d.ready(d.sockets[events[i].Fd], events[i].Events)
		}
		if n <= 0 && time.Now().After(d.end.Add(answerTime)) {
			d.giveUp()
		}
	}
	return nil
}

// giveUp counts pending calls as errors.
func (d *driver) giveUp() {
	for _, s := range d.sockets {
		if s.waiting {
			s.fail(errNoAnswer)
			s.waiting = false
			d.waiting--
		}
	}
}

// send starts the next call, if there is one.
func (d *driver) send(s *socket) {
	s.sent = time.Now()
	if !s.sent.Before(d.end) || s.calls+s.errors >= callsMax {
		return
	}
	request := s.caller.next()
	if request == nil {
		return
	}
	s.in.reset()
	s.rest = request
	s.waiting = true
	d.waiting++
	d.write(s)
}

// write sends the rest of the request, and waits for room if necessary.
func (d *driver) write(s *socket) {
	n, err := unix.Write(s.fd, s.rest)
	if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EINTR) {
		n, err = 0, nil
	}
	if err != nil {
		d.lost(s, err)
		return
	}
	before := len(s.rest)
	s.rest = s.rest[n:]
	if len(s.rest) == 0 && n == before {
		return
	}
	d.interest(s, unix.EPOLLIN|unix.EPOLLOUT)
}

func (d *driver) interest(s *socket, events uint32) {
	if err := unix.EpollCtl(d.poll, unix.EPOLL_CTL_MOD, s.fd, &unix.EpollEvent{Events: events, Fd: int32(s.index)}); err != nil {
		d.lost(s, err)
	}
}

// ready handles the events of a socket.
func (d *driver) ready(s *socket, events uint32) {
	if events&unix.EPOLLOUT != 0 && s.open {
		d.write(s)
		if len(s.rest) == 0 && s.open {
			d.interest(s, unix.EPOLLIN)
		}
	}
	if events&^unix.EPOLLOUT != 0 && s.open {
		d.read(s)
	}
}

// read reads available data, and starts the next call after a complete answer.
func (d *driver) read(s *socket) {
	n, err := unix.Read(s.fd, s.in.space())
	switch {
	case errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EINTR):
		return
	case err != nil:
		d.lost(s, err)
		return
	case n == 0:
		d.lost(s, io.ErrUnexpectedEOF)
		return
	}
	a, complete, err := s.in.read(n)
	if err != nil {
		d.lost(s, err)
		return
	}
	if !complete || !s.waiting {
		return
	}
	s.waiting = false
	d.waiting--
	s.judge(a, time.Since(s.sent))
	if a.closes && !d.reopen(s) {
		return
	}
	d.send(s)
}

// lost counts a broken connection with a pending answer, and continues with another one.
func (d *driver) lost(s *socket, err error) {
	if !s.waiting {
		s.close()
		return
	}
	s.waiting = false
	d.waiting--
	s.worker.lost(err)
	if d.reopen(s) {
		d.send(s)
	}
}

// reopen replaces the socket's connection, and reports whether it could.
func (d *driver) reopen(s *socket) bool {
	s.close()
	if s.redial(d.ctx); s.conn == nil {
		return false
	}
	if err := d.open(s); err != nil {
		s.fail(err)
		s.close()
		return false
	}
	return true
}
