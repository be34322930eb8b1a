package bench

import (
	"net"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// The figures of this process are plausible.
func TestProcess(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	if pid := ListenerPID(port); pid != os.Getpid() {
		t.Errorf("process %d listens, want %d", pid, os.Getpid())
	}
	if pid := ListenerPID("no port"); pid != 0 {
		t.Errorf("process %d listens", pid)
	}
	used := ProcessCPU(os.Getpid())
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	own := time.Duration(u.Utime.Nano() + u.Stime.Nano())
	if used <= 0 || (used-own).Abs() > 100*time.Millisecond {
		t.Errorf("used %v; by getrusage %v", used, own)
	}
	if ProcessCPU(1<<30) != 0 {
		t.Error("a process that does not exist has used CPU time")
	}
	if now, most := residentBytes(os.Getpid()); now < 1<<20 || most < now {
		t.Errorf("%d bytes, at most %d", now, most)
	}
	if now, most := residentBytes(1 << 30); now != 0 || most != 0 {
		t.Error("a process that does not exist has memory")
	}
	if ProcessWritten(os.Getpid()) < 0 || ProcessWritten(1<<30) != -1 {
		t.Errorf("%d bytes written, %d by a process that does not exist", ProcessWritten(os.Getpid()), ProcessWritten(1<<30))
	}
	if machineLoad() < 0 {
		t.Error("no load")
	}
}
