package program

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/scheduler"
)

type scheduleDeleteCommand struct {
	Names  []string `arg:"" optional:"" name:"name" help:"Names of schedules."`
	All    bool     `help:"Delete all schedules of the group, or those of --prefix."`
	Prefix string   `help:"With --all: only names that begin with this." placeholder:"TEXT"`
	Yes    bool     `help:"With --all: do not ask for confirmation."`
	JSON   bool     `name:"json" help:"Print the number of deleted schedules as JSON."`
	scheduleFlags
}

func (scheduleDeleteCommand) Help() string {
	return `Examples:

    mayfly schedule delete tea coffee
    mayfly schedule delete --group billing --all --prefix invoice- --yes

A deleted schedule does not fire again. Deliveries of earlier firings continue.`
}

// Run deletes schedules.
func (c scheduleDeleteCommand) Run(ctx context.Context, s streams) error {
	if err := c.check(); err != nil {
		return err
	}
	e, err := c.connect(ctx, serviceScheduler)
	if err != nil {
		return err
	}
	if !c.All {
		names := make([]scheduleName, len(c.Names))
		for i, name := range c.Names {
			names[i] = scheduleName{c.GroupName, name}
		}
		deleted, err := c.delete(ctx, e, names)
		if deleted > 0 || c.JSON {
			return cmp.Or(c.print(s, deleted), err)
		}
		return err
	}
	what := "delete all schedules of the group " + c.GroupName
	if c.Prefix != "" {
		what += " whose names begin with " + c.Prefix
	}
	if err := confirm(s, c.Yes, what); err != nil {
		return err
	}
	return c.deleteAll(ctx, s, e)
}

func (c scheduleDeleteCommand) check() error {
	switch {
	case c.All && len(c.Names) > 0:
		return misused(errors.New("give names or --all, not both"), "")
	case !c.All && len(c.Names) == 0:
		return misused(errors.New("which schedules? give names, or --all with or without --prefix"), "mayfly schedule list")
	case !c.All && c.Prefix != "":
		return misused(errors.New("--prefix needs --all"), "add --all")
	}
	return nil
}

// deleteAll alternates between listing and deleting. Deleting while paging could skip some
// schedules.
func (c scheduleDeleteCommand) deleteAll(ctx context.Context, s streams, e *endpoint) error {
	const round = 10_000 // names in memory
	total := 0
	for {
		var names []scheduleName
		err := e.eachPage(ctx, schedulesAsked{group: c.GroupName, prefix: c.Prefix}, func(page []scheduleName) error {
			if names = append(names, page...); len(names) >= round {
				return errEnough
			}
			return nil
		})
		if err != nil {
			return err
		}
		deleted, err := c.delete(ctx, e, names)
		if total += deleted; err != nil || len(names) < round {
			return cmp.Or(c.print(s, total), err)
		}
	}
}

// print prints how many schedules were deleted.
func (c scheduleDeleteCommand) print(s streams, deleted int) error {
	if c.JSON {
		return writeJSON(s.out, map[string]int{"deleted": deleted})
	}
	_, err := fmt.Fprintf(s.out, "deleted %s\n", counted(deleted, "schedule"))
	return err
}

// delete deletes schedules and returns the first failure. A missing schedule is one only if the
// user named it.
func (c scheduleDeleteCommand) delete(ctx context.Context, e *endpoint, names []scheduleName) (deleted int, err error) {
	client := e.Scheduler()
	failed := inParallel(parallelMax, names, func(n scheduleName) error {
		_, err := client.DeleteSchedule(ctx, &scheduler.DeleteScheduleInput{Name: &n.name, GroupName: &n.group})
		return err
	})
	for _, f := range failed {
		switch {
		case f == nil:
			deleted++
		case c.All && answered(f, "ResourceNotFoundException"):
		case err == nil:
			err = e.adviseSchedule(f, c.GroupName)
		}
	}
	return deleted, err
}

// counted returns a number with its noun.
func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
