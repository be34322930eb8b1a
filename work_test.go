package mayfly

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	eventtypes "github.com/aws/aws-sdk-go-v2/service/eventbridge/types"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	lambdatypes "github.com/aws/aws-sdk-go-v2/service/lambda/types"
	"github.com/aws/aws-sdk-go-v2/service/scheduler"
	schedulertypes "github.com/aws/aws-sdk-go-v2/service/scheduler/types"
	"github.com/aws/smithy-go"
	"go.uber.org/goleak"

	"github.com/mayflydb/mayfly/internal/store/kv"
	"github.com/mayflydb/mayfly/target"
)

const (
	testFunction = "arn:aws:lambda:us-east-1:000000000000:function:test"
	testRole     = "arn:aws:iam::000000000000:role/test"
)

// inbox is a target that stores its deliveries.
type inbox struct {
	mu  sync.Mutex
	got []target.Delivery
}

func (i *inbox) mapping(arn string) target.Mapping {
	return target.Mapping{ARN: arn, Target: target.Func(i.take)}
}

func (i *inbox) take(_ context.Context, d target.Delivery) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.got = append(i.got, d)
	return nil
}

// all returns the deliveries, by source, time and attempt.
func (i *inbox) all() (all []string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, d := range i.got {
		all = append(all, fmt.Sprintf("%s %s %d", d.Source[strings.LastIndexByte(d.Source, '/')+1:], d.Time.Format("15:04:05.000"), d.Attempt))
	}
	slices.Sort(all)
	return all
}

func (i *inbox) want(t *testing.T, want ...string) {
	t.Helper()
	if got := i.all(); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
}

// midnight is the frozen instant of openAtMidnight.
var midnight = time.Date(2030, 1, 2, 0, 0, 0, 0, time.UTC)

func openAtMidnight(t testing.TB, options Options) *DB {
	options.Start, options.Frozen = midnight, true
	db, err := Open("", options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	advance(t, db, midnight.Add(time.Minute).Sub(db.Clock().Now()).Round(time.Millisecond))
	return db
}

func advance(t testing.TB, db *DB, by time.Duration) {
	t.Helper()
	moved, err := db.Clock().Advance(context.Background(), by)
	if err != nil {
		t.Fatalf("advance by %s: %+v, %v", by, moved, err)
	}
	if moved.Unfinished { // Advance itself limits the real time, to advanceLimit
		t.Fatalf("advance by %s: after %s of real time the clock is at %s, and still waits for %q", by, advanceLimit, stamp(moved.To), moved.Busy)
	}
}

// schedule creates a schedule of the function, with an expression.
func schedule(t testing.TB, db *DB, name, expression string, change ...func(*scheduler.CreateScheduleInput)) {
	t.Helper()
	in := &scheduler.CreateScheduleInput{
		Name: &name, ScheduleExpression: &expression, FlexibleTimeWindow: &schedulertypes.FlexibleTimeWindow{Mode: schedulertypes.FlexibleTimeWindowModeOff},
		Target: &schedulertypes.Target{Arn: aws.String(testFunction), RoleArn: aws.String(testRole), Input: aws.String(`{"name":"` + name + `"}`)},
	}
	for _, f := range change {
		f(in)
	}
	if _, err := db.Scheduler().CreateSchedule(t.Context(), in); err != nil {
		t.Fatalf("create schedule %s: %v", name, err)
	}
}

func tables(t testing.TB, db *DB) []string {
	t.Helper()
	out, err := db.DynamoDB().ListTables(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return out.TableNames
}

// A schedule calls a Go function at the second in its expression and not before, and the clock
// waits for the function.
func TestSchedulesCallGoFunctions(t *testing.T) {
	in := new(inbox)
	db := openAtMidnight(t, Options{Targets: []target.Mapping{in.mapping("arn:aws:lambda:*:*:function:test")}})
	schedule(t, db, "once", "at(2030-01-02T00:10:30)")
	schedule(t, db, "often", "rate(2 minutes)", func(in *scheduler.CreateScheduleInput) {
		in.StartDate, in.EndDate = aws.Time(midnight.Add(9*time.Minute)), aws.Time(midnight.Add(13*time.Minute))
	})
	advance(t, db, 9*time.Minute+30*time.Second-time.Millisecond)
	in.want(t, "often 00:09:00.000 1")
	advance(t, db, time.Millisecond)
	in.want(t, "often 00:09:00.000 1", "once 00:10:30.000 1")
	advance(t, db, 24*time.Hour)
	in.want(t, "often 00:09:00.000 1", "often 00:11:00.000 1", "often 00:13:00.000 1", "once 00:10:30.000 1")
	for _, d := range in.got {
		if d.ID == "" || d.TargetARN != testFunction || !strings.HasPrefix(d.Source, "arn:aws:scheduler:us-east-1:000000000000:schedule/default/") || !strings.HasPrefix(string(d.Body), `{"name":"o`) {
			t.Errorf("delivery %+v", d)
		}
	}
}

// A classic rule calls its targets with an event, or with the output of its transformer.
func TestRulesCallGoFunctions(t *testing.T) {
	in := new(inbox)
	db := openAtMidnight(t, Options{Targets: []target.Mapping{in.mapping(testFunction)}})
	events := eventbridge.New(eventbridge.Options{
		BaseEndpoint: aws.String("http://in.process"), Region: "us-east-1", Credentials: aws.AnonymousCredentials{}, HTTPClient: &http.Client{Transport: db.Transport()},
	})
	name := aws.String("five")
	if _, err := events.PutRule(t.Context(), &eventbridge.PutRuleInput{Name: name, ScheduleExpression: aws.String("cron(5 0 * * ? *)")}); err != nil {
		t.Fatal(err)
	}
	_, err := events.PutTargets(t.Context(), &eventbridge.PutTargetsInput{Rule: name, Targets: []eventtypes.Target{{
		Id: aws.String("f"), Arn: aws.String(testFunction),
		InputTransformer: &eventtypes.InputTransformer{InputPathsMap: map[string]string{"time": "$.time"}, InputTemplate: aws.String(`{"time": <time>}`)},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	advance(t, db, 3*time.Minute)
	in.want(t)
	advance(t, db, 24*time.Hour)
	in.want(t, "five 00:05:00.000 1")
	if got := string(in.got[0].Body); got != `{"time":"2030-01-02T00:05:00Z"}` {
		t.Errorf("the function got %s", got)
	}
}

// A declared trigger and an event source mapping deliver a table's records to their functions, and
// the clock waits for them.
func TestTriggersCallGoFunctions(t *testing.T) {
	in := new(inbox)
	db := openAtMidnight(t, Options{
		Targets:  []target.Mapping{in.mapping(testFunction), {ARN: "arn:aws:lambda:*:*:function:other", Name: "other", Target: target.Func(in.take)}},
		Triggers: []Trigger{{Name: "declared", Table: "events", Target: "other", Batch: 5}},
	})
	makeTable(t, db.DynamoDB(), "events")
	arn, err := db.DynamoDB().DescribeTable(t.Context(), &dynamodb.DescribeTableInput{TableName: aws.String("events")})
	if err != nil {
		t.Fatal(err)
	}
	functions := lambda.New(lambda.Options{
		BaseEndpoint: aws.String("http://in.process"), Region: "us-east-1", Credentials: aws.AnonymousCredentials{}, HTTPClient: &http.Client{Transport: db.Transport()},
	})
	made, err := functions.CreateEventSourceMapping(t.Context(), &lambda.CreateEventSourceMappingInput{
		EventSourceArn: arn.Table.LatestStreamArn, FunctionName: aws.String("test"), StartingPosition: lambdatypes.EventSourcePositionTrimHorizon,
	})
	if err != nil {
		t.Fatal(err)
	}
	within(t, "the mapping to be enabled", func() bool {
		m, err := functions.GetEventSourceMapping(t.Context(), &lambda.GetEventSourceMappingInput{UUID: made.UUID})
		return err == nil && aws.ToString(m.State) == "Enabled"
	})
	for i := range 10 {
		_, err := db.DynamoDB().PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String("events"), Item: map[string]types.AttributeValue{
			"pk": &types.AttributeValueMemberS{Value: fmt.Sprint(i)}, "ttl": &types.AttributeValueMemberN{Value: fmt.Sprint(db.Clock().Now().Unix() + 60)},
		}})
		if err != nil {
			t.Fatal(err)
		}
	}
	within(t, "a trigger to look for its table again", func() bool { return in.records()["other"] > 0 })
	advance(t, db, time.Hour)
	if got := in.records(); got["other"] != 20 || got["test"] != 20 {
		t.Errorf("records of ten writes and ten expiries: %v", got)
	}
	if metrics := get(t, db, "/metrics"); !strings.Contains(metrics, `mayfly_trigger_deliveries_total{trigger="declared"}`) ||
		!strings.Contains(metrics, `mayfly_trigger_lateness_seconds_count{trigger="`+*made.UUID+`"}`) || strings.Contains(metrics, `group="trigger`) {
		t.Error("/metrics lacks the triggers")
	}
}

// records counts the received stream records, by function.
func (i *inbox) records() map[string]int {
	i.mu.Lock()
	defer i.mu.Unlock()
	n := map[string]int{}
	for _, d := range i.got {
		n[d.TargetARN[strings.LastIndexByte(d.TargetARN, ':')+1:]] += strings.Count(string(d.Body), `"eventID"`)
	}
	return n
}

// within waits for a condition.
func within(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !holds(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain for %s", what)
		}
	}
}

// A failed delivery is retried as the clock moves on, and the clock waits for that too. After its
// last failure it is a dead letter.
func TestRetriesFollowTheClock(t *testing.T) {
	in := new(inbox)
	db := openAtMidnight(t, Options{Targets: []target.Mapping{{ARN: testFunction, Target: target.Func(func(ctx context.Context, d target.Delivery) error {
		if in.take(ctx, d); d.Attempt < 3 || strings.Contains(string(d.Body), "never") {
			return errors.New("not now")
		}
		return nil
	})}}})
	schedule(t, db, "third", "at(2030-01-02T00:10:00)")
	schedule(t, db, "never", "at(2030-01-02T00:10:00)", func(in *scheduler.CreateScheduleInput) {
		in.Target.RetryPolicy = &schedulertypes.RetryPolicy{MaximumRetryAttempts: aws.Int32(1)}
	})
	advance(t, db, time.Hour)
	in.want(t, "never 00:10:00.000 1", "never 00:10:00.000 2", "third 00:10:00.000 1", "third 00:10:00.000 2", "third 00:10:00.000 3")
	dead, err := db.DynamoDB().Scan(t.Context(), &dynamodb.ScanInput{TableName: aws.String("mayfly.deadletters")})
	if err != nil || dead.Count != 1 {
		t.Errorf("%d dead letters, %v", dead.Count, err)
	}
	for _, want := range []string{
		`mayfly_scheduler_firings_total{group="default"} 2`, `mayfly_scheduler_invocation_attempts_total{group="default"} 5`,
		`mayfly_scheduler_target_errors_total{group="default"} 4`, `mayfly_scheduler_deliveries_total{group="default"} 1`,
		`mayfly_scheduler_invocations_dropped_total{group="default"} 1`, `mayfly_scheduler_lateness_seconds_count{group="default"} 2`,
	} {
		if metrics := get(t, db, "/metrics"); !strings.Contains(metrics, want+"\n") {
			t.Errorf("/metrics lacks %s", want)
		}
	}
	if ready := get(t, db, "/readyz"); ready != "ready\n" {
		t.Errorf("readyz: %s", ready)
	}
}

// The metrics of a group are deleted with it, and the metrics of other groups stay.
func TestGroupLeavesNoMetrics(t *testing.T) {
	in := new(inbox)
	db := openAtMidnight(t, Options{Targets: []target.Mapping{in.mapping(testFunction)}})
	group := aws.String("brief")
	if _, err := db.Scheduler().CreateScheduleGroup(t.Context(), &scheduler.CreateScheduleGroupInput{Name: group}); err != nil {
		t.Fatal(err)
	}
	schedule(t, db, "a", "at(2030-01-02T00:10:00)", func(in *scheduler.CreateScheduleInput) { in.GroupName = group })
	schedule(t, db, "b", "at(2030-01-02T00:10:00)")
	advance(t, db, time.Hour)
	const series, other = `group="brief"`, `mayfly_scheduler_lateness_seconds_count{group="default"} 1`
	if got := get(t, db, "/metrics"); strings.Count(got, series) < 5 || !strings.Contains(got, other) {
		t.Errorf("/metrics lacks a group")
	}
	if _, err := db.Scheduler().DeleteScheduleGroup(t.Context(), &scheduler.DeleteScheduleGroupInput{Name: group}); err != nil {
		t.Fatal(err)
	}
	within(t, "the series to go", func() bool { return !strings.Contains(get(t, db, "/metrics"), series) })
	if !strings.Contains(get(t, db, "/metrics"), other) {
		t.Errorf("/metrics lacks the other group")
	}
}

// get reads a page of the handler.
func get(t *testing.T, db *DB, path string) string {
	t.Helper()
	w := httptest.NewRecorder()
	db.Handler().ServeHTTP(w, httptest.NewRequest("GET", path, nil))
	body, err := io.ReadAll(w.Result().Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

// Without a schedule, the scheduler has no table and no goroutine, even after a request. A refused
// schedule creates none either.
func TestNothingWorksUntilThereIsWork(t *testing.T) {
	db := openAtMidnight(t, Options{Unmapped: UnmappedRefuse})
	ctx := t.Context()
	if out, err := db.Scheduler().ListSchedules(ctx, nil); err != nil || len(out.Schedules) != 0 {
		t.Error(out, err)
	}
	if out, err := db.Scheduler().ListScheduleGroups(ctx, nil); err != nil || len(out.ScheduleGroups) != 1 {
		t.Error(out, err)
	}
	if _, err := db.Scheduler().GetSchedule(ctx, &scheduler.GetScheduleInput{Name: aws.String("a")}); err == nil {
		t.Error("there is a schedule")
	}
	if _, err := db.Scheduler().DeleteSchedule(ctx, &scheduler.DeleteScheduleInput{Name: aws.String("a")}); err == nil {
		t.Error("a schedule was deleted")
	}
	_, err := db.Scheduler().CreateSchedule(ctx, &scheduler.CreateScheduleInput{
		Name: aws.String("a"), ScheduleExpression: aws.String("rate(1 minutes)"), FlexibleTimeWindow: &schedulertypes.FlexibleTimeWindow{Mode: "OFF"},
		Target: &schedulertypes.Target{Arn: aws.String(testFunction), RoleArn: aws.String(testRole)},
	})
	var refused smithy.APIError
	if !errors.As(err, &refused) || refused.ErrorCode() != "ValidationException" || !strings.Contains(refused.ErrorMessage(), "--targets") {
		t.Errorf("got %v", err)
	}
	if got := tables(t, db); len(got) != 0 {
		t.Errorf("there are tables: %v", got)
	}
	stacks := make([]byte, 1<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	for _, pkg := range []string{"deliver", "scheduler", "trigger", "lease"} {
		if bytes.Contains(stacks, []byte("mayfly/internal/"+pkg+".")) {
			t.Errorf("a goroutine of %s runs:\n%s", pkg, stacks)
		}
	}
}

// With schedules and nothing due, the due queue is asleep and no request is made.
func TestWaitingForSchedulesIsFree(t *testing.T) {
	db := openAtMidnight(t, Options{})
	for i := range 10 {
		schedule(t, db, fmt.Sprint("s", i), "at(2031-01-01T00:00:00)")
	}
	advance(t, db, time.Second)
	db.Clock().SetRate(1)
	passes, writes := db.engine.DuePasses(), db.engine.Metrics().LogWrittenBytes
	time.Sleep(300 * time.Millisecond) // a real second, for anything that runs by itself
	if n := db.engine.DuePasses() - passes; n > 2 {
		t.Errorf("the due queue looked %d times", n)
	}
	if n := db.engine.Metrics().LogWrittenBytes - writes; n != 0 {
		t.Errorf("%d bytes were written", n)
	}
}

// Deliveries without a target can be read for a day.
func TestUnmappedFiringsAreRecorded(t *testing.T) {
	db := openAtMidnight(t, Options{})
	schedule(t, db, "a", "at(2030-01-02T00:10:00)")
	recorded := func() int {
		out, err := db.DynamoDB().Query(t.Context(), &dynamodb.QueryInput{
			TableName: aws.String("mayfly.recorded"), KeyConditionExpression: aws.String("arn = :a"),
			ExpressionAttributeValues: map[string]types.AttributeValue{":a": &types.AttributeValueMemberS{Value: testFunction}},
		})
		if err != nil {
			t.Fatal(err)
		}
		if out.Count == 1 && out.Items[0]["body"].(*types.AttributeValueMemberS).Value != `{"name":"a"}` {
			t.Errorf("recorded %v", out.Items[0])
		}
		return int(out.Count)
	}
	advance(t, db, 10*time.Minute)
	if n := recorded(); n != 1 {
		t.Errorf("%d recorded", n)
	}
	advance(t, db, 25*time.Hour)
	if n := recorded(); n != 0 {
		t.Errorf("%d are still recorded", n)
	}
}

// A schedule from before a restart fires after it, once; one that was due meanwhile fires when the
// directory is opened.
func TestSchedulesSurviveARestart(t *testing.T) {
	disk := kv.NewCrashFS()
	in := new(inbox)
	options := Options{fs: disk, Frozen: true, ClockControl: ClockControlOn, Targets: []target.Mapping{in.mapping("*")}}
	db, err := Open("data", options)
	if err != nil {
		t.Fatal(err)
	}
	now := db.Clock().Now()
	at := func(d time.Duration) string { return "at(" + now.Add(d).Format("2006-01-02T15:04:05") + ")" }
	schedule(t, db, "fired", at(time.Minute))
	schedule(t, db, "waits", at(time.Hour))
	advance(t, db, 2*time.Minute)
	if len(in.all()) != 1 {
		t.Errorf("before the restart: %v", in.all())
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	db = open(t, "data", options)
	advance(t, db, 0)
	if len(in.all()) != 1 {
		t.Errorf("after the restart: %v", in.all())
	}
	advance(t, db, time.Hour)
	if got := in.all(); len(got) != 2 || !strings.HasPrefix(got[1], "waits ") {
		t.Errorf("an hour later: %v", got)
	}
}

// A delivery that is running at Close, and ends within its grace, does not come again.
func TestCloseRepeatsNothing(t *testing.T) {
	disk := kv.NewCrashFS()
	var mu sync.Mutex
	begun := map[string]int{} // by source
	count := func() int {
		mu.Lock()
		defer mu.Unlock()
		return len(begun)
	}
	ending := make(chan struct{})
	slow := target.Func(func(_ context.Context, d target.Delivery) error {
		mu.Lock()
		begun[d.Source]++
		mu.Unlock()
		<-ending
		time.Sleep(20 * time.Millisecond) // of its second of grace
		return nil
	})
	options := Options{
		fs: disk, Targets: []target.Mapping{{ARN: "*", Target: slow}},
		Triggers: []Trigger{
			{Name: "ordered", Table: "things", Target: testFunction},
			{Name: "apart", Table: "things", Target: testFunction, Order: "none", Per: "record"},
		},
		Reminders: []Reminder{{Name: "remind", Table: "things", Attribute: "at", Past: "fire", Target: testFunction}},
	}
	db, err := Open("data", options)
	if err != nil {
		t.Fatal(err)
	}
	makeTableWithView(t, db.DynamoDB(), "things", types.StreamViewTypeNewAndOldImages)
	within(t, "all to be read", func() bool { return len(tables(t, db)) > 2 })
	schedule(t, db, "a", "at(2020-01-01T00:00:00)")
	if _, err := db.DynamoDB().PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String("things"), Item: map[string]types.AttributeValue{
		"pk": &types.AttributeValueMemberS{Value: "a"}, "at": &types.AttributeValueMemberN{Value: "1600000000"},
	}}); err != nil {
		t.Fatal(err)
	}
	within(t, "all to begin", func() bool { return count() == 4 })
	go func() {
		<-db.work.ctx.Done()
		close(ending)
	}()
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	db = open(t, "data", options)
	if _, err := db.Clock().Advance(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	defer mu.Unlock()
	for source, times := range begun {
		if times != 1 {
			t.Errorf("%s was delivered %d times", source, times)
		}
	}
}

// The power is cut while schedules fire, again and again. Each fires in the end, and repeated
// deliveries have the same id.
func TestFiringsSurviveThePower(t *testing.T) {
	const schedules = 60
	disk := kv.NewCrashFS()
	in := new(inbox)
	options := Options{fs: disk, Frozen: true, ClockControl: ClockControlOn, Targets: []target.Mapping{in.mapping(testFunction)}}
	db, err := Open("data", options)
	if err != nil {
		t.Fatal(err)
	}
	due := db.Clock().Now().Add(time.Hour).Truncate(time.Second)
	for i := range schedules {
		schedule(t, db, fmt.Sprint("s", i), "at("+due.Add(time.Duration(i/10)*time.Second).Format("2006-01-02T15:04:05")+")")
	}
	for cut := range 6 {
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			db.Clock().Advance(context.Background(), due.Add(time.Duration(cut)*time.Second).Sub(db.Clock().Now()))
		}()
		within(t, "some to fire", func() bool { return len(in.ids()) > 10*cut+3 })
		disk.CutNow()
		<-ended
		db.Close() // the disk has failed
		disk = disk.AfterCrash()
		options.fs = disk
		if db, err = Open("data", options); err != nil {
			t.Fatal(err)
		}
	}
	defer db.Close()
	advance(t, db, time.Hour)
	ids := in.ids()
	if len(ids) != schedules {
		t.Errorf("%d of %d have fired", len(ids), schedules)
	}
	for name, of := range ids {
		if len(of) != 1 {
			t.Errorf("%s has fired as %v", name, of)
		}
	}
}

// ids returns the ids of each schedule's firings.
func (i *inbox) ids() map[string]map[string]bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	ids := map[string]map[string]bool{}
	for _, d := range i.got {
		if ids[d.Source] == nil {
			ids[d.Source] = map[string]bool{}
		}
		ids[d.Source][d.ID] = true
	}
	return ids
}

// Close ends all running deliveries, even a function that does not end by itself before it is cut
// off.
func TestCloseEndsTheWork(t *testing.T) {
	before := goleak.IgnoreCurrent()
	begun := make(chan struct{}, 10)
	db, err := Open("", Options{Start: midnight, Targets: []target.Mapping{{ARN: "*", Target: target.Func(func(ctx context.Context, _ target.Delivery) error {
		begun <- struct{}{}
		<-ctx.Done()
		return ctx.Err()
	})}}})
	if err != nil {
		t.Fatal(err)
	}
	schedule(t, db, "a", "at(2020-01-01T00:00:00)")
	select {
	case <-begun:
	case <-time.After(30 * time.Second):
		t.Fatal("it does not fire")
	}
	if err := db.Close(); err != nil {
		t.Error(err)
	}
	goleak.VerifyNone(t, before)
}

// If the store stops, the work stops too, and Close does not hang.
func TestWorkEndsWithTheStore(t *testing.T) {
	before := goleak.IgnoreCurrent()
	disk := kv.NewCrashFS()
	db, err := Open("data", Options{fs: disk, Unmapped: UnmappedAccept})
	if err != nil {
		t.Fatal(err)
	}
	schedule(t, db, "a", "rate(1 hours)")
	disk.CutNow()
	if _, err := db.DynamoDB().CreateTable(t.Context(), &dynamodb.CreateTableInput{
		TableName: aws.String("t"), BillingMode: types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("k"), AttributeType: types.ScalarAttributeTypeS}},
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("k"), KeyType: types.KeyTypeHash}},
	}); err == nil {
		t.Error("a write that cannot be kept was acknowledged")
	}
	<-db.Failed()
	if err := db.Close(); err == nil {
		t.Error("Close says nothing of the failure")
	}
	goleak.VerifyNone(t, before)
}

// Many first schedules may come at once: none is lost, and the clock waits for each.
func TestFirstSchedulesAtOnce(t *testing.T) {
	in := new(inbox)
	db := openAtMidnight(t, Options{Targets: []target.Mapping{in.mapping("*")}})
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			group := fmt.Sprint("g", i%4)
			_, err := db.Scheduler().CreateScheduleGroup(t.Context(), &scheduler.CreateScheduleGroupInput{Name: &group, ClientToken: aws.String("t")})
			if err != nil {
				t.Error(err)
			}
			schedule(t, db, fmt.Sprint("s", i), "at(2030-01-02T00:10:00)", func(in *scheduler.CreateScheduleInput) { in.GroupName = &group })
		})
	}
	all.Wait()
	advance(t, db, 10*time.Minute)
	if n := len(in.all()); n != 20 {
		t.Errorf("%d of 20 fired: %v", n, in.all())
	}
}

// BenchmarkCreateSchedule measures the creation of a durable schedule over a socket, by sixteen
// clients that cost next to nothing.
func BenchmarkCreateSchedule(b *testing.B) {
	db := open(b, b.TempDir(), Options{Unmapped: UnmappedAccept})
	address := strings.TrimPrefix(serve(b, db), "http://")
	schedule(b, db, "first", "at(2040-01-01T00:00:00)")
	const body = `{"ScheduleExpression":"at(2040-01-01T00:00:00)","FlexibleTimeWindow":{"Mode":"OFF"},"Target":{"Arn":"` + testFunction + `","RoleArn":"` + testRole + `","Input":"{\"pk\":\"a\"}"}}`
	var n atomic.Int64
	b.SetParallelism(16 / runtime.GOMAXPROCS(0))
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		c, err := net.Dial("tcp", address)
		if err != nil {
			b.Error(err)
			return
		}
		defer c.Close()
		answer := make([]byte, 4096)
		for pb.Next() {
			_, err := fmt.Fprintf(c, "POST /schedules/s-%d HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", n.Add(1), len(body), body)
			if err != nil {
				b.Error(err)
				return
			}
			if n, err := c.Read(answer); err != nil || !bytes.HasPrefix(answer[:n], []byte("HTTP/1.1 200 OK")) {
				b.Errorf("%s %v", answer[:n], err)
				return
			}
		}
	})
}
