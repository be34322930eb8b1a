package lambdatest

import (
	"context"
	"errors"
	"net/http"
	"sync"
)

// function passes its invocations to a limited number of processes.
type function struct {
	Function
	name    string
	ctx     context.Context
	running *sync.WaitGroup
	free    chan *process // idle processes; a nil one has not been started
	waiting chan struct{} // a place for each asynchronous invocation
	mu      struct {
		sync.Mutex
		throttles int           // invocations still to refuse
		ended     []Invocation  // in the order of their ends
		news      chan struct{} // closed and replaced at each end
	}
}

func newFunction(ctx context.Context, name string, f Function, running *sync.WaitGroup) *function {
	if f.Timeout == 0 {
		f.Timeout = defaultTimeout
	}
	if f.Concurrency == 0 {
		f.Concurrency = 1
	}
	made := &function{
		Function: f, name: name, ctx: ctx, running: running, free: make(chan *process, f.Concurrency), waiting: make(chan struct{}, waitingMax),
	}
	made.mu.news = make(chan struct{})
	for range f.Concurrency {
		made.free <- nil
	}
	return made
}

func (f *function) throttle(n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.mu.throttles = n
}

func (f *function) throttled() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.mu.throttles == 0 {
		return false
	}
	f.mu.throttles--
	return true
}

// answer runs an invocation for a waiting caller.
func (f *function) answer(w http.ResponseWriter, r *http.Request, event []byte) {
	var p *process
	select {
	case p = <-f.free:
	default:
		tooMany(w)
		return
	}
	done := f.run(p, event)
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Amz-Executed-Version", "$LATEST")
	if done.Failure != "" {
		w.Header().Set("X-Amz-Function-Error", done.Failure)
	}
	_, _ = w.Write(done.Answer)
}

// later runs an asynchronous invocation. It returns false if too many wait already.
func (f *function) later(event []byte) bool {
	select {
	case f.waiting <- struct{}{}:
	default:
		return false
	}
	f.running.Go(func() {
		defer func() { <-f.waiting }()
		select {
		case p := <-f.free:
			f.run(p, event)
		case <-f.ctx.Done():
		}
	})
	return true
}

// run passes an event to a process. Afterwards it returns the process to the idle ones, or frees
// its place.
func (f *function) run(p *process, event []byte) Invocation {
	if p != nil && !p.alive() {
		p.end()
		p = nil
	}
	if p == nil {
		started, err := f.start()
		if err != nil {
			f.free <- nil
			return f.note(event, failureOf("Runtime.InvalidEntrypoint", err.Error()), unhandled)
		}
		p = started
	}
	ctx, cancel := context.WithTimeout(f.ctx, f.Timeout)
	defer cancel()
	answer, failure, err := p.run(ctx, event)
	if err == nil {
		f.free <- p
		return f.note(event, answer, failure)
	}
	p.end()
	f.free <- nil
	if errors.Is(err, context.DeadlineExceeded) {
		return f.note(event, failureOf("Sandbox.Timedout", "Task timed out after "+f.Timeout.String()), unhandled)
	}
	return f.note(event, failureOf("Runtime.ExitError", "Runtime exited: "+err.Error()), unhandled)
}

// note records a finished invocation.
func (f *function) note(event, answer []byte, failure string) Invocation {
	f.mu.Lock()
	defer f.mu.Unlock()
	done := Invocation{event, answer, failure}
	f.mu.ended = append(f.mu.ended, done)
	close(f.mu.news)
	f.mu.news = make(chan struct{})
	return done
}

func (f *function) finished(ctx context.Context, n int) ([]Invocation, error) {
	for {
		f.mu.Lock()
		ended, news := f.mu.ended, f.mu.news
		f.mu.Unlock()
		if len(ended) >= n {
			return ended[:n:n], nil
		}
		select {
		case <-news:
		case <-ctx.Done():
			return ended, ctx.Err()
		}
	}
}
