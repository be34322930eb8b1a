package steady

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"
)

// conductor lets one thread of a program run at a time, until that thread sleeps. So the order in
// which threads run follows from the program alone, and neither from the kernel nor from other programs.
//
// Threads of Go's runtime sleep and wake each other by futexes. The conductor sees each call of the
// system, and so knows which thread sleeps at which address and which call wakes it.
type conductor struct {
	leader  int // the first thread, which is the process
	monitor int // the runtime's second thread; 0: not started yet
	current int // the thread that runs; 0: none
	ready   []thread
	asleep  map[uint64][]int        // by address, in the order in which they fell asleep
	living  map[int]bool            // without the leader
	events  map[int]unix.WaitStatus // of threads that were not waited for
}

// thread is a thread that could run.
type thread struct {
	id     int
	stands bool // it has stopped and must be resumed; else it will stop by itself
}

// conduct lets a program run that stands before its first instruction, until it ends. Its exit code
// is left to be fetched. If it returns an error, it has killed the program.
func conduct(leader int) error {
	c := &conductor{leader: leader, ready: []thread{{leader, true}}, asleep: map[uint64][]int{}, living: map[int]bool{}, events: map[int]unix.WaitStatus{}}
	err := c.run()
	if err != nil {
		unix.Kill(leader, unix.SIGKILL)
		c.reap()
	}
	return err
}

func (c *conductor) run() error {
	for {
		if c.current == 0 && len(c.ready) > 0 {
			next := c.ready[0]
			c.ready = c.ready[1:]
			c.current = next.id
			if next.stands {
				if err := c.resume(0); err != nil {
					return err
				}
			}
		}
		ended, err := c.await()
		if errors.Is(err, unix.ESRCH) { // the thread has just been killed, and the next wait returns that
			continue
		}
		if ended || err != nil {
			return err
		}
	}
}

// await waits until the current thread stops, and lets it run on or chooses another. If no thread is
// current, all sleep, and the first that stops becomes the current one: a signal or a timeout has
// woken it.
func (c *conductor) await() (ended bool, err error) {
	for {
		for id, status := range c.events {
			if id == c.current || c.current == 0 && id != c.monitor {
				delete(c.events, id)
				c.current = id
				return c.stopped(status)
			}
		}
		id, status, err := c.next()
		switch {
		case err != nil:
			return false, err
		case id == 0:
			return true, nil
		case status.Stopped():
			c.events[id] = status
		default:
			delete(c.living, id)
			if c.current == id {
				c.current = 0
				return false, nil
			}
		}
	}
}

// next waits until any thread has stopped or ended. A thread 0 means that the
// leader has ended; its status is left to be fetched.
func (c *conductor) next() (id int, status unix.WaitStatus, err error) {
	const children = unix.WALL | unix.WNOTHREAD // of this thread: a program may have others that we must not fetch
	var info unix.Siginfo
	for {
		err := unix.Waitid(unix.P_ALL, 0, &info, unix.WEXITED|unix.WSTOPPED|unix.WNOWAIT|children, nil)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return 0, 0, fmt.Errorf("waiting for a thread: %w", err)
		}
		break
	}
	const word = unsafe.Sizeof(uintptr(0))
	id = int(*(*int32)(unsafe.Add(unsafe.Pointer(&info), (12+word-1)/word*word))) // si_pid: at the start of the union, which is aligned, behind three numbers
	if ended := info.Code <= cldDumped; ended && id == c.leader {
		return 0, 0, nil
	}
	_, err = unix.Wait4(id, &status, children, nil)
	return id, status, err
}

// cldDumped is CLD_DUMPED, the last of the codes for the end of a process (man 2 sigaction).
const cldDumped = 3

// stopped deals with a stop of the current thread.
func (c *conductor) stopped(status unix.WaitStatus) (ended bool, err error) {
	switch {
	case status.TrapCause() == unix.PTRACE_EVENT_CLONE:
		started, err := unix.PtraceGetEventMsg(c.current)
		if err != nil {
			return false, err
		}
		c.living[int(started)] = true
		if c.monitor == 0 {
			c.monitor = int(started) // never resumed
		} else {
			c.ready = append(c.ready, thread{id: int(started)})
		}
		return false, c.resume(0)
	case status.StopSignal() == unix.SIGTRAP|0x80:
		return c.called()
	case status.StopSignal() == unix.SIGTRAP, status.StopSignal() == unix.SIGSTOP: // its own start
		return false, c.resume(0)
	}
	return false, c.resume(int(status.StopSignal()))
}

// call is struct ptrace_syscall_info of man 2 ptrace, at the entry of a call.
type call struct {
	op     uint8
	_      [3]uint8
	arch   uint32
	ip, sp uint64
	number uint64
	args   [6]uint64
	_      [2]uint64
}

// called deals with a call of the system that the current thread begins or has ended.
func (c *conductor) called() (ended bool, err error) {
	var call call
	if _, _, e := unix.RawSyscall6(unix.SYS_PTRACE, unix.PTRACE_GET_SYSCALL_INFO, uintptr(c.current), unsafe.Sizeof(call), uintptr(unsafe.Pointer(&call)), 0, 0); e != 0 {
		return false, fmt.Errorf("reading a call of the system: %w", e)
	}
	if call.op != unix.PTRACE_SYSCALL_INFO_ENTRY {
		for address, ids := range c.asleep { // it has woken by itself
			if i := slices.Index(ids, c.current); i >= 0 {
				c.asleep[address] = slices.Delete(ids, i, i+1)
			}
		}
		return false, c.resume(0)
	}
	switch call.number {
	case unix.SYS_EXIT_GROUP:
		return true, c.end()
	case unix.SYS_FUTEX:
		return false, c.futex(call)
	case unix.SYS_SCHED_YIELD, unix.SYS_NANOSLEEP, unix.SYS_CLOCK_NANOSLEEP, unix.SYS_EPOLL_PWAIT, unix.SYS_READ:
		// It may wait for what another thread will do.
		if len(c.ready) > 0 {
			c.ready = append(c.ready, thread{c.current, true})
			c.current = 0
			return false, nil
		}
	}
	return false, c.resume(0)
}

// futex deals with the two operations by which threads of Go's runtime sleep and wake (man 2 futex).
func (c *conductor) futex(call call) error {
	const wait, wake, operation = 0, 1, 127
	address := call.args[0]
	switch call.args[1] & operation {
	case wait:
		var value [4]byte
		if _, err := unix.PtracePeekData(c.current, uintptr(address), value[:]); err != nil {
			return err
		}
		if binary.NativeEndian.Uint32(value[:]) != uint32(call.args[2]) {
			break // it will not sleep
		}
		if err := c.resume(0); err != nil {
			return err
		}
		c.asleep[address] = append(c.asleep[address], c.current)
		c.current = 0
		return nil
	case wake:
		ids := c.asleep[address]
		n := min(len(ids), int(uint32(call.args[2])))
		for _, id := range ids[:n] {
			c.ready = append(c.ready, thread{id: id})
		}
		c.asleep[address] = ids[n:]
		if n == len(ids) {
			delete(c.asleep, address)
		}
	}
	return c.resume(0)
}

// resume lets the current thread run to its next call of the system.
func (c *conductor) resume(signal int) error {
	err := unix.PtraceSyscall(c.current, signal)
	if errors.Is(err, unix.ESRCH) { // as in run
		return nil
	}
	return err
}

// end lets the current thread end the program.
func (c *conductor) end() error {
	delete(c.living, c.current)
	if err := unix.PtraceDetach(c.current); err != nil && !errors.Is(err, unix.ESRCH) {
		return err
	}
	c.reap()
	return nil
}

// reap fetches the ends of all threads but the leader: before that, the kernel does not report the
// end of the program.
func (c *conductor) reap() {
	for id := range c.living {
		for {
			var status unix.WaitStatus
			_, err := unix.Wait4(id, &status, unix.WALL, nil)
			if err != nil && err != unix.EINTR || err == nil && !status.Stopped() {
				break
			}
		}
	}
}
