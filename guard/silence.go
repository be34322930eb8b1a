package guard

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// An endpoint may accept a connection and never respond. So each attempt of a call has a time
// limit. After that the attempt has failed like one with a broken connection: its outcome is
// unknown, and the SDK and then the caller repeat it with growing pauses. That is safe, because
// removals and guard's own writes are conditional.

const (
	answerLimit = 10 * time.Second // for an answer that the endpoint does not hold back

	// asks mayfly's GetRecords to hold its response so long while there is no record; the response
	// has the granted time
	headerWait = "X-Mayfly-Wait-Ms"
	waitFirst  = 20 * time.Second // the limit of the first wait, and the least limit later
)

// silence is the error of an attempt without a response within its limit. For the SDK it is a
// timeout like any other.
type silence struct {
	operation string
	limit     time.Duration
}

func (e *silence) Error() string {
	return fmt.Sprintf("%s got no answer within %v", e.operation, e.limit)
}
func (e *silence) Unwrap() error { return context.DeadlineExceeded }

// limitAnswers limits how long each attempt of a client's calls waits for the end of its response.
func (g *Guard) limitAnswers(stack *middleware.Stack) error {
	// before it is signed
	if err := stack.Finalize.Add(middleware.FinalizeMiddlewareFunc("GuardWait", g.boundWait), middleware.Before); err != nil {
		return err
	}
	return stack.Deserialize.Add(middleware.DeserializeMiddlewareFunc("GuardLimit", g.limitAnswer), middleware.Before)
}

// boundWait makes GetRecords ask for a short wait at first, and for twice as long each time that it
// was granted in full. A request for an hour may be granted 20 seconds, or a quarter of an hour,
// and only the response would show the limit that applied.
func (g *Guard) boundWait(ctx context.Context, in middleware.FinalizeInput, next middleware.FinalizeHandler) (middleware.FinalizeOutput, middleware.Metadata, error) {
	if r, ok := in.Request.(*smithyhttp.Request); ok {
		if most := max(waitFirst, time.Duration(g.waits.Load())); waitOf(r.Header.Get(headerWait)) > most {
			r.Header.Set(headerWait, strconv.FormatInt(most.Milliseconds(), 10))
		}
	}
	return next.HandleFinalize(ctx, in)
}

func (g *Guard) limitAnswer(ctx context.Context, in middleware.DeserializeInput, next middleware.DeserializeHandler) (middleware.DeserializeOutput, middleware.Metadata, error) {
	wait := time.Duration(0)
	if r, ok := in.Request.(*smithyhttp.Request); ok {
		wait = waitOf(r.Header.Get(headerWait))
	}
	limit := answerLimit + wait
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	out, meta, err := next.HandleDeserialize(limited, in)
	if err != nil && ctx.Err() == nil && limited.Err() != nil {
		return out, meta, &silence{middleware.GetOperationName(ctx), limit}
	}
	if answer, ok := out.RawResponse.(*smithyhttp.Response); ok && answer != nil && err == nil {
		if answer.Header.Get(headerWait) != "" {
			g.free.Store(true)
		}
		switch granted := waitOf(answer.Header.Get(headerWait)); {
		case granted < wait:
			g.waits.Store(int64(granted)) // no more than that is granted
		case granted > 0:
			g.waits.Store(int64(2 * granted))
		}
	}
	return out, meta, err
}

// waitOf parses the header; it returns 0 for a missing or invalid one.
func waitOf(text string) time.Duration {
	ms, err := strconv.ParseUint(text, 10, 32)
	if err != nil {
		return 0
	}
	return time.Duration(ms) * time.Millisecond
}
