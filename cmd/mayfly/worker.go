package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/scheduler"

	"github.com/mayflydb/mayfly"
	"github.com/mayflydb/mayfly/internal/clock"
	"github.com/mayflydb/mayfly/internal/front/sigv4"
	"github.com/mayflydb/mayfly/internal/work/host"
	"github.com/mayflydb/mayfly/internal/work/lease"
	"github.com/mayflydb/mayfly/internal/work/reminder"
	schedules "github.com/mayflydb/mayfly/internal/work/scheduler"
	"github.com/mayflydb/mayfly/internal/work/trigger"
	"github.com/mayflydb/mayfly/lifecycle"
)

type workerCommand struct {
	Port           int    `help:"Port to listen on for the APIs of schedules and triggers; 0 chooses a free one and prints it." default:"8001"`
	Host           string `help:"Address to listen on." default:"127.0.0.1"`
	InsecureListen bool   `help:"Allow an address that other machines can reach without credentials."`
	AccessKey      string `help:"Access key that requests must be signed with. Default: any credentials are accepted." placeholder:"KEY"`
	SecretKey      string `help:"Secret of the access key." placeholder:"SECRET"`

	targetFlags
	Triggers  string        `help:"YAML or JSON file of triggers, in addition to those made through the API. See docs/triggers.md." placeholder:"FILE"`
	Reminders string        `help:"YAML or JSON file of reminders. See docs/reminders.md." placeholder:"FILE"`
	CatchUp   string        `help:"Which missed occurrences fire, unless the schedule or its group sets it: last, all or skip." enum:"last,all,skip" default:"last"`
	Account   string        `help:"Account number in ARNs." default:"000000000000"`
	Lease     time.Duration `help:"Time after which others take over a silent worker's share." default:"10s"`

	endpointFlags
	logFlags
}

// Help returns the text of --help below the flags.
func (workerCommand) Help() string {
	return `Examples:

    mayfly serve --data ./data --database-only
    mayfly worker --endpoint http://127.0.0.1:8000 --targets targets.yaml
    AWS_ENDPOINT_URL_SCHEDULER=http://127.0.0.1:8001 mayfly schedule list

It runs schedules, triggers, reminders and lifecycles for another DynamoDB endpoint and keeps their state in tables
there. Any number of workers share the work. Firings are as punctual as the endpoint's removal of expired items: to the
millisecond if it is mayfly. Workers may have different files of reminders: each fires those of its own rules only.
mayfly serve does all this itself, unless it was started with --database-only.`
}

// Run runs the work until ctx is done.
func (c workerCommand) Run(ctx context.Context, s streams) error {
	if (c.AccessKey == "") != (c.SecretKey == "") {
		return misused(errors.New("--access-key and --secret-key need each other"), "set both, or neither")
	}
	if err := checkExposure(c.Host, c.AccessKey != "", c.InsecureListen); err != nil {
		return err
	}
	e, err := c.connect(ctx, serviceDynamoDB)
	if err != nil {
		return err
	}
	if err := e.checkAlone(ctx); err != nil {
		return err
	}
	listener, err := listen(c.Host, c.Port)
	if err != nil {
		return err
	}
	defer listener.Close()
	w, l, shut, err := c.worker(ctx, s, e, listener)
	if err != nil {
		return err
	}
	fmt.Fprintf(s.out, "working for %s\nlistening on http://%s\n", e.name(), listener.Addr())
	return errors.Join(e.advise(serveWorker(ctx, w, l, listener)), shut())
}

// checkAlone returns an error for an endpoint that fires schedules itself, or would fire them days
// late.
func (e *endpoint) checkAlone(ctx context.Context) error {
	if e.isAWS() {
		return advise(errors.New("schedules would fire days late, because Amazon removes expired items within days"), "use EventBridge Scheduler there; mayfly trigger run works with Amazon's streams")
	}
	if _, err := e.dynamodb().ListTables(ctx, nil); err != nil {
		return e.advise(err)
	}
	if _, err := e.scheduler().ListScheduleGroups(ctx, &scheduler.ListScheduleGroupsInput{MaxResults: aws.Int32(1)}); err == nil {
		return advise(fmt.Errorf("%s fires schedules itself", e.name()), "use its own schedules, or start it with mayfly serve --database-only")
	}
	return nil
}

// worker returns the worker that the flags configure.
func (c workerCommand) worker(ctx context.Context, s streams, e *endpoint, listener net.Listener) (*host.Worker, *lifecycle.Lifecycles, func() error, error) {
	var o mayfly.Options // carries the targets
	shut, err := c.targetFlags.open(ctx, listener.Addr().String(), &o)
	if err != nil {
		return nil, nil, nil, err
	}
	w := host.Options{
		DB: e.dynamodb(), Streams: e.streams(), Clock: clock.New(), Region: e.config.Region, Account: c.Account, Targets: o.Targets,
		Unmapped: o.Unmapped == mayfly.UnmappedAccept, CatchUp: schedules.CatchUp(c.CatchUp), Leases: lease.Options{Duration: c.Lease}, Logger: c.logger(s.err),
	}
	var credentials []sigv4.Credential
	if c.AccessKey != "" {
		credentials = append(credentials, sigv4.Credential{AccessKey: c.AccessKey, SecretKey: c.SecretKey})
	}
	if w.Triggers, err = readDeclared("triggers", c.Triggers, trigger.ReadSpecs); err == nil {
		w.Reminders, err = readDeclared("reminders", c.Reminders, reminder.ReadSpecs)
	}
	var l *lifecycle.Lifecycles
	if err == nil {
		l, err = lifecycle.New(lifecycle.Options{
			DB: w.DB, Streams: w.Streams, Now: w.Clock.Now, Targets: w.Targets, Unmapped: w.Unmapped, Lease: c.Lease, Region: w.Region, Account: w.Account, Logger: w.Logger,
		})
	}
	if err != nil {
		return nil, nil, nil, errors.Join(err, shut())
	}
	return host.NewWorker(w, credentials...), l, shut, nil
}

// serveWorker runs the worker and answers requests until ctx is done or one of them fails.
func serveWorker(ctx context.Context, w *host.Worker, l *lifecycle.Lifecycles, listener net.Listener) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	made := make(chan error, 1)
	go func() {
		defer cancel()
		made <- l.Run(ctx)
	}()
	server := &http.Server{Handler: w.Handler(), ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 2 * time.Minute, IdleTimeout: 3 * time.Minute}
	served := make(chan error, 1)
	go func() {
		defer cancel()
		served <- server.Serve(listener)
	}()
	err := w.Run(ctx)
	cancel()
	err = errors.Join(err, <-made)
	ending, stop := context.WithTimeout(context.Background(), 5*time.Second)
	defer stop()
	err = errors.Join(err, server.Shutdown(ending))
	if s := <-served; !errors.Is(s, http.ErrServerClosed) {
		err = errors.Join(err, s)
	}
	return err
}
