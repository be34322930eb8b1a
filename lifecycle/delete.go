package lifecycle

import (
	"context"
	"errors"
	"fmt"
)

// DeleteOptions say what becomes of entities that are under way.
type DeleteOptions struct {
	Cancel   bool                          // they are cancelled. Default: the lifecycle is not deleted as long as there are any
	Progress func(cancelled, underWay int) // is told how many of those that were there are cancelled, from time to time; must be quick. Default: nobody is told
}

// UnderWay says that a lifecycle cannot be deleted: entities are under way.
type UnderWay struct {
	Entities int
	More     bool // they were not counted further
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
	underWayMost = 1000                        // entities that are counted
	noteDeleted  = "the lifecycle was deleted" // of events
)

// DeleteLifecycle deletes a definition. Nobody is called because of that: entities under way are cancelled, or it is refused with *UnderWay. What has happened already goes on: calls
// that are under way are made. Entities that have ended, and the history, stay for their times; Get and History still give them. The same definition, or another of its name, can
// be applied again. An entity that cannot be cancelled, as its item would be larger than one may be, is the error when all others are. It gives how many entities were cancelled: without Cancel too, one that was created in that very moment may be. If it is broken off while it cancels, nothing fires any
// more, and it can be called again, or Apply.
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

// underWay counts the entities under way, until there are more than most; 0: all of them.
func (l *Lifecycles) underWay(ctx context.Context, lifecycle string, most int) (n int, err error) {
	enough := errors.New("enough")
	err = l.each(ctx, lifecycle, func(e *entity) error {
		if e.ended == "" {
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

// cancelAll cancels the entities of a lifecycle that was deleted, until none is under way, and tells how many it has cancelled in each transaction. Those that cannot be cancelled do not
// hold up the others, and are the error then.
func (l *Lifecycles) cancelAll(ctx context.Context, lifecycle string, tell func(n int)) error {
	for {
		p, err := l.planOf(ctx, lifecycle)
		if err != nil {
			return err
		}
		if !p.deleted {
			return fmt.Errorf("lifecycle %q was applied at the same time by another process; try again", lifecycle)
		}
		found, never := 0, &cannotCancel{lifecycle: lifecycle}
		var changes []*change
		flush := func() error {
			err := l.cancelSome(ctx, changes, tell, never)
			changes = changes[:0] // those that were refused are found again
			return err
		}
		err = l.each(ctx, lifecycle, func(e *entity) error {
			if e.ended != "" {
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
		case found > never.entities:
		case found > 0:
			return never
		default:
			return nil
		}
	}
}

// cannotCancel says which entities of a deleted lifecycle are still under way, and have to stay so.
type cannotCancel struct {
	lifecycle string
	entities  int
	first     string // of them
	why       error  // of the first
}

func (e *cannotCancel) Error() string {
	others := ""
	if e.entities > 1 {
		others = fmt.Sprintf(", nor can %d others", e.entities-1)
	}
	return fmt.Sprintf("%s %q cannot be cancelled%s: %s; make its item in table %s smaller", e.lifecycle, e.first, others, inShort(e.why), EntityTable(e.lifecycle))
}

// cancelSome cancels entities in one transaction; where that is impossible, because one of them or all together are too large, one by one.
func (l *Lifecycles) cancelSome(ctx context.Context, changes []*change, tell func(n int), never *cannotCancel) error {
	refused, err := l.transact(ctx, changes)
	switch {
	case impossible(err) && len(changes) > 1:
		for i := range changes {
			if err := l.cancelSome(ctx, changes[i:i+1], tell, never); err != nil {
				return err
			}
		}
		return nil
	case impossible(err):
		if never.entities++; never.why == nil {
			never.first, never.why = changes[0].id(), err
		}
		return nil
	case err == nil && len(refused) == 0:
		tell(len(changes))
	}
	return err
}
