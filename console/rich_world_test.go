package console_test

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	lambdatypes "github.com/aws/aws-sdk-go-v2/service/lambda/types"
	"github.com/aws/aws-sdk-go-v2/service/scheduler"
	schedulertypes "github.com/aws/aws-sdk-go-v2/service/scheduler/types"

	"github.com/mayflydb/mayfly"
	"github.com/mayflydb/mayfly/internal/testkit"
	"github.com/mayflydb/mayfly/lifecycle"
	"github.com/mayflydb/mayfly/target"
)

// newRichWorld returns a server of ours with something to see on each page. Its clock is frozen.
func newRichWorld(t *testing.T) *world {
	t.Helper()
	ctx := t.Context()
	refuses := target.Func(func(context.Context, target.Delivery) error { return target.Permanent("Gone", "nobody is at home") })
	w := newWorld(t, "mayfly", mayfly.Options{
		Start: time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC), Frozen: true, ClockControl: mayfly.ClockControlOn, Logger: testkit.Logger(t),
		Targets:   []target.Mapping{{ARN: "arn:aws:lambda:*:*:function:*", Target: refuses}},
		Reminders: []mayfly.Reminder{{Name: "visit", Table: "visits", Attribute: "at", Offset: -time.Hour, Target: "arn:aws:lambda:us-east-1:000000000000:function:mail"}},
	})
	clock := w.own.Clock()
	stream := w.fill(t, clock.Now())
	w.schedule(t, "nightly", "cron(30 2 * * ? *)", "report")
	w.schedule(t, "soon", "rate(5 minutes)", "refused")
	must(t, w.trigger(ctx, stream))

	l, err := lifecycle.New(lifecycle.Options{DB: w.db, Streams: w.own.Streams(), Now: clock.Now, Unmapped: true})
	must(t, err)
	_, err = l.Apply(ctx, lifecycle.Definition{Name: "parcel", States: []lifecycle.State{
		{Name: "waiting", Next: []lifecycle.Transition{{To: "returned", After: "3 days", Handler: "remind"}, {To: "fetched"}}},
		{Name: "fetched"}, {Name: "returned"},
	}}, lifecycle.ApplyOptions{})
	must(t, err)
	for _, id := range []string{"p-1", "p-2"} {
		_, err := l.Create(ctx, "parcel", id, nil)
		must(t, err)
	}
	_, err = l.Move(ctx, "parcel", "p-2", "fetched")
	must(t, err)
	_, err = clock.Advance(ctx, 6*time.Minute) // some items expire, and a schedule fires in vain
	must(t, err)
	return w
}

// fill makes tables: one in use with its stream, whose ARN is returned, one with visits, and an
// empty one.
func (w *world) fill(t *testing.T, now time.Time) (stream string) {
	t.Helper()
	ctx := t.Context()
	images := &types.StreamSpecification{StreamEnabled: aws.Bool(true), StreamViewType: types.StreamViewTypeNewAndOldImages}
	out, err := w.db.CreateTable(ctx, &dynamodb.CreateTableInput{
		TableName: aws.String("sessions"), BillingMode: types.BillingModePayPerRequest, StreamSpecification: images,
		AttributeDefinitions: []types.AttributeDefinition{
			{AttributeName: aws.String("user"), AttributeType: types.ScalarAttributeTypeS},
			{AttributeName: aws.String("device"), AttributeType: types.ScalarAttributeTypeN},
			{AttributeName: aws.String("city"), AttributeType: types.ScalarAttributeTypeS},
		},
		KeySchema: []types.KeySchemaElement{{AttributeName: aws.String("user"), KeyType: types.KeyTypeHash}, {AttributeName: aws.String("device"), KeyType: types.KeyTypeRange}},
		GlobalSecondaryIndexes: []types.GlobalSecondaryIndex{{
			IndexName: aws.String("by-city"), KeySchema: []types.KeySchemaElement{{AttributeName: aws.String("city"), KeyType: types.KeyTypeHash}},
			Projection: &types.Projection{ProjectionType: types.ProjectionTypeAll},
		}},
	})
	must(t, err)
	_, err = w.db.UpdateTimeToLive(ctx, &dynamodb.UpdateTimeToLiveInput{
		TableName: aws.String("sessions"), TimeToLiveSpecification: &types.TimeToLiveSpecification{AttributeName: aws.String("until"), Enabled: aws.Bool(true)},
	})
	must(t, err)
	for name, view := range map[string]*types.StreamSpecification{"visits": images, "empty": nil} {
		_, err := w.db.CreateTable(ctx, &dynamodb.CreateTableInput{
			TableName: &name, BillingMode: types.BillingModePayPerRequest, StreamSpecification: view,
			AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("id"), AttributeType: types.ScalarAttributeTypeS}},
			KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("id"), KeyType: types.KeyTypeHash}},
		})
		must(t, err)
	}
	text := func(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }
	number := func(n int64) types.AttributeValue {
		return &types.AttributeValueMemberN{Value: strconv.FormatInt(n, 10)}
	}
	for i := range int64(60) {
		item := map[string]types.AttributeValue{
			"user": text(fmt.Sprintf("u-%d", i%7)), "device": number(i), "city": text("Wien"), "until": number(now.Unix() + 1 + 30*(i%20)),
			"cart":  &types.AttributeValueMemberL{Value: []types.AttributeValue{&types.AttributeValueMemberM{Value: map[string]types.AttributeValue{"sku": text("<b>7</b>"), "gift": &types.AttributeValueMemberBOOL{Value: true}}}}},
			"photo": &types.AttributeValueMemberB{Value: []byte{0, 1, 2, 255}}, "tags": &types.AttributeValueMemberSS{Value: []string{"a", "b"}},
			"none": &types.AttributeValueMemberNULL{Value: true}, "note": text(strings.Repeat("long ", 60)),
		}
		switch i {
		case 3:
			item["until"] = text("tomorrow") // never expires
		case 4:
			item["until"] = number(1000 * now.Unix()) // milliseconds: a mistake
		}
		_, err := w.db.PutItem(ctx, &dynamodb.PutItemInput{TableName: aws.String("sessions"), Item: item})
		must(t, err)
	}
	_, err = w.db.PutItem(ctx, &dynamodb.PutItemInput{TableName: aws.String("visits"), Item: map[string]types.AttributeValue{
		"id": text("v-1"), "at": text(now.Add(26 * time.Hour).Format(time.RFC3339)),
	}})
	must(t, err)
	return aws.ToString(out.TableDescription.LatestStreamArn)
}

// schedule makes a schedule.
func (w *world) schedule(t *testing.T, name, expression, function string) {
	t.Helper()
	_, err := w.own.Scheduler().CreateSchedule(t.Context(), &scheduler.CreateScheduleInput{
		Name: &name, ScheduleExpression: &expression, FlexibleTimeWindow: &schedulertypes.FlexibleTimeWindow{Mode: schedulertypes.FlexibleTimeWindowModeOff},
		Target: &schedulertypes.Target{Arn: aws.String("arn:aws:lambda:us-east-1:000000000000:function:" + function), RoleArn: aws.String("arn:aws:iam::000000000000:role/any"), Input: aws.String(`{"n": 1}`)},
	})
	must(t, err)
}

// trigger makes a trigger of a stream.
func (w *world) trigger(ctx context.Context, stream string) error {
	functions := lambda.New(lambda.Options{BaseEndpoint: aws.String("http://in.process"), Region: "us-east-1", Credentials: aws.AnonymousCredentials{}, HTTPClient: &http.Client{Transport: w.own.Transport()}})
	_, err := functions.CreateEventSourceMapping(ctx, &lambda.CreateEventSourceMappingInput{
		EventSourceArn: &stream, FunctionName: aws.String("release"), StartingPosition: lambdatypes.EventSourcePositionLatest,
		FilterCriteria: &lambdatypes.FilterCriteria{Filters: []lambdatypes.Filter{{Pattern: aws.String(`{"eventName":["REMOVE"]}`)}}},
	})
	return err
}

// sights are the addresses to look at, below the first page, by the routes of their pages.
var sights = map[string][]string{
	"{$}":                                  {""},
	"console/tables":                       {"console/tables", "console/tables?q=nothing+like+this"},
	"console/new":                          {"console/new"},
	"console/table/{table}":                {"console/table/sessions", "console/table/empty"},
	"console/table/{table}/items":          {"console/table/sessions/items", "console/table/sessions/items?k0=u-4&o1=between&k1=1&second=50&f0=city&fo0=%3D&ft0=S&fv0=Wien", "console/table/sessions/items?index=by-city&k0=Wien", "console/table/empty/items"},
	"console/table/{table}/item":           {"console/table/sessions/item?key=" + url.QueryEscape(`{"user":{"S":"u-5"},"device":{"N":"19"}}`), "console/table/sessions/item?key=" + url.QueryEscape(`{"user":{"S":"u-4"},"device":{"N":"4"}}`), "console/table/sessions/item"},
	"console/table/{table}/timeline":       {"console/table/sessions/timeline?next=10m&values=yes", "console/table/empty/timeline"},
	"console/table/{table}/stream":         {"console/table/sessions/stream?from=oldest&q=u-4", "console/table/empty/stream"},
	"console/table/{table}/import":         {"console/table/sessions/import"},
	"console/partiql":                      {"console/partiql?statement=" + url.QueryEscape(`select * from "sessions" where "user" = 'u-5'`), "console/partiql?statement=" + wrongStatement},
	"console/schedule":                     {"console/schedule?group=default&name=nightly", "console/schedule?group=default&name=soon"},
	"console/schedules":                    {"console/schedules"},
	"console/triggers":                     {"console/triggers"},
	"console/reminders":                    {"console/reminders"},
	"console/deadletters":                  {"console/deadletters"},
	"console/lifecycles":                   {"console/lifecycles"},
	"console/lifecycle/{lifecycle}":        {"console/lifecycle/parcel"},
	"console/lifecycle/{lifecycle}/entity": {"console/lifecycle/parcel/entity?id=p-1", "console/lifecycle/parcel/entity?id=p-2"},
	"console/guard":                        {"console/guard", "console/guard?table=sessions", "console/guard?table=missing"},
	"console/clock":                        {"console/clock"},
}

// wrongStatement is one in PartiQL, as a URL has it. The answer has the status of an error.
const wrongStatement = "select+nonsense"

// must fails the test for an error.
func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
