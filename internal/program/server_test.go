package program

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// served is a real `mayfly serve` in a process of its own.
type served struct {
	command *exec.Cmd
	url     string
	out     buffer
	log     buffer
	read    chan struct{} // closed when all of its output has been read
	once    sync.Once
	code    string
	waitErr error

	connected   sync.Once
	connections *http.Client // of clients
	moved       bool         // its clock is not the machine's
}

// now returns the time of the server's clock.
func (s *served) now(t *testing.T) time.Time {
	t.Helper()
	if !s.moved {
		return time.Now()
	}
	status, text, err := exchange(http.MethodGet, s.url+"/_mayfly/clock", "")
	var clock struct {
		NowMS int64 `json:"now_ms"`
	}
	if err == nil {
		err = json.Unmarshal([]byte(text), &clock)
	}
	if err != nil || status != http.StatusOK {
		t.Fatalf("the clock: %d, %v: %s", status, err, text)
	}
	return time.UnixMilli(clock.NowMS)
}

// startServer starts it on a free port and returns once it listens.
func startServer(dir string, env []string, args ...string) (*served, error) {
	return startListening(dir, env, "serve", args...)
}

// startListening starts a command that listens on a port of its choice.
func startListening(dir string, env []string, command string, args ...string) (*served, error) {
	return startPrinting(dir, env, append(append(strings.Fields(command), "--port", "0"), args...)...)
}

// startPrinting starts a command that prints where it listens.
func startPrinting(dir string, env []string, args ...string) (*served, error) {
	command := exec.Command("mayfly", args...)
	command.Dir, command.Env = dir, env
	return startCommand(command)
}

// startCommand is startPrinting for a prepared command.
func startCommand(command *exec.Cmd) (*served, error) {
	s := &served{command: command, read: make(chan struct{})}
	s.command.Stderr = &s.log
	stdout, err := s.command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := s.command.Start(); err != nil {
		return nil, err
	}
	lines := bufio.NewReader(stdout)
	for s.url == "" {
		line, err := lines.ReadString('\n')
		io.WriteString(&s.out, line)
		if err != nil {
			s.kill()
			return nil, fmt.Errorf("the server did not start: %w\n%s%s", err, s.printed(), s.logged())
		}
		var ready readyLine
		if url, ok := strings.CutPrefix(line, "listening on "); ok {
			s.url = strings.TrimSpace(url)
		} else if json.Unmarshal([]byte(line), &ready) == nil { // --log-format json
			s.url = ready.URL
		}
	}
	go func() {
		defer close(s.read)
		io.Copy(&s.out, lines)
	}()
	return s, nil
}

// exchange sends a request with headers NAME:VALUE, and reads the answer.
func exchange(method, url, body string, headers ...string) (status int, text string, err error) {
	r, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ":")
		r.Header.Set(name, value)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, "", err
	}
	defer answer.Body.Close()
	all, err := io.ReadAll(answer.Body)
	return answer.StatusCode, string(all), err
}

// exchangeDynamoDB calls the API of DynamoDB.
func exchangeDynamoDB(url, operation, body string) (status int, text string, err error) {
	return exchange(http.MethodPost, url, body, "X-Amz-Target:DynamoDB_20120810."+operation, "Content-Type:application/x-amz-json-1.0")
}

// callDynamoDB calls the API of DynamoDB, which has to answer with success.
func callDynamoDB(t *testing.T, url, operation, body string) {
	t.Helper()
	if status, text, err := exchangeDynamoDB(url, operation, body); err != nil || status != http.StatusOK {
		t.Fatalf("%s: %d, %v: %s", operation, status, err, text)
	}
}

// stop sends the signal and waits for the end, for two minutes. code is the exit code, or the name of
// the signal that ended the process.
func (s *served) stop(signal os.Signal) (code string, err error) {
	return s.stopWithin(signal, 2*time.Minute)
}

// stopWithin is stop with a limit. A server that takes longer writes its stacks to its log, and ends.
func (s *served) stopWithin(signal os.Signal, limit time.Duration) (code string, err error) {
	if err := s.command.Process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return "", err
	}
	slow := time.AfterFunc(limit, func() { _ = s.command.Process.Signal(syscall.SIGQUIT) })
	code, err = s.wait()
	if !slow.Stop() && err == nil {
		err = fmt.Errorf("it did not end within %s of the signal %q", limit, signal)
	}
	return code, err
}

func (s *served) wait() (code string, err error) {
	s.once.Do(func() {
		if s.url != "" {
			<-s.read
		}
		err := s.command.Wait()
		var exit *exec.ExitError
		if err != nil && !errors.As(err, &exit) {
			s.waitErr = err
			return
		}
		status := s.command.ProcessState.Sys().(syscall.WaitStatus)
		s.code = strconv.Itoa(status.ExitStatus())
		if status.Signaled() {
			s.code = status.Signal().String()
		}
	})
	return s.code, s.waitErr
}

// kill ends it without a chance to do anything.
func (s *served) kill() {
	_, _ = s.stop(syscall.SIGKILL)
}

func (s *served) printed() string { return s.out.String() }
func (s *served) logged() string  { return s.log.String() }

// buffer can be written and read at the same time.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// A server that does not stop fails its test and does not hold it up.
func TestStopIsLimited(t *testing.T) {
	s, err := startCommand(exec.Command("sh", "-c", `trap "" TERM; echo listening on nothing; exec sleep 600`))
	if err != nil {
		t.Fatal(err)
	}
	if code, err := s.stopWithin(syscall.SIGTERM, 10*time.Millisecond); err == nil || code != "quit" {
		t.Errorf("it ended with %s, %v", code, err)
	}
}
