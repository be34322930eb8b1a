package program

import (
	"context"
	"errors"
	"fmt"

	"github.com/mayflydb/mayfly/lifecycle"
)

type lifecycleDeleteCommand struct {
	Lifecycle string `arg:"" help:"Name of the lifecycle."`
	Entity    string `arg:"" optional:"" help:"Name of the entity. Default: delete the whole lifecycle."`
	Cancel    bool   `help:"Cancel the entities that are under way. Without it, a lifecycle with such entities is not deleted."`
	Yes       bool   `help:"Delete a lifecycle without asking for confirmation."`
	JSON      bool   `name:"json" help:"Print JSON."`
	endpointFlags
}

func (lifecycleDeleteCommand) Help() string {
	return `Examples:

    mayfly lifecycle delete trial ada
    mayfly lifecycle delete trial --yes
    mayfly lifecycle delete trial --cancel --yes

No handler is called. The history of entities stays readable until its retention ends, and calls under way are
completed. A deleted lifecycle can be applied again.`
}

// Run deletes an entity, or a lifecycle.
func (c lifecycleDeleteCommand) Run(ctx context.Context, s streams) error {
	if c.Entity != "" {
		if c.Cancel {
			return misused(fmt.Errorf("--cancel works on a whole lifecycle, not on its entity %q", c.Entity), "drop --cancel, or use mayfly lifecycle cancel")
		}
		entity := entityCommand{c.Lifecycle, c.Entity, c.JSON, c.endpointFlags}
		return entity.change(ctx, s, (*lifecycle.Lifecycles).Delete)
	}
	e, l, err := c.lifecycles(ctx)
	if err != nil {
		return err
	}
	if !c.Yes {
		if err := c.confirmIfIdle(ctx, s, l); err != nil {
			return e.adviseLifecycle(err, c.Lifecycle, c.Entity)
		}
	}
	cancelled, err := l.DeleteLifecycle(ctx, c.Lifecycle, lifecycle.DeleteOptions{})
	var underWay *lifecycle.UnderWay
	if c.Cancel && errors.As(err, &underWay) { // also after an interrupted deletion
		if err := confirm(s, c.Yes, fmt.Sprintf("cancel entities of lifecycle %s (%v), and delete it", c.Lifecycle, underWay)); err != nil {
			return err
		}
		b := newBar(s.err)
		cancelled, err = l.DeleteLifecycle(ctx, c.Lifecycle, lifecycle.DeleteOptions{Cancel: true, Progress: func(cancelled, underWay int) {
			b.draw(int64(cancelled), int64(underWay), fmt.Sprintf("%d of %d entities are cancelled", cancelled, underWay))
		}})
		b.clear()
	}
	if err != nil {
		return e.adviseLifecycle(err, c.Lifecycle, c.Entity)
	}
	if c.JSON {
		return writeJSON(s.out, map[string]any{"lifecycle": c.Lifecycle, "deleted": true, "cancelled": cancelled})
	}
	fmt.Fprintf(s.out, "deleted %s", c.Lifecycle)
	switch cancelled {
	case 0:
	case 1:
		fmt.Fprint(s.out, "; cancelled 1 entity")
	default:
		fmt.Fprintf(s.out, "; cancelled %d entities", cancelled)
	}
	_, err = fmt.Fprintln(s.out)
	return err
}

// confirmIfIdle asks for confirmation to delete a lifecycle that exists and has no entity under way.
// DeleteLifecycle refuses the others without another option.
func (c lifecycleDeleteCommand) confirmIfIdle(ctx context.Context, s streams, l *lifecycle.Lifecycles) error {
	if _, _, err := l.Definition(ctx, c.Lifecycle); errors.Is(err, lifecycle.ErrNoLifecycle) {
		return nil
	} else if err != nil {
		return err
	}
	busy := false
	err := l.Each(ctx, c.Lifecycle, func(en lifecycle.Entity) error {
		busy = busy || en.Ended == ""
		return nil
	})
	if err != nil || busy {
		return err
	}
	return confirm(s, false, "delete lifecycle "+c.Lifecycle)
}
