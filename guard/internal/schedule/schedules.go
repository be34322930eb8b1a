package schedule

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/scheduler"
	schedulertypes "github.com/aws/aws-sdk-go-v2/service/scheduler/types"

	"github.com/mayflydb/mayfly/guard/internal/armed"
	"github.com/mayflydb/mayfly/guard/internal/strategy"
	"github.com/mayflydb/mayfly/guard/internal/table"
	"github.com/mayflydb/mayfly/internal/clock"
	"github.com/mayflydb/mayfly/internal/invariant"
	"github.com/mayflydb/mayfly/internal/work/lease"
	"github.com/mayflydb/mayfly/internal/work/retry"
)

// Options are the part of guard's Options that is about schedules.
type Options struct {
	Scheduler   *scheduler.Client
	Role        string
	DeadLetters string
}

// Strategy maintains the schedules of a table's items at an EventBridge Scheduler. Each item with a
// deadline has one, which deletes the item at that instant if it still has that deadline:
//
//	Named:       by a hash of the table and the key, in a group for the table, so any key is
//	             possible and none collide
//	Conditional: it deletes an item only with the TTL value that it was made for
//	NeverEarly:  its time is the first whole second not before the deadline, in UTC
//	Ordered:     its description names its record, and no older record changes it, unless a worker
//	             that has lost its lease is slow: that one puts it right
//	Clean:       it deletes itself after it has fired, also after an update
type Strategy struct {
	*strategy.Reader
	o     Options
	group string
	lost  chan chan struct{} // asks for a scan, and is to be closed when that is complete
	lag   strategy.Lag
	// the items from before the stream have their schedules, and no scan is wanted
	scanned  atomic.Bool
	removals removals
	mu       struct {
		sync.Mutex
		// by key, the changes that armed the items which guard removes itself, until they have
		// ended
		byKey map[armed.Key]*change
	}
}

const (
	groupPrefix    = "guard."
	groupMax       = 64 // characters of a group's name
	groupPause     = 100 * time.Millisecond
	schedulePauses = 5 * time.Second // the longest before a call is made again
	scheduleLogged = time.Second     // a pause of that length is worth a warning
	// the most time for a begun write, which is completed also when the strategy ends: it could
	// arrive after the writes of the next worker else
	writeLimit = 5 * time.Second
	// the most time to check a schedule that was changed without the lease
	restoreLimit = 30 * time.Second
	// how often others may change a schedule while it is brought in line
	disagreements = 20
)

// callAgain are the pauses before a call is repeated.
var callAgain = retry.Policy{First: 100 * time.Millisecond, Most: schedulePauses, Jitter: true}

// New returns the strategy.
func New(e *strategy.Env, o Options) *Strategy {
	s := &Strategy{Reader: e.NewReader(e.MaxRCU), o: o, group: Group(e.Table.Name), lost: make(chan chan struct{})}
	s.mu.byKey = map[armed.Key]*change{}
	return s
}

// Group returns the name of the schedule group for a table: "guard." and the table's name,
// or if that is too long its beginning and a hash of it.
func Group(table string) string {
	if len(groupPrefix)+len(table) <= groupMax {
		return groupPrefix + table
	}
	hash := sha256.Sum256([]byte(table))
	end := "." + hex.EncodeToString(hash[:8])
	return groupPrefix + table[:groupMax-len(groupPrefix)-len(end)] + end
}

// NameOf returns the name of an item's schedule.
func (s *Strategy) NameOf(k armed.Key) string {
	hash := sha256.New()
	fmt.Fprintf(hash, "%d %s", len(s.Table.Label()), s.Table.Label())
	hash.Write([]byte(k))
	return "item." + hex.EncodeToString(hash.Sum(nil)[:20])
}

// origin is the source of a schedule, which is in its description.
type origin struct {
	stream   string // the label of the stream; "": it was a scan
	sequence string // number of the record
}

func (o origin) String() string {
	if o.stream == "" {
		return "guard scan"
	}
	return "guard stream " + o.stream + " " + o.sequence
}

// originOf parses a description. A foreign one is as old as a scan's.
func originOf(description string) (o origin) {
	if words := strings.Fields(description); len(words) == 4 && words[0] == "guard" && words[1] == "stream" {
		o.stream, o.sequence = words[2], words[3]
	}
	return o
}

// newer reports whether o is a later record. Records of another stream are older: that stream was
// switched off.
func (o origin) newer(than origin) bool {
	switch {
	case o.stream == "":
		return false
	case o.stream != than.stream:
		return true
	}
	a, b := strings.TrimLeft(o.sequence, "0"), strings.TrimLeft(than.sequence, "0")
	return len(a) > len(b) || len(a) == len(b) && a > b
}

// request returns the request that creates an item's schedule.
func (s *Strategy) request(e armed.Entry, o origin) (*scheduler.CreateScheduleInput, error) {
	input, err := s.input(e)
	if err != nil {
		return nil, err
	}
	target := &schedulertypes.Target{Arn: aws.String("arn:" + s.partition() + ":scheduler:::aws-sdk:dynamodb:deleteItem"), RoleArn: &s.o.Role, Input: &input}
	if s.o.DeadLetters != "" {
		target.DeadLetterConfig = &schedulertypes.DeadLetterConfig{Arn: &s.o.DeadLetters}
	}
	return &scheduler.CreateScheduleInput{
		GroupName: &s.group, Name: aws.String(s.NameOf(e.Key)), Description: aws.String(o.String()),
		ScheduleExpression:         aws.String("at(" + time.Unix(table.WholeSeconds(e.At), 0).UTC().Format("2006-01-02T15:04:05") + ")"),
		ScheduleExpressionTimezone: aws.String("UTC"),
		FlexibleTimeWindow:         &schedulertypes.FlexibleTimeWindow{Mode: schedulertypes.FlexibleTimeWindowModeOff},
		State:                      schedulertypes.ScheduleStateEnabled,
		ActionAfterCompletion:      schedulertypes.ActionAfterCompletionDelete,
		Target:                     target,
	}, nil
}

// partition returns the partition in the table's ARN: "aws" in most regions.
func (s *Strategy) partition() string {
	if parts := strings.SplitN(s.Table.ARN, ":", 3); len(parts) == 3 && parts[1] != "" {
		return parts[1]
	}
	return "aws"
}

// input returns the request of the schedule: the same text for the same entry. The Scheduler
// replaces <aws.scheduler.execution-id> and other keywords anywhere in it, so a key with such text
// is escaped.
func (s *Strategy) input(e armed.Entry) (string, error) {
	condition, names, values := s.Table.Condition(e)
	invariant.CheckUnless(!strings.Contains(condition, " OR "), []invariant.Fault{invariant.Unconditional}, "a schedule deletes its item if %s", condition)
	in := map[string]any{"TableName": s.Table.Name, "ConditionExpression": condition, "ExpressionAttributeNames": names}
	for member, attributes := range map[string]map[string]types.AttributeValue{"Key": s.Table.Attributes(e.Key), "ExpressionAttributeValues": values} {
		text, err := attributevalue.MarshalMapJSON(attributes) // in any order
		if err != nil {
			return "", err
		}
		var plain any
		if err := json.Unmarshal(text, &plain); err != nil {
			return "", err
		}
		in[member] = plain
	}
	text, err := json.Marshal(in)
	return strings.ReplaceAll(string(text), "aws.scheduler.", `aws\u002escheduler.`), err
}

// put makes an item's schedule for the deadline in a record, unless a later record has made it. One
// that is as wanted already is updated as well if its record is older: a slow worker might else
// undo it with a record from between the two.
func (s *Strategy) put(ctx context.Context, e armed.Entry, o origin) error {
	in, err := s.request(e, o)
	if err != nil {
		return err
	}
	for range disagreements {
		made, err := s.create(ctx, in)
		if made || err != nil {
			return err
		}
		there, err := s.get(ctx, *in.Name)
		if err != nil {
			return err
		}
		if there == nil { // it has fired meanwhile
			continue
		}
		if !o.newer(originOf(aws.ToString(there.Description))) {
			return nil
		}
		if updated, err := s.update(ctx, in); updated || err != nil {
			return err
		}
	}
	return fmt.Errorf("schedule %s in group %s keeps changing", *in.Name, s.group)
}

// reconcile makes the schedule of an item that a scan has found, for its present deadline. An
// existing schedule may be newer than the scan's read. So the item is then read again, also after
// the change, since the next record may have been handled in between.
func (s *Strategy) reconcile(ctx context.Context, e armed.Entry) error {
	for range disagreements {
		in, err := s.request(e, origin{})
		if err != nil {
			return err
		}
		made, err := s.create(ctx, in)
		if made || err != nil {
			return err
		}
		there, err := s.get(ctx, *in.Name)
		if err != nil {
			return err
		}
		if there == nil {
			continue
		}
		if same(there, in) {
			return nil
		}
		now, has, err := s.current(ctx, e.Key)
		if !has || err != nil {
			return err // its record is yet to come
		}
		if now.Value == e.Value && now.Version == e.Version {
			in.Description = aws.String(originOf(aws.ToString(there.Description)).String()) // no older record undoes it
			if _, err := s.update(ctx, in); err != nil {
				return err
			}
			if now, has, err = s.current(ctx, e.Key); !has || err != nil {
				return err
			}
		}
		e = now
	}
	return fmt.Errorf("item %s keeps changing", s.Table.KeyJSON(e.Key))
}

// current reads the deadline that an item has now.
func (s *Strategy) current(ctx context.Context, k armed.Key) (e armed.Entry, has bool, err error) {
	err = s.call(ctx, "GetItem", func() error {
		out, err := s.DB.GetItem(ctx, &dynamodb.GetItemInput{
			TableName: &s.Table.Name, Key: s.Table.Attributes(k), ConsistentRead: aws.Bool(true), ReturnConsumedCapacity: types.ReturnConsumedCapacityTotal,
		})
		if err == nil && out.Item != nil {
			e, has = s.EntryOf(out.Item)
		}
		return err
	})
	return e, has, err
}

// same reports whether a schedule is as wanted, whichever its record.
func same(there *scheduler.GetScheduleOutput, wanted *scheduler.CreateScheduleInput) bool {
	t := there.Target
	return t != nil && aws.ToString(t.Input) == *wanted.Target.Input && aws.ToString(t.RoleArn) == *wanted.Target.RoleArn && aws.ToString(t.Arn) == *wanted.Target.Arn &&
		deadLetters(t) == deadLetters(wanted.Target) && aws.ToString(there.ScheduleExpression) == *wanted.ScheduleExpression &&
		there.ActionAfterCompletion == wanted.ActionAfterCompletion && there.State == wanted.State
}

func deadLetters(t *schedulertypes.Target) string {
	if t.DeadLetterConfig == nil {
		return ""
	}
	return aws.ToString(t.DeadLetterConfig.Arn)
}

// create creates a schedule. It returns false if there is one of that name.
func (s *Strategy) create(ctx context.Context, in *scheduler.CreateScheduleInput) (made bool, err error) {
	for range disagreements {
		err = s.write(ctx, "CreateSchedule", func(ctx context.Context) error {
			_, err := s.o.Scheduler.CreateSchedule(ctx, in)
			return err
		})
		switch {
		case err == nil:
			s.Report(strategy.Armed, nil)
			return true, nil
		case isConflict(err):
			return false, nil
		case !isNotFound(err):
			return false, err
		}
		if err := s.createGroup(ctx); err != nil {
			return false, err
		}
	}
	return false, fmt.Errorf("schedule group %s keeps being deleted: %w", s.group, err)
}

// createGroup makes the group, and waits while one of that name is being deleted.
func (s *Strategy) createGroup(ctx context.Context) error {
	err := s.call(ctx, "CreateScheduleGroup", func() error {
		_, err := s.o.Scheduler.CreateScheduleGroup(ctx, &scheduler.CreateScheduleGroupInput{Name: &s.group})
		return err
	})
	if isConflict(err) {
		clock.Pause(groupPause, ctx.Done())
		return ctx.Err()
	}
	return err
}

func (s *Strategy) get(ctx context.Context, name string) (there *scheduler.GetScheduleOutput, err error) {
	err = s.call(ctx, "GetSchedule", func() error {
		there, err = s.o.Scheduler.GetSchedule(ctx, &scheduler.GetScheduleInput{GroupName: &s.group, Name: &name})
		return err
	})
	if isNotFound(err) {
		return nil, nil
	}
	return there, err
}

// update replaces a schedule entirely, since an update resets missing fields to their defaults. It
// returns false if the schedule no longer exists.
func (s *Strategy) update(ctx context.Context, in *scheduler.CreateScheduleInput) (updated bool, err error) {
	err = s.write(ctx, "UpdateSchedule", func(ctx context.Context) error {
		_, err := s.o.Scheduler.UpdateSchedule(ctx, &scheduler.UpdateScheduleInput{
			GroupName: in.GroupName, Name: in.Name, Description: in.Description, ScheduleExpression: in.ScheduleExpression, ScheduleExpressionTimezone: in.ScheduleExpressionTimezone,
			FlexibleTimeWindow: in.FlexibleTimeWindow, State: in.State, ActionAfterCompletion: in.ActionAfterCompletion, Target: in.Target,
		})
		return err
	})
	switch {
	case err == nil:
		s.Report(strategy.Armed, nil)
		return true, nil
	case isNotFound(err), isConflict(err):
		return false, nil
	}
	return false, err
}

// remove deletes an item's schedule, unless it is from a later record.
func (s *Strategy) remove(ctx context.Context, k armed.Key, o origin) error {
	there, err := s.get(ctx, s.NameOf(k))
	if there == nil || err != nil || !o.newer(originOf(aws.ToString(there.Description))) {
		return err
	}
	err = s.write(ctx, "DeleteSchedule", func(ctx context.Context) error {
		_, err := s.o.Scheduler.DeleteSchedule(ctx, &scheduler.DeleteScheduleInput{GroupName: &s.group, Name: there.Name})
		return err
	})
	switch {
	case err == nil:
		s.Report(strategy.Disarmed, nil)
	case isNotFound(err), isConflict(err): // it no longer exists, or its group is being deleted
		return nil
	}
	return err
}

func isConflict(err error) bool {
	var conflict *schedulertypes.ConflictException
	return errors.As(err, &conflict)
}

func isNotFound(err error) bool {
	var missing *schedulertypes.ResourceNotFoundException
	return errors.As(err, &missing)
}

// write makes a call that changes a schedule. One that has begun is completed.
func (s *Strategy) write(ctx context.Context, operation string, call func(ctx context.Context) error) error {
	return s.call(ctx, operation, func() error {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeLimit)
		defer cancel()
		return call(ctx)
	})
}

// call retries a call until there is a response. It returns errors for conflicts, missing schedules
// and lost leases as they are, and permanent errors as a *table.Problem.
func (s *Strategy) call(ctx context.Context, operation string, call func() error) error {
	return strategy.Retry(ctx, callAgain, call, func(err error) error {
		if isConflict(err) || isNotFound(err) || errors.Is(err, lease.ErrLost) {
			return err
		}
		if p := s.Problem(operation, err); p != nil {
			return p
		}
		if table.Invalid(err) {
			return &table.Problem{Code: table.Misconfigured, Message: fmt.Sprintf("the endpoint refuses the %s for an item of %s", operation, s.Table.Name),
				Next: "check the ARNs of the role and of the dead-letter queue, and that the role trusts scheduler.amazonaws.com", Err: err}
		}
		return nil
	}, func(err error, after time.Duration) {
		s.Report(strategy.Throttled, err)
		if after >= scheduleLogged {
			s.Log.Warn("no answer; trying again", "table", s.Table.Name, "operation", operation, "error", err, "after", after)
		}
	})
}

// fired is a removal by a schedule.
type fired struct {
	removal
	late time.Duration
}

// change is the sum of consecutive records of one item.
type change struct {
	key     armed.Key
	e       armed.Entry // the deadline after them
	has     bool        // there is one
	had     bool        // there was, or may have been, one before them
	same    bool        // no record has changed it
	origin  origin
	fired   []fired     // the removals that schedules have made
	records []int       // their numbers, for done
	held    func() bool // see Records
}
