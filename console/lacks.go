package console

import (
	"context"
	"errors"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	"github.com/aws/aws-sdk-go-v2/service/scheduler"
	"github.com/aws/smithy-go"

	"github.com/mayflydb/mayfly/internal/clock"
	"github.com/mayflydb/mayfly/internal/sdk/mappings"
)

// lacking are the areas that an endpoint lacks, as it last answered. All visitors share them: they
// do not depend on keys.
type lacking struct {
	asking atomic.Bool // one visitor asks; the others get the last answer
	mu     sync.Mutex
	again  func() bool       // whether to ask again; nil: it was never asked
	areas  map[string]string // paths of areas, with the reasons
}

const (
	lackingFor = time.Minute     // then the endpoint is asked again: it may be another program
	failingFor = 5 * time.Second // the same after it did not answer
	probeMost  = 2 * time.Second // that a page waits for the answers
)

// lacks returns the areas that the endpoint lacks, with the reasons. It asks with requests that
// change nothing and cost nothing. A visitor whose key may not ask gets the last answer to another
// one. A server of this process lacks nothing.
func (v *visit) lacks(ctx context.Context) map[string]string {
	l := &v.pages.lacking
	if v.pages.api == nil && l.due() && l.asking.CompareAndSwap(false, true) {
		areas, ok := v.probe(context.WithoutCancel(ctx)) // the answer is not for this visitor alone
		l.note(areas, ok)
		l.asking.Store(false)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.areas
}

// due reports whether it is time to ask.
func (l *lacking) due() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.again == nil || l.again()
}

// note keeps an answer. Without one, the last answer stays.
func (l *lacking) note(areas map[string]string, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	rest := failingFor
	if ok {
		l.areas, rest = areas, lackingFor
	}
	since := clock.Stopwatch()
	l.again = func() bool { return since() >= rest }
}

// probe asks the endpoint for each area that it may lack. It returns false if the endpoint does not
// answer.
func (v *visit) probe(ctx context.Context) (_ map[string]string, ok bool) {
	ctx, cancel := context.WithTimeout(ctx, probeMost)
	defer cancel()
	if _, err := v.DynamoDB().ListTables(ctx, listOne); err != nil {
		return nil, false // the page shows the reason
	}
	one := aws.Int32(1)
	asks := []struct {
		area, reason string
		ask          func() error
	}{
		{"schedules", "This endpoint has no EventBridge Scheduler.", func() error {
			_, err := v.Scheduler().ListSchedules(ctx, &scheduler.ListSchedulesInput{MaxResults: one})
			return err
		}},
		{"triggers", "This endpoint has no event source mappings.", func() error {
			var found struct{}
			return mappings.New(v.Scheduler()).List(ctx, url.Values{"MaxItems": {"1"}}, &found)
		}},
		{"partiql", "This endpoint has no PartiQL.", func() error {
			_, err := v.DynamoDB().ExecuteStatement(ctx, &dynamodb.ExecuteStatementInput{Statement: aws.String("?")}) // no statement: it is refused before anything happens
			return err
		}},
		{ttlArea, "This endpoint has no time to live (TTL): items do not expire.", func() error {
			_, err := v.DynamoDB().UpdateTimeToLive(ctx, &dynamodb.UpdateTimeToLiveInput{ // no name of a table: it is refused before anything happens
				TableName: aws.String("?"), TimeToLiveSpecification: &types.TimeToLiveSpecification{AttributeName: aws.String("?"), Enabled: aws.Bool(true)},
			})
			return err
		}},
		{streamsArea, "This endpoint has no streams.", func() error {
			_, err := v.Streams().ListStreams(ctx, &dynamodbstreams.ListStreamsInput{Limit: one})
			return err
		}},
	}
	errs := make([]error, len(asks))
	parallel(len(asks), func(i int) { errs[i] = asks[i].ask() })
	areas := map[string]string{}
	for i, a := range asks {
		if unknownRequest(errs[i]) {
			areas[below+a.area] = a.reason
		}
	}
	return areas, true
}

// The parts of tables' pages that an endpoint may lack. The navigation has no entries for them.
const (
	streamsArea = "streams"
	ttlArea     = "ttl"
)

// unknownRequest reports whether an endpoint has no such operation: it says so, or its answer has
// another form. Other refusals, such as one for the visitor's rights, and failures of the network
// are no evidence.
func unknownRequest(err error) bool {
	var api smithy.APIError
	if errors.As(err, &api) {
		switch api.ErrorCode() {
		case "UnknownOperationException", "InvalidAction", "NotImplemented", "NotImplementedException":
			return true
		}
		return false
	}
	return errors.As(err, new(*smithy.DeserializationError))
}

// reason returns the reason for an area that the endpoint lacks: "" if it has the area.
func (r reading) reason(area string, lacks map[string]string) string {
	switch {
	case r.hidden && area == below+"clock":
		return "Your key does not allow mayfly:ReadClock."
	case r.hidden && area == root:
		return "" // the page itself says why
	case area == root && !r.ours:
		return "Live values are mayfly's: this endpoint has none."
	case area == below+"clock" && !r.ours:
		return "Only mayfly has a clock that can be moved."
	case area == below+"clock" && !r.may:
		return "Requests may not move this clock."
	}
	return lacks[area]
}
