package strict

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/mayflydb/mayfly/internal/clock"
	"github.com/mayflydb/mayfly/internal/store/dynamo"
)

// Hiding an item too early is put right by the next answer; removing it is not. So an item is removed only where it has expired by what is known of the endpoint's clock, or else by this
// machine's, and by the Date header of the very answer that has shown the item, too. That tells whole seconds, the begun one cut off, so it is never ahead of the endpoint's clock.

const (
	headerDate = "Date"
	dueSoon    = 2000                   // ms by which the endpoint's clock may be behind a deadline for it to be waited for
	duePause   = 250 * time.Millisecond // between two attempts meanwhile; attemptsMax of them are longer than dueSoon
)

// due reports whether an item that has expired by this machine's clock may be removed: by the endpoint's it has, too. Where it soon will have, due waits for a while, and the caller asks
// again. date is the endpoint's Date.
func (c *call) due(ctx context.Context, deadline json.RawMessage, date string) (bool, error) {
	if !c.rules.bounded {
		return true, nil
	}
	at, _ := deadlineOf(deadline)
	there, err := http.ParseTime(date)
	switch {
	case err != nil:
		return false, early("the endpoint's answers have no Date header")
	case there.UnixMilli() >= at:
		return true, nil
	case there.UnixMilli() < at-dueSoon:
		return false, early("the endpoint's clock shows " + date + ", which is before the item's deadline: correct the wrong clock (NTP)")
	}
	clock.Pause(duePause, ctx.Done())
	return false, ctx.Err()
}

// early is the answer to an update of an item that has expired by this machine's clock only.
func early(why string) error {
	return &dynamo.Error{Code: dynamo.CodeTransactionConflict, Message: "strict reads: the item has expired by this machine's clock, and an update would remove it, but " + why}
}
