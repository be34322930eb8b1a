package scheduler

import (
	"time"

	"github.com/mayflydb/mayfly/internal/work/cron"
)

// The enumerations of a schedule, in the order in which AWS prints them.
const (
	stateEnabled  = "ENABLED"
	stateDisabled = "DISABLED"

	actionNone   = "NONE"
	actionDelete = "DELETE"

	modeOff      = "OFF"
	modeFlexible = "FLEXIBLE"
)

var (
	enumState  = []string{stateEnabled, stateDisabled}
	enumAction = []string{actionNone, actionDelete}
	enumMode   = []string{modeOff, modeFlexible}
)

// Limits of a schedule's members.
const (
	descriptionMax = 512
	expressionMax  = 256
	timezoneMax    = 50
	windowMax      = 1440 // minutes
	kmsMax         = 2048

	// startLate is the maximum age of a StartDate.
	startLate = 5 * time.Minute
)

const (
	zoneDefault  = "UTC"
	groupDefault = "default"
)

// checked is a valid schedule of a request, with the results of parsing it.
type checked struct {
	group      string
	catchUp    CatchUp
	expression cron.Expression
	settings   *Settings
	universal  bool // its target is an operation of AWS's SDK
}

// checkSchedule checks a schedule without reading any table. It first checks the shape of all
// members and reports all violations together, then their meaning, and stops
// at the first violation.
func (s *Scheduler) checkSchedule(in *ScheduleInput, now time.Time) (*checked, error) {
	if err := checkScheduleShape(in); err != nil {
		return nil, err
	}
	c := &checked{group: orElse(in.GroupName, groupDefault), settings: &in.Settings}
	var err error
	if c.catchUp, err = parseCatchUp("The header "+headerCatchUp, in.CatchUp); err != nil {
		return nil, err
	}
	if c.expression, err = s.checkExpression(&in.Settings); err != nil {
		return nil, err
	}
	if err := checkDates(&in.Settings, c.expression.Kind(), now); err != nil {
		return nil, err
	}
	if err := checkWindow(in.FlexibleTimeWindow); err != nil {
		return nil, err
	}
	if c.universal, err = s.checkTarget(in.Target, in.Region); err != nil {
		return nil, err
	}
	return c, nil
}

// checkScheduleShape checks the members in the order of the model.
func checkScheduleShape(in *ScheduleInput) error {
	var s shape
	s.name("name", in.Name)
	s.optionalName("groupName", in.GroupName)
	s.required("scheduleExpression", in.ScheduleExpression, 1, expressionMax, nil)
	s.text("description", in.Description, 0, descriptionMax, nil)
	s.text("scheduleExpressionTimezone", in.ScheduleExpressionTimezone, 1, timezoneMax, nil)
	s.enum("state", in.State, enumState)
	s.text("kmsKeyArn", in.KmsKeyArn, 1, kmsMax, patternKms)
	if s.Required("target", in.Target != nil); in.Target != nil {
		s.target("target", in.Target)
	}
	if s.Required("flexibleTimeWindow", in.FlexibleTimeWindow != nil); in.FlexibleTimeWindow != nil {
		s.Required("flexibleTimeWindow.mode", in.FlexibleTimeWindow.Mode != nil)
		s.enum("flexibleTimeWindow.mode", in.FlexibleTimeWindow.Mode, enumMode)
		s.number("flexibleTimeWindow.maximumWindowInMinutes", in.FlexibleTimeWindow.MaximumWindowInMinutes, 1, windowMax)
	}
	s.token(in.ClientToken)
	s.enum("actionAfterCompletion", in.ActionAfterCompletion, enumAction)
	return s.err()
}

// checkExpression parses the schedule's expression in its time zone.
func (s *Scheduler) checkExpression(in *Settings) (cron.Expression, error) {
	zone := orElse(in.ScheduleExpressionTimezone, zoneDefault)
	if _, err := cron.Zone(zone); err != nil {
		return cron.Expression{}, invalid("Invalid Schedule Expression Timezone " + zone + ".")
	}
	expression, err := s.expressions.parse(*in.ScheduleExpression, zone)
	if err != nil {
		return cron.Expression{}, invalid("Invalid Schedule Expression " + *in.ScheduleExpression + ".")
	}
	return expression, nil
}

// checkDates checks StartDate and EndDate, which a one-time schedule ignores.
func checkDates(in *Settings, kind cron.Kind, now time.Time) error {
	start, end := in.StartDate.time(), in.EndDate.time()
	switch {
	case kind == cron.At || start.IsZero():
		return nil
	case start.Before(now.Add(-startLate)):
		return invalid("The StartDate you specify cannot be earlier than 5 minutes ago.")
	case !end.IsZero() && !start.Before(end):
		return invalid("The StartDate you specify must come before the EndDate.")
	}
	return nil
}

func checkWindow(w *FlexibleTimeWindow) error {
	switch {
	case *w.Mode == modeOff && w.MaximumWindowInMinutes != nil:
		return invalid("MaximumWindowInMinutes must not be provided when FlexibleTimeWindowMode is set to OFF.")
	case *w.Mode == modeFlexible && w.MaximumWindowInMinutes == nil:
		return invalid("MaximumWindowInMinutes must be provided when FlexibleTimeWindowMode is set to FLEXIBLE.")
	}
	return nil
}
