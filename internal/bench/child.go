package bench

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"
)

// child is a server process of the run.
type child struct {
	command *exec.Cmd
	address string
	stderr  tail
	exited  chan struct{}
	err     error // of the process's end; valid once exited is closed
	once    sync.Once
}

const (
	childStartLimit = 30 * time.Second
	childStopLimit  = 20 * time.Second
	listeningOn     = "listening on http://" // a server's output when it listens
)

// startChild starts a command that prints its address, and waits for that.
func startChild(ctx context.Context, line []string) (*child, error) {
	c := &child{command: exec.Command(line[0], line[1:]...), exited: make(chan struct{})}
	c.command.Env = childEnv(os.Environ())
	c.command.Stderr = &c.stderr
	out, err := c.command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := c.command.Start(); err != nil {
		return nil, err
	}
	found := make(chan string, 1)
	go func() {
		c.readOutput(out, found)
		c.err = c.command.Wait()
		close(c.exited)
	}()
	limit := time.NewTimer(childStartLimit)
	defer limit.Stop()
	select {
	case c.address = <-found:
		return c, nil
	case <-c.exited:
		return nil, fmt.Errorf("%s ended before it listened: %w: %s", strings.Join(line, " "), c.err, c.stderr.String())
	case <-limit.C:
		err = fmt.Errorf("%s does not listen after %s: %s", strings.Join(line, " "), childStartLimit, c.stderr.String())
	case <-ctx.Done():
		err = ctx.Err()
	}
	return nil, errors.Join(err, c.stop())
}

// readOutput looks for the address in the child's output, and reads on so that the child never
// blocks.
func (c *child) readOutput(out io.Reader, found chan<- string) {
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if address, ok := strings.CutPrefix(lines.Text(), listeningOn); ok {
			select {
			case found <- address:
			default:
			}
		}
	}
}

// childEnv removes variables that would set the child's flags.
func childEnv(env []string) (kept []string) {
	for _, e := range env {
		if !strings.HasPrefix(e, "MAYFLY_") {
			kept = append(kept, e)
		}
	}
	return kept
}

func (c *child) pid() int { return c.command.Process.Pid }

// stop asks the process to end, and kills it after a limit.
func (c *child) stop() error {
	var err error
	c.once.Do(func() {
		if c.command.Process.Signal(os.Interrupt) != nil {
			c.command.Process.Kill()
		}
		limit := time.NewTimer(childStopLimit)
		defer limit.Stop()
		select {
		case <-c.exited:
			if c.err != nil {
				err = fmt.Errorf("%s: %w: %s", c.command, c.err, c.stderr.String())
			}
		case <-limit.C:
			c.command.Process.Kill()
			<-c.exited
			err = fmt.Errorf("%s did not end within %s", c.command, childStopLimit)
		}
	})
	return err
}

// kill ends the process at once.
func (c *child) kill() (err error) {
	c.once.Do(func() {
		err = c.command.Process.Kill()
		<-c.exited
	})
	return err
}

// tail keeps the end of its input.
type tail struct {
	mu  sync.Mutex
	buf []byte // guarded by mu
}

const tailBytes = 4 << 10

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf = append(t.buf, p...)
	if extra := len(t.buf) - tailBytes; extra > 0 {
		t.buf = append(t.buf[:0], t.buf[extra:]...)
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(bytes.TrimSpace(t.buf))
}
