package guard

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/scheduler"
)

// used collects the actions of requests.
type used struct {
	mu  sync.Mutex
	all map[Permission]bool // guarded by mu
}

func (u *used) add(service, operation string, on Resource) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.all == nil {
		u.all = map[Permission]bool{}
	}
	u.all[Permission{service + ":" + operation, on}] = true
}

// database notes a call of DynamoDB.
func (u *used) database(_ context.Context, operation string, in any) error {
	var table, index *string
	switch in := in.(type) {
	case *dynamodb.QueryInput:
		table, index = in.TableName, in.IndexName
	case *dynamodb.ScanInput:
		table, index = in.TableName, in.IndexName
	case *dynamodb.GetItemInput:
		table = in.TableName
	case *dynamodb.PutItemInput:
		table = in.TableName
	case *dynamodb.DeleteItemInput:
		table = in.TableName
	case *dynamodb.DescribeTableInput:
		table = in.TableName
	default:
		return fmt.Errorf("%s is in no list of permissions", operation)
	}
	switch {
	case index != nil:
		u.add("dynamodb", operation, OnIndex)
	case *table == worldTable:
		u.add("dynamodb", operation, OnTable)
	default:
		u.add("dynamodb", operation, OnLeases)
	}
	return nil
}

// want compares the used actions with a list. Those in besides are optional.
func (u *used) want(t *testing.T, list []Permission, besides ...Permission) {
	t.Helper()
	show := func(p Permission) string { return p.Action + " on " + string(p.On) }
	listed := map[Permission]bool{}
	for _, p := range list {
		listed[p] = true
		if !u.all[p] && !slices.Contains(besides, p) {
			t.Errorf("%s is listed, and was not asked for", show(p))
		}
	}
	for p := range maps.Keys(u.all) {
		if !listed[p] {
			t.Errorf("%s was asked for, and is not listed", show(p))
		}
	}
}

// TestSweepPermissions: the list has the actions that Sweep uses.
func TestSweepPermissions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, withWindows)
		w.putWindowed("a", w.in(0))
		o := w.indexOptions()
		for _, alone := range []bool{true, false} { // the first makes the leases' table
			u := &used{}
			if !alone {
				w.tapped().do(u.database)
				w.putWindowed("b", w.in(0))
				o = w.indexOptions()
			}
			o.Alone, o.Lease = alone, time.Second
			r, err := Sweep(t.Context(), o, time.Time{})
			must(t, err)
			if r.Removed != 1 {
				t.Errorf("%+v", r)
			}
			if !alone {
				// for endpoints that do not return the item that failed a condition
				u.want(t, SweepPermissions(), Permission{"dynamodb:GetItem", OnLeases})
			}
		}
	})
}

// TestStreamPermissions: the list has the actions that StreamRecords uses.
func TestStreamPermissions(t *testing.T) {
	w := newWorld(t)
	u := &used{}
	w.put("first", w.in(3600))
	// makes the group
	must(t, second(StreamRecords(t.Context(), w.scheduling(), w.event(w.records()...))))
	w.tapped().do(u.database)
	o := w.scheduling()
	o.Scheduler = w.tappedScheduler(func(operation string, in any) error {
		u.add("scheduler", operation, OnSchedules)
		if in, ok := in.(*scheduler.CreateScheduleInput); ok && strings.HasSuffix(*in.Target.RoleArn, testRole) {
			u.add("iam", "PassRole", OnRole)
		}
		return nil
	})
	f := NewFunctions(o)
	seen := 1
	for _, write := range []func(){
		func() { w.put("a", w.in(3600)) }, func() { w.renew("a", w.in(7200)) }, func() { w.remove("a") }, func() { w.put("past", w.in(-1)) },
	} {
		write()
		all := w.records()
		w.call(f, all[seen:]...)
		seen = len(all)
	}
	u.want(t, StreamPermissions())
}

func second[T any](_ T, err error) error { return err }
