package bench

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"
)

// child is a server process of the run.
type child struct {
	command *exec.Cmd
	address string
	errors  bytes.Buffer       // its standard error; readable after its end
	ask     context.CancelFunc // asks it to end
	killed  bool
}

const (
	childStartLimit = 30 * time.Second
	childStopLimit  = 20 * time.Second
	listeningOn     = "listening on http://" // a server's output when it listens
)

// startChild starts a command that prints its address, and waits for that. The process ends with
// ctx at the latest.
func startChild(ctx context.Context, line []string) (*child, error) {
	c := &child{}
	ctx, c.ask = context.WithCancel(ctx)
	c.command = exec.CommandContext(ctx, line[0], line[1:]...)
	c.command.Cancel = c.interrupt
	c.command.WaitDelay = childStopLimit                                                                            // then it is killed
	c.command.Env = slices.DeleteFunc(os.Environ(), func(e string) bool { return strings.HasPrefix(e, "MAYFLY_") }) // they set flags
	c.command.Stderr = &c.errors
	out, err := c.command.StdoutPipe()
	if err == nil {
		err = c.command.Start()
	}
	if err != nil {
		c.ask()
		return nil, err
	}
	defer time.AfterFunc(childStartLimit, c.ask).Stop()
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if address, ok := strings.CutPrefix(lines.Text(), listeningOn); ok {
			c.address = address
			go io.Copy(io.Discard, out) // so that the child never blocks
			return c, nil
		}
	}
	if err = c.stop(); err == nil {
		err = fmt.Errorf("%s does not listen within %s: %s", c.command, childStartLimit, c.said())
	}
	return nil, err
}

func (c *child) pid() int { return c.command.Process.Pid }

// interrupt asks the process to end, or kills it if the system cannot ask. With its result,
// exec does not report a clean end as an error.
func (c *child) interrupt() error {
	if c.command.Process.Signal(os.Interrupt) != nil {
		c.command.Process.Kill()
	}
	return os.ErrProcessDone
}

// said returns the end of the standard error of a process that has ended.
func (c *child) said() []byte {
	const most = 4 << 10
	text := bytes.TrimSpace(c.errors.Bytes())
	return text[max(len(text)-most, 0):]
}

// stop asks the process to end, and kills it after a limit. The error has the end of its standard
// error. It may be called once.
func (c *child) stop() error {
	if c.killed {
		return nil
	}
	c.ask()
	if err := c.command.Wait(); err != nil {
		return fmt.Errorf("%s: %w: %s", c.command, err, c.said())
	}
	return nil
}

// kill ends the process at once.
func (c *child) kill() error {
	c.killed = true
	defer c.ask()
	if err := c.command.Process.Kill(); err != nil {
		return err
	}
	c.command.Wait() // always an error: it was killed
	return nil
}
