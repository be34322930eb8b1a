package sim

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Options configures a run.
type Options struct {
	// Self is the command line of a process that calls Child, without the seed, the first episode and
	// their number.
	Self []string
	// Replay is the command line that replays an episode, for messages. %d stand for the seed and the
	// episode.
	Replay   string
	Seed     uint64
	First    uint64 // the first episode
	Episodes int    // 0: no limit
	For      time.Duration
	Workers  int // processes at once
	Until    int // episodes with findings after which the run ends. Default: 10
	// Done is called after each episode. Calls do not overlap. Nil: not called.
	Done func(Result)
}

// Report is the outcome of a run.
type Report struct {
	Seed     uint64    `json:"seed"`
	Counts   Counts    `json:"counts"`
	Seconds  float64   `json:"seconds"` // of real time
	Workers  int       `json:"workers"`
	Findings []Finding `json:"findings"`
}

// Finding is what an episode has found.
type Finding struct {
	Episode    uint64      `json:"episode"`
	Replay     string      `json:"replay"` // the command that replays it
	Violations []Violation `json:"violations"`
}

const (
	chunk = 8 // episodes of a process
	// childPatience is the real time after which a process without a result hangs
	childPatience = 3 * time.Minute
	untilDefault  = 10
)

// Run runs episodes until the time is over, all have run, or some have found something.
func Run(ctx context.Context, o Options) (*Report, error) {
	began := time.Now()
	o.Until = cmp.Or(o.Until, untilDefault)
	ctx, enough := context.WithCancel(ctx)
	defer enough()
	if o.For > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, o.For)
		defer cancel()
	}
	report := &Report{Seed: o.Seed, Workers: o.Workers}
	var mu sync.Mutex // guards all below, and report
	next, left := o.First, o.Episodes
	take := func() (first uint64, count int) {
		mu.Lock()
		defer mu.Unlock()
		count = chunk
		if o.Episodes > 0 {
			count = min(count, (left+o.Workers-1)/o.Workers, left)
		}
		if ctx.Err() != nil {
			count = 0
		}
		first = next
		next += uint64(count)
		left -= count
		return first, count
	}
	var failure error
	var workers sync.WaitGroup
	for range o.Workers {
		workers.Go(func() {
			for {
				first, count := take()
				if count == 0 {
					return
				}
				err := runChild(ctx, o, first, count, func(r Result) {
					mu.Lock()
					defer mu.Unlock()
					if report.add(o, r); len(report.Findings) >= o.Until {
						enough()
					}
				})
				if err != nil {
					mu.Lock()
					failure = errors.Join(failure, err)
					mu.Unlock()
					return
				}
			}
		})
	}
	workers.Wait()
	report.Seconds = time.Since(began).Seconds()
	return report, failure
}

func (r *Report) add(o Options, e Result) {
	r.Counts.add(e.Counts)
	r.Counts.Episodes++
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

// runChild runs episodes in a process. One that dies or hangs is a finding of the episode that was
// running.
func runChild(ctx context.Context, o Options, first uint64, count int, done func(Result)) error {
	args := append(append([]string{}, o.Self[1:]...), strconv.FormatUint(o.Seed, 10), strconv.FormatUint(first, 10), strconv.Itoa(count))
	cmd := exec.CommandContext(ctx, o.Self[0], args...)
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start a process for episodes: %w", err)
	}
	hangs := time.AfterFunc(childPatience, func() { _ = cmd.Process.Kill() })
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 4<<20)
	got := 0
	var rest []string // its other lines: the beginning of a panic
	for lines.Scan() {
		var r Result
		if json.Unmarshal(lines.Bytes(), &r) != nil || r.Trace == "" {
			if len(rest) < 20 {
				rest = append(rest, lines.Text())
			}
			continue
		}
		hangs.Reset(childPatience)
		got++
		done(r)
	}
	hung := !hangs.Stop()
	err = cmd.Wait()
	if got == count || ctx.Err() != nil {
		return nil
	}
	what := fmt.Sprintf("the process ended: %v: %s", err, tail(strings.Join(rest, "\n")+said.String()))
	if hung {
		what = fmt.Sprintf("nothing happened in %v", childPatience)
	}
	done(Result{Seed: o.Seed, Episode: first + uint64(got), Violations: []Violation{{Law: available, What: what, At: "unknown"}}})
	return nil
}

// tail shortens what a process has said.
func tail(text string) string {
	const most = 1500
	if len(text) > most {
		text = text[:most]
	}
	return strings.TrimSpace(text)
}

// ParseChild reads the arguments that Run gives to a process.
func ParseChild(args []string) (seed, first uint64, count int, err error) {
	if len(args) != 3 {
		return 0, 0, 0, fmt.Errorf("%d arguments, want 3", len(args))
	}
	seed, err1 := strconv.ParseUint(args[0], 10, 64)
	first, err2 := strconv.ParseUint(args[1], 10, 64)
	count, err3 := strconv.Atoi(args[2])
	return seed, first, count, errors.Join(err1, err2, err3)
}

// RunHere runs episodes in this process: see Child.
func RunHere(args []string) error {
	seed, first, count, err := ParseChild(args)
	if err != nil {
		return err
	}
	Child(seed, first, count, os.Stdout)
	return nil
}
