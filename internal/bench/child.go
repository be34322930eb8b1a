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
	"time"
)

// child is a server process of the run.
type child struct {
	command *exec.Cmd
	address string
	errors  bytes.Buffer // its standard error; readable once exited is closed
	asked   context.CancelFunc
	killed  bool
	exited  chan struct{}
	err     error // of the process's end; valid once exited is closed
}

const (
	childStartLimit = 30 * time.Second
	childStopLimit  = 20 * time.Second
	listeningOn     = "listening on http://" // a server's output when it listens
)

// startChild starts a command that prints its address, and waits for that.
func startChild(ctx context.Context, line []string) (*child, error) {
	c := &child{exited: make(chan struct{})}
	var running context.Context
	running, c.asked = context.WithCancel(context.WithoutCancel(ctx))
	c.command = exec.CommandContext(running, line[0], line[1:]...)
	c.command.Cancel = c.interrupt
	c.command.WaitDelay = childStopLimit // then it is killed
	c.command.Env = childEnv(os.Environ())
	c.command.Stderr = &c.errors
	out, err := c.command.StdoutPipe()
	if err == nil {
		err = c.command.Start()
	}
	if err != nil {
		c.asked()
		return nil, err
	}
	found := make(chan string, 1)
	go func() {
		readAddress(out, found)
		c.err = c.command.Wait()
		close(c.exited)
	}()
	limit, cancel := context.WithTimeout(ctx, childStartLimit)
	defer cancel()
	select {
	case c.address = <-found:
		return c, nil
	case <-c.exited:
		c.asked()
		return nil, fmt.Errorf("%s ended before it listened: %w: %s", c.command, c.err, c.text())
	case <-limit.Done():
		return nil, errors.Join(fmt.Errorf("%s does not listen: %w", c.command, limit.Err()), c.stop())
	}
}

// readAddress looks for the address in a child's output, and reads on so that the child never
// blocks.
func readAddress(out io.Reader, found chan<- string) {
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

// text returns the end of the standard error of a process that has exited.
func (c *child) text() []byte {
	const most = 4 << 10
	text := bytes.TrimSpace(c.errors.Bytes())
	return text[max(len(text)-most, 0):]
}

// interrupt asks the process to end, or kills it if the system cannot ask. With its result,
// exec does not report a clean end as an error.
func (c *child) interrupt() error {
	if c.command.Process.Signal(os.Interrupt) != nil {
		c.command.Process.Kill()
	}
	return os.ErrProcessDone
}

// stop asks the process to end, and kills it after a limit.
func (c *child) stop() error {
	c.asked()
	<-c.exited
	if c.err != nil && !c.killed {
		return fmt.Errorf("%s: %w: %s", c.command, c.err, c.text())
	}
	return nil
}

// kill ends the process at once.
func (c *child) kill() error {
	c.killed = true
	err := c.command.Process.Kill()
	<-c.exited
	return err
}
