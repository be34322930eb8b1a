package scheduler

import (
	"context"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly/internal/work/attr"
	"github.com/mayflydb/mayfly/internal/work/deliver"
	"github.com/mayflydb/mayfly/internal/work/items"
	"github.com/mayflydb/mayfly/internal/work/lease"
	"github.com/mayflydb/mayfly/target"
)

// An item in a group's table that is no firing is logged and skipped, and delays nothing.
func TestPoisoned(t *testing.T) {
	w := newWorld(t, "", nil)
	w.create("good", "rate(1 minute)")
	due := attr.Seconds(begin.Add(90 * time.Second))
	for name, attributes := range map[string]item{
		"empty":   {},
		"numbers": {attrIncarnation: attr.Int(1), attrVersion: attr.S("x")},
		"document": {
			attrIncarnation: attr.S("i"), attrVersion: attr.Int(1), attrOccurrence: attr.Int(1), attrScheduled: due, attrDeadline: due, attrArmedAt: due,
			attrDocument: attr.S(`{"Target":{},"ScheduleExpression":"rate(5 parsecs)"}`),
		},
		"half": {
			attrIncarnation: attr.S("i"), attrVersion: attr.Int(1), attrOccurrence: attr.Int(1), attrScheduled: due, attrDeadline: due, attrArmedAt: due,
			attrDocument: attr.S(`{"Target":{},"ScheduleExpression":"rate(1 minute)"}`),
		},
		"negative": {
			attrIncarnation: attr.S("i"), attrVersion: attr.Int(-1), attrOccurrence: attr.Int(-1), attrScheduled: attr.Seconds(time.Unix(-1e11, 0)), attrDeadline: due, attrArmedAt: due,
			attrDocument: attr.S(`{"Target":{"Arn":""},"ScheduleExpression":"cron(0 0 30 2 ? *)","FlexibleTimeWindow":{"MaximumWindowInMinutes":-5},"EndDate":-1}`),
		},
	} {
		it := key(name, partFiring)
		it[attrDue] = due
		maps.Copy(it, attributes)
		if err := w.transactOne(items.Put(defaultTable, it, nil)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.transactOne(items.Put(defaultTable, item{attrName: attr.S("other"), attrPart: attr.S("something"), attrDue: due}, nil)); err != nil {
		t.Fatal(err)
	}
	w.advance(3 * time.Minute)
	w.want("good@01-01T00:00:00 good@01-01T00:01:00 good@01-01T00:02:00 good@01-01T00:03:00")
	if n := strings.Count(w.log.String(), "and is skipped"); n != 5 {
		t.Errorf("the log says it %d times:\n%s", n, w.log)
	}
}

// A deleted table of a group is created again, empty, and new schedules in it fire. The table of a
// deleted group is not.
func TestTableDeleted(t *testing.T) {
	w := newWorld(t, "", nil)
	w.create("s", "rate(1 minute)")
	w.advance(0)
	w.taken()
	stream := ""
	for range 2 {
		if _, err := w.db.DeleteTable(t.Context(), &dynamodb.DeleteTableInput{TableName: aws.String(defaultTable)}); err != nil {
			t.Fatal(err)
		}
		w.refused("ResourceNotFoundException: Schedule s does not exist.", "GET", "/schedules/s", "")
		earlier := stream
		w.await("the table and its consumer", func() bool {
			out, err := w.db.DescribeTable(t.Context(), &dynamodb.DescribeTableInput{TableName: aws.String(defaultTable)})
			if err != nil {
				return false
			}
			stream = aws.ToString(out.Table.LatestStreamArn)
			return stream != earlier && w.service.HasConsumer(stream)
		})
		w.create("s", "rate(1 minute)")
		w.advance(time.Minute)
		if n := len(w.taken()); n != 2 {
			t.Errorf("%d firings, want 2", n)
		}
	}
}

// One process may serve requests while another fires: it finds the groups of the first.
func TestRefresh(t *testing.T) {
	w := newWorld(t, "", func(w *world) { w.options.Refresh = 10 * time.Millisecond })
	o := w.Scheduler.o
	o.Courier, o.Refresh, o.Leases = w.courier, 0, lease.Options{}
	elsewhere := &Scheduler{o: o, changed: make(chan struct{}, 1), ready: make(chan struct{})}
	elsewhere.mu.groups, elsewhere.mu.opened = map[string]*group{}, map[string]*open{}
	name := "g"
	if _, err := elsewhere.CreateScheduleGroup(t.Context(), &CreateScheduleGroupInput{Name: name}); err != nil {
		t.Fatal(err)
	}
	in := &CreateScheduleInput{Name: "s", GroupName: &name}
	in.ScheduleExpression, in.FlexibleTimeWindow = new("at(2029-01-01T00:00:00)"), &FlexibleTimeWindow{Mode: new(modeOff)}
	in.Target = &Target{Arn: new(lambdaARN), RoleArn: new(roleARN)}
	if _, err := elsewhere.CreateSchedule(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	w.await("the firing", func() bool {
		w.got.Lock()
		defer w.got.Unlock()
		return len(w.got.all) == 1
	})
	if _, err := elsewhere.DeleteScheduleGroup(t.Context(), &DeleteScheduleGroupInput{Name: name}); err != nil {
		t.Fatal(err)
	}
	w.await("the deletion", func() bool {
		g, err := elsewhere.readGroupNamed(context.Background(), name)
		return err == nil && g == nil
	})
}

// While nothing is due, a scheduler makes no calls, however many schedules it has.
func TestIdle(t *testing.T) {
	w := newWorld(t, "", nil)
	for i := range 100 {
		w.create("s"+string(rune('a'+i%26))+string(rune('a'+i/26)), "at(2031-01-01T00:00:00)")
	}
	w.advance(time.Hour)
	calls := func() int64 {
		before := w.calls.Load()
		time.Sleep(200 * time.Millisecond)
		return w.calls.Load() - before
	}
	w.await("the last checkpoint, and nothing after it", func() bool { return calls()+calls() == 0 })
}

// Every item in a group's table, or the table of rules, is either a firing or an error.
func FuzzFiring(f *testing.F) {
	f.Add(`{"Target":{"Arn":"arn:x","Input":"x"},"ScheduleExpression":"rate(1 minute)","Anchor":1893456000000}`, int64(3), "1893456000.5", false)
	f.Add(`{"Target":{"Arn":"arn:x","RetryPolicy":{}},"ScheduleExpression":"at(2030-01-01T00:00:00)","FlexibleTimeWindow":{"MaximumWindowInMinutes":3}}`, int64(-3), "-1", false)
	f.Add(`{"Expression":"rate(1 minute)","Targets":[{"Id":"1","Arn":"a","InputTransformer":{}},{"Id":"2","Arn":"b","KinesisParameters":{}}]}`, int64(3), "1893456000.5", true)
	s := &Scheduler{o: Options{Region: "us-east-1", Account: "123456789012", Observe: func(Event) {}}.withDefaults()}
	f.Fuzz(func(t *testing.T, document string, number int64, when string, rules bool) {
		n := func() types.AttributeValue { return &types.AttributeValueMemberN{Value: when} }
		it := key("s", partFiring)
		it[attrDocument], it[attrIncarnation], it[attrVersion], it[attrOccurrence] = attr.S(document), attr.S("i"), attr.Int(1), attr.Int(number)
		it[attrScheduled], it[attrDeadline], it[attrArmedAt] = n(), n(), n()
		read, err := readFiring(it)
		if err != nil {
			return
		}
		p := groupPlace("default")
		if rules {
			p = rulesPlace
		}
		o, err := s.outcome(p, read, begin)
		if err != nil {
			return
		}
		for _, j := range o.parcels {
			if len(j.Delivery.ID) != 32 || len(j.Delivery.Body) == 0 {
				t.Errorf("%+v", j)
			}
		}
		if o.next != nil {
			if _, err := readFiring(o.next.item()); err != nil {
				t.Error(err)
			}
		}
	})
}

// A forged parcel that pretends to complete a schedule does not keep other schedules from being
// deleted.
func TestPoisonedCompletion(t *testing.T) {
	w := newWorld(t, "", nil)
	w.create("other", "rate(5 minutes)")
	for i, data := range []string{`{"t":"mayfly.scheduler","n":"x"}`, `{"t":"mayfly.schedules.default"}`, `{"t":"` + defaultTable + `","n":"` + strings.Repeat("x", 1100) + `"}`, `{`, ``} {
		w.courier.Deliver(t.Context(), deliver.Parcel{
			Delivery: target.Delivery{ID: "poison" + string(rune('0'+i)), TargetARN: "arn:aws:nowhere"}, Origin: deliver.Origin{Kind: originEnd, Data: []byte(data)},
		}, func() {})
	}
	w.create("once", "at(2030-01-01T00:01:00)", `"ActionAfterCompletion":"DELETE"`)
	w.create("twice", "at(2030-01-01T00:01:00)", `"ActionAfterCompletion":"DELETE"`)
	w.advance(2 * time.Minute)
	w.refused("ResourceNotFoundException: Schedule once does not exist.", "GET", "/schedules/once", "")
	w.refused("ResourceNotFoundException: Schedule twice does not exist.", "GET", "/schedules/twice", "")
}

// A deleted group leaves nothing, and a new group of that name fires.
func TestGroupLeavesNothing(t *testing.T) {
	w := newWorld(t, "", nil)
	w.must("POST", "/schedule-groups/g", `{}`)
	w.must("POST", "/schedules/s", body("rate(1 minute)", `"GroupName":"g"`))
	w.advance(time.Minute)
	rows := func() int {
		l, err := lease.New(w.db, "schedules.g", lease.Options{Exclusive: true}).Rows(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return len(l)
	}
	if rows() == 0 {
		t.Fatal("the group has no checkpoint")
	}
	w.must("DELETE", "/schedule-groups/g", "")
	for limit := time.Now().Add(30 * time.Second); ; time.Sleep(time.Millisecond) {
		if _, err := w.call("GET", "/schedule-groups/g", ""); err != nil {
			break
		}
		if time.Now().After(limit) {
			t.Fatal("the group is still there")
		}
	}
	if n := rows(); n != 0 {
		t.Errorf("%d checkpoints are left", n)
	}
}
