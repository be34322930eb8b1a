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

// document is the JSON of a schedule in its definition and firings. The target's input is a
// separate attribute.
type document struct {
	Settings
	CatchUp CatchUp `json:",omitempty"`
	Anchor  int64   // start of a rate: ms since 1970
}

// marshal returns the document's text and, apart, the input.
func (d document) marshal() (text string, input *string) {
	target := *d.Target
	input, target.Input, d.Target = target.Input, nil, &target
	return string(mustJSON(d)), input
}

// readDocument parses the results of marshal, and returns the timing too.
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

// timing returns the timing of the schedule. A one-time schedule ignores its dates.
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

// deletes reports whether the schedule is deleted after its completion.
func (d *document) deletes() bool { return orElse(d.ActionAfterCompletion, actionNone) == actionDelete }

// samePace reports whether two documents have the same occurrences, except for their end.
func (d *document) samePace(o *document) bool {
	return *d.ScheduleExpression == *o.ScheduleExpression &&
		orElse(d.ScheduleExpressionTimezone, zoneDefault) == orElse(o.ScheduleExpressionTimezone, zoneDefault) &&
		d.StartDate.time().Equal(o.StartDate.time())
}

// anchor returns the start of a rate that begins now.
func anchor(s *Settings, now time.Time) int64 {
	if s.StartDate != nil {
		return s.StartDate.UnixMilli()
	}
	return now.UnixMilli()
}

// describe sets the attributes of an entry from a document.
func (e *entry) describe(d document, now time.Time) {
	e.document, e.input = d.marshal()
	e.state = orElse(d.State, stateEnabled)
	e.target = *d.Target.Arn
	e.modified = now
}

// arm returns the firing of the entry's next occurrence. Write the entry with it.
func (e *entry) arm(t timing, occurrence, now time.Time) *firing {
	e.armed++
	f := &firing{
		edition: e.edition, number: e.armed,
		occurrence: occurrence, deadline: t.deadline(occurrence, e.incarnation, e.armed), armed: now,
	}
	e.next = f.deadline
	return f
}

// complete sets the deadline of a schedule that has no firing and asks for its deletion.
func (e *entry) complete(d *document, t timing, now time.Time) {
	if d.enabled() && d.deletes() {
		if e.gone = now; t.end.After(now) {
			e.gone = t.end
		}
	}
}

// newIncarnation returns an identifier that differs for each creation of a name.
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
