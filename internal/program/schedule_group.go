package program

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/scheduler"
	"github.com/aws/aws-sdk-go-v2/service/scheduler/types"

	"github.com/mayflydb/mayfly/internal/when"
)

// scheduleGroupCommand manages schedule groups.
type scheduleGroupCommand struct {
	Create scheduleGroupCreateCommand `cmd:"" help:"Create a schedule group."`
	List   scheduleGroupListCommand   `cmd:"" help:"List schedule groups."`
	Delete scheduleGroupDeleteCommand `cmd:"" help:"Delete a schedule group and all its schedules."`
}

func (scheduleGroupCommand) Help() string {
	return `Example:

    mayfly schedule group create billing`
}

const tagCatchUp = "mayfly:catch-up"

type scheduleGroupCreateCommand struct {
	Name    string            `arg:"" help:"Name of the group."`
	CatchUp string            `help:"Which missed occurrences fire, for schedules without a setting of their own: last, all or skip. An extension of mayfly. Default: last." enum:"last,all,skip," default:"" placeholder:"WHICH"`
	Tag     map[string]string `help:"Tags of the group." placeholder:"KEY=VALUE"`
	JSON    bool              `name:"json" help:"Print the group's name and ARN as JSON."`
	endpointFlags
}

func (scheduleGroupCreateCommand) Help() string {
	return `Examples:

    mayfly schedule group create billing
    mayfly schedule group create cleaning --catch-up skip --tag team=ops`
}

// Run creates the group.
func (c scheduleGroupCreateCommand) Run(ctx context.Context, s streams) error {
	e, err := c.connect(ctx, serviceScheduler)
	if err != nil {
		return err
	}
	if c.CatchUp != "" && e.IsAWS() {
		return advise(errors.New("--catch-up is an extension of mayfly; Amazon's service does not have it"), "drop it; Amazon's service always fires the last missed occurrence")
	}
	var tags []types.Tag
	for key, value := range c.Tag {
		tags = append(tags, types.Tag{Key: &key, Value: &value})
	}
	if c.CatchUp != "" {
		tags = append(tags, types.Tag{Key: aws.String(tagCatchUp), Value: &c.CatchUp})
	}
	created, err := e.Scheduler().CreateScheduleGroup(ctx, &scheduler.CreateScheduleGroupInput{Name: &c.Name, Tags: tags})
	if err != nil {
		return e.advise(err)
	}
	if c.JSON {
		return writeJSON(s.out, struct{ Name, Arn string }{c.Name, aws.ToString(created.ScheduleGroupArn)})
	}
	fmt.Fprintf(s.out, "created group %s\n", c.Name)
	return nil
}

type scheduleGroupListCommand struct {
	Prefix string `help:"Only names that begin with this." placeholder:"TEXT"`
	JSON   bool   `name:"json" help:"Print JSON lines."`
	endpointFlags
}

func (scheduleGroupListCommand) Help() string {
	return `Example:

    mayfly schedule group list`
}

// Run lists groups.
func (c scheduleGroupListCommand) Run(ctx context.Context, s streams) error {
	e, err := c.connect(ctx, serviceScheduler)
	if err != nil {
		return err
	}
	in := &scheduler.ListScheduleGroupsInput{MaxResults: aws.Int32(100)}
	if c.Prefix != "" {
		in.NamePrefix = &c.Prefix
	}
	shown := listing{table: table{heading: []string{"Name", "State", "Created (UTC)"}}, json: c.JSON}
	for pages := scheduler.NewListScheduleGroupsPaginator(e.Scheduler(), in); pages.HasMorePages(); {
		out, err := pages.NextPage(ctx)
		if err != nil {
			return e.advise(err)
		}
		for _, g := range out.ScheduleGroups {
			line := struct {
				Arn, Name, State                   *string
				CreationDate, LastModificationDate *wireTime
			}{g.Arn, g.Name, aws.String(string(g.State)), (*wireTime)(g.CreationDate), (*wireTime)(g.LastModificationDate)}
			err := shown.show(s, line, aws.ToString(g.Name), string(g.State), when.UTC(aws.ToTime(g.CreationDate)))
			if err != nil {
				return err
			}
		}
	}
	return shown.end(s)
}

type scheduleGroupDeleteCommand struct {
	Name string `arg:"" help:"Name of the group."`
	Yes  bool   `help:"Do not ask for confirmation."`
	JSON bool   `name:"json" help:"Print the name of the deleted group as JSON."`
	endpointFlags
}

func (scheduleGroupDeleteCommand) Help() string {
	return `Example:

    mayfly schedule group delete billing`
}

// Run deletes the group.
func (c scheduleGroupDeleteCommand) Run(ctx context.Context, s streams) error {
	e, err := c.connect(ctx, serviceScheduler)
	if err != nil {
		return err
	}
	if err := confirm(s, c.Yes, "delete the group "+c.Name+" and all its schedules"); err != nil {
		return err
	}
	if _, err := e.Scheduler().DeleteScheduleGroup(ctx, &scheduler.DeleteScheduleGroupInput{Name: &c.Name}); err != nil {
		if answered(err, "ResourceNotFoundException") {
			return advise(e.advise(err), "mayfly schedule group list")
		}
		return e.advise(err)
	}
	if c.JSON {
		return writeJSON(s.out, map[string]string{"deleted": c.Name})
	}
	fmt.Fprintf(s.out, "deleted group %s\n", c.Name)
	return nil
}
