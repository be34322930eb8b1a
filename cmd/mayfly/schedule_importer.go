package main

import (
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

// importer puts schedules, each so that doing it again changes nothing.
type importer struct {
	command  scheduleImportCommand
	endpoint *endpoint
	client   *scheduler.Client
	now      func() time.Time

	seed maphash.Seed
	seen map[uint64]int // line by the hash of group and name

	mu        sync.Mutex       // guards what follows
	groups    map[string]error // that were missing: what came of making them
	inARow    int              // failures in a row that are not the lines' own
	conflicts int              // lines that failed since there is another schedule of that name
	report    importReport
}

// errLine is what is wrong with a line itself.
type errLine struct{ error }

func (e *errLine) Unwrap() error { return e.error }

// isOwn reports whether a failure is the line's own, and not the endpoint's or the network's.
func isOwn(err error) bool {
	var own *errLine
	return errors.As(err, &own) || answered(err, "ValidationException") || answered(err, "ConflictException") || answered(err, "ResourceNotFoundException")
}

// put makes sure that there is a schedule.
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
		return i.meet(ctx, d, wanted)
	}
	return importFailed, i.endpoint.advise(err)
}

// read reads a line, and refuses one that is there twice.
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
	d.GroupName = orText(d.GroupName, groupDefault)
	hash := maphash.Comparable(i.seed, scheduleName{d.GroupName, d.Name})
	if first, twice := i.seen[hash]; twice {
		return nil, fmt.Errorf("%s/%s is also on line %d", d.GroupName, d.Name, first)
	}
	i.seen[hash] = l.line
	return d, nil
}

// create creates a schedule, and first its group where that is missing.
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

// makeGroup makes a group, once.
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

// meet deals with a schedule of the name that is there already.
func (i *importer) meet(ctx context.Context, d, wanted *scheduleDocument) (outcome string, err error) {
	found := i.endpoint.describe(ctx, []scheduleName{{d.GroupName, d.Name}}, i.now())[0]
	if found.err != nil {
		return importFailed, found.err
	}
	if found.document == nil {
		return importFailed, fmt.Errorf("schedule %s/%s was created and deleted by others meanwhile", d.GroupName, d.Name)
	}
	differ := differing(found.document, d, i.now())
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

// differing names the members in which a schedule that is there differs from one that is wanted.
func differing(have, want *scheduleDocument, now time.Time) (names []string) {
	one, other := have.members(now), want.members(now)
	if have.kept == nil { // what it catches up with is not known
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

// members is what the schedule is, member by member, with the API's defaults for what is not said.
func (d *scheduleDocument) members(now time.Time) map[string]any {
	full := *d
	full.Arn, full.CreationDate, full.LastModificationDate, full.NextFiring = "", nil, nil, nil
	full.GroupName = orText(full.GroupName, groupDefault)
	full.State = orText(full.State, stateEnabled)
	full.ActionAfterCompletion = orText(full.ActionAfterCompletion, string(types.ActionAfterCompletionNone))
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
	_ = json.Unmarshal(text, &members) // it was written a moment ago
	maps.DeleteFunc(members, func(_ string, value any) bool { return value == nil })
	return members
}

// settledStart is StartDate as far as it still matters: where it has passed it is nothing to a cron, and to a rate what its pace goes by, so that its next occurrence is
// as good.
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

// withDefaults fills in what GetSchedule answers for what is not said.
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
