package expirybench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/mayflydb/mayfly/internal/bench"
	"github.com/mayflydb/mayfly/internal/work/retry"
)

// server is a process of the run that serves the endpoint.
type server struct {
	command *exec.Cmd
	output  tail
	ended   chan struct{}
}

const (
	startLimit = 60 * time.Second
	stopLimit  = 20 * time.Second
	startPoll  = 20 * time.Millisecond
	outputMost = 2 << 10 // remembered bytes of its output
)

// tail is the end of a process's output.
type tail struct{ bytes.Buffer }

func (t *tail) Write(p []byte) (int, error) {
	n := len(p)
	t.Buffer.Write(p[max(len(p)-outputMost, 0):])
	t.Next(max(t.Len()-outputMost, 0))
	return n, nil
}

// startServer starts a command line, and waits until the endpoint answers. A shell replaces itself by the
// command, so that its process is the server's.
func (r *run) startServer(ctx context.Context) (*server, error) {
	if r.answers(ctx) {
		return nil, fmt.Errorf("--start: a server answers at %s already; end it first", r.Endpoint.URL)
	}
	s := &server{command: exec.Command("sh", "-c", "exec "+r.Start), ended: make(chan struct{})}
	s.command.Env = withoutSettings(os.Environ())
	s.command.Stdout, s.command.Stderr = &s.output, &s.output
	s.command.WaitDelay = stopLimit
	if err := s.command.Start(); err != nil {
		return nil, fmt.Errorf("--start: %w", err)
	}
	go func() {
		_ = s.command.Wait() // the output says why it ended
		close(s.ended)
	}()
	err := bench.Poll(ctx, startPoll, startLimit, "--start: the server does not answer", func() (bool, error) {
		select {
		case <-s.ended:
			return false, errors.New("--start: the server ended")
		default:
		}
		return r.answers(ctx), nil
	})
	if err != nil {
		s.kill()
		return nil, fmt.Errorf("%w: %s", err, bytes.TrimSpace(s.output.Bytes()))
	}
	return s, nil
}

// answers reports whether any server answers at the endpoint.
func (r *run) answers(ctx context.Context) bool {
	asked, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	_, err := r.db.ListTables(asked, &dynamodb.ListTablesInput{Limit: aws.Int32(1)})
	return err == nil || retry.Code(err) != ""
}

// withoutSettings drops the variables that would set flags of mayfly.
func withoutSettings(environment []string) (kept []string) {
	for _, e := range environment {
		if !strings.HasPrefix(e, "MAYFLY_") {
			kept = append(kept, e)
		}
	}
	return kept
}

func (s *server) pid() int { return s.command.Process.Pid }

// kill ends the process at once, as a crash does, and waits for its end.
func (s *server) kill() {
	_ = s.command.Process.Kill() // it may have ended
	<-s.ended
}

// stop asks the process to end, and kills it after a limit.
func (s *server) stop() {
	if s == nil {
		return
	}
	_ = s.command.Process.Signal(os.Interrupt)
	select {
	case <-s.ended:
	case <-time.After(stopLimit):
		s.kill()
	}
}
