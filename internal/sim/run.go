package sim

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"reflect"
	"strings"
	"sync"
	"time"

	"github.com/mayflydb/mayfly/internal/sim/steady"
)

// Options configures a run.
type Options struct {
	// Self returns the command line of a process that calls Child.
	Self func(seed, number uint64) []string
	// Replay is the command line that replays an episode, for messages. %d stand for the seed and the
	// episode.
	Replay   string
	Env      []string // the whole environment of the processes. Default: empty, so that a replay in another shell has the same
	Loose    bool     // let goroutines run in any order, as for a program with cgo
	Seed     uint64
	First    uint64        // the first episode
	Episodes int           // after which no episode begins. 0: no limit
	For      time.Duration // after which no episode begins. 0: no limit
	Workers  int           // processes at once
	Until    int           // episodes with findings after which the run ends. Default: 10
	// Done is called after each episode. Calls do not overlap. Nil: not called.
	Done func(Result)
}

// Report is the outcome of a run.
type Report struct {
	Seed     uint64    `json:"seed"`
	Counts   Counts    `json:"counts"`
	Wanted   int       `json:"wanted,omitempty"` // the episodes asked for; the end of the time, or findings, may leave fewer. 0: no limit
	Seconds  float64   `json:"seconds"`          // of real time
	Workers  int       `json:"workers"`
	Exact    bool      `json:"exact"`           // a replay by the same program does the same to the last bit; false if no episode ran
	Trace    string    `json:"trace,omitempty"` // of the episode, if it is the only one: see Result
	Findings []Finding `json:"findings"`
}

// Finding is what an episode has found.
type Finding struct {
	Episode    uint64      `json:"episode"`
	Replay     string      `json:"replay"` // the command that replays it
	Violations []Violation `json:"violations"`
}

const (
	// childPatience is the real time of an episode after which it hangs. One takes seconds; a busy
	// machine is no reason.
	childPatience = 10 * time.Minute
	untilDefault  = 10
)

// Run runs episodes until the time is over, all have run, or some have found something. Episodes that
// have begun run to their end, unless ctx ends. A process that hangs or is killed is an error.
func Run(ctx context.Context, o Options) (*Report, error) {
	began := time.Now()
	o.Until = cmp.Or(o.Until, untilDefault)
	ctx, enough := context.WithCancel(ctx)
	defer enough()
	report := &Report{Seed: o.Seed, Wanted: o.Episodes, Workers: o.Workers, Exact: true, Findings: []Finding{}}
	var mu sync.Mutex // guards all below, and report
	next := o.First
	take := func() (number uint64, ok bool) {
		mu.Lock()
		defer mu.Unlock()
		next++
		over := o.For > 0 && time.Since(began) >= o.For
		return next - 1, ctx.Err() == nil && !over && (o.Episodes == 0 || next-o.First <= uint64(o.Episodes))
	}
	var failure error
	var workers sync.WaitGroup
	for range o.Workers {
		workers.Go(func() {
			for {
				number, ok := take()
				if !ok {
					return
				}
				r, exact, err := runChild(ctx, o, number)
				mu.Lock()
				if err != nil && ctx.Err() == nil {
					failure = errors.Join(failure, fmt.Errorf("episode %d of seed %d: %w", number, o.Seed, err))
				} else if err == nil {
					report.Exact = report.Exact && exact
					report.add(o, r)
				}
				if len(report.Findings) >= o.Until || failure != nil {
					enough()
				}
				mu.Unlock()
			}
		})
	}
	workers.Wait()
	report.Exact = report.Exact && report.Counts.Episodes > 0
	report.Seconds = time.Since(began).Seconds()
	return report, failure
}

func (r *Report) add(o Options, e Result) {
	r.Counts.add(e.Counts)
	r.Counts.Episodes++
	if o.Episodes == 1 {
		r.Trace = e.Trace
	}
	if len(e.Violations) > 0 {
		r.Findings = append(r.Findings, Finding{e.Episode, fmt.Sprintf(o.Replay, e.Seed, e.Episode), e.Violations})
	}
	if o.Done != nil {
		o.Done(e)
	}
}

// add adds all counts.
func (c *Counts) add(d Counts) {
	to, from := reflect.ValueOf(c).Elem(), reflect.ValueOf(d)
	for i := range to.NumField() {
		to.Field(i).SetInt(to.Field(i).Int() + from.Field(i).Int())
	}
}

// runChild runs an episode in a process, whose goroutines run in the same order each time, if the
// machine allows that. A process that ends without a result, by a panic, is a finding. One that is
// killed or hangs is an error: the machine may be at fault.
func runChild(ctx context.Context, o Options, number uint64) (r Result, exact bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, childPatience)
	defer cancel()
	var out, said bytes.Buffer
	command := func() *exec.Cmd {
		self := o.Self(o.Seed, number)
		cmd := exec.CommandContext(ctx, self[0], self[1:]...)
		cmd.Env = append([]string{}, o.Env...) // nil would be the environment of this process
		cmd.Stdout, cmd.Stderr = &out, &said
		return cmd
	}
	if !o.Loose {
		err = steady.Run(command(), o.Seed^number)
		exact = !errors.Is(err, steady.ErrRefused)
	}
	if !exact {
		out.Reset()
		said.Reset()
		err = command().Run()
	}
	r, err = outcomeOf(ctx, err, out.Bytes(), said.String())
	r.Seed, r.Episode = o.Seed, number
	return r, exact, err
}

// outcomeOf returns the result of a process that has ended with an error, or nil.
func outcomeOf(ctx context.Context, ended error, out []byte, said string) (r Result, err error) {
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return r, fmt.Errorf("no end after %v, or interrupted: %w", childPatience, ctx.Err())
	case ended != nil && !errors.As(ended, &exit):
		return r, fmt.Errorf("start a process: %w", ended)
	case exit != nil && exit.ExitCode() < 0:
		return r, fmt.Errorf("the process was killed: %w: %s", ended, tail(said))
	}
	line, rest, _ := bytes.Cut(out, []byte("\n"))
	if json.Unmarshal(line, &r) != nil || r.Trace == "" {
		what := fmt.Sprintf("the process ended: %v: %s", ended, shorten(string(line)+"\n"+string(rest)+said))
		return Result{Violations: []Violation{{Law: available, What: what, At: "unknown"}}}, nil
	}
	if ended != nil && len(r.Violations) == 0 { // such as a data race
		return r, fmt.Errorf("the process broke no law and failed: %w: %s", ended, tail(string(rest)+said))
	}
	return r, nil
}

// textMost is the number of bytes of a process's output that an error contains.
const textMost = 1500

// tail returns the end of a process's output.
func tail(text string) string {
	text = strings.TrimSpace(text)
	return text[max(0, len(text)-textMost):]
}

// shorten returns the beginning of what a process has said, which names a panic.
func shorten(text string) string {
	text = strings.TrimSpace(text)
	return text[:min(len(text), textMost)]
}
