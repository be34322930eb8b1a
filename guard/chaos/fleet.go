package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mayflydb/mayfly/guard"
	"github.com/mayflydb/mayfly/internal/clock"
)

// fleet are the workers of one strategy.
type fleet struct {
	program     []string // the program of a worker and its first arguments
	config      workerConfig
	plan        *plan
	ledger      *ledger
	log         io.Writer // of the workers; nil: none
	workers     []*worker
	all         sync.WaitGroup
	ctx         context.Context // of the workers; done when they are to end
	cancel      context.CancelFunc
	scanned     chan struct{} // closed when a worker has reported the end of the first scan
	scannedOnce sync.Once     // for the closing
}

// worker is a place in the fleet. Its process may end, and is then replaced by another.
type worker struct {
	*fleet
	number    int
	mu        sync.Mutex
	process   *exec.Cmd     // nil: none runs; guarded by mu
	killed    bool          // the process was killed on purpose; guarded by mu
	retired   bool          // no process replaces a killed one; guarded by mu
	paused    bool          // guarded by mu
	restarts  int           // guarded by mu
	ready     chan struct{} // closed when a process has been ready
	readyOnce sync.Once     // for the closing
}

// start starts all workers.
func (f *fleet) start(count int) {
	f.ctx, f.cancel = context.WithCancel(context.Background())
	f.scanned = make(chan struct{})
	for range count {
		f.add()
	}
}

// add starts one more worker.
func (f *fleet) add() *worker {
	w := &worker{fleet: f, number: len(f.workers), ready: make(chan struct{})}
	f.workers = append(f.workers, w)
	f.all.Go(func() { w.run(f.ctx) })
	return w
}

// stop ends all workers, and waits for their end.
func (f *fleet) stop() {
	f.cancel()
	f.all.Wait()
}

// awaitReady waits until each worker guards the table.
func (f *fleet) awaitReady(ctx context.Context) error {
	for _, w := range f.workers {
		if err := w.awaitReady(ctx); err != nil {
			return err
		}
	}
	return nil
}

// awaitReady waits until the worker guards the table.
func (w *worker) awaitReady(ctx context.Context) error {
	select {
	case <-w.ready:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("worker %d of the %s strategy did not begin to guard: %w", w.number, w.config.Strategy, context.Cause(ctx))
	}
}

// restarted returns the number of processes that have replaced another.
func (f *fleet) restarted() (n int) {
	for _, w := range f.workers {
		w.mu.Lock()
		n += w.restarts
		w.mu.Unlock()
	}
	return n
}

// harass pauses and kills workers as planned, until healed is closed. The pauses end then.
func (f *fleet) harass(healed <-chan struct{}) {
	var hurts sync.WaitGroup
	defer hurts.Wait()
	for second := uint64(0); ; second++ {
		for _, w := range f.workers {
			for _, fault := range f.plan.chosen {
				if fault.hurt == nil {
					continue
				}
				if d := f.plan.decide(fault, second*uint64(len(f.workers))+uint64(w.number)); d != nil {
					f.plan.count(fault.name)
					hurts.Go(func() { fault.hurt(w, d, healed) })
				}
			}
		}
		clock.Pause(time.Second, healed)
		select {
		case <-healed:
			return
		default:
		}
	}
}

// pauseFor stops the worker's process for up to 8 s.
func (w *worker) pauseFor(dice *rand.Rand, healed <-chan struct{}) {
	proceed, err := w.suspend()
	if err != nil {
		return // it has no process, or is paused already
	}
	clock.Pause(500*time.Millisecond+time.Duration(dice.Int64N(int64(7500*time.Millisecond))), healed)
	proceed()
}

// suspend stops the worker's process until proceed is called. It returns an error if there is no
// process, or it cannot be stopped.
func (w *worker) suspend() (proceed func(), err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	c := w.process
	switch {
	case c == nil:
		return nil, fmt.Errorf("stop worker %d: %w", w.number, errNoProcess)
	case w.paused:
		return nil, fmt.Errorf("stop worker %d: it is stopped already", w.number)
	}
	if err := suspend(c.Process); err != nil {
		return nil, fmt.Errorf("stop worker %d: %w", w.number, err)
	}
	w.paused = true
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.paused = false
		if w.process == c {
			_ = resume(c.Process) // it may have ended
		}
	}, nil
}

var errNoProcess = errors.New("it has no process at the moment")

// killAny kills the worker's process, if there is one.
func (w *worker) killAny(*rand.Rand, <-chan struct{}) { _ = w.kill() }

// kill kills the worker's process. It returns an error if there is none.
func (w *worker) kill() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.process == nil {
		return fmt.Errorf("kill worker %d: %w", w.number, errNoProcess)
	}
	w.killed = true
	if err := w.process.Process.Kill(); err != nil {
		return fmt.Errorf("kill worker %d: %w", w.number, err)
	}
	return nil
}

// retire kills the worker's process for good. It returns an error if there was none; another does
// not start even so.
func (w *worker) retire() error {
	w.mu.Lock()
	w.retired = true
	w.mu.Unlock()
	return w.kill()
}

// isRetired reports whether no process is to start.
func (w *worker) isRetired() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.retired
}

// run keeps a process running until ctx is done or the worker is retired.
func (w *worker) run(ctx context.Context) {
	for n := uint64(0); !w.isRetired(); n++ {
		wasReady, reason := w.live(ctx)
		w.mu.Lock()
		killed := w.killed
		w.process, w.killed = nil, false
		w.mu.Unlock()
		if ctx.Err() != nil {
			return
		}
		if !killed {
			w.judgeEnd(wasReady, reason)
		}
		d := diceFor(w.plan.seed, w.plan.strategy, fmt.Sprint("restart ", w.number), n)
		clock.Pause(time.Duration(d.Int64N(int64(2*time.Second))), ctx.Done())
		if ctx.Err() != nil || w.isRetired() {
			return
		}
		w.mu.Lock()
		w.restarts++
		w.mu.Unlock()
	}
}

// startProblems are the reasons why a worker may end before it guards, once there are faults. A
// supervisor starts it again.
var startProblems = []guard.Code{guard.Skew, guard.NoDate, guard.Unavailable}

// judgeEnd counts the end of a process by itself. Faults explain it only before it was ready.
func (w *worker) judgeEnd(wasReady bool, reason string) {
	code, _, _ := strings.Cut(reason, " ")
	if !wasReady && w.plan.begun.Load() && slices.Contains(startProblems, guard.Code(code)) {
		w.plan.note("ended at the start: " + code)
		return
	}
	w.ledger.died(reason)
}

// endLimit is how long a worker may take to end.
const endLimit = 20 * time.Second

// live runs a process until it ends. It returns whether the process has guarded the table, and the
// reason for its end.
func (w *worker) live(ctx context.Context) (wasReady bool, reason string) {
	config, err := json.Marshal(w.config)
	if err != nil {
		return false, err.Error()
	}
	c := exec.Command(w.program[0], append(slices.Clone(w.program[1:]), string(config))...)
	in, err := c.StdinPipe()
	if err != nil {
		return false, err.Error()
	}
	out, err := c.StdoutPipe()
	if err != nil {
		return false, err.Error()
	}
	tail := &tail{to: w.log, prefix: fmt.Sprintf("%s %d: ", w.config.Strategy, w.number)}
	c.Stderr = tail
	w.mu.Lock()
	err = c.Start()
	if err == nil {
		w.process = c
	}
	w.mu.Unlock()
	if err != nil {
		return false, err.Error()
	}
	ended := make(chan struct{})
	go func() {
		select {
		case <-ctx.Done():
			_ = resume(c.Process)
			_ = in.Close() // the worker ends
			clock.Pause(endLimit, ended)
			if c.Process.Kill() == nil {
				w.ledger.died(fmt.Sprintf("worker %d did not end within %v", w.number, endLimit))
			}
		case <-ended:
		}
	}()
	for output := bufio.NewScanner(out); output.Scan(); {
		if line := output.Text(); line == readyLine {
			wasReady = true
			w.readyOnce.Do(func() { close(w.ready) })
		} else if line == scannedLine {
			w.scannedOnce.Do(func() { close(w.scanned) })
		} else if text, ok := strings.CutPrefix(line, endedLine+" "); ok {
			reason = text
		}
	}
	err = c.Wait()
	close(ended)
	if reason == "" {
		reason = fmt.Sprintf("process-ended %v\n%s", err, tail.text())
	}
	return wasReady, reason
}

// tail keeps the end of a log, and copies the log to another writer.
type tail struct {
	to     io.Writer // may be nil
	prefix string
	mu     sync.Mutex
	kept   []byte // guarded by mu
}

const tailMost = 2000 // bytes

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.to != nil {
		for line := range strings.Lines(string(p)) {
			fmt.Fprint(t.to, t.prefix, line)
		}
	}
	t.kept = append(t.kept, p...)
	t.kept = t.kept[max(len(t.kept)-tailMost, 0):]
	return len(p), nil
}

func (t *tail) text() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.kept)
}
