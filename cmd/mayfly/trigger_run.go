package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/mayflydb/mayfly/internal/clock"
	"github.com/mayflydb/mayfly/internal/lease"
	"github.com/mayflydb/mayfly/internal/sink/targetfile"
	"github.com/mayflydb/mayfly/internal/trigger"
	"github.com/mayflydb/mayfly/internal/worker"
	"github.com/mayflydb/mayfly/target"
)

type triggerRunCommand struct {
	Command []string `arg:"" optional:"" help:"Command that gets each batch as its standard input, behind --." passthrough:""`

	Print         bool     `help:"Print the batches, a line for each." xor:"to"`
	Webhook       string   `help:"URL that gets the batches." xor:"to" placeholder:"URL"`
	WebhookSecret []string `help:"Secret to sign webhooks with: whsec_ and base64." placeholder:"SECRET"`
	Targets       string   `help:"File of targets; see docs/targets.md." placeholder:"FILE"`
	Target        string   `help:"With --targets: ARN or name of the one that gets the batches." xor:"to" placeholder:"ARN"`

	Table  string `help:"Table whose stream is read; it may come later." xor:"source" required:"" placeholder:"NAME"`
	Stream string `help:"Stream that is read." xor:"source" required:"" placeholder:"ARN"`
	Name   string `help:"Of the trigger. Workers of one name share the shards, and go on where another has stopped. Default: run- and the table." placeholder:"NAME"`
	From   string `help:"Where to begin the first time: at the oldest record that there is (trim-horizon), or with what comes from now on (latest)." enum:"trim-horizon,latest" default:"latest"`
	filterFlags
	Batch     int    `help:"Records handed over at once, 1 to 10000." default:"100"`
	Window    span   `help:"Time for which records gather, up to 5m." default:"0s"`
	Parallel  int    `help:"Batches of a shard at one time, 1 to 1000; the records of a key stay in their order." default:"1"`
	PerRecord bool   `help:"Hand records over one by one instead."`
	Unordered bool   `help:"What fails is parked, and what comes behind it goes on. Its attempts are items with deadlines, so they come as late as the endpoint removes those."`
	Bisect    bool   `help:"Split a batch that fails in two."`
	Partial   bool   `help:"The target's answer may name the records that failed."`
	Retries   *int   `help:"Attempts after the first; -1: no limit. Default: -1, or 185 with --unordered." placeholder:"N"`
	MaxAge    span   `help:"Give records up that are older, 1m to 7d. Default: no limit, or 1d with --unordered." default:"0s" placeholder:"TIME"`
	OnFailure string `help:"With --targets: ARN or name of what is told of records that were given up." placeholder:"ARN"`

	Lease time.Duration `help:"Time after which a silent worker's shards are taken over." default:"10s"`
	endpointFlags
	logFlags
}

// Help is the part of --help behind the flags.
func (triggerRunCommand) Help() string {
	return `Examples:

    mayfly trigger run --table orders --print
    mayfly trigger run --table orders --expired -- ./on-expiry.sh --fast
    mayfly trigger run --endpoint aws --table orders --name audit --webhook https://example.com/audit --per-record
    mayfly trigger run --table orders --targets targets.yaml --target arn:aws:sqs:us-east-1:000000000000:jobs --retries 5

It reads the stream of a table at any endpoint and runs until it is stopped. Its place is kept in the table
mayfly.leases there, and what is given up in mayfly.deadletters. Any number of workers with one --name share the work.`
}

// Run runs the trigger until ctx is done.
func (c triggerRunCommand) Run(ctx context.Context, s streams) error {
	spec, err := c.spec()
	if err != nil {
		return err
	}
	e, err := c.connect(ctx, serviceDynamoDB)
	if err != nil {
		return err
	}
	mappings, shut, err := c.mappings(ctx, s.out, spec.Target)
	if err != nil {
		return err
	}
	w := worker.New(worker.Options{
		DB: e.dynamodb(), Streams: e.streams(), Clock: clock.New(), Region: e.config.Region, Account: accountAnywhere, Targets: mappings,
		Triggers: []trigger.Spec{spec}, Aside: spec.Name, Leases: lease.Options{Duration: c.Lease}, Logger: c.logger(s.err),
	})
	return errors.Join(e.advise(w.Run(ctx)), shut())
}

// accountAnywhere is the account that ARNs of triggers name which run here.
const accountAnywhere = "000000000000"

// targetHere is the target of the flags.
const targetHere = "arn:mayfly:here"

// spec is the trigger that the flags declare.
func (c triggerRunCommand) spec() (trigger.Spec, error) {
	patterns, err := c.patterns()
	if err != nil {
		return trigger.Spec{}, err
	}
	name := c.Table
	if name == "" {
		name = sourceText(c.Stream)
	}
	s := trigger.Spec{
		Name: orText(c.Name, shortenedName("run-"+name)), Table: c.Table, Stream: c.Stream, Target: targetHere, Start: strings.ToUpper(strings.ReplaceAll(c.From, "-", "_")),
		Filter: patterns, Batch: c.Batch, Window: time.Duration(c.Window), Parallel: c.Parallel, Bisect: c.Bisect, Partial: c.Partial, Retries: c.Retries,
		Age: time.Duration(c.MaxAge), OnFailure: c.OnFailure,
	}
	if c.Target != "" {
		s.Target = c.Target
	}
	if c.Unordered {
		s.Order = "none"
	}
	if c.PerRecord {
		s.Per = "record"
	}
	return s, trigger.CheckSpecs([]trigger.Spec{s})
}

// shortenedName keeps a name that is made of another within the 64 characters of a trigger's.
func shortenedName(name string) string { return name[:min(len(name), 64)] }

// mappings are the targets of the flags.
func (c triggerRunCommand) mappings(ctx context.Context, out io.Writer, arn string) (all []target.Mapping, shut func() error, err error) {
	shut = func() error { return nil }
	here := target.Mapping{ARN: arn, Name: "here", Limits: target.Limits{Concurrency: 16, Timeout: 15 * time.Minute}}
	switch {
	case c.Target != "" && c.Targets == "":
		return nil, nil, advise(errors.New("--target belongs to --targets"), "give the file that maps it")
	case c.Targets != "" && c.Target == "" && c.OnFailure == "":
		return nil, nil, advise(errors.New("--targets is of no use without --target"), "say which of the file's targets is meant")
	case len(c.Command) > 0 && (c.Print || c.Webhook != "" || c.Target != ""), len(c.Command) == 0 && !c.Print && c.Webhook == "" && c.Target == "":
		return nil, nil, advise(errors.New("one thing is to get the records"), "say --print, --webhook, --target, or give a command behind --")
	case c.Print:
		here.Target = target.Func(printer(out))
	case c.Webhook != "":
		if here.Target, err = target.NewWebhook(target.WebhookOptions{URL: c.Webhook, Secrets: c.WebhookSecret, Now: time.Now}); err != nil {
			err = fmt.Errorf("--webhook: %w", err)
		}
	case len(c.Command) > 0:
		here.Target, err = target.NewExec(target.ExecOptions{Command: c.Command})
	}
	if err == nil && c.Targets != "" {
		all, shut, err = targetfile.Load(ctx, c.Targets, targetfile.Options{Now: time.Now})
	}
	if err != nil {
		return nil, nil, err
	}
	if here.Target != nil {
		all = append(all, here)
	}
	return all, shut, nil
}

// printer writes each delivery on a line of its own.
func printer(out io.Writer) func(context.Context, target.Delivery) error {
	var mu sync.Mutex
	return func(_ context.Context, d target.Delivery) error {
		mu.Lock()
		defer mu.Unlock()
		_, err := fmt.Fprintf(out, "%s\n", d.Body)
		return err
	}
}
