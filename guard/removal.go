package guard

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/mayflydb/mayfly/internal/clock"
	"github.com/mayflydb/mayfly/internal/invariant"
	"github.com/mayflydb/mayfly/internal/work/attr"
)

// arm waits in memory until the entry's deadline, and removes the item then. There is one entry per key: a later one takes its place, and the earlier one's done is told replaced.
// arm never blocks. Who loads many deadlines asks room first. done is called once and must not block; it may arm and disarm.
func (g *Guard) arm(e entry) {
	g.armed.arm(e)
	g.observe(g.about(Armed, e.key))
}

// disarm takes the key's entry away; its done is told replaced.
func (g *Guard) disarm(k key) {
	if g.armed.disarm(k) {
		g.observe(g.about(Disarmed, k))
	}
}

// room is how many deadlines more may be armed: strategies that load ahead load less where there is little.
func (g *Guard) room() int { return max(g.armed.most-g.armed.len(), 0) }

// graceRemovals is how long removals that are under way may take once guard is to end.
const graceRemovals = 5 * time.Second

// remove removes what is due, until ctx is done and what was under way has ended.
func (g *Guard) remove(ctx context.Context) {
	work, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	jobs := make(chan []removal)
	var workers sync.WaitGroup
	for range g.o.Concurrency {
		workers.Go(func() {
			for some := range jobs {
				g.attempt(work, some)
			}
		})
	}
	_ = g.pump(ctx, jobs)
	close(jobs)
	grace := clock.AfterFunc(graceRemovals, cancel)
	defer grace.Stop()
	workers.Wait()
	g.armed.stop()
}

// pump hands what is due to the workers, in the order of the deadlines.
func (g *Guard) pump(ctx context.Context, jobs chan<- []removal) error {
	for {
		some, next := g.armed.take(g.now(), max(g.o.Batch, 1))
		if len(some) == 0 {
			if err := g.sleep(ctx, next, g.armed.wake); err != nil {
				return err
			}
			continue
		}
		if err := g.pace.wait(ctx, len(some)); err != nil {
			return err
		}
		select {
		case jobs <- some:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// attempt makes an attempt at removals.
func (g *Guard) attempt(ctx context.Context, some []removal) {
	some = g.withoutResting(some)
	switch {
	case g.o.DryRun:
		for _, f := range some {
			g.spare(ctx, f)
		}
	case len(some) > 1:
		g.removeAll(ctx, some)
	default:
		for _, f := range some {
			g.removeOne(ctx, f)
		}
	}
}

// removeOne removes an item, if it still has the deadline that armed it.
func (g *Guard) removeOne(ctx context.Context, f removal) {
	units, err := g.delete(ctx, f)
	if err == nil || renewed(err) {
		g.pace.consumed(1, units)
	}
	if err != nil {
		g.failure(ctx, f, err)
		return
	}
	g.removed(f)
}

// delete archives, marks and deletes.
func (g *Guard) delete(ctx context.Context, f removal) (units float64, err error) {
	var image map[string]types.AttributeValue
	if g.o.Mark != "" {
		if image, units, err = g.mark(ctx, f.entry); err != nil {
			return units, err
		}
	} else if g.o.Archive != nil {
		armed := false
		if image, armed, err = g.read(ctx, f.entry); err != nil {
			return 0, err
		} else if !armed {
			return 0, errRenewed
		}
	}
	if g.o.Archive != nil {
		if err := g.archive(ctx, f, image, false); err != nil {
			return units, err
		}
	}
	condition, names, values := g.condition(f.entry)
	if g.o.Mark != "" {
		names["#mark"] = g.o.Mark
		condition += " AND #mark = :armed"
	}
	in := &dynamodb.DeleteItemInput{
		TableName: &g.o.Table, Key: g.attributes(f.key), ConditionExpression: &condition, ExpressionAttributeNames: names, ExpressionAttributeValues: values,
		ReturnConsumedCapacity: types.ReturnConsumedCapacityTotal,
	}
	if g.o.Archive != nil {
		in.ReturnValues = types.ReturnValueAllOld
	}
	out, err := g.once.DeleteItem(ctx, in)
	if err != nil {
		return units, err
	}
	if g.o.Archive != nil {
		g.archiveFinal(ctx, f, image, out.Attributes)
	}
	return units + capacity(out.ConsumedCapacity), nil
}

// renewed reports whether the endpoint has found that the item is no longer as it was when it was armed. The removal is not tried again.
func renewed(err error) bool {
	var unmet *types.ConditionalCheckFailedException
	return errors.As(err, &unmet) || errors.Is(err, errRenewed)
}

// errRenewed says that the item is no longer as it was when it was armed.
var errRenewed = errors.New("the item was renewed or is gone")

// condition is that the item still has the deadline that armed the entry.
func (g *Guard) condition(e entry) (condition string, names map[string]string, values map[string]types.AttributeValue) {
	names = map[string]string{"#ttl": g.o.Attribute}
	values = map[string]types.AttributeValue{":armed": attr.N(e.text())}
	condition = "#ttl = :armed"
	if invariant.Injected(invariant.Unconditional) {
		condition = "(#ttl = :armed OR attribute_exists(#ttl))"
	}
	if g.o.Version == "" {
		return condition, names, values
	}
	names["#version"] = g.o.Version
	version, err := attributevalue.UnmarshalJSON([]byte(e.version))
	if e.version == "" || err != nil {
		return condition + " AND attribute_not_exists(#version)", names, values
	}
	values[":version"] = version
	return condition + " AND #version = :version", names, values
}

// removed notes a success.
func (g *Guard) removed(f removal) {
	late := time.Duration(max(g.latest()-f.at, 0)) * time.Millisecond
	g.late.add(late)
	g.given.end(f.entry)
	g.armed.end(f, removed)
	e := g.about(Removed, f.key)
	e.Late = late
	g.observe(e)
}

func (g *Guard) refused(f removal) {
	g.given.end(f.entry)
	g.armed.end(f, refused)
	g.observe(g.about(Refused, f.key))
}

// spare looks whether the item would go.
func (g *Guard) spare(ctx context.Context, f removal) {
	_, armed, err := g.read(ctx, f.entry)
	switch {
	case err != nil:
		g.failure(ctx, f, err)
	case !armed:
		g.refused(f)
	default:
		g.log.Debug("an item would be removed now", "table", g.o.Table, "key", g.keyJSON(f.key), "deadline", time.UnixMilli(f.at).UTC())
		g.armed.end(f, spared)
		g.observe(g.about(Spared, f.key))
	}
}

// failure decides what becomes of a removal that has not worked: an answer that says no, an obstacle that passes, or a mistake that stays.
func (g *Guard) failure(ctx context.Context, f removal, err error) {
	if renewed(err) {
		g.refused(f)
		return
	}
	if ctx.Err() != nil { // the end: nothing is known of it, and whoever comes next finds it
		g.armed.retry(f, time.Hour)
		return
	}
	e := g.about(Retried, f.key)
	e.Err = err
	switch p := g.problem("DeleteItem", err); {
	case p != nil:
		g.fail(g.gone(p))
	case throttling(err):
		g.pace.throttled()
		e.What = Throttled
	case permanent(err):
		g.giveUp(f, err)
		return
	case !conflict(err):
		g.notNow(f, err)
		g.pace.troubled()
	}
	g.armed.retry(f, backoff(f.tries, err))
	g.observe(e)
}

const (
	backoffFirst = 25 * time.Millisecond
	backoffMost  = 10 * time.Second
)

// backoff is how long an entry rests after so many attempts have failed before: twice as long each time, and somewhere in the upper half of that, so that those that failed together do not
// come back together.
func backoff(tries int, err error) time.Duration {
	most := min(backoffFirst<<min(tries, 12), backoffMost)
	var a *archiveError
	if errors.As(err, &a) {
		most = max(most, min(2*a.cause.After, time.Hour))
	}
	return most/2 + rand.N(most/2)
}

func pauseFor(ctx context.Context, d time.Duration) { clock.Pause(d, ctx.Done()) }

func capacity(c *types.ConsumedCapacity) float64 {
	if c == nil {
		return 0
	}
	return aws.ToFloat64(c.CapacityUnits)
}

// code is the endpoint's name of an error; "" where it has not answered.
func code(err error) string {
	var e smithy.APIError
	if errors.As(err, &e) {
		return e.ErrorCode()
	}
	return ""
}

// throttling reports whether the endpoint wants to be asked less often.
func throttling(err error) bool {
	var a *archiveError
	if errors.As(err, &a) {
		return false
	}
	switch code(err) {
	case "ProvisionedThroughputExceededException", "ThrottlingException", "Throttling", "RequestLimitExceeded", "TooManyRequestsException", "SlowDown", "LimitExceededException":
		return true
	}
	return false
}

// conflict reports whether the item was being written by another at that moment, or the archive has not taken it: nothing that the endpoint's load has to do with.
func conflict(err error) bool {
	var a *archiveError
	if errors.As(err, &a) {
		return true
	}
	switch code(err) {
	case "TransactionConflictException", "ReplicatedWriteConflictException", "TransactionInProgressException":
		return true
	}
	return false
}

// permanent reports whether another attempt would fail as well: the endpoint has understood, and does not take the request; or the archive.
func permanent(err error) bool {
	var a *archiveError
	if errors.As(err, &a) {
		return a.cause.Permanent
	}
	if throttling(err) || conflict(err) {
		return false
	}
	if code(err) == "ValidationException" {
		return true
	}
	var answer *smithyhttp.ResponseError
	if !errors.As(err, &answer) || code(err) == "" || answer.HTTPStatusCode() < 400 || answer.HTTPStatusCode() >= 500 {
		return false
	}
	return answer.HTTPStatusCode() != http.StatusRequestTimeout && answer.HTTPStatusCode() != http.StatusTooManyRequests
}
