package guard

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	"github.com/aws/aws-sdk-go-v2/service/scheduler"
	"github.com/aws/smithy-go/middleware"

	"github.com/mayflydb/mayfly/guard/journal"
	"github.com/mayflydb/mayfly/internal/work/lease"
)

// getsLease is for endpoints that do not return the item that failed a condition.
var getsLease = Permission{"dynamodb:GetItem", OnLeases}

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

// database notes a call of DynamoDB. IAM checks the actions in a transaction, not the transaction.
func (u *used) database(_ context.Context, operation string, in any) error {
	var index *string
	name := tableOf(in)
	switch in := in.(type) {
	case *dynamodb.QueryInput:
		index = in.IndexName
	case *dynamodb.ScanInput:
		index = in.IndexName
	case *dynamodb.DescribeTimeToLiveInput:
		name = *in.TableName
	case *dynamodb.CreateTableInput:
		name = *in.TableName
		if len(in.Tags) > 0 {
			u.add("dynamodb", "TagResource", resourceOf(name))
		}
		if in.SSESpecification != nil { // DynamoDB calls KMS in the name of the caller
			for _, action := range []string{"CreateGrant", "DescribeKey", "Encrypt", "Decrypt", "ReEncrypt*", "GenerateDataKey*"} {
				u.add("kms", action, OnKey)
			}
		}
	case *dynamodb.BatchWriteItemInput:
		for name = range in.RequestItems {
			u.add("dynamodb", operation, resourceOf(name))
		}
		return nil
	case *dynamodb.TransactWriteItemsInput:
		for _, one := range in.TransactItems {
			switch {
			case one.Delete != nil:
				u.add("dynamodb", "DeleteItem", resourceOf(*one.Delete.TableName))
			case one.Put != nil:
				u.add("dynamodb", "PutItem", resourceOf(*one.Put.TableName))
			default:
				return fmt.Errorf("%s with an action that is in no list of permissions", operation)
			}
		}
		return nil
	}
	switch {
	case name == "":
		return fmt.Errorf("%s is in no list of permissions", operation)
	case index != nil:
		u.add("dynamodb", operation, OnIndex)
	default:
		u.add("dynamodb", operation, resourceOf(name))
	}
	return nil
}

func resourceOf(table string) Resource {
	switch table {
	case worldTable:
		return OnTable
	case LeasesTable, ownTables().Leases:
		return OnLeases
	case DeadlinesTable, ownTables().Deadlines:
		return OnDeadlines
	}
	return Resource("unknown table " + table)
}

// scheduler notes a call of the Scheduler.
func (u *used) scheduler(operation string, in any) error {
	on, role := OnSchedules, ""
	switch in := in.(type) {
	case *scheduler.CreateScheduleGroupInput:
		on = OnScheduleGroup
	case *scheduler.CreateScheduleInput:
		role = *in.Target.RoleArn
	case *scheduler.UpdateScheduleInput:
		role = *in.Target.RoleArn
	}
	u.add("scheduler", operation, on)
	if strings.HasPrefix(role, testRole) {
		u.add("iam", "PassRole", OnRole)
	}
	return nil
}

// streams returns a client of the world's streams whose calls are noted.
func (u *used) streams(w *world) *dynamodbstreams.Client {
	return dynamodbstreams.New(w.streams.Options(), func(o *dynamodbstreams.Options) {
		o.APIOptions = append(slices.Clip(o.APIOptions), func(stack *middleware.Stack) error {
			return stack.Initialize.Add(middleware.InitializeMiddlewareFunc("Used", func(ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler) (
				middleware.InitializeOutput, middleware.Metadata, error) {
				u.add("dynamodb", middleware.GetOperationName(ctx), OnStream)
				return next.HandleInitialize(ctx, in)
			}), middleware.After)
		})
	})
}

// has reports whether all permissions of a list were used.
func (u *used) has(list []Permission, besides ...Permission) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return !slices.ContainsFunc(list, func(p Permission) bool { return !u.all[p] && !slices.Contains(besides, p) })
}

// want compares the used actions with a list. Those in besides are optional.
func (u *used) want(t *testing.T, list []Permission, besides ...Permission) {
	t.Helper()
	u.mu.Lock()
	defer u.mu.Unlock()
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
	t.Parallel()
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
				u.want(t, SweepPermissions(), getsLease)
			}
		}
	})
}

// TestStreamPermissions: the list has the actions that StreamRecords uses.
func TestStreamPermissions(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	u := &used{}
	w.put("first", w.in(3600))
	// makes the group
	must(t, second(StreamRecords(t.Context(), w.scheduling(), w.event(w.records()...))))
	w.tapped().do(u.database)
	o := w.scheduling()
	o.Scheduler = w.tappedScheduler(u.scheduler)
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

// TestRunPermissions: the list has the actions that a guard uses, with each strategy and option.
func TestRunPermissions(t *testing.T) {
	scans := func(change func(*Options)) func(*world) Options {
		return func(w *world) Options {
			o := w.options(Scan)
			change(&o)
			return o
		}
	}
	schedules := func(dry bool) func(*world) Options {
		return func(w *world) Options {
			o := w.scheduling()
			o.DryRun = dry
			return o
		}
	}
	for name, options := range map[string]func(*world) Options{
		"stream":           func(w *world) Options { return w.options(Stream) },
		"stream, dry":      func(w *world) Options { o := w.options(Stream); o.DryRun = true; return o },
		"stream, own disk": func(w *world) Options { o := w.options(Stream); o.Deadlines = newWorld(w.t).db; return o },
		"stream, tables":   func(w *world) Options { o := w.options(Stream); o.Tables = ownTables(); return o },
		"index":            func(w *world) Options { return w.options(Index) },
		"index, dry":       func(w *world) Options { o := w.options(Index); o.DryRun = true; return o },
		"schedule":         schedules(false),
		"schedule, dry":    schedules(true),
		"scan":             scans(func(*Options) {}),
		"no attribute":     scans(func(o *Options) { o.Attribute = "" }),
		"dry run":          scans(func(o *Options) { o.DryRun = true }),
		"mark":             scans(func(o *Options) { o.Mark = "mark" }),
		"archive":          scans(func(o *Options) { o.Archive = &archived{} }),
		"marked archive":   scans(func(o *Options) { o.Mark, o.Archive = "mark", &archived{} }),
		"undo":             scans(func(o *Options) { o.Undo = journal.Dir(t.TempDir()) }),
		"marked undo":      scans(func(o *Options) { o.Mark, o.Undo = "mark", journal.Dir(t.TempDir()) }),
		"marked dry run":   scans(func(o *Options) { o.Mark, o.DryRun = "mark", true }),
		"batch":            scans(func(o *Options) { o.Batch = 25 }),
		"batch, dry":       scans(func(o *Options) { o.Batch, o.DryRun = 25, true }),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, withWindows)
			o, u := options(w), &used{}
			w.tapped().do(u.database)
			o.DB, o.Streams = w.db, u.streams(w)
			if o.Strategy == Schedule {
				o.Scheduler = w.tappedScheduler(u.scheduler)
			}
			if o.Strategy == Schedule && !o.DryRun {
				w.scheduledByAnotherRole(o, "other", w.in(3600))
			}
			for i := range 30 { // before guard begins
				w.putWindowed(fmt.Sprint("due", i), w.in(-1))
				w.putWindowed(fmt.Sprint("later", i), w.in(3600))
			}
			g := w.start(o)
			done := Removed
			if o.DryRun {
				done = Spared
			}
			g.awaitCount(done, 30)
			ctx, cancel := context.WithCancel(t.Context())
			reported := make(chan struct{})
			go func() { defer close(reported); g.Report(ctx) }()
			seen := w.options(Auto)
			seen.DB, seen.Tables = w.DynamoDB(), o.Tables
			g.await("the worker is shown", func() bool {
				s, err := Look(t.Context(), seen, 1)
				must(t, err)
				return len(s.Workers) == 1
			})
			w.putWindowed("renewed", w.in(3600))
			w.putWindowed("again", w.in(-1))
			switch {
			case o.Strategy == Stream:
				g.await("the deadline is stored", func() bool {
					return strings.Contains(fmt.Sprint(notedIn(t, cmp.Or(o.Deadlines, w.DynamoDB()), o.Tables.Deadlines)), "renewed")
				})
			case o.Strategy == Schedule && !o.DryRun:
				g.await("there are schedules", func() bool { return len(w.schedules()) == 32 })
			}
			w.renew("renewed", w.in(7200))
			w.remove("later0")
			list := Permissions(UseRun, o)
			var later []Permission // the audit begins after ten minutes
			if o.Strategy == Index {
				later = append(later, Permission{"dynamodb:Scan", OnTable})
			}
			ownRow := Permission{"dynamodb:DeleteItem", OnLeases} // when guard ends
			for end := time.Now().Add(5 * time.Second); !u.has(list, append(later, getsLease, ownRow)...) && time.Now().Before(end); {
				time.Sleep(10 * time.Millisecond)
			}
			cancel()
			<-reported
			must(t, g.stop())
			u.want(t, list, append(later, getsLease)...)
		})
	}
}

// scheduledByAnotherRole writes an item whose schedule a first guard makes, with another role than
// the options', and makes the next guard scan the table again.
func (w *world) scheduledByAnotherRole(o Options, name, ttl string) {
	w.t.Helper()
	o.Role += "-of-others"
	w.put(name, ttl)
	g := w.start(o)
	g.awaitSchedules(w, w.at(3600))
	must(w.t, g.stop())
	w.deleteLeases()
}

// deleteLeases deletes the workers' leases, with their checkpoints.
func (w *world) deleteLeases() {
	w.t.Helper()
	_, err := w.DynamoDB().DeleteTable(w.t.Context(), &dynamodb.DeleteTableInput{TableName: aws.String(lease.TableName)})
	must(w.t, err)
}

// TestUndoPermissions: the list has the actions that PutBack uses.
func TestUndoPermissions(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	dir := t.TempDir()
	w.put("a", w.in(-1))
	r := w.remover(dir)
	w.expire(r, "a")
	must(t, r.stop())
	for _, dry := range []bool{true, false} {
		u := &used{}
		w.tapped().do(u.database)
		w.wantPutBack(dir, PutBackReport{PutBack: 1}, func(o *PutBackOptions) { o.DB, o.DryRun = w.db, dry })
		u.want(t, Permissions(UseUndo, Options{DryRun: dry}))
	}
}

// TestInitPermissions: the list has the actions that Init uses, also where it has to read an item
// again, and for an index that is there already.
func TestInitPermissions(t *testing.T) {
	t.Parallel()
	for _, dry := range []bool{false, true} {
		for _, attribute := range []string{"", "ttl"} {
			w := newWorld(t)
			w.put("a", w.in(3600))
			u := &used{}
			renew := sync.OnceFunc(func() { w.renew("a", w.in(7200)) })
			if dry { // else there is no index to sample
				w.initTable(w.initOptions())
			}
			w.tapped().do(func(ctx context.Context, operation string, in any) error {
				if operation == "UpdateItem" {
					renew()
				}
				return u.database(ctx, operation, in)
			})
			o := w.initOptions()
			o.DryRun, o.Attribute = dry, attribute
			w.initTable(o)
			w.initTable(o)
			u.want(t, Permissions(UseInit, Options{DryRun: dry, Attribute: attribute}), getsLease)
		}
	}
}

// TestStatusPermissions: the list has the actions that Look uses.
func TestStatusPermissions(t *testing.T) {
	t.Parallel()
	for _, s := range []Strategy{Stream, Index, Schedule, Scan} {
		for _, local := range []bool{false, true} {
			var with []func(*world)
			if s == Index {
				with = append(with, withWindows)
			}
			w := newWorld(t, with...)
			w.putWindowed("a", w.in(3600))
			if s == Stream {
				g := w.start(w.options(Stream))
				await(t, "the deadline is stored", func() bool { return len(notedIn(t, w.db)) == 1 })
				must(t, g.stop())
			}
			u := &used{}
			w.tapped().do(u.database)
			o := w.options(s)
			o.Streams, o.Scheduler, o.Attribute, o.Role = nil, nil, "", ""
			if local {
				o.Deadlines = newWorld(t).db
			}
			look := o
			look.Strategy = Auto // mayfly guard status does not know it
			_, err := Look(t.Context(), look, 3)
			must(t, err)
			u.want(t, Permissions(UseStatus, o))
		}
	}
}
