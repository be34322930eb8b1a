package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/mayflydb/mayfly/internal/clock"
)

// rowsOfTerminal is more than any program here fills, so that its screen never scrolls.
const rowsOfTerminal = 200

// record runs the command in a terminal and returns everything it printed, with the times.
func record(ctx context.Context, command []string, columns int) (output []piece, err error) {
	screen, device, err := openTerminal(columns)
	if err != nil {
		return nil, fmt.Errorf("open a terminal: %w", err)
	}
	defer screen.Close()
	program := exec.CommandContext(ctx, command[0], command[1:]...)
	program.Stdin, program.Stdout, program.Stderr = device, device, device
	program.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := program.Start(); err != nil {
		device.Close()
		return nil, err
	}
	device.Close() // the last copy is the program's, so that reading ends when it exits

	elapsed := clock.Stopwatch()
	var page [1 << 16]byte
	for {
		n, err := screen.Read(page[:])
		if n > 0 {
			output = append(output, piece{at: elapsed(), text: string(page[:n])})
		}
		if errors.Is(err, syscall.EIO) {
			break // every copy of the device is closed
		}
		if err != nil {
			return nil, errors.Join(err, program.Wait())
		}
	}
	return output, program.Wait()
}

// openTerminal makes a terminal. Text that a program writes to device is read from screen.
func openTerminal(columns int) (screen, device *os.File, err error) {
	if screen, err = os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0); err != nil {
		return nil, nil, err
	}
	fd := int(screen.Fd())
	number, err := unix.IoctlGetUint32(fd, unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		err = unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: rowsOfTerminal, Col: uint16(columns)})
	}
	if err == nil {
		device, err = os.OpenFile(fmt.Sprint("/dev/pts/", number), os.O_RDWR|unix.O_NOCTTY, 0)
	}
	if err != nil {
		screen.Close()
		return nil, nil, err
	}
	return screen, device, nil
}
