package steady

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// Run starts a command, a Go program without cgo, waits for its end, and returns what [exec.Cmd.Run]
// returns. Two runs with the same arguments and the same seed draw the same numbers and run their
// goroutines in the same order, as far as the program asks the machine for nothing: no network, no
// time, no file that differs.
//
// The error wraps [ErrRefused] if this machine does not allow what that takes. The command has not
// run then, and must be made anew for another attempt.
func Run(cmd *exec.Cmd, seed uint64) error {
	done := make(chan error, 1)
	go func() {
		// Only the thread that starts a program may control it. The thread is never unlocked, so it ends with this goroutine: programs that it starts have memory at fixed addresses.
		runtime.LockOSThread()
		done <- run(cmd, seed)
	}()
	return <-done
}

// noRandomAddresses is ADDR_NO_RANDOMIZE of man 2 personality.
const noRandomAddresses = 0x0040000

func run(cmd *exec.Cmd, seed uint64) error {
	if _, _, e := unix.RawSyscall(unix.SYS_PERSONALITY, noRandomAddresses, 0, 0); e != 0 {
		return fmt.Errorf("%w: %w", ErrRefused, e)
	}
	cmd.Env = append(cmd.Environ(), "GOMAXPROCS=1", "GOGC=off")
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Ptrace = true
	if err := cmd.Start(); err != nil {
		if errors.Is(err, unix.EPERM) {
			return fmt.Errorf("%w: %w", ErrRefused, err)
		}
		return err
	}
	if err := prepare(cmd.Process.Pid, seed); err != nil {
		cmd.Process.Kill()
		cmd.Wait()
		return fmt.Errorf("%w: %w", ErrRefused, err)
	}
	lost := conduct(cmd.Process.Pid)
	ended := cmd.Wait()
	if lost != nil {
		return fmt.Errorf("the control of the program was lost: %w", lost)
	}
	return ended
}

// prepare takes a program that stands before its first instruction, and replaces the random bytes
// which the kernel hands to each program and from which Go's runtime draws all its numbers.
func prepare(pid int, seed uint64) error {
	var status unix.WaitStatus
	if _, err := unix.Wait4(pid, &status, 0, nil); err != nil {
		return err
	}
	if !status.Stopped() {
		return errors.New("the program ended before it began")
	}
	random, library, err := vector(pid)
	if err != nil {
		return err
	}
	if err := stopClock(pid, library); err != nil {
		return err
	}
	bytes := sha256.Sum256(binary.BigEndian.AppendUint64(nil, seed)) // Go does not take bytes that look cleared
	if _, err := unix.PtracePokeData(pid, random, bytes[:16]); err != nil {
		return err
	}
	return unix.PtraceSetOptions(pid, unix.PTRACE_O_TRACECLONE|unix.PTRACE_O_TRACESYSGOOD|unix.PTRACE_O_EXITKILL)
}

// vector returns two addresses that the kernel has put into a program's auxiliary vector (man 3
// getauxval), which is pairs of words: of 16 random bytes, and of its library (man 7 vdso) or 0.
func vector(pid int) (random, library uintptr, err error) {
	const atRandom, atLibrary = 25, 33 // AT_RANDOM, AT_SYSINFO_EHDR
	words, err := os.ReadFile(fmt.Sprintf("/proc/%d/auxv", pid))
	if err != nil {
		return 0, 0, err
	}
	for ; len(words) >= 16; words = words[16:] {
		switch value := uintptr(binary.NativeEndian.Uint64(words[8:])); binary.NativeEndian.Uint64(words) {
		case atRandom:
			random = value
		case atLibrary:
			library = value
		}
	}
	if random == 0 {
		return 0, 0, errors.New("the auxiliary vector has no random bytes")
	}
	return random, library, nil
}
