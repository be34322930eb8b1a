package strict

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/mayflydb/mayfly/internal/clock"
	"github.com/mayflydb/mayfly/internal/store/dynamo"
)

// An item that was hidden too early is visible again in the next answer, but a removed item is
// lost. So an item is removed only if it has expired by this machine's clock, and by the Date header
// of the answer that showed the item, while the two agree. That header has whole seconds, rounded
// down, so it is never ahead of the endpoint's clock.

const (
	headerDate = "Date"
	// in ms: how far the endpoint's clock may be behind a deadline for which due waits
	dueSoon = 2000
	// between two attempts; attemptsMax of them are longer than dueSoon
	duePause = 250 * time.Millisecond
)

// due reports whether an item that has expired at the request's instant may be removed: whether it
// has also expired by date, the Date of the endpoint's answer. If it expires there within dueSoon,
// due pauses and returns false, and the caller repeats its write. If it expires there later, if date
// is no time, or if the endpoint's clock is in doubt, due returns an error. With Rules.Now, every
// expired item is due.
func (c *call) due(ctx context.Context, deadline json.RawMessage, date string) (bool, error) {
	if !c.rules.bounded {
		return true, nil
	}
	if err := c.time.doubt(); err != nil { // it may have begun with the answer
		return false, err
	}
	at, _ := deadlineOf(deadline)
	there, err := http.ParseTime(date)
	if err != nil {
		return false, early("the endpoint's answers have no Date header")
	}
	switch wait := at - min(there.UnixMilli(), c.time.Machine(c.time.local.Millis())); {
	case wait <= 0:
		return true, nil
	case wait > dueSoon:
		return false, early("the endpoint's clock shows " + date + ", which is before the item's deadline: correct the wrong clock (NTP)")
	}
	clock.Pause(duePause, ctx.Done())
	return false, ctx.Err()
}

// early returns the error for an update of an item that has expired by this machine's clock only.
func early(why string) error {
	return &dynamo.Error{Code: dynamo.CodeTransactionConflict, Message: "strict reads: the item has expired by this machine's clock, and an update would remove it, but " + why}
}
