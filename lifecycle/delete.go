package lifecycle

import (
	"context"
	"errors"
	"fmt"
)

// DeleteOptions control the effect of DeleteLifecycle on active entities.
type DeleteOptions struct {
	// cancel active entities. Default: refuse to delete while there are any
	Cancel bool
	// called now and then with the number of cancelled entities; must return quickly. Default: none
	Progress func(cancelled, underWay int)
}

// UnderWay is the error for a lifecycle that cannot be deleted because it has active entities.
type UnderWay struct {
	Entities int
	More     bool // there are more than were counted
}

func (e *UnderWay) Error() string {
	more := ""
	if e.More {
		more = " or more"
	}
	if e.Entities == 1 {
		return "1 entity is under way"
	}
	return fmt.Sprintf("%d%s entities are under way", e.Entities, more)
}

const (
	underWayMost = 1000                        // most active entities that are counted
	noteDeleted  = "the lifecycle was deleted" // of events
)

// DeleteLifecycle deletes a definition and returns the number of entities that it cancelled. If
// there are active entities, it cancels them with o.Cancel, and otherwise returns *UnderWay. A
// cancellation calls no handler. Calls that are under way are still made.
//
// Ended entities and the history stay until they expire, and Get and History still return them. The
// same definition, or another of its name, can be applied again.
//
// An entity whose item would become too large cannot be cancelled. The call then returns an error
// after it has cancelled the others. Without o.Cancel, an entity that is created at the same moment
// may still be cancelled. After an interruption nothing fires; call DeleteLifecycle or Apply again.
func (l *Lifecycles) DeleteLifecycle(ctx context.Context, name string, o DeleteOptions) (cancelled int, err error) {
	p, err := l.planOf(ctx, name)
	if err != nil {
		return 0, err
	}
	most := underWayMost
	if o.Cancel {
		most = 0
	}
	underWay, err := l.underWay(ctx, name, most)
	switch {
	case err != nil:
		return 0, err
	case p.deleted && underWay == 0:
		return 0, fmt.Errorf("%w: %q", ErrNoLifecycle, name)
	case underWay > 0 && !o.Cancel:
		return 0, fmt.Errorf("%s: %w", name, &UnderWay{min(underWay, most), underWay > most})
	}
	if !p.deleted {
		d, err := l.load(ctx, name)
		if err != nil {
			return 0, err
		}
		d.deleted = true
		if d.version++; d.version != p.version+1 {
			return 0, fmt.Errorf("lifecycle %q was changed at the same time by another process; try again", name)
		}
		if err := l.store(ctx, name, d); err != nil {
			return 0, err
		}
	}
	err = l.cancelAll(ctx, name, func(n int) {
		if cancelled += n; o.Progress != nil {
			o.Progress(cancelled, max(underWay, cancelled))
		}
	})
	return cancelled, err
}

// underWay counts the active entities, up to most; 0 counts all.
func (l *Lifecycles) underWay(ctx context.Context, lifecycle string, most int) (n int, err error) {
	enough := errors.New("enough")
	err = l.each(ctx, lifecycle, func(e *entity) error {
		if e.end == "" {
			n++
		}
		if most > 0 && n > most {
			return enough
		}
		return nil
	})
	if errors.Is(err, enough) {
		err = nil
	}
	return n, err
}

// cancelAll cancels the entities of a deleted lifecycle until none is active, and calls tell with
// the number cancelled in each transaction. An entity that cannot be cancelled does not hold up the
// others; it becomes the error at the end.
func (l *Lifecycles) cancelAll(ctx context.Context, lifecycle string, tell func(n int)) error {
	for {
		p, err := l.planOf(ctx, lifecycle)
		if err != nil {
			return err
		}
		if !p.deleted {
			return fmt.Errorf("lifecycle %q was applied at the same time by another process; try again", lifecycle)
		}
		found, failed := 0, &cannotCancel{lifecycle: lifecycle}
		var changes []*change
		flush := func() error {
			err := l.cancelSome(ctx, changes, tell, failed)
			changes = changes[:0] // the next scan finds refused entities again
			return err
		}
		err = l.each(ctx, lifecycle, func(e *entity) error {
			if e.end != "" {
				return nil
			}
			found++
			c := cancelling(p, e, l.now())
			c.event.Note = noteDeleted
			if changes = append(changes, c); len(changes) < batchFirings {
				return nil
			}
			return flush()
		})
		if err == nil && len(changes) > 0 {
			err = flush()
		}
		switch {
		case err != nil:
			return err
		case found > failed.entities:
		case found > 0:
			return failed
		default:
			return nil
		}
	}
}

// cannotCancel collects the entities of a deleted lifecycle that must stay active.
type cannotCancel struct {
	lifecycle string
	entities  int
	first     string // the first such entity
	why       error  // the error of the first
}

func (e *cannotCancel) Error() string {
	others := ""
	if e.entities > 1 {
		others = fmt.Sprintf(", nor can %d others", e.entities-1)
	}
	return fmt.Sprintf("%s %q cannot be cancelled%s: %s; make its item in table %s smaller", e.lifecycle, e.first, others, reasonOf(e.why), EntityTable(e.lifecycle))
}

// cancelSome cancels entities in one transaction. If the transaction is impossible because of its
// size, it cancels them one by one.
func (l *Lifecycles) cancelSome(ctx context.Context, changes []*change, tell func(n int), failed *cannotCancel) error {
	refused, err := l.transact(ctx, changes)
	switch {
	case impossible(err) && len(changes) > 1:
		for i := range changes {
			if err := l.cancelSome(ctx, changes[i:i+1], tell, failed); err != nil {
				return err
			}
		}
		return nil
	case impossible(err):
		if failed.entities++; failed.why == nil {
			failed.first, failed.why = changes[0].id(), err
		}
		return nil
	case err == nil && len(refused) == 0:
		tell(len(changes))
	}
	return err
}
