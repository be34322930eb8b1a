package program

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/scheduler"
	"github.com/google/go-cmp/cmp"
)

// A schedule in JSON has every member that the SDK would send, with the SDK's name, and parsing it
// returns the same schedule.
func TestScheduleDocumentIsTheWires(t *testing.T) {
	in := &scheduler.CreateScheduleInput{}
	number := 0
	fill(reflect.ValueOf(in).Elem(), &number)
	in.State, in.ActionAfterCompletion, in.FlexibleTimeWindow.Mode = "DISABLED", "DELETE", "FLEXIBLE"
	in.ScheduleExpression, in.ScheduleExpressionTimezone = aws.String("rate(5 minutes)"), aws.String("Europe/Berlin")
	sent := sentBy(t, in)

	document := documentOf(&scheduler.GetScheduleOutput{
		Name: in.Name, GroupName: in.GroupName, Description: in.Description, ScheduleExpression: in.ScheduleExpression,
		ScheduleExpressionTimezone: in.ScheduleExpressionTimezone, StartDate: in.StartDate, EndDate: in.EndDate, State: in.State,
		ActionAfterCompletion: in.ActionAfterCompletion, FlexibleTimeWindow: in.FlexibleTimeWindow, KmsKeyArn: in.KmsKeyArn, Target: in.Target,
	})
	text, err := marshalLine(document)
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	sent["Name"] = *in.Name // it goes in the path
	delete(sent, "ClientToken")
	for _, name := range []string{"StartDate", "EndDate"} {
		sent[name] = time.UnixMilli(int64(sent[name].(float64) * 1000)).UTC().Format("2006-01-02T15:04:05Z")
	}
	if diff := cmp.Diff(sent, got); diff != "" {
		t.Errorf("the SDK sends otherwise:\n%s", diff)
	}

	again, err := readDocument(text)
	if err != nil {
		t.Fatal(err)
	}
	back := again.createInput()
	back.ClientToken = in.ClientToken
	if diff := cmp.Diff(sentBy(t, in), sentBy(t, back)); diff != "" {
		t.Errorf("what is read is not what was written:\n%s", diff)
	}
}

// fill sets all there is in a structure of the SDK's, each value to another.
func fill(v reflect.Value, number *int) {
	*number++
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), number)
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			v.Set(reflect.ValueOf(time.Unix(1_900_000_000+int64(*number), 0).UTC()))
			return
		}
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				fill(v.Field(i), number)
			}
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		fill(v.Index(0), number)
		fill(v.Index(1), number)
	case reflect.Map:
		v.Set(reflect.ValueOf(map[string]string{"key": "value"}))
	case reflect.String:
		v.SetString("value-" + time.Duration(*number).String() + " <&>")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int32:
		v.SetInt(int64(*number))
	default:
		panic("no idea what to put into " + v.Type().String())
	}
}

// sentBy is the body that the SDK sends.
func sentBy(t *testing.T, in *scheduler.CreateScheduleInput) (body map[string]any) {
	t.Helper()
	errSeen := errors.New("seen")
	client := scheduler.New(scheduler.Options{
		Region: regionDefault, Credentials: aws.AnonymousCredentials{}, Retryer: aws.NopRetryer{}, BaseEndpoint: aws.String("http://127.0.0.1:1"),
		HTTPClient: doer(func(r *http.Request) (*http.Response, error) {
			text, err := io.ReadAll(r.Body)
			if err != nil {
				return nil, err
			}
			return nil, errors.Join(errSeen, json.Unmarshal(text, &body))
		}),
	})
	if _, err := client.CreateSchedule(t.Context(), in); !errors.Is(err, errSeen) {
		t.Fatal(err)
	}
	return body
}

type doer func(*http.Request) (*http.Response, error)

func (d doer) Do(r *http.Request) (*http.Response, error) { return d(r) }

func TestReadDocumentRefuses(t *testing.T) {
	const good = `{"Name":"a","ScheduleExpression":"rate(1 day)","Target":{"Arn":"x","RoleArn":"y"}}`
	if _, err := readDocument([]byte(good)); err != nil {
		t.Error(err)
	}
	for text, want := range map[string]string{
		`{"Name":"a"`:  "incomplete",
		``:             "incomplete",
		`[]`:           "the schedule must not be a JSON array",
		good + `{}`:    "unexpected text",
		`{"Nmae":"a"}`: `unknown field "Nmae"`,
		`{"Name":1}`:   "Name must not be a JSON number",
		`{"Name":"a","Target":{"Input":{"a":1}}}`:                                        "Target.Input must be a string",
		`{"ScheduleExpression":"rate(1 day)","Target":{}}`:                               "member Name is missing",
		`{"Name":"a","Target":{}}`:                                                       "member ScheduleExpression is missing",
		`{"Name":"a","ScheduleExpression":"rate(1 day)"}`:                                "member Target is missing",
		strings.Replace(good, "1 day", "1 jiffy", 1):                                     "jiffy",
		strings.Replace(good, `"Name"`, `"CatchUp":"none","Name"`, 1):                    "not one of last, all, skip",
		strings.Replace(good, `"Name"`, `"StartDate":"soon","Name"`, 1):                  "neither a time",
		strings.Replace(good, `"Name"`, `"ScheduleExpressionTimezone":"CEST","Name"`, 1): "time zone",
	} {
		if _, err := readDocument([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; want %s", text, err, want)
		}
	}
}
