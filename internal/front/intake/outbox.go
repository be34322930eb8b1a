package intake

import (
	"context"
	"strings"
)

// Outbox bounds the memory of large answers, from their completion until their clients have read
// them. Its methods are safe for concurrent use.
type Outbox struct {
	sending *Budget
	queue   *Budget // of those that wait for room in sending
}

// NewOutbox returns an outbox for so many bytes of answers that are being sent, and as many that
// wait, at least LeastBudget.
func NewOutbox(size int64) *Outbox { return &Outbox{NewBudget(size), NewBudget(size)} }

// Take takes room for an answer, and waits for it if there is none, for Patience at most. It reports
// false if the wait is without success, or if too many answers wait already. A small answer needs no
// room: its hold is nil. The caller releases the hold. An answer larger than the outbox takes all of
// it.
func (o *Outbox) Take(ctx context.Context, bytes int64) (*Hold, bool) {
	if bytes <= SmallMax {
		return nil, true
	}
	bytes = min(bytes, o.sending.large.size) // a larger one takes all
	if hold := o.sending.Try(bytes); hold != nil {
		return hold, true
	}
	queued := o.queue.Try(bytes)
	if queued == nil {
		o.sending.refused.Add(1)
		return nil, false
	}
	defer queued.Release()
	hold, err := o.sending.Take(ctx, bytes)
	return hold, err == nil
}

// Used returns the bytes of the answers that are being sent.
func (o *Outbox) Used() int64 { return o.sending.Used() }

// Refused returns the number of answers for which there was no room in time.
func (o *Outbox) Refused() int64 { return o.sending.Refused() }

// ReadsOnly reports whether an operation, by its name, changes nothing, so that its answer may be
// replaced by an error: a client repeats it without harm.
func ReadsOnly(operation string) bool {
	_, name, mounted := strings.Cut(operation, ":")
	if !mounted {
		name = operation
	}
	for _, verb := range []string{"Get", "Query", "Scan", "BatchGet", "TransactGet", "List", "Describe"} {
		if strings.HasPrefix(name, verb) {
			return true
		}
	}
	return false
}
