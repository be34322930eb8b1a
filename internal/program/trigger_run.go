package program

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/mayflydb/mayfly/internal/option"
	"github.com/mayflydb/mayfly/internal/work/host"
	"github.com/mayflydb/mayfly/internal/work/trigger"
	"github.com/mayflydb/mayfly/target"
)

type triggerRunCommand struct {
	Command []string `arg:"" optional:"" help:"Command to run for each batch, after --. It reads the batch from standard input." passthrough:""`

	Print         bool     `help:"Print the batches, one a line." xor:"to"`
	Webhook       string   `help:"URL to send the batches to." xor:"to" placeholder:"URL"`
	WebhookSecret []string `help:"Secret to sign webhooks with: whsec_ followed by base64. Prefer the environment: other users can read the command line." placeholder:"SECRET" secret:""`
	Targets       string   `help:"File of targets; see docs/targets.md." placeholder:"FILE"`
	Target        string   `help:"With --targets: ARN or name of the target for the batches." xor:"to" placeholder:"ARN"`

	Table  string `help:"Table whose stream to read; it may be created later." xor:"source" required:"" placeholder:"NAME"`
	Stream string `help:"Stream to read." xor:"source" required:"" placeholder:"ARN"`
	Name   string `help:"Name of the trigger. Workers with one name share the shards and continue where another stopped. Default: run- and the table." placeholder:"NAME"`
	From   string `help:"Where to begin the first time: at the oldest record (trim-horizon), or with new records (latest)." enum:"trim-horizon,latest" default:"latest"`
	filterFlags
	Batch     int    `help:"Most records in a batch, 1 to 10000." default:"100"`
	Window    span   `help:"Time to gather records for a batch, up to 5m." default:"0s"`
	Parallel  int    `help:"Parallel batches for each shard, 1 to 1000. Records of one key stay in order." default:"1"`
	PerRecord bool   `help:"Send records one by one instead."`
	Unordered bool   `help:"Park failed records so that later ones continue. Their next attempts are items with deadlines, so they are as late as the endpoint's removals."`
	Bisect    bool   `help:"Split a failed batch in two."`
	Partial   bool   `help:"The target's answer may list the failed records."`
	Retries   *int   `help:"Attempts after the first; -1: no limit. Default: -1, or 185 with --unordered." placeholder:"N"`
	MaxAge    span   `help:"Give up records older than this, 1m to 7d. Default: no limit, or 1d with --unordered." default:"0s" placeholder:"TIME"`
	OnFailure string `help:"With --targets: ARN or name of the target for records that were given up." placeholder:"ARN"`

	workFlags
}

func (triggerRunCommand) Help() string {
	return `Examples:

    mayfly trigger run --table orders --print
    mayfly trigger run --table orders --expired -- ./on-expiry.sh --fast
    mayfly trigger run --endpoint aws --table orders --name audit --webhook https://example.com/audit --per-record
    mayfly trigger run --table orders --targets targets.yaml --target arn:aws:sqs:us-east-1:000000000000:jobs --retries 5

It is a mayfly worker with a single trigger, which the flags declare. It reads the stream of a table at any endpoint
until stopped. Its position is kept in the table mayfly.leases there, given-up records in mayfly.deadletters. Any number
of workers with one --name share the work.`
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
	o := host.Options{Account: accountAnywhere, Targets: mappings, Triggers: []trigger.Spec{spec}, Aside: spec.Name}
	return errors.Join(c.work(ctx, s, e, o, nil, "", nil), shut())
}

// accountAnywhere is the account in ARNs of triggers that run here.
const accountAnywhere = "000000000000"

// targetHere is the ARN of the destination that the flags set.
const targetHere = "arn:mayfly:here"

// spec returns the trigger that the flags declare.
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
		Name: cmp.Or(c.Name, shortenedName("run-"+name)), Table: c.Table, Stream: c.Stream, Target: targetHere, Start: strings.ToUpper(strings.ReplaceAll(c.From, "-", "_")),
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
	return s, c.misusedSpec(trigger.CheckSpecs([]trigger.Spec{s}))
}

// misusedSpec returns the error for wrong settings of a trigger, with the flags' names.
func (c triggerRunCommand) misusedSpec(err error) error {
	if err == nil {
		return nil
	}
	return misusedOptions(err, func(setting string) string {
		switch {
		// it is derived from the table or the stream, about which there is a complaint too
		case setting == "name" && c.Name == "":
			return ""
		case setting == "age":
			setting = "max-age"
		}
		return "--" + setting
	}, "mayfly trigger run --help")
}

// shortenedName returns the first 64 characters, the limit for a trigger's name.
func shortenedName(name string) string { return name[:min(len(name), 64)] }

// mappings returns the targets of the flags.
func (c triggerRunCommand) mappings(ctx context.Context, out io.Writer, arn string) ([]target.Mapping, func() error, error) {
	here, err := c.destination(out)
	if err != nil {
		return nil, nil, err
	}
	all, shut, err := openTargets(ctx, c.Targets, c.logger(os.Stderr))
	if err == nil && here != nil {
		limits := target.Limits{Concurrency: 16, Timeout: 15 * time.Minute}
		all = append(all, target.Mapping{ARN: arn, Name: "here", Target: here, Limits: limits})
	}
	return all, shut, err
}

// destination returns the target of the flags, or nil if it is one of the file's targets.
func (c triggerRunCommand) destination(out io.Writer) (target.Target, error) {
	byFlag := c.Print || c.Webhook != "" || c.Target != ""
	switch {
	case c.Target != "" && c.Targets == "":
		return nil, misused(errors.New("--target needs --targets"), "set --targets to the file that maps it")
	case c.Targets != "" && c.Target == "" && c.OnFailure == "":
		return nil, misused(errors.New("--targets needs --target"), "set --target to one of the file's targets")
	case byFlag == (len(c.Command) > 0):
		return nil, misused(errors.New("give exactly one destination for the records"), "--print, --webhook URL, --target ARN, or -- COMMAND")
	case c.Print:
		return target.Func(printer(out)), nil
	case c.Webhook != "":
		return c.webhook()
	case len(c.Command) > 0:
		command, err := target.NewExec(target.ExecOptions{Command: c.Command})
		if err != nil {
			return nil, misused(err, "")
		}
		return command, nil
	}
	return nil, nil
}

func (c triggerRunCommand) webhook() (target.Target, error) {
	webhook, err := target.NewWebhook(target.WebhookOptions{URL: c.Webhook, Secrets: c.WebhookSecret, Now: time.Now})
	if err == nil {
		return webhook, nil
	}
	next := "for example --webhook https://example.com/hook"
	var about *option.Error
	if errors.As(err, &about) && about.Options[0] == "secrets" {
		next = "a --webhook-secret is whsec_ followed by 24 to 64 bytes in base64"
	}
	return nil, misused(fmt.Errorf("--webhook: %w", err), "%s", next)
}

// printer returns a target that prints each delivery on a line.
func printer(out io.Writer) func(context.Context, target.Delivery) error {
	var mu sync.Mutex
	return func(_ context.Context, d target.Delivery) error {
		mu.Lock()
		defer mu.Unlock()
		_, err := fmt.Fprintf(out, "%s\n", d.Body)
		return err
	}
}
