package autoscale

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"math"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"

	"github.com/mayflydb/mayfly/internal/tracking"
	"github.com/mayflydb/mayfly/internal/work/attr"
	"github.com/mayflydb/mayfly/internal/work/timer"
)

// band is the distance below a policy's target at which capacity shrinks; see package planner.
const band = 0.2

// activityLife is how long an activity is kept, as at Amazon: six weeks.
const activityLife = 6 * 7 * 24 * time.Hour

// watch is the alarms of a place with a policy. Only fire uses it, one minute after the other.
type watch struct {
	alarms  tracking.Alarms
	seen    time.Time // the end of the last minute that was observed; zero: none
	failure failure
}

// load watches the places of all stored policies.
func (s *Scaler) load(ctx context.Context) error {
	policies, err := all[storedPolicy](ctx, s, kindPolicy)
	for _, p := range policies {
		s.setWatched(p.use(), true)
	}
	return err
}

// setWatched begins or ends the watching of a use.
func (s *Scaler) setWatched(u Use, on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	more := maps.Clone(*s.watched.Load())
	if !on {
		delete(more, u)
	} else if more[u] == nil {
		more[u] = &watch{}
	}
	s.watched.Store(&more)
}

// Watches reports whether Consumed should be called for a use. It takes nanoseconds.
func (s *Scaler) Watches(u Use) bool {
	select {
	case <-s.loaded:
		return s.watches(u)
	default:
		return s.o.Begun() // Consumed waits for the policies
	}
}

func (s *Scaler) watches(u Use) bool { return (*s.watched.Load())[u] != nil }

// Consumed arms the timer for the end of a minute in which units were first consumed, if the use
// has a policy. The minute begins at an instant.
func (s *Scaler) Consumed(ctx context.Context, u Use, minute time.Time) {
	select {
	case <-s.loaded:
	case <-ctx.Done():
	}
	if !s.watches(u) {
		return
	}
	if err := s.arm(ctx, u.place(), minute.Add(time.Minute)); err != nil && ctx.Err() == nil {
		s.o.Logger.Error("a minute of a table is not seen by its scaling policy", "table", u.Table, "index", u.Index, "error", err)
	}
}

// arm sets the timer of a place to the end of a minute, unless it is later already. The minute before
// is then observed with the later one.
func (s *Scaler) arm(ctx context.Context, p place, end time.Time) error {
	_, err := s.o.DB.PutItem(ctx, &dynamodb.PutItemInput{
		TableName: aws.String(TableName), Item: attr.Item{attrID: attr.S(p.id(kindMinute, "")), attrDue: attr.Seconds(end)},
		ConditionExpression:      aws.String("attribute_not_exists(#due) OR #due < :end"),
		ExpressionAttributeNames: map[string]string{"#due": attrDue}, ExpressionAttributeValues: attr.Item{":end": attr.Seconds(end)},
	})
	if _, later := errors.AsType[*types.ConditionalCheckFailedException](err); later {
		return nil
	}
	return err
}

// fire evaluates the alarms at the end of minutes.
func (s *Scaler) fire(ctx context.Context, firings []timer.Firing) error {
	for _, f := range firings {
		if err := s.evaluate(ctx, f.Item); err != nil {
			return err
		}
		f.Done()
	}
	return nil
}

// evaluate observes the minute that an expired item stands for, and acts. Other items are ignored.
func (s *Scaler) evaluate(ctx context.Context, it attr.Item) error {
	p, ok := minutePlace(attr.String(it[attrID]))
	seconds, timed := attr.AsInteger(it[attrDue])
	w := (*s.watched.Load())[p.use()]
	if !ok || !timed || w == nil {
		return nil
	}
	end := time.Unix(seconds, 0).UTC()
	if !w.seen.Before(end) {
		return nil // a second delivery
	}
	var target storedTarget
	if found, err := s.get(ctx, p.id(kindTarget, ""), &target); err != nil || !found {
		return err
	}
	policy, found, err := s.policyOf(ctx, p)
	if err != nil || !found {
		return err
	}
	capacity, found, err := s.capacity(ctx, p)
	if err != nil || !found {
		return err // a deleted table keeps its targets
	}
	want := tracking.Target{Utilisation: policy.Config.value() / 100, Band: band, Least: float64(target.Min), Most: float64(target.Max)}
	w.observe(end, capacity, want, func(minute time.Time) float64 { return s.o.Units(p.use(), minute) / 60 })
	return s.act(ctx, w, &target, &policy, capacity, want)
}

// observe evaluates the minutes since the last one, those without consumption too.
func (w *watch) observe(end time.Time, capacity float64, want tracking.Target, consumed func(minute time.Time) float64) {
	minute := end.Add(-time.Minute)
	if first := end.Add(-tracking.InMinutes * time.Minute); !w.seen.IsZero() {
		minute = w.seen
		if minute.Before(first) {
			minute = first
		}
	}
	for ; minute.Before(end); minute = minute.Add(time.Minute) {
		w.alarms.Observe(consumed(minute), capacity, want)
	}
	w.seen = end
}

// act changes the capacity if the alarms ask for it.
func (s *Scaler) act(ctx context.Context, w *watch, target *storedTarget, policy *storedPolicy, capacity float64, want tracking.Target) error {
	change, to := w.alarms.Ask(capacity, want)
	alarm := "AlarmHigh"
	switch change {
	case tracking.None:
		return nil
	case tracking.Out:
		if target.Suspend.out() {
			return nil
		}
	case tracking.In:
		alarm = "AlarmLow"
		if target.Suspend.in() || policy.Config.scaleInDisabled() {
			return nil
		}
	}
	units := fmt.Sprintf("%s capacity units to %d", map[bool]string{true: "write", false: "read"}[target.use().Write], int64(to))
	a := storedActivity{
		place: target.place, ID: uuid(), At: s.o.Now().UnixMilli(), Status: "Successful",
		Description: "Setting " + units + ".",
		Cause:       fmt.Sprintf("monitor alarm TargetTracking-%s-%s in state ALARM triggered policy %s", target.Resource, alarm, policy.Name),
		Reason:      "Successfully set " + units + ". Change successfully fulfilled by dynamodb.",
	}
	switch err := s.setCapacity(ctx, target.place, int64(to)); {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil: // such as one decrease too many today: the alarm repeats
		if !w.failure.changes(reasonOf(err), s.o.Now()) {
			return nil
		}
		a.Status, a.Reason = "Failed", "Failed to set "+units+". Reason: "+reasonOf(err)
		s.o.Logger.Warn("a scaling policy could not change the capacity", "resource", target.Resource, "to", int64(to), "error", err)
	default:
		w.alarms.Restart()
		w.failure = failure{}
	}
	return s.putActivity(ctx, a)
}

// failure is the last activity of a place that has failed, since the last one that succeeded.
type failure struct {
	reason string
	at     time.Time
}

// failureEvery is the interval of the activities of a change that keeps failing for one reason.
const failureEvery = time.Hour

// changes reports whether a failed attempt is a new activity. The alarm repeats it each minute.
func (f *failure) changes(reason string, now time.Time) bool {
	if reason == f.reason && now.Sub(f.at) < failureEvery {
		return false
	}
	*f = failure{reason, now}
	return true
}

// errNoCapacity is the reason if a table was deleted, or made on demand, while its policy acted.
var errNoCapacity = errors.New("the table or index no longer exists, or is on demand")

// reasonOf returns the text of an error without the id of its request.
func reasonOf(err error) string {
	if answer, ok := errors.AsType[smithy.APIError](err); ok {
		return answer.ErrorCode() + ": " + answer.ErrorMessage()
	}
	return err.Error()
}

// policyOf returns the policy of a place. There is at most one.
func (s *Scaler) policyOf(ctx context.Context, p place) (policy storedPolicy, found bool, err error) {
	found, err = s.get(ctx, p.id(kindPolicy, ""), &policy)
	return policy, found, err
}

// throughput returns the provisioned units of a place. found is false without such a table or index,
// or if it is on demand.
func (s *Scaler) throughput(ctx context.Context, p place) (read, write int64, found bool, err error) {
	u := p.use()
	out, err := s.o.DB.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &u.Table})
	if notFound(err) {
		return 0, 0, false, nil
	}
	if err != nil {
		return 0, 0, false, err
	}
	provisioned := out.Table.ProvisionedThroughput
	if u.Index != "" {
		provisioned = nil
		for i := range out.Table.GlobalSecondaryIndexes {
			if ix := &out.Table.GlobalSecondaryIndexes[i]; aws.ToString(ix.IndexName) == u.Index {
				provisioned = ix.ProvisionedThroughput
			}
		}
	}
	if provisioned == nil {
		return 0, 0, false, nil
	}
	read, write = aws.ToInt64(provisioned.ReadCapacityUnits), aws.ToInt64(provisioned.WriteCapacityUnits)
	return read, write, read > 0 && write > 0, nil
}

// capacity returns the units per second that a place has.
func (s *Scaler) capacity(ctx context.Context, p place) (units float64, found bool, err error) {
	read, write, found, err := s.throughput(ctx, p)
	if p.use().Write {
		read = write
	}
	return float64(read), found, err
}

// setCapacity changes one dimension of a place, and keeps the other.
func (s *Scaler) setCapacity(ctx context.Context, p place, to int64) error {
	read, write, found, err := s.throughput(ctx, p)
	if err == nil && !found {
		err = errNoCapacity
	}
	if err != nil {
		return err
	}
	u := p.use()
	if u.Write {
		write = to
	} else {
		read = to
	}
	throughput := &types.ProvisionedThroughput{ReadCapacityUnits: &read, WriteCapacityUnits: &write}
	in := &dynamodb.UpdateTableInput{TableName: &u.Table, ProvisionedThroughput: throughput}
	if u.Index != "" {
		in = &dynamodb.UpdateTableInput{TableName: &u.Table, GlobalSecondaryIndexUpdates: []types.GlobalSecondaryIndexUpdate{
			{Update: &types.UpdateGlobalSecondaryIndexAction{IndexName: &u.Index, ProvisionedThroughput: throughput}},
		}}
	}
	_, err = s.o.DB.UpdateTable(ctx, in)
	return err
}

// uuid returns a random UUID.
func uuid() string {
	var b [16]byte
	rand.Read(b[:])
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// value returns the target value, in percent.
func (c *TargetTrackingConfiguration) value() float64 {
	if c.TargetValue == nil {
		return math.NaN() // no stored policy lacks it
	}
	return *c.TargetValue
}
