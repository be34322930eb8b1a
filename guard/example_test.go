package guard_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"sync"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly"
	"github.com/mayflydb/mayfly/guard"
	"github.com/mayflydb/mayfly/guard/journal"
)

// The writer of an item sets these attributes together with the TTL.
func Example_index() {
	expirationShard := guard.Shard("session-17", 4)
	expirationWindow := guard.Window(1893499215, time.Minute)
	both := guard.WindowShard(expirationWindow, expirationShard)
	fmt.Println(both)
	// Output: 2030-01-01T12:00:00.000Z_2030-01-01T12:01:00.000Z#2
}

// The index of a table with 4 shards has the partition keys "0" to "3".
func ExampleShard() {
	fmt.Println(guard.Shard("session-17", 4))
	// Output: 2
}

// A TTL on the edge of two windows belongs to the one that it ends.
func ExampleWindow() {
	noon := time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC).Unix()
	fmt.Println(guard.Window(noon, time.Minute))
	// Output: 2030-01-01T11:59:00.000Z_2030-01-01T12:00:00.000Z
}

// A window whose items are too many for one partition is divided into shards.
func ExampleWindowShard() {
	fmt.Println(guard.WindowShard(guard.Window(1893499215, time.Minute), "3"))
	// Output: 2030-01-01T12:00:00.000Z_2030-01-01T12:01:00.000Z#3
}

// An open problem may pass by itself, but some or all removals wait until then.
func ExampleGuard_Problems() {
	db := open()
	defer db.Close()
	g, err := guard.New(guard.Options{DB: db.DynamoDB(), Streams: db.Streams(), Table: "sessions"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(g.Problems()), "open problems")
	// Output: 0 open problems
}

// A guard removes an expired item from a table whose own TTL takes days.
func ExampleGuard_Run() {
	db := open()
	defer db.Close()
	createSessions(db)
	put(db, "s-1", time.Now().Add(-time.Second))

	ctx, stop := context.WithCancel(context.Background())
	g, err := guard.New(guard.Options{
		DB: db.DynamoDB(), Streams: db.Streams(), Table: "sessions", Alone: true,
		Observe: func(e guard.Event) {
			if e.What == guard.Removed {
				fmt.Println("removed", e.Key)
				stop()
			}
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(g.Run(ctx))
	fmt.Println(g.Guarded())
	// Output:
	// removed {"id":{"S":"s-1"}}
	// <nil>
	// expires stream
}

// With a journal, an item that was removed by mistake can be put back.
func ExamplePutBack() {
	db := open()
	defer db.Close()
	createSessions(db)
	put(db, "s-1", time.Now().Add(-time.Second))
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	removed := journal.Dir(dir)

	ctx, stop := context.WithCancel(context.Background())
	g, err := guard.New(guard.Options{
		DB: db.DynamoDB(), Streams: db.Streams(), Table: "sessions", Alone: true, Undo: removed,
		Observe: func(e guard.Event) {
			if e.What == guard.Removed {
				stop()
			}
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	if err := g.Run(ctx); err != nil {
		log.Fatal(err)
	}
	report, err := guard.PutBack(context.Background(), guard.PutBackOptions{
		DB: db.DynamoDB(), Table: "sessions", Journal: removed, From: time.Now().Add(-time.Hour), To: time.Now().Add(time.Minute),
		TTL: guard.ExtendTTL, Extend: 24 * time.Hour,
	}, nil)
	fmt.Println(report.PutBack, err)
	// Output: 1 <nil>
}

// A problem has a code, and the next step for the operator.
func ExampleProblem() {
	db := open()
	defer db.Close()
	g, err := guard.New(guard.Options{DB: db.DynamoDB(), Table: "sessions"})
	if err != nil {
		log.Fatal(err)
	}
	if problem, ok := errors.AsType[*guard.Problem](g.Run(context.Background())); ok {
		fmt.Println(problem.Code)
		fmt.Println(problem.Next)
	}
	// Output:
	// NoTable
	// check the table's name, the region and the endpoint
}

// Init creates the index of deadlines, and places the existing items in it. Then Sweep, called by a
// schedule, removes the items that are due.
func ExampleSweep() {
	ctx := context.Background()
	db := open()
	defer db.Close()
	createSessions(db)
	put(db, "s-1", time.Now().Add(-time.Minute))
	put(db, "s-2", time.Now().Add(time.Hour))

	report, err := guard.Init(ctx, guard.InitOptions{DB: db.DynamoDB(), Table: "sessions"}, nil)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(report.Index, report.Layout, report.Written)

	swept, err := guard.Sweep(ctx, guard.Options{DB: db.DynamoDB(), Table: "sessions"}, time.Time{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(swept.Removed, swept.Complete)
	// Output:
	// expirationShardIndex 4 shards 2
	// 1 true
}

// Init reports its plan in a dry run.
func ExampleInit() {
	db := open()
	defer db.Close()
	createSessions(db)
	put(db, "s-1", time.Now().Add(time.Hour))
	report, err := guard.Init(context.Background(), guard.InitOptions{DB: db.DynamoDB(), Table: "sessions", DryRun: true}, nil)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(report.Index, report.Created, report.Written)
	// Output: expirationShardIndex true 1
}

// Look shows the workers of a table and its deadlines, if the table has an index of deadlines.
func ExampleLook() {
	ctx := context.Background()
	db := open()
	defer db.Close()
	createSessions(db)
	put(db, "s-1", time.Now().Add(-time.Minute))
	if _, err := guard.Init(ctx, guard.InitOptions{DB: db.DynamoDB(), Table: "sessions"}, nil); err != nil {
		log.Fatal(err)
	}
	status, err := guard.Look(ctx, guard.Options{DB: db.DynamoDB(), Table: "sessions"}, 10)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(status.Attribute, status.Backlog.Items, len(status.Workers))
	// Output: expires 1 0
}

// A guard that reports is one of the workers that Look shows to other processes.
func ExampleGuard_Report() {
	db := open()
	defer db.Close()
	createSessions(db)
	o := guard.Options{DB: db.DynamoDB(), Streams: db.Streams(), Table: "sessions", Owner: "w-1"}
	g, err := guard.New(o)
	if err != nil {
		log.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	var work sync.WaitGroup
	work.Go(func() {
		if err := g.Run(ctx); err != nil {
			log.Fatal(err)
		}
	})
	work.Go(func() { g.Report(ctx) })
	<-g.Ready()
	for reported := false; !reported; {
		status, err := guard.Look(ctx, o, 0)
		if err != nil {
			log.Fatal(err)
		}
		for _, w := range status.Workers {
			fmt.Println(w.Name, w.Strategy)
			reported = true
		}
	}
	stop()
	work.Wait()
	// Output: w-1 stream
}

// StreamRecords needs a Scheduler, for the items that expire later.
func ExampleStreamRecords() {
	db := open()
	defer db.Close()
	_, err := guard.StreamRecords(context.Background(), guard.Options{DB: db.DynamoDB(), Table: "sessions"}, events.DynamoDBEvent{})
	fmt.Println(err)
	// Output: client of Scheduler is missing
}

// Functions remembers the TTL attribute between the calls of a function.
func ExampleNewFunctions() {
	db := open()
	defer db.Close()
	createSessions(db)
	f := guard.NewFunctions(guard.Options{DB: db.DynamoDB(), Table: "sessions"})
	_, err := f.Sweep(context.Background(), time.Time{})
	var problem *guard.Problem
	fmt.Println(errors.As(err, &problem) && problem.Code == guard.NoIndex)
	// Output: true
}

// The schedules of a table are in a group of their own.
func ExampleScheduleGroup() {
	fmt.Println(guard.ScheduleGroup("sessions"))
	// Output: guard.sessions
}

// A dry run reads the items that it would remove.
func ExamplePermissions() {
	for _, p := range guard.Permissions(guard.UseRun, guard.Options{Strategy: guard.Scan, DryRun: true}) {
		if p.On == guard.OnTable {
			fmt.Println(p.Action)
		}
	}
	// Output:
	// dynamodb:DescribeTable
	// dynamodb:DescribeTimeToLive
	// dynamodb:GetItem
	// dynamodb:Scan
}

// A policy for the function's role lists the permissions.
func ExampleSweepPermissions() {
	for _, p := range guard.SweepPermissions() {
		if p.On == guard.OnTable {
			fmt.Println(p.Action)
		}
	}
	// Output:
	// dynamodb:DescribeTable
	// dynamodb:DeleteItem
}

// The function on the stream passes a role to the Scheduler.
func ExampleStreamPermissions() {
	for _, p := range guard.StreamPermissions() {
		if p.On == guard.OnRole {
			fmt.Println(p.Action)
		}
	}
	// Output: iam:PassRole
}

// The schedules' role may delete items, and nothing else.
func ExampleSchedulePermissions() {
	fmt.Println(guard.SchedulePermissions())
	// Output: [{dynamodb:DeleteItem table}]
}

// Half of the removals were at most 5 ms late.
func ExampleLateness_Quantile() {
	l := guard.Lateness{Count: 4, Max: 20 * time.Millisecond}
	l.Buckets[2] = 3 // up to 5 ms
	l.Buckets[4] = 1 // up to 25 ms
	fmt.Println(l.Quantile(0.5), l.Quantile(0.99))
	// Output: 5ms 20ms
}

// A removal costs one write unit, and the stream strategy some more for its deadlines.
func ExampleStats_CostPerMillion() {
	var s guard.Stats
	s.Counts[guard.Removed], s.Write = 1000, 1000
	fmt.Println(s.CostPerMillion())
	// Output: 0.625
}

// open returns an embedded database that, like Amazon's, removes expired items after days.
func open() *mayfly.DB {
	db, err := mayfly.Open("", mayfly.Options{Expiry: mayfly.ExpiryAWS, ExpiryDelay: "fixed:48h"})
	if err != nil {
		log.Fatal(err)
	}
	return db
}

// createSessions creates a table with a stream and the TTL attribute expires.
func createSessions(db *mayfly.DB) {
	ctx := context.Background()
	_, err := db.DynamoDB().CreateTable(ctx, &dynamodb.CreateTableInput{
		TableName:            aws.String("sessions"),
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("id"), AttributeType: types.ScalarAttributeTypeS}},
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("id"), KeyType: types.KeyTypeHash}},
		BillingMode:          types.BillingModePayPerRequest,
		StreamSpecification:  &types.StreamSpecification{StreamEnabled: aws.Bool(true), StreamViewType: types.StreamViewTypeNewAndOldImages},
	})
	if err == nil {
		_, err = db.DynamoDB().UpdateTimeToLive(ctx, &dynamodb.UpdateTimeToLiveInput{
			TableName: aws.String("sessions"), TimeToLiveSpecification: &types.TimeToLiveSpecification{Enabled: aws.Bool(true), AttributeName: aws.String("expires")},
		})
	}
	if err != nil {
		log.Fatal(err)
	}
}

func put(db *mayfly.DB, id string, deadline time.Time) {
	_, err := db.DynamoDB().PutItem(context.Background(), &dynamodb.PutItemInput{
		TableName: aws.String("sessions"),
		Item: map[string]types.AttributeValue{
			"id":      &types.AttributeValueMemberS{Value: id},
			"expires": &types.AttributeValueMemberN{Value: fmt.Sprint(deadline.Unix())},
		},
	})
	if err != nil {
		log.Fatal(err)
	}
}
