package guard

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	_ "time/tzdata" // for a test in another zone

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	streamtypes "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
	"github.com/aws/aws-sdk-go-v2/service/scheduler"
	schedulertypes "github.com/aws/aws-sdk-go-v2/service/scheduler/types"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/middleware"

	"github.com/mayflydb/mayfly"
	"github.com/mayflydb/mayfly/internal/work/retry"
)

const testRole = "arn:aws:iam::000000000000:role/guard"

// scheduling are the options of the schedule strategy, with the database's own Scheduler.
func (w *world) scheduling() Options {
	o := w.options(Schedule)
	o.Scheduler, o.Role = w.Scheduler(), testRole
	return o
}

// schedules returns the schedules of the world's table.
func (w *world) schedules() (all []*scheduler.GetScheduleOutput) {
	w.t.Helper()
	return w.schedulesOf(worldTable)
}

func (w *world) schedulesOf(table string) (all []*scheduler.GetScheduleOutput) {
	w.t.Helper()
	group := ScheduleGroup(table)
	pages := scheduler.NewListSchedulesPaginator(w.Scheduler(), &scheduler.ListSchedulesInput{GroupName: &group})
	for pages.HasMorePages() {
		page, err := pages.NextPage(context.Background())
		if retry.Code(err) == "ResourceNotFoundException" {
			return nil
		}
		must(w.t, err)
		for _, s := range page.Schedules {
			one, err := w.Scheduler().GetSchedule(context.Background(), &scheduler.GetScheduleInput{GroupName: &group, Name: s.Name})
			if retry.Code(err) == "ResourceNotFoundException" {
				continue
			}
			must(w.t, err)
			all = append(all, one)
		}
	}
	return all
}

// at returns the schedule expression of an instant so many seconds from now.
func (w *world) at(seconds int64) string {
	return w.now().UTC().Add(time.Duration(seconds) * time.Second).Format("at(2006-01-02T15:04:05)")
}

// awaitSchedules waits until the schedules have exactly these expressions, in any order.
func (r *guarding) awaitSchedules(w *world, expressions ...string) {
	r.t.Helper()
	r.await(fmt.Sprintf("the schedules are %v", expressions), func() bool {
		left := map[string]int{}
		for _, e := range expressions {
			left[e]++
		}
		all := w.schedules()
		for _, s := range all {
			left[*s.ScheduleExpression]--
		}
		for _, n := range left {
			if n != 0 {
				return false
			}
		}
		return len(all) == len(expressions)
	})
}

// tappedScheduler is a client of the Scheduler that asks first whether a call may go on.
func (w *world) tappedScheduler(tap func(operation string, input any) error) *scheduler.Client {
	return scheduler.New(w.Scheduler().Options(), func(o *scheduler.Options) {
		o.Retryer = aws.NopRetryer{}
		o.APIOptions = append(slices.Clip(o.APIOptions), func(stack *middleware.Stack) error {
			return stack.Initialize.Add(middleware.InitializeMiddlewareFunc("Tap", func(ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler) (
				middleware.InitializeOutput, middleware.Metadata, error) {
				if err := tap(middleware.GetOperationName(ctx), in.Parameters); err != nil {
					return middleware.InitializeOutput{}, middleware.Metadata{}, err
				}
				return next.HandleInitialize(ctx, in)
			}), middleware.After)
		})
	})
}

// throttled is an answer of the Scheduler's.
var throttled = &schedulertypes.ThrottlingException{Message: aws.String("Rate exceeded")}

// records reads all records of the world's table, in the order of their sequence numbers.
func (w *world) records() (all []streamtypes.Record) {
	w.t.Helper()
	d, err := w.DynamoDB().DescribeTable(context.Background(), &dynamodb.DescribeTableInput{TableName: aws.String(worldTable)})
	must(w.t, err)
	stream, err := w.Streams().DescribeStream(context.Background(), &dynamodbstreams.DescribeStreamInput{StreamArn: d.Table.LatestStreamArn})
	must(w.t, err)
	for _, s := range stream.StreamDescription.Shards {
		it, err := w.Streams().GetShardIterator(context.Background(), &dynamodbstreams.GetShardIteratorInput{
			StreamArn: d.Table.LatestStreamArn, ShardId: s.ShardId, ShardIteratorType: streamtypes.ShardIteratorTypeTrimHorizon,
		})
		must(w.t, err)
		for next := it.ShardIterator; next != nil; {
			page, err := w.Streams().GetRecords(context.Background(), &dynamodbstreams.GetRecordsInput{ShardIterator: next})
			must(w.t, err)
			if len(page.Records) == 0 {
				break
			}
			all = append(all, page.Records...)
			next = page.NextShardIterator
		}
	}
	slices.SortFunc(all, func(a, b streamtypes.Record) int {
		x, y := *a.Dynamodb.SequenceNumber, *b.Dynamodb.SequenceNumber
		return cmp.Or(cmp.Compare(len(x), len(y)), strings.Compare(x, y))
	})
	return all
}

// TestSchedule: an item with a deadline has one schedule, which deletes it then and vanishes.
func TestSchedule(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g := w.start(w.scheduling())
	w.put("a", w.in(3600))
	g.awaitSchedules(w, w.at(3600))
	w.advance(time.Hour - time.Millisecond)
	if !w.has("a") {
		t.Error("the item went early")
	}
	w.advance(time.Millisecond)
	g.await("the item is gone", func() bool { return !w.has("a") })
	g.awaitSchedules(w)
}

func TestScheduleDryRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	o := w.scheduling()
	o.DryRun = true
	w.put("before", w.in(3600))
	g := w.start(o)
	w.put("a", w.in(3600))
	g.awaitCount(Armed, 2)
	w.advance(time.Hour)
	g.awaitCount(Spared, 2)
	if n := w.count(); n != 2 || len(w.schedules()) != 0 {
		t.Errorf("%d items are left, and there are %d schedules", n, len(w.schedules()))
	}
}

func TestScheduleProblems(t *testing.T) {
	t.Parallel()
	for name, view := range map[string]*streamtypes.StreamViewType{"no stream": nil, "keys only": new(streamtypes.StreamViewTypeKeysOnly)} {
		w := newWorld(t, withTable(func(in *dynamodb.CreateTableInput) {
			in.StreamSpecification = nil
			if view != nil {
				in.StreamSpecification = &types.StreamSpecification{StreamEnabled: aws.Bool(true), StreamViewType: types.StreamViewType(*view)}
			}
		}))
		g, err := New(w.scheduling())
		must(t, err)
		var p *Problem
		if err := g.Run(t.Context()); !errors.As(err, &p) || p.Code != NoStream || p.Next == "" {
			t.Errorf("%s: %v", name, err)
		}
	}
	for code, want := range map[string]Code{"AccessDeniedException": AccessDenied, "ExpiredTokenException": Credentials, "ValidationException": Misconfigured} {
		w := newWorld(t)
		o := w.scheduling()
		o.Scheduler = w.tappedScheduler(func(string, any) error { return &smithy.GenericAPIError{Code: code, Message: "no"} })
		w.put("a", w.in(3600))
		g, err := New(o)
		must(t, err)
		var p *Problem
		if err := g.Run(t.Context()); !errors.As(err, &p) || p.Code != want {
			t.Errorf("%s: %v", code, err)
		}
	}
	for _, operation := range []string{"DescribeStream", "GetRecords"} {
		w := newWorld(t)
		p := &cable{before: func(o, _ string) error {
			if o == operation {
				return &smithy.GenericAPIError{Code: "AccessDeniedException", Message: "not authorized"}
			}
			return nil
		}}
		o := w.scheduling()
		o.DB, o.Streams = p.db(w.db), p.streams(w.streams)
		w.start(o).ends(AccessDenied)
	}
	w := newWorld(t)
	o := w.scheduling()
	o.Role = ""
	if _, err := New(o); err == nil || !strings.Contains(err.Error(), "Role") {
		t.Errorf("without a role: %v", err)
	}
}

// TestScheduleTooLate: a schedule that is refused because its instant has passed meanwhile, after a
// scan or a record, is no problem: guard removes the item itself.
func TestScheduleTooLate(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	o := w.scheduling()
	o.Scheduler = w.tappedScheduler(func(operation string, _ any) error {
		if operation == "CreateSchedule" {
			w.advance(time.Minute)
			return &schedulertypes.ValidationException{Message: aws.String("the time is in the past")}
		}
		return nil
	})
	w.put("scanned", w.in(60))
	g := w.start(o)
	g.await("the item of the scan is gone", func() bool { return !w.has("scanned") })
	w.put("recorded", w.in(60))
	g.await("the item of the record is gone", func() bool { return !w.has("recorded") })
}

// TestScheduleNewStream: a scan finds the changes from the time when the stream was off.
func TestScheduleNewStream(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g := w.start(w.scheduling())
	w.put("a", w.in(3600))
	w.put("b", w.in(3600))
	g.awaitSchedules(w, w.at(3600), w.at(3600))
	w.streamOn(false)
	w.renew("a", w.in(7200))
	w.put("c", w.in(5400))
	w.streamOn(true)
	g.awaitSchedules(w, w.at(3600), w.at(5400), w.at(7200))
	w.put("d", w.in(100))
	g.awaitSchedules(w, w.at(100), w.at(3600), w.at(5400), w.at(7200))
}

// After a pause for longer than streams are kept, in which all shards that were read have gone, the
// table is scanned again.
func TestScheduleAwayForLong(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withOptions(func(o *mayfly.Options) { o.ShardBytes = 4096 }))
	g := w.start(w.scheduling())
	w.put("a", w.in(300*3600))
	g.awaitSchedules(w, w.at(300*3600))
	must(t, g.stop())
	w.put("unseen", w.in(360*3600))
	w.rollShards()
	w.advance(48 * time.Hour)
	w.rollShards()
	g = w.start(w.scheduling())
	g.awaitSchedules(w, w.at(252*3600), w.at(312*3600))
}

// A necessary scan is not forgotten if the worker that has detected it ends before it can scan,
// although it has advanced in the stream by then.
func TestScheduleScanAgainIsKept(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withOptions(func(o *mayfly.Options) { o.ShardBytes = 4096 }))
	g := w.start(w.scheduling())
	w.put("a", w.in(300*3600))
	g.awaitSchedules(w, w.at(300*3600))
	must(t, g.stop())
	w.put("unseen", w.in(360*3600))
	w.rollShards()
	w.advance(48 * time.Hour)
	w.rollShards()
	whole := w.db
	tap := w.tapped()
	tap.do(func(_ context.Context, operation string, _ any) error {
		if operation == "Scan" {
			return refusal("ThrottlingException")
		}
		return nil
	})
	g = w.start(w.scheduling())
	g.await("a scan is tried", func() bool { return len(tap.of("Scan")) > 0 })
	w.put("b", w.in(100*3600))
	g.awaitSchedules(w, w.at(100*3600), w.at(252*3600))
	must(t, g.stop())
	w.db = whole
	g = w.start(w.scheduling())
	g.awaitSchedules(w, w.at(100*3600), w.at(252*3600), w.at(312*3600))
}

// rollShards writes so much that each shard has been closed. None of it has a deadline.
func (w *world) rollShards() {
	w.t.Helper()
	for i := range 100 {
		w.put(fmt.Sprint("roll", i), "", map[string]types.AttributeValue{"pad": &types.AttributeValueMemberS{Value: strings.Repeat("x", 2000) + w.in(0)}})
	}
}

func (w *world) streamOn(on bool) {
	w.t.Helper()
	spec := &types.StreamSpecification{StreamEnabled: &on}
	if on {
		spec.StreamViewType = types.StreamViewTypeNewAndOldImages
	}
	_, err := w.DynamoDB().UpdateTable(context.Background(), &dynamodb.UpdateTableInput{TableName: aws.String(worldTable), StreamSpecification: spec})
	must(w.t, err)
	await(w.t, "the table is active", func() bool {
		d, err := w.DynamoDB().DescribeTable(context.Background(), &dynamodb.DescribeTableInput{TableName: aws.String(worldTable)})
		must(w.t, err)
		return d.Table.TableStatus == types.TableStatusActive
	})
}

// TestFlawC1: an item without a TTL is nothing to do.
func TestFlawC1(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g := w.start(w.scheduling())
	w.put("a", "")
	w.put("b", w.in(3600))
	g.awaitSchedules(w, w.at(3600))
}

// TestFlawC2: a record that cannot be handled now is handled later, and delays no other.
func TestFlawC2(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var mu sync.Mutex
	failures := 0
	o := w.scheduling()
	o.Scheduler = w.tappedScheduler(func(operation string, input any) error {
		mu.Lock()
		defer mu.Unlock()
		if in, ok := input.(*scheduler.CreateScheduleInput); ok && strings.Contains(*in.Target.Input, "awkward") && failures < 3 {
			failures++
			return &schedulertypes.InternalServerException{Message: aws.String("an error")}
		}
		return nil
	})
	g := w.start(o)
	w.put("awkward", w.in(100))
	w.put("b", w.in(3600))
	g.awaitSchedules(w, w.at(100), w.at(3600))
	mu.Lock()
	defer mu.Unlock()
	if failures != 3 {
		t.Errorf("%d calls have failed", failures)
	}
}

// TestFlawC3: a TTL that is added later makes a schedule.
func TestFlawC3(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g := w.start(w.scheduling())
	w.put("a", "")
	w.renew("a", w.in(3600))
	g.awaitSchedules(w, w.at(3600))
}

// TestFlawC4: a TTL that is taken away takes the schedule away, and the item lives.
func TestFlawC4(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g := w.start(w.scheduling())
	w.put("a", w.in(3600))
	g.awaitSchedules(w, w.at(3600))
	w.put("a", "")
	g.awaitSchedules(w)
	w.advance(2 * time.Hour)
	if !w.has("a") {
		t.Error("the item is gone")
	}
}

// TestScanUndoesNoNewerSchedule: an item is renewed between a scan's read and its update of the
// schedule. The scan reads the item again, and leaves the schedule of the present deadline.
func TestScanUndoesNoNewerSchedule(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("a", w.in(100))
	g := w.start(w.scheduling())
	g.awaitSchedules(w, w.at(100))
	must(t, g.stop())
	w.deleteLeases() // so that the next worker scans again, and does not learn of this:
	w.renew("a", w.in(200))
	o := w.scheduling()
	var updates atomic.Int32
	handled := make(chan struct{})
	o.Scheduler = w.tappedScheduler(func(operation string, _ any) error {
		if operation == "UpdateSchedule" && updates.Add(1) == 1 { // the scan's; the next is the stream's
			w.renew("a", w.in(300))
			<-handled
		}
		return nil
	})
	g = w.start(o)
	g.await("the schedule is of the newest record", func() bool {
		all := w.schedules()
		return len(all) == 1 && *all[0].ScheduleExpression == w.at(300)
	})
	close(handled)
	g.await("the scan has updated it", func() bool { return updates.Load() > 2 })
	g.awaitSchedules(w, w.at(300))
	must(t, g.stop())
	if s := w.schedules(); len(s) != 1 || *s[0].ScheduleExpression != w.at(300) {
		t.Errorf("in the end the schedule is %s", *s[0].ScheduleExpression)
	}
}

// TestFlawC5: an updated schedule still deletes itself.
func TestFlawC5(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g := w.start(w.scheduling())
	w.put("a", w.in(100))
	g.awaitSchedules(w, w.at(100))
	w.renew("a", w.in(3600))
	g.awaitSchedules(w, w.at(3600))
	if s := w.schedules()[0]; s.ActionAfterCompletion != schedulertypes.ActionAfterCompletionDelete {
		t.Errorf("after the update it is %s after completion", s.ActionAfterCompletion)
	}
	w.advance(time.Hour)
	g.await("the item is gone", func() bool { return !w.has("a") })
	g.awaitSchedules(w)
}

// TestFlawC6: a renewed item whose record has not been handled yet is not deleted.
func TestFlawC6(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g := w.start(w.scheduling())
	w.put("a", w.in(3600))
	w.put("sooner", w.in(3600))
	w.put("no more", w.in(3600))
	g.awaitSchedules(w, w.at(3600), w.at(3600), w.at(3600))
	must(t, g.stop())
	w.renew("a", w.in(7200))
	w.renew("sooner", "1") // 1970 is not a deadline, so the item does not count as expired
	w.put("no more", "")
	w.advance(time.Hour)
	await(t, "the schedules have fired", func() bool { return len(w.schedules()) == 0 })
	if n := w.count(); n != 3 {
		t.Errorf("%d of 3 items are left", n)
	}
	g = w.start(w.scheduling())
	g.awaitSchedules(w, w.at(3600))
	w.advance(time.Hour)
	g.await("the renewed item is gone", func() bool { return !w.has("a") })
}

// TestFlawC7: any key makes a name, and none collide.
func TestFlawC7(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withSort)
	w.createTable("others")
	keys := []string{"a#b/1", strings.Repeat("x", 1500) + "/1", "é @:/1", "a/1", "a/2", "a/12", "a1/2", "<aws.scheduler.execution-id>/1"}
	g := w.start(w.scheduling())
	o := w.scheduling()
	o.Table = "others"
	others := w.start(o)
	var expressions []string
	for _, k := range keys {
		w.put(k, w.in(3600))
		expressions = append(expressions, w.at(3600))
		item := w.key(k)
		item["ttl"] = &types.AttributeValueMemberN{Value: w.in(7200)}
		_, err := w.DynamoDB().PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String("others"), Item: item})
		must(t, err)
	}
	g.awaitSchedules(w, expressions...)
	others.await("the other table's schedules are there", func() bool { return len(w.schedulesOf("others")) == len(keys) })
	w.advance(time.Hour)
	g.await("the items are gone", func() bool { return w.count() == 0 })
	if n := len(w.schedulesOf("others")); n != len(keys) {
		t.Errorf("the other table has %d of %d schedules", n, len(keys))
	}
	for _, table := range []string{"abc", strings.Repeat("t", 58), strings.Repeat("t", 59), strings.Repeat("t", 255)} {
		if name := ScheduleGroup(table); len(name) > 64 {
			t.Errorf("the group of %s has the name %s", table, name)
		}
	}
	if ScheduleGroup(strings.Repeat("t", 100)) == ScheduleGroup(strings.Repeat("t", 101)) {
		t.Error("two tables have one group")
	}
}

// TestFlawC8: the machine's time zone means nothing.
func TestFlawC8(t *testing.T) {
	t.Parallel()
	const zone = "America/New_York"
	if os.Getenv("TZ") != zone { // it counts from a process's beginning on
		program, err := os.Executable()
		must(t, err)
		c := exec.Command(program, "-test.run=^TestFlawC8$")
		c.Env = append(os.Environ(), "TZ="+zone)
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return
	}
	if epoch.Local().Hour() != 19 {
		t.Fatalf("the zone is not %s: %v", zone, epoch.Local())
	}
	w := newWorld(t)
	g := w.start(w.scheduling())
	w.put("a", w.in(3600))
	g.awaitSchedules(w, "at(2030-01-01T01:00:00)")
	if zone := aws.ToString(w.schedules()[0].ScheduleExpressionTimezone); zone != "UTC" {
		t.Errorf("the zone is %s", zone)
	}
}

// TestFlawC10: a fraction is rounded up.
func TestFlawC10(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g := w.start(w.scheduling())
	w.put("a", w.in(3600)+".5")
	g.awaitSchedules(w, w.at(3601))
	w.advance(3601*time.Second - time.Millisecond)
	if !w.has("a") {
		t.Error("the item went early")
	}
	w.advance(time.Millisecond)
	g.await("the item is gone", func() bool { return !w.has("a") })
}

// TestFlawC11: an item that has expired, or is about to, is deleted without a schedule.
func TestFlawC11(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("before", w.in(-3600))
	g := w.start(w.scheduling())
	g.await("the older item is gone", func() bool { return !w.has("before") })
	w.put("a", w.in(-3600))
	w.put("b", w.in(3))
	g.await("the item is gone", func() bool { return !w.has("a") })
	if !w.has("b") || len(w.schedules()) != 0 {
		t.Errorf("b is there: %v; there are %d schedules", w.has("b"), len(w.schedules()))
	}
	g.await("b is waited for", func() bool { return g.Stats().Armed == 1 })
	w.advance(3 * time.Second)
	g.await("b is gone", func() bool { return !w.has("b") })
}

// TestFlawC13: items from before the stream have schedules.
func TestFlawC13(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withTable(func(in *dynamodb.CreateTableInput) { in.StreamSpecification = nil }))
	var expressions []string
	for i := range 50 {
		w.put(fmt.Sprint("a", i), w.in(3600))
		expressions = append(expressions, w.at(3600))
	}
	w.put("no ttl", "")
	w.streamOn(true)
	g := w.start(w.scheduling())
	g.awaitSchedules(w, expressions...)
	w.advance(time.Hour)
	g.await("the items are gone", func() bool { return w.count() == 1 })
}

// TestFlawC14: a scan finds the writes from a time when the stream was not read for more than a
// day.
func TestFlawC14(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g := w.start(w.scheduling())
	w.put("a", w.in(40*3600))
	g.awaitSchedules(w, w.at(40*3600))
	must(t, g.stop())
	w.renew("a", w.in(50*3600))
	w.put("b", w.in(60*3600))
	w.advance(30 * time.Hour)
	g = w.start(w.scheduling())
	g.awaitSchedules(w, w.at(20*3600), w.at(30*3600))
}

// TestFlawC15: keys of any type.
func TestFlawC15(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withSort, withTable(func(in *dynamodb.CreateTableInput) { in.AttributeDefinitions[0].AttributeType = "B" }))
	g := w.start(w.scheduling())
	item := map[string]types.AttributeValue{
		"pk": &types.AttributeValueMemberB{Value: []byte{0, 255, '"'}}, "sk": &types.AttributeValueMemberN{Value: "-1.50"}, "ttl": &types.AttributeValueMemberN{Value: w.in(3600)},
	}
	_, err := w.DynamoDB().PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String(worldTable), Item: item})
	must(t, err)
	g.awaitSchedules(w, w.at(3600))
	w.advance(time.Hour)
	g.await("the item is gone", func() bool { return w.count() == 0 })
}

// TestFlawC16: the Scheduler cannot mark the items it deletes, so a mark is refused instead of
// ignored. An expiry is recognized by the past deadline in the old image.
func TestFlawC16(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	o := w.scheduling()
	o.Mark = "expired"
	if _, err := New(o); err == nil || !strings.Contains(err.Error(), "Mark") {
		t.Errorf("a mark: %v", err)
	}
	g := w.start(w.scheduling())
	w.put("a", w.in(3600))
	g.awaitSchedules(w, w.at(3600))
	w.advance(time.Hour)
	g.await("the item is gone", func() bool { return !w.has("a") })
	all := w.records()
	last := all[len(all)-1]
	ttl := last.Dynamodb.OldImage["ttl"].(*streamtypes.AttributeValueMemberN).Value
	if last.EventName != streamtypes.OperationTypeRemove || ttl > fmt.Sprint(last.Dynamodb.ApproximateCreationDateTime.Unix()) {
		t.Errorf("%s at %v of a TTL %s", last.EventName, last.Dynamodb.ApproximateCreationDateTime, ttl)
	}
}

// TestFlawC17: with mayfly's Scheduler the item goes at its instant.
func TestFlawC17(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g := w.start(w.scheduling())
	w.put("a", w.in(61))
	g.awaitSchedules(w, w.at(61))
	w.advance(61*time.Second - time.Millisecond)
	if !w.has("a") {
		t.Error("the item went early")
	}
	w.advance(time.Millisecond)
	if w.has("a") { // advance has waited for the firing
		t.Error("the item is late")
	}
	_ = g
}

// TestFlawC18: guard repeats requests to a throttling Scheduler until all items have their
// schedules. It runs in virtual time, in which only pauses take time, however slow the machine.
func TestFlawC18(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		var mu sync.Mutex
		calls := 0
		o := w.scheduling()
		o.Scheduler = w.tappedScheduler(func(operation string, _ any) error {
			mu.Lock()
			defer mu.Unlock()
			if calls++; operation == "CreateSchedule" && calls%3 != 0 && calls < 300 {
				return throttled
			}
			return nil
		})
		g := w.start(o)
		const n = 200
		w.fill("a", n, w.in(3600))
		g.await("all have schedules", func() bool { return g.Stats().Counts[Armed] >= n && len(w.schedules()) == n })
		if g.Stats().Counts[Throttled] == 0 {
			t.Error("nothing was throttled")
		}
		w.advance(time.Hour)
		g.await("all are gone", func() bool { return w.count() == 0 })
	})
}

// TestFlawC19: a deletion that fails for good leaves a dead letter, also after an update.
func TestFlawC19(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	o := w.scheduling()
	o.DeadLetters = "arn:aws:sqs:us-east-1:000000000000:failed"
	g := w.start(o)
	w.put("a", w.in(100))
	g.awaitSchedules(w, w.at(100))
	w.renew("a", w.in(3600))
	g.awaitSchedules(w, w.at(3600))
	if c := w.schedules()[0].Target.DeadLetterConfig; c == nil || aws.ToString(c.Arn) != o.DeadLetters {
		t.Errorf("dead letters go to %v", c)
	}
}

// TestScheduleCrash: a deadline without a schedule at guard's end is left to the next run.
func TestScheduleCrash(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("before", w.in(3600))
	o := w.scheduling()
	o.Scheduler = w.tappedScheduler(func(operation string, _ any) error {
		if operation == "CreateSchedule" {
			return throttled
		}
		return nil
	})
	g := w.start(o)
	w.put("a", w.in(7200))
	g.await("both are tried", func() bool { return g.Stats().Counts[Throttled] > 2 })
	must(t, g.stop())
	w.renew("before", w.in(5000)) // while no worker runs
	g = w.start(w.scheduling())
	g.awaitSchedules(w, w.at(5000), w.at(7200))
}

// TestScheduleFleet: workers come and go while items change; in the end each item has the schedule
// of its deadline, and goes at it.
func TestScheduleFleet(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	w := newWorld(t)
	o := w.scheduling()
	o.Alone, o.Lease = false, time.Second
	workers := []*guarding{w.start(o), w.start(o)}
	deadlines := map[string]int64{} // seconds from the beginning; 0: none
	const keys, far = 30, 100_000
	for range 400 {
		name := fmt.Sprint("item", random.IntN(keys))
		at := far + random.Int64N(1000)
		_, there := deadlines[name]
		switch {
		case there && random.IntN(6) == 0:
			w.remove(name)
			delete(deadlines, name)
		case random.IntN(6) == 0:
			w.put(name, "")
			deadlines[name] = 0
		case there && random.IntN(2) == 0:
			w.renew(name, w.in(at))
			deadlines[name] = at
		default:
			w.put(name, w.in(at))
			deadlines[name] = at
		}
		if random.IntN(100) == 0 {
			i := random.IntN(len(workers))
			must(t, workers[i].stop())
			workers[i] = w.start(o)
		}
	}
	<-workers[0].Ready()
	lasting := 0
	want := map[string]string{} // expressions by names of schedules
	for name, at := range deadlines {
		if at == 0 {
			lasting++
			continue
		}
		k, err := workers[0].table.KeyOf(w.key(name))
		must(t, err)
		want[workers[0].newSchedule().NameOf(k)] = w.at(at)
	}
	workers[0].await("each item has the schedule of its deadline", func() bool {
		right := 0
		for _, s := range w.schedules() {
			switch expression, wanted := want[*s.Name]; {
			case wanted && *s.ScheduleExpression == expression:
				right++
			// the scan may have made one of an item that was deleted at that moment
			case wanted, strings.HasPrefix(*s.Description, "guard stream "):
				return false
			}
		}
		return right == len(want)
	})
	w.advance(far*time.Second - time.Millisecond)
	if n := w.count(); n != len(deadlines) {
		t.Errorf("%d of %d items are left before any deadline", n, len(deadlines))
	}
	w.advance(1000 * time.Second)
	if n := w.count(); n != lasting {
		t.Errorf("%d items are left, and %d have no deadline", n, lasting)
	}
}
