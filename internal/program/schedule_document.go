package program

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/scheduler"
	"github.com/aws/aws-sdk-go-v2/service/scheduler/types"

	"github.com/mayflydb/mayfly/internal/when"
	schedules "github.com/mayflydb/mayfly/internal/work/scheduler"
)

const (
	stateEnabled  = string(types.ScheduleStateEnabled)
	stateDisabled = string(types.ScheduleStateDisabled)
)

// scheduleDocument is a schedule in JSON, with the members of CreateSchedule and GetSchedule, so
// that `aws scheduler create-schedule --cli-input-json` accepts it, and with mayfly's CatchUp.
type scheduleDocument struct {
	Name                       string
	GroupName                  string                    `json:",omitempty"`
	Description                *string                   `json:",omitempty"`
	ScheduleExpression         string                    `json:",omitempty"`
	ScheduleExpressionTimezone *string                   `json:",omitempty"`
	StartDate                  *wireTime                 `json:",omitempty"`
	EndDate                    *wireTime                 `json:",omitempty"`
	State                      string                    `json:",omitempty"`
	ActionAfterCompletion      string                    `json:",omitempty"`
	FlexibleTimeWindow         *types.FlexibleTimeWindow `json:",omitempty"`
	KmsKeyArn                  *string                   `json:",omitempty"`
	CatchUp                    string                    `json:",omitempty"`
	Target                     *types.Target             `json:",omitempty"`

	// Members that the endpoint sets. An import ignores them.
	Arn                  string    `json:",omitempty"`
	CreationDate         *wireTime `json:",omitempty"`
	LastModificationDate *wireTime `json:",omitempty"`
	NextFiring           *wireTime `json:",omitempty"`

	kept *schedules.State // from mayfly's tables; nil at other endpoints
}

// wireTime is an instant in JSON: written as RFC 3339 in UTC, and read also as seconds since 1970.
type wireTime time.Time

func (t *wireTime) time() time.Time {
	if t == nil {
		return time.Time{}
	}
	return time.Time(*t).UTC()
}

// wireTimeOf returns nil for the zero time.
func wireTimeOf(t time.Time) *wireTime {
	if t.IsZero() {
		return nil
	}
	w := wireTime(t)
	return &w
}

// MarshalText implements encoding.TextMarshaler.
func (t wireTime) MarshalText() ([]byte, error) {
	return []byte(when.Wall(time.Time(t).UTC()) + "Z"), nil
}

// UnmarshalJSON implements json.Unmarshaler.
func (t *wireTime) UnmarshalJSON(text []byte) error {
	if seconds, err := strconv.ParseFloat(string(text), 64); err == nil && math.Abs(seconds) < 1e12 {
		*t = wireTime(time.UnixMilli(int64(math.Round(seconds * 1000))).UTC())
		return nil
	}
	var s string
	if err := json.Unmarshal(text, &s); err == nil {
		if at, err := time.Parse(time.RFC3339Nano, s); err == nil {
			*t = wireTime(at)
			return nil
		}
	}
	return fmt.Errorf("%s is neither a time such as \"2030-01-01T12:00:00Z\" nor seconds since 1970", text)
}

// plainDocument is the document without its methods.
type plainDocument scheduleDocument

// MarshalJSON writes the members that are set, with the API's names.
func (d scheduleDocument) MarshalJSON() ([]byte, error) {
	others := struct {
		*plainDocument
		FlexibleTimeWindow any `json:",omitempty"`
		Target             any `json:",omitempty"`
	}{plainDocument: (*plainDocument)(&d)}
	if d.FlexibleTimeWindow != nil {
		others.FlexibleTimeWindow = membersOf(d.FlexibleTimeWindow)
	}
	if d.Target != nil {
		others.Target = membersOf(d.Target)
	}
	return marshalLine(others)
}

// readDocument parses a schedule. An unknown member is an error, so that a typing error is noticed.
func readDocument(text []byte) (*scheduleDocument, error) {
	from := json.NewDecoder(bytes.NewReader(text))
	from.DisallowUnknownFields()
	d := &plainDocument{}
	if err := from.Decode(d); err != nil {
		return nil, documentError(err)
	}
	if _, err := from.Token(); err != io.EOF {
		return nil, errors.New("unexpected text after the JSON object")
	}
	document := (*scheduleDocument)(d)
	return document, document.check()
}

// documentError returns an error of encoding/json in words of JSON instead of Go.
func documentError(err error) error {
	var typ *json.UnmarshalTypeError
	switch {
	case errors.As(err, &typ) && strings.HasSuffix(typ.Field, "Input"):
		return fmt.Errorf("%s must be a string; write JSON in it as \"{\\\"a\\\":1}\"", typ.Field)
	case errors.As(err, &typ):
		return fmt.Errorf("%s must not be a JSON %s", cmp.Or(typ.Field, "the schedule"), typ.Value)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("the JSON object is incomplete")
	}
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		return fmt.Errorf("not valid JSON at character %d", syntax.Offset)
	}
	return errors.New(strings.TrimPrefix(err.Error(), "json: ")) // unknown field "x"
}

// check returns an error for missing members. The API checks the rest.
func (d *scheduleDocument) check() error {
	switch {
	case d.Name == "":
		return errors.New("member Name is missing")
	case d.ScheduleExpression == "":
		return errors.New("member ScheduleExpression is missing")
	case d.Target == nil:
		return errors.New("member Target is missing")
	}
	switch d.CatchUp {
	case "", "last", "all", "skip":
	default:
		return fmt.Errorf("CatchUp: %q is not one of last, all, skip", d.CatchUp)
	}
	_, err := d.timetable()
	return err
}

func documentOf(out *scheduler.GetScheduleOutput) *scheduleDocument {
	return &scheduleDocument{
		Name: aws.ToString(out.Name), GroupName: aws.ToString(out.GroupName), Description: out.Description,
		ScheduleExpression: aws.ToString(out.ScheduleExpression), ScheduleExpressionTimezone: out.ScheduleExpressionTimezone,
		StartDate: (*wireTime)(out.StartDate), EndDate: (*wireTime)(out.EndDate), State: string(out.State),
		ActionAfterCompletion: string(out.ActionAfterCompletion), FlexibleTimeWindow: out.FlexibleTimeWindow, KmsKeyArn: out.KmsKeyArn, Target: out.Target,
		Arn: aws.ToString(out.Arn), CreationDate: (*wireTime)(out.CreationDate), LastModificationDate: (*wireTime)(out.LastModificationDate),
	}
}

// createInput returns the input of CreateSchedule.
func (d *scheduleDocument) createInput() *scheduler.CreateScheduleInput {
	window := d.FlexibleTimeWindow
	if window == nil {
		window = &types.FlexibleTimeWindow{Mode: types.FlexibleTimeWindowModeOff}
	}
	return &scheduler.CreateScheduleInput{
		Name: &d.Name, GroupName: aws.String(cmp.Or(d.GroupName, groupDefault)), Description: d.Description, ScheduleExpression: &d.ScheduleExpression,
		ScheduleExpressionTimezone: d.ScheduleExpressionTimezone, StartDate: (*time.Time)(d.StartDate), EndDate: (*time.Time)(d.EndDate),
		State: types.ScheduleState(d.State), ActionAfterCompletion: types.ActionAfterCompletion(d.ActionAfterCompletion), FlexibleTimeWindow: window,
		KmsKeyArn: d.KmsKeyArn, Target: d.Target,
	}
}

// updateInput returns the input of UpdateSchedule.
func (d *scheduleDocument) updateInput() *scheduler.UpdateScheduleInput {
	in := scheduler.UpdateScheduleInput(*d.createInput())
	return &in
}
