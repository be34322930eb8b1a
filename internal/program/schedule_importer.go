package program

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/maphash"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/scheduler"
	"github.com/aws/aws-sdk-go-v2/service/scheduler/types"

	"github.com/mayflydb/mayfly/internal/work/cron"
)

// importer puts schedules. Repeating an import changes nothing.
type importer struct {
	command  scheduleImportCommand
	endpoint *endpoint
	client   *scheduler.Client
	now      func() time.Time

	seed maphash.Seed
	seen map[uint64]int // line by the hash of group and name

	mu        sync.Mutex       // guards the fields below
	groups    map[string]error // results of creating missing groups
	inARow    int              // consecutive failures that the lines did not cause
	conflicts int              // lines that failed because another schedule has the name
	report    importReport
}

// errLine is a fault of a line.
type errLine struct{ error }

func (e *errLine) Unwrap() error { return e.error }

// isOwn reports whether the line caused a failure, and not the endpoint or the network.
func isOwn(err error) bool {
	var own *errLine
	return errors.As(err, &own) || answered(err, "ValidationException") || answered(err, "ConflictException") || answered(err, "ResourceNotFoundException")
}

// put creates a schedule unless it exists, and returns the outcome.
func (i *importer) put(ctx context.Context, d *scheduleDocument) (outcome string, err error) {
	wanted, past := d.current(i.now())
	switch {
	case past && !i.command.Past:
		return importPast, nil
	case i.command.DryRun:
		return importCreated, nil
	}
	err = i.create(ctx, wanted)
	switch {
	case err == nil:
		return importCreated, nil
	case answered(err, "ConflictException"):
		return i.compare(ctx, d, wanted)
	}
	return importFailed, i.endpoint.advise(err)
}

// read parses a line. A second line for the same schedule is an error.
func (i *importer) read(l numbered) (*scheduleDocument, error) {
	if l.err != nil {
		return nil, l.err
	}
	d, err := readDocument(l.text)
	if err != nil {
		return nil, err
	}
	if i.command.GroupName != "" {
		d.GroupName = i.command.GroupName
	}
	d.GroupName = cmp.Or(d.GroupName, groupDefault)
	hash := maphash.Comparable(i.seed, scheduleName{d.GroupName, d.Name})
	if first, twice := i.seen[hash]; twice {
		return nil, fmt.Errorf("%s/%s is also on line %d", d.GroupName, d.Name, first)
	}
	i.seen[hash] = l.line
	return d, nil
}

// create creates a schedule, and its group if that is missing.
func (i *importer) create(ctx context.Context, d *scheduleDocument) error {
	_, err := i.client.CreateSchedule(ctx, d.createInput(), withCatchUp(d.CatchUp))
	if !answered(err, "ResourceNotFoundException") || d.GroupName == groupDefault {
		return err
	}
	if err := i.makeGroup(ctx, d.GroupName); err != nil {
		return err
	}
	_, err = i.client.CreateSchedule(ctx, d.createInput(), withCatchUp(d.CatchUp))
	return err
}

// makeGroup creates a group once.
func (i *importer) makeGroup(ctx context.Context, name string) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if err, done := i.groups[name]; done {
		return err
	}
	_, err := i.client.CreateScheduleGroup(ctx, &scheduler.CreateScheduleGroupInput{Name: &name})
	if err == nil {
		i.report.Groups++
	} else if answered(err, "ConflictException") {
		err = nil
	}
	i.groups[name] = err
	return err
}

// compare compares a schedule with an existing one of the same name, and returns the outcome.
func (i *importer) compare(ctx context.Context, d, wanted *scheduleDocument) (outcome string, err error) {
	found := i.endpoint.describe(ctx, []scheduleName{{d.GroupName, d.Name}}, i.now())[0]
	if found.err != nil {
		return importFailed, found.err
	}
	if found.document == nil {
		return importFailed, fmt.Errorf("schedule %s/%s was created and deleted by others meanwhile", d.GroupName, d.Name)
	}
	differ := differences(found.document, d, i.now())
	switch {
	case len(differ) == 0:
		return importUnchanged, nil
	case !i.command.Replace:
		i.mu.Lock()
		i.conflicts++
		i.mu.Unlock()
		return importFailed, &errLine{fmt.Errorf("schedule %s/%s exists with another %s", d.GroupName, d.Name, strings.Join(differ, ", "))}
	}
	if _, err := i.client.UpdateSchedule(ctx, wanted.updateInput(), withCatchUp(wanted.CatchUp)); err != nil {
		return importFailed, i.endpoint.advise(err)
	}
	return importReplaced, nil
}

// differences returns the names of the members in which two schedules differ.
func differences(have, want *scheduleDocument, now time.Time) (names []string) {
	one, other := have.members(now), want.members(now)
	if have.kept == nil { // CatchUp is unknown
		delete(other, "CatchUp")
	}
	for name := range one {
		if !reflect.DeepEqual(one[name], other[name]) {
			names = append(names, name)
		}
	}
	for name := range other {
		if _, both := one[name]; !both {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// members returns the schedule's members, with the API's defaults.
func (d *scheduleDocument) members(now time.Time) map[string]any {
	full := *d
	full.Arn, full.CreationDate, full.LastModificationDate, full.NextFiring = "", nil, nil, nil
	full.GroupName = cmp.Or(full.GroupName, groupDefault)
	full.State = cmp.Or(full.State, stateEnabled)
	full.ActionAfterCompletion = cmp.Or(full.ActionAfterCompletion, string(types.ActionAfterCompletionNone))
	if aws.ToString(full.ScheduleExpressionTimezone) == "" {
		full.ScheduleExpressionTimezone = aws.String(zoneDefault)
	}
	if aws.ToString(full.Description) == "" {
		full.Description = nil
	}
	if full.FlexibleTimeWindow == nil {
		full.FlexibleTimeWindow = &types.FlexibleTimeWindow{Mode: types.FlexibleTimeWindowModeOff}
	}
	full.StartDate = d.settledStart(now)
	full.Target = withDefaults(full.Target)
	text, err := marshalLine(full)
	if err != nil {
		return nil
	}
	members := map[string]any{}
	_ = json.Unmarshal(text, &members) // the text was encoded above
	maps.DeleteFunc(members, func(_ string, value any) bool { return value == nil })
	return members
}

// settledStart returns StartDate, reduced to its effect. A past one has none on a cron, and a
// rate's next occurrence is equivalent to it.
func (d *scheduleDocument) settledStart(now time.Time) *wireTime {
	t, err := d.timetable()
	switch {
	case err != nil || t.start.IsZero() || t.start.After(now):
		return d.StartDate
	case t.expression.Kind() != cron.Rate:
		return nil
	}
	next, ok := t.expression.Next(t.start, now)
	if !ok {
		return nil
	}
	return wireTimeOf(next)
}

// withDefaults sets the defaults that GetSchedule returns.
func withDefaults(t *types.Target) *types.Target {
	if t == nil {
		return nil
	}
	full := *t
	policy := types.RetryPolicy{MaximumEventAgeInSeconds: aws.Int32(86_400), MaximumRetryAttempts: aws.Int32(185)}
	if p := full.RetryPolicy; p != nil && p.MaximumEventAgeInSeconds != nil {
		policy.MaximumEventAgeInSeconds = p.MaximumEventAgeInSeconds
	}
	if p := full.RetryPolicy; p != nil && p.MaximumRetryAttempts != nil {
		policy.MaximumRetryAttempts = p.MaximumRetryAttempts
	}
	full.RetryPolicy = &policy
	if full.EcsParameters != nil && full.EcsParameters.TaskCount == nil {
		ecs := *full.EcsParameters
		ecs.TaskCount = aws.Int32(1)
		full.EcsParameters = &ecs
	}
	return &full
}
