package program

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/scheduler"

	"github.com/mayflydb/mayfly"
	"github.com/mayflydb/mayfly/internal/work/host"
	"github.com/mayflydb/mayfly/internal/work/reminder"
	schedules "github.com/mayflydb/mayfly/internal/work/scheduler"
	"github.com/mayflydb/mayfly/internal/work/trigger"
)

type workerCommand struct {
	Port           int    `help:"Port to listen on for the APIs of schedules and triggers; 0 chooses a free one and prints it." default:"8001"`
	Host           string `help:"Address to listen on." default:"127.0.0.1"`
	InsecureListen bool   `help:"Allow an address that other machines can reach without credentials."`
	keyFlags
	auditFlags
	tlsFlags
	pageFlags

	targetFlags
	Triggers  string `help:"YAML or JSON file of triggers, in addition to those made through the API. See docs/triggers.md." placeholder:"FILE"`
	Reminders string `help:"YAML or JSON file of reminders. See docs/reminders.md." placeholder:"FILE"`
	CatchUp   string `help:"Which missed occurrences fire, unless the schedule or its group sets it: last, all or skip." enum:"last,all,skip" default:"last"`
	Account   string `help:"Account number in ARNs." default:"000000000000"`

	workFlags
}

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
	if err := c.keyFlags.check(c.Host, c.InsecureListen || c.TLSClientCA != ""); err != nil {
		return err
	}
	pages, err := c.pageFlags.rules()
	if err != nil {
		return err
	}
	e, err := c.connect(ctx, serviceDynamoDB)
	if err != nil {
		return err
	}
	if err := e.checkAlone(ctx); err != nil {
		return err
	}
	listener, url, err := c.listen(c.Host, c.Port, s.out, c.logger(s.err))
	if err != nil {
		return err
	}
	defer listener.Close()
	o := host.Options{
		Account: c.Account, Unmapped: c.Unmapped == mayfly.UnmappedAccept, CatchUp: schedules.CatchUp(c.CatchUp),
		Pages: pages, MetricsPublic: c.MetricsPublic,
	}
	var shut func() error
	if o.Targets, shut, err = openTargets(ctx, c.Targets, c.logger(s.err), listener.Addr().String()); err != nil {
		return err
	}
	ring, err := c.ring(ctx, c.logger(s.err))
	if err != nil {
		return errors.Join(err, shut())
	}
	if o.Audit, err = c.auditFlags.open(c.logger(s.err)); err != nil {
		return errors.Join(err, shut())
	}
	defer o.Audit.Close()
	if o.Triggers, err = readDeclared("triggers", c.Triggers, trigger.ReadSpecs); err == nil {
		o.Reminders, err = readDeclared("reminders", c.Reminders, reminder.ReadSpecs)
	}
	if err == nil {
		err = c.work(ctx, s, e, o, listener, url, ring)
	}
	return errors.Join(err, shut())
}

// checkAlone returns an error for an endpoint that fires schedules itself, or would fire them days
// late.
func (e *endpoint) checkAlone(ctx context.Context) error {
	if e.IsAWS() {
		return advise(errors.New("schedules would fire days late, because Amazon removes expired items within days"), "use EventBridge Scheduler there; mayfly trigger run works with Amazon's streams")
	}
	if _, err := e.DynamoDB().ListTables(ctx, nil); err != nil {
		return e.advise(err)
	}
	if _, err := e.Scheduler().ListScheduleGroups(ctx, &scheduler.ListScheduleGroupsInput{MaxResults: aws.Int32(1)}); err == nil {
		return advise(fmt.Errorf("%s fires schedules itself", e.name()), "use its own schedules, or start it with mayfly serve --database-only")
	}
	return nil
}
