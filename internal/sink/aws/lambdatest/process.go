package lambdatest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"sync"
)

// unhandled is Lambda's name for the failure of a function.
const unhandled = "Unhandled"

// process is a running function with its Runtime API. It has one invocation at a time.
type process struct {
	command *exec.Cmd
	server  *http.Server
	work    chan *job     // the next invocation
	asking  chan struct{} // has an element when the function has asked for the next invocation
	exited  chan struct{} // closed when the process has ended
	how     error         // its error, once exited is closed
	serving chan struct{} // closed when the server has ended
	count   int
	name    string
	mu      struct {
		sync.Mutex
		current *job // the invocation without an answer yet
	}
}

// job is an invocation under way.
type job struct {
	id    string
	ctx   context.Context
	event []byte
	done  chan result // takes one
}

type result struct {
	answer  []byte
	failure string
}

// start starts a process and its Runtime API.
func (f *function) start() (*process, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &process{
		command: exec.Command(f.Command[0], f.Command[1:]...),
		work:    make(chan *job), asking: make(chan struct{}, 1), exited: make(chan struct{}), serving: make(chan struct{}), name: f.name,
	}
	p.command.Env = append(append(os.Environ(), f.Env...), "AWS_LAMBDA_RUNTIME_API="+listener.Addr().String(), "AWS_LAMBDA_FUNCTION_NAME="+f.name,
		"AWS_LAMBDA_FUNCTION_VERSION=$LATEST", "AWS_LAMBDA_FUNCTION_MEMORY_SIZE=128", "_HANDLER=bootstrap")
	p.command.Stdout, p.command.Stderr = f.Output, f.Output
	if err := p.command.Start(); err != nil {
		_ = listener.Close()
		return nil, err
	}
	api := http.NewServeMux()
	api.HandleFunc("GET /2018-06-01/runtime/invocation/next", p.next)
	api.HandleFunc("POST /2018-06-01/runtime/invocation/{id}/response", p.response)
	api.HandleFunc("POST /2018-06-01/runtime/invocation/{id}/error", p.failed)
	api.HandleFunc("POST /2018-06-01/runtime/init/error", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusAccepted) })
	p.server = &http.Server{Handler: api}
	f.running.Go(func() {
		defer close(p.serving)
		_ = p.server.Serve(listener)
	})
	f.running.Go(func() {
		p.how = p.command.Wait()
		close(p.exited)
	})
	// The function's end is the process's.
	f.running.Go(func() {
		select {
		case <-f.ctx.Done():
			p.end()
		case <-p.exited:
		}
	})
	return p, nil
}

// alive reports whether the process can take another event. A process that ended between two events
// is no failure.
func (p *process) alive() bool {
	select {
	case <-p.exited:
		return false
	default:
		return true
	}
}

// run passes an event to the process and waits for the answer, the end of the process, or the end
// of ctx.
func (p *process) run(ctx context.Context, event []byte) (answer []byte, failure string, err error) {
	p.count++
	j := &job{id: fmt.Sprintf("00000000-0000-4000-8000-%012d", p.count), ctx: ctx, event: event, done: make(chan result, 1)}
	select {
	case p.work <- j:
		p.asked()
	case <-p.exited:
		return nil, "", p.ended()
	case <-ctx.Done():
		return nil, "", ctx.Err()
	}
	select {
	case r := <-j.done:
		p.settle(ctx)
		return r.answer, r.failure, nil
	case <-p.exited:
		return nil, "", p.ended()
	case <-ctx.Done():
		return nil, "", ctx.Err()
	}
}

// asked removes the note that the function asked for its present event.
func (p *process) asked() {
	select {
	case <-p.asking:
	default:
	}
}

// settle waits until the function has asked for its next event, or has ended. A function may end
// after it has reported a failure, and must not get another event then.
func (p *process) settle(ctx context.Context) {
	select {
	case <-p.asking:
	case <-p.exited:
	case <-ctx.Done():
	}
}

func (p *process) ended() error {
	if p.how == nil {
		return errors.New("exit status 0")
	}
	return p.how
}

// end kills the process, if it still runs, and closes its API.
func (p *process) end() {
	_ = p.command.Process.Kill()
	<-p.exited
	_ = p.server.Close()
	<-p.serving
}

// next answers with the function's next event, as soon as there is one.
func (p *process) next(w http.ResponseWriter, r *http.Request) {
	select {
	case p.asking <- struct{}{}:
	default:
	}
	select {
	case j := <-p.work:
		p.mu.Lock()
		p.mu.current = j
		p.mu.Unlock()
		deadline, _ := j.ctx.Deadline()
		w.Header().Set("Lambda-Runtime-Aws-Request-Id", j.id)
		w.Header().Set("Lambda-Runtime-Deadline-Ms", strconv.FormatInt(deadline.UnixMilli(), 10))
		w.Header().Set("Lambda-Runtime-Invoked-Function-Arn", "arn:aws:lambda:us-east-1:000000000000:function:"+p.name)
		_, _ = w.Write(j.event)
	case <-r.Context().Done():
	}
}

func (p *process) response(w http.ResponseWriter, r *http.Request) { p.finish(w, r, "") }
func (p *process) failed(w http.ResponseWriter, r *http.Request)   { p.finish(w, r, unhandled) }

func (p *process) finish(w http.ResponseWriter, r *http.Request, failure string) {
	j := p.take(r.PathValue("id"))
	if j == nil {
		http.Error(w, "no such invocation", http.StatusBadRequest)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, bodyMax))
	if err != nil {
		body, failure = failureOf("Function.ResponseSizeTooLarge", fmt.Sprintf("Response payload size exceeded maximum allowed payload size (%d bytes).", bodyMax)), unhandled
	}
	j.done <- result{body, failure}
	w.WriteHeader(http.StatusAccepted)
}

// take returns the current invocation if it has that ID. Each is answered once.
func (p *process) take(id string) *job {
	p.mu.Lock()
	defer p.mu.Unlock()
	j := p.mu.current
	if j == nil || j.id != id {
		return nil
	}
	p.mu.current = nil
	return j
}

// failureOf returns the answer for a failure.
func failureOf(kind, message string) []byte {
	body, _ := json.Marshal(map[string]string{"errorType": kind, "errorMessage": message})
	return body
}
