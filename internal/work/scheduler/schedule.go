package scheduler

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/mayflydb/mayfly/internal/work/cron"
)

// document is what the definition and the firings of a schedule say of it, in JSON. Its target's input is beside it.
type document struct {
	Settings
	CatchUp CatchUp `json:",omitempty"`
	Anchor  int64   // what a rate counts from: ms since 1970
}

// marshal gives the document's text, and the input apart.
func (d document) marshal() (text string, input *string) {
	target := *d.Target
	input, target.Input, d.Target = target.Input, nil, &target
	out, err := json.Marshal(d)
	if err != nil {
		panic("scheduler: a schedule does not marshal: " + err.Error()) // it is made of strings and numbers
	}
	return string(out), input
}

// readDocument reads what marshal gave, and when the schedule has its occurrences.
func (s *Scheduler) readDocument(text string, input *string) (*document, timing, error) {
	d := &document{}
	if err := json.Unmarshal([]byte(text), d); err != nil {
		return nil, timing{}, fmt.Errorf("read a schedule: %w", err)
	}
	if d.Target == nil || d.Target.Arn == nil || d.ScheduleExpression == nil {
		return nil, timing{}, errors.New("read a schedule: it has no target or no expression")
	}
	d.Target.Input = input
	expression, err := s.expressions.parse(*d.ScheduleExpression, orElse(d.ScheduleExpressionTimezone, zoneDefault))
	if err != nil {
		return nil, timing{}, fmt.Errorf("read a schedule: %w", err)
	}
	return d, d.timing(expression), nil
}

// timing says when the schedule has its occurrences. A one-time schedule ignores its dates.
func (d *document) timing(expression cron.Expression) timing {
	t := timing{expression: expression, anchor: time.UnixMilli(d.Anchor).UTC()}
	if expression.Kind() != cron.At {
		t.start, t.end = d.StartDate.time(), d.EndDate.time()
	}
	if w := d.FlexibleTimeWindow; w != nil {
		t.window = time.Duration(orElse(w.MaximumWindowInMinutes, 0)) * time.Minute
	}
	return t
}

func (d *document) enabled() bool { return orElse(d.State, stateEnabled) == stateEnabled }

// deletes reports whether the schedule is deleted when it is complete.
func (d *document) deletes() bool { return orElse(d.ActionAfterCompletion, actionNone) == actionDelete }

// samePace reports whether two documents have the same occurrences, but for where they end.
func (d *document) samePace(o *document) bool {
	return *d.ScheduleExpression == *o.ScheduleExpression &&
		orElse(d.ScheduleExpressionTimezone, zoneDefault) == orElse(o.ScheduleExpressionTimezone, zoneDefault) &&
		d.StartDate.time().Equal(o.StartDate.time())
}

// anchor is what a rate counts from that begins now.
func anchor(s *Settings, now time.Time) int64 {
	if s.StartDate != nil {
		return s.StartDate.UnixMilli()
	}
	return now.UnixMilli()
}

// describe sets what an entry says of a document.
func (e *entry) describe(d document, now time.Time) {
	e.document, e.input = d.marshal()
	e.state = orElse(d.State, stateEnabled)
	e.target = *d.Target.Arn
	e.modified = now
}

// arm gives the firing of the entry's next occurrence. The entry is to be written with it.
func (e *entry) arm(t timing, occurrence, now time.Time) *firing {
	e.armed++
	f := &firing{
		name: e.name, incarnation: e.incarnation, version: e.version, number: e.armed,
		occurrence: occurrence, deadline: t.deadline(occurrence, e.incarnation, e.armed), armed: now,
		document: e.document, input: e.input, token: e.token, digest: e.digest,
	}
	e.next = f.deadline
	return f
}

// complete lets a schedule that has nothing to fire be deleted, where it asks for that: by its own deadline.
func (e *entry) complete(d *document, t timing, now time.Time) {
	if d.enabled() && d.deletes() {
		if e.gone = now; t.end.After(now) {
			e.gone = t.end
		}
	}
}

// newIncarnation tells a schedule from others that had its name.
func newIncarnation() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

func (s *Scheduler) arnPrefix(service string) string {
	return "arn:aws:" + service + ":" + s.o.Region + ":" + s.o.Account + ":"
}

func (s *Scheduler) scheduleARN(group, name string) string {
	return s.arnPrefix("scheduler") + "schedule/" + group + "/" + name
}

func (s *Scheduler) groupARN(name string) string {
	return s.arnPrefix("scheduler") + "schedule-group/" + name
}
