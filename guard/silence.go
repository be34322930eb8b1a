package guard

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// An endpoint may fall silent: it takes a connection, and never answers. So each attempt of a call has a limit. After that the call has failed as one whose connection broke: nothing is
// known of what has become of it, and it is made again, by the SDK and then by whoever asked, ever more slowly. That is safe, as it is after a broken connection: removals and what guard
// writes down are conditional.

const (
	answerLimit = 10 * time.Second // for an answer that the endpoint does not hold back

	headerWait = "X-Mayfly-Wait-Ms" // asks GetRecords of mayfly to hold its answer so long while there is no record; the answer says how long it may have been
	waitFirst  = 20 * time.Second   // that is asked for at first, and again at least
)

// silence is the error of an attempt that was not answered within its limit. To the SDK it is what any other timeout is.
type silence struct {
	operation string
	limit     time.Duration
}

func (e *silence) Error() string {
	return fmt.Sprintf("%s got no answer within %v", e.operation, e.limit)
}
func (e *silence) Unwrap() error { return context.DeadlineExceeded }

// limitAnswers bounds how long each attempt of a client's calls waits for its answer, to the end of the body.
func (g *Guard) limitAnswers(stack *middleware.Stack) error {
	if err := stack.Finalize.Add(middleware.FinalizeMiddlewareFunc("GuardWait", g.boundWait), middleware.Before); err != nil { // before it is signed
		return err
	}
	return stack.Deserialize.Add(middleware.DeserializeMiddlewareFunc("GuardLimit", g.limitAnswer), middleware.Before)
}

// boundWait lets GetRecords ask for a short wait at first, and for twice as long each time that it was granted in full. Whoever asks for an hour may be granted 20 seconds, or a quarter of an
// hour, and would learn only by the answer within what time there should have been one.
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
		switch granted := waitOf(answer.Header.Get(headerWait)); {
		case granted < wait:
			g.waits.Store(int64(granted)) // no more than that is granted
		case granted > 0:
			g.waits.Store(int64(2 * granted))
		}
	}
	return out, meta, err
}

// waitOf reads the header; 0 is none, or one that makes no sense.
func waitOf(text string) time.Duration {
	ms, err := strconv.ParseUint(text, 10, 32)
	if err != nil {
		return 0
	}
	return time.Duration(ms) * time.Millisecond
}
