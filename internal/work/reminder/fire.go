package reminder

import (
	"context"
	"time"

	"github.com/mayflydb/mayfly/internal/work/attr"
	"github.com/mayflydb/mayfly/internal/work/deliver"
	"github.com/mayflydb/mayfly/internal/work/timer"
)

// newTimers returns the timers of a rule's reminders. Each version of a rule has its own and skips
// the reminders of others: workers with different rules may share the table.
func (r *rule) newTimers() *timer.Timers {
	return timer.New(timer.Options{
		Name: "reminders." + r.Name + "." + r.version, Table: tableSpec, DB: r.o.DB, Streams: r.o.Streams, Now: r.o.Now, Leases: r.o.Leases,
		Registry: r.o.Registry, Mark: r.o.Mark, Logger: r.o.Logger, Fire: r.fire, Settle: r.o.Courier.Settle,
	})
}

// RestoreTable creates what is missing of the table with that name, if it is the table of reminders
// and there are rules. It returns the ARN of its stream; "" for any other table.
func (m *Reminders) RestoreTable(ctx context.Context, table string) (streamARN string, err error) {
	for _, r := range m.rules {
		return r.timers.Restore(ctx, table) // the table is the same for every rule
	}
	return "", nil
}

// fire dispatches the rule's reminders that are due. A firing is done when its delivery is made,
// parked or a dead letter.
func (r *rule) fire(ctx context.Context, firings []timer.Firing) error {
	for _, f := range firings {
		it := f.Item
		ours := attr.String(it[attrKind]) == kindReminder && attr.String(it[attrRule]) == r.Name && attr.String(it[attrVersion]) == r.version
		if ours {
			var err error
			if ours, err = r.fired(ctx, it); err != nil {
				return err
			}
		}
		if !ours {
			f.Done()
			continue
		}
		r.o.Courier.Deliver(ctx, r.parcel(attr.String(it[attrKey]), dueOf(it), []byte(attr.String(it[attrInput]))), f.Done)
	}
	return nil
}

// parcel returns the delivery of a reminder.
func (r *rule) parcel(key string, due time.Time, input []byte) deliver.Parcel {
	return deliver.Parcel{Delivery: r.delivery(key, due, input), Policy: r.policy(), DeadLetter: r.OnFailure, Group: r.group(), First: r.o.Now()}
}

// dueOf returns the instant at which a reminder is or was due.
func dueOf(it item) time.Time {
	ms, ok := attr.AsInteger(it[attrAt])
	if !ok {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}
