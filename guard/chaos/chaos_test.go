package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/mayflydb/mayfly/guard"
)

// A worker's process is this test binary. Its first argument may name a flaw.
func TestMain(m *testing.M) {
	switch {
	case len(os.Args) == 3 && os.Args[1] == workerWord:
		os.Exit(runWorker(os.Args[2], nil))
	case len(os.Args) == 4 && os.Args[2] == workerWord && flaws[os.Args[1]] != nil:
		os.Exit(runWorker(os.Args[3], flaws[os.Args[1]]))
	}
	os.Exit(m.Run())
}

// flaws break a worker.
var flaws = map[string]func(*guard.Options){
	// it deletes without a condition
	"unconditional": func(o *guard.Options) { withoutConditions(o, ".DeleteItem") },
	// it deletes without a condition in transactions only
	"careless": func(o *guard.Options) { withoutConditions(o, ".TransactWriteItems") },
	// it believes that the endpoint's clock is ten seconds ahead
	"early": func(o *guard.Options) {
		o.MaxSkew = time.Hour
		withTransport(o, func(r *http.Request, send transport) (*http.Response, error) {
			a, err := send(r)
			if err == nil {
				a.Header.Set("Date", time.Now().Add(10*time.Second).UTC().Format(http.TimeFormat))
			}
			return a, err
		})
	},
	// it removes nothing
	"idle": func(o *guard.Options) { o.DryRun = true },
	// it ends after a second
	"mortal": func(*guard.Options) { time.AfterFunc(3*time.Second, func() { panic("a bug") }) },
}

// withoutConditions strips the conditions from the deletions of the guarded table, which it sends
// 200 ms late.
func withoutConditions(o *guard.Options, target string) {
	strip := func(deletion map[string]any) bool {
		if deletion["TableName"] != o.Table {
			return false
		}
		for name := range deletion {
			if strings.HasPrefix(name, "Expression") || name == "ConditionExpression" {
				delete(deletion, name)
			}
		}
		return true
	}
	withTransport(o, func(r *http.Request, send transport) (*http.Response, error) {
		if !strings.HasSuffix(r.Header.Get("X-Amz-Target"), target) {
			return send(r)
		}
		text, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		var body map[string]any
		if err := json.Unmarshal(text, &body); err != nil {
			return nil, err
		}
		stripped := strip(body)
		items, _ := body["TransactItems"].([]any)
		for _, item := range items {
			if deletion, ok := item.(map[string]any)["Delete"].(map[string]any); ok {
				stripped = strip(deletion) || stripped
			}
		}
		if stripped {
			time.Sleep(200 * time.Millisecond) // an item may be renewed now
		}
		if text, err = json.Marshal(body); err != nil {
			return nil, err
		}
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(text)), int64(len(text))
		return send(r)
	})
}

type transport func(r *http.Request) (*http.Response, error)

func (t transport) Do(r *http.Request) (*http.Response, error) { return t(r) }

// withTransport changes the requests and answers of the guard's client.
func withTransport(o *guard.Options, do func(r *http.Request, send transport) (*http.Response, error)) {
	o.DB = dynamodb.New(o.DB.Options(), func(c *dynamodb.Options) {
		send := c.HTTPClient.Do
		c.HTTPClient = transport(func(r *http.Request) (*http.Response, error) { return do(r, send) })
	})
}

// outcome is a run of the program.
type outcome struct {
	code   int
	out    bytes.Buffer
	err    bytes.Buffer
	report report
	ended  chan struct{}
}

// commands are the runs of all tests. A run waits most of the time, so they run at the same time.
var commands = map[string]string{
	"plain":         "--for 4s --workers 1 --faults none",
	"faults":        "--for 6s",
	"alone":         "--for 6s --workers 1 --strategy stream",
	"unconditional": "--for 4s --workers 1 --faults none --strategy index",
	"early":         "--for 4s --workers 1 --faults none --strategy index",
	"idle":          "--for 2s --workers 1 --faults none --strategy index --settle 1s",
	"mortal":        "--for 4s --workers 1 --faults none --strategy scan",

	"fleet":          "fleet --pending 2000 --rate 200 --for 5s --lease 1s --pause 1500ms --ahead 2s",
	"fleet careless": "fleet --pending 100 --rate 50 --for 4s --lease 1s --pause 0s --ahead 1s --workers 2 --settle 1s --whole-seconds",
	"fleet early":    "fleet --pending 100 --rate 50 --for 2s --lease 1s --pause 0s --ahead 2s --workers 2 --settle 1s --whole-seconds",
	"fleet idle":     "fleet --pending 100 --rate 50 --for 2s --lease 1s --pause 0s --ahead 1s --workers 2 --settle 1s",
}

var outcomes = sync.OnceValue(func() map[string]*outcome {
	all := map[string]*outcome{}
	for name, line := range commands {
		o := &outcome{ended: make(chan struct{})}
		all[name] = o
		program := []string{os.Args[0], workerWord}
		args := append(strings.Fields(line), "--json")
		flaw, isFleet := strings.CutPrefix(name, "fleet ")
		if !isFleet && name != "fleet" {
			args = append(args, "--seed", "1", "--rate", "30", "--lease", "2s")
		}
		if flaws[flaw] != nil {
			program = slices.Insert(program, 1, flaw)
		}
		go func() {
			defer close(o.ended)
			o.code = run(context.Background(), args, program, &o.out, &o.err)
		}()
	}
	return all
})

// runOf returns the outcome of a command with its report.
func runOf(t *testing.T, name string) *outcome {
	t.Helper()
	o := ended(t, name)
	decode(t, o, &o.report)
	return o
}

// ended returns the outcome of a command.
func ended(t *testing.T, name string) *outcome {
	t.Helper()
	if testing.Short() {
		t.Skip("the runs take real time")
	}
	o := outcomes()[name]
	<-o.ended
	return o
}

// decode decodes the report of a command.
func decode(t *testing.T, o *outcome, report any) {
	t.Helper()
	if err := json.Unmarshal(o.out.Bytes(), report); err != nil {
		t.Fatalf("exit code %d, %v\n%s", o.code, err, o.err.String())
	}
	t.Log(o.err.String(), o.out.String())
}

// Without faults, guard keeps its promises with every strategy.
func TestWithoutFaults(t *testing.T) {
	o := runOf(t, "plain")
	if o.code != 0 || len(o.report.Trials) != len(strategies) {
		t.Errorf("exit code %d after %d trials", o.code, len(o.report.Trials))
	}
	for _, r := range o.report.Trials {
		if r.Removals == 0 || r.Verified == 0 || r.Failed > 0 || len(r.Faults) > 0 || r.EarlyMaxMS > 0 || r.Plain.Count == 0 || r.Faulty.Count > 0 {
			t.Errorf("%s: %+v", r.Strategy, r)
		}
	}
}

// With all faults, too.
func TestWithAllFaults(t *testing.T) {
	o := runOf(t, "faults")
	if o.code != 0 {
		t.Errorf("exit code %d", o.code)
	}
	for _, r := range o.report.Trials {
		if r.Removals == 0 || sum(r.Faults) == 0 {
			t.Errorf("%s: %+v", r.Strategy, r)
		}
	}
}

// So does a worker that is alone, although the endpoint leaves parts of its batches unprocessed.
func TestAlone(t *testing.T) {
	o := runOf(t, "alone")
	if r := o.report.Trials[0]; o.code != 0 || r.Removals == 0 || r.Faults["partial"] == 0 {
		t.Errorf("exit code %d: %+v", o.code, r)
	}
}

// A broken guard is found, and the exit code is 1.
func TestFlawsAreFound(t *testing.T) {
	for flaw, found := range map[string]func(trialReport) int{
		"unconditional": func(r trialReport) int { return r.Wrong },
		"early":         func(r trialReport) int { return r.Early },
		"idle":          func(r trialReport) int { return r.Left },
		"mortal":        func(r trialReport) int { return r.Died },
	} {
		t.Run(flaw, func(t *testing.T) {
			o := runOf(t, flaw)
			r := o.report.Trials[0]
			if o.code != exitBroken || found(r) == 0 || len(r.Findings) == 0 {
				t.Errorf("exit code %d: %+v", o.code, r)
			}
			if !strings.Contains(o.err.String(), "next: repeat the run with: go run ./guard/chaos --for") {
				t.Error("it does not say how to repeat the run")
			}
		})
	}
}

// Wrong command lines and a missing endpoint say what to do.
func TestCommandLine(t *testing.T) {
	for line, want := range map[string]struct {
		code int
		text string
	}{
		"--endpoint http://127.0.0.1:1": {exitBroken, "start one with: mayfly serve"},
		"--strategy schedule":           {exitUsage, "is not one of stream, index, scan"},
		"--faults fire":                 {exitUsage, "is not one of none, delay, "},
		"--workers 0":                   {exitUsage, "is not between 1 and 16"},
		"--for 1ms":                     {exitUsage, "--for: 1ms is shorter than 1s"},
		"--rate -1":                     {exitUsage, "--rate: -1 is not between"},
		"--batch 101":                   {exitUsage, "--batch: 101 is not between"},
		"--max-skew 1ms":                {exitUsage, "--max-skew: 1ms is not between"},
		"--lease 1ms":                   {exitUsage, "--lease: 1ms is not between"},
		"--sed 7":                       {exitUsage, "did you mean --seed?"},
		"--help":                        {0, "SIGSTOP"},
		"fleet --help":                  {0, "--whole-seconds"},
		"fleet --rate 0":                {exitUsage, "--rate: 0 is not between 1 and 50,000"},
		"fleet --shards 65":             {exitUsage, "--shards: 65 is not between"},
		"fleet --workers 1":             {exitUsage, "--workers: 1 is not between"},
		"fleet --pending -1":            {exitUsage, "--pending: -1 is not between"},
		"fleet --for 1s":                {exitUsage, "--for: 1s is not between"},
		"fleet --ahead 1ms":             {exitUsage, "--ahead: 1ms is not between"},
		"fleet --lease 1ms":             {exitUsage, "--lease: 1ms is not between"},
		"fleet --pause -1s":             {exitUsage, "a time is negative"},
		"fleet --rate 50000 --for 1h":   {exitUsage, "more than 100,000,000 items"},
		"fleet --svg":                   {exitUsage, "go run ./guard/chaos fleet --help"},
	} {
		var out bytes.Buffer
		if code := run(t.Context(), strings.Fields(line), nil, &out, &out); code != want.code || !strings.Contains(out.String(), want.text) {
			t.Errorf("%s: exit code %d\n%s", line, code, out.String())
		}
	}
}
