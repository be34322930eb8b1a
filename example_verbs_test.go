package mayfly_test

import (
	"context"
	"fmt"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly"
	"github.com/mayflydb/mayfly/target"
)

// noon is the first instant of the examples' databases.
var noon = time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)

// open opens a database in memory whose clock stands at noon.
func open() *mayfly.DB {
	db, err := mayfly.Open("", mayfly.Options{Start: noon, Frozen: true})
	if err != nil {
		log.Fatal(err)
	}
	return db
}

// A database in a directory is there when the directory is opened again.
func ExampleOpen() {
	dir, err := os.MkdirTemp("", "mayfly")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	for range 2 {
		db, err := mayfly.Open(filepath.Join(dir, "data"), mayfly.Options{})
		if err != nil {
			log.Fatal(err)
		}
		tables, err := db.DynamoDB().ListTables(context.Background(), &dynamodb.ListTablesInput{})
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(tables.TableNames)
		if len(tables.TableNames) == 0 {
			createSessions(context.Background(), db)
		}
		if err := db.Close(); err != nil {
			log.Fatal(err)
		}
	}
	// Output:
	// []
	// [sessions]
}

// An advance passes through every deadline on the way, so a test of a day takes a moment.
func ExampleClock_Advance() {
	ctx, db := context.Background(), open()
	defer db.Close()
	createSessions(ctx, db)
	_, err := db.DynamoDB().PutItem(ctx, &dynamodb.PutItemInput{
		TableName: aws.String("sessions"),
		Item: map[string]types.AttributeValue{
			"id":      &types.AttributeValueMemberS{Value: "s-1"},
			"expires": &types.AttributeValueMemberN{Value: fmt.Sprint(noon.Add(time.Hour).Unix())},
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	moved, err := db.Clock().Advance(ctx, 24*time.Hour)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(moved.To.Sub(moved.From), moved.Expired)
	// Output: 24h0m0s 1
}

// The clock only goes forward.
func ExampleClock_Set() {
	ctx, db := context.Background(), open()
	defer db.Close()
	if _, err := db.Clock().Set(ctx, noon.Add(time.Minute)); err != nil {
		log.Fatal(err)
	}
	fmt.Println(db.Clock().Now().Format(time.TimeOnly))
	_, err := db.Clock().Set(ctx, noon)
	fmt.Println(err != nil)
	// Output:
	// 12:01:00
	// true
}

// A clock with rate 60 passes an hour a minute; Freeze stops it.
func ExampleClock_SetRate() {
	db := open()
	defer db.Close()
	if err := db.Clock().SetRate(60); err != nil {
		log.Fatal(err)
	}
	running := db.Clock().State()
	db.Clock().Freeze()
	fmt.Println(running.Rate, running.Frozen, db.Clock().State().Frozen)
	// Output: 60 false true
}

// Any client of DynamoDB can use the port.
func ExampleDB_Serve() {
	db := open()
	defer db.Close()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- db.Serve(ctx, listener) }()

	answer, err := http.Get("http://" + listener.Addr().String() + "/healthz")
	if err != nil {
		log.Fatal(err)
	}
	answer.Body.Close()
	fmt.Println(answer.StatusCode)
	stop()
	fmt.Println(<-served)
	// Output:
	// 200
	// <nil>
}

// The handler can be mounted in another server.
func ExampleDB_Handler() {
	db := open()
	defer db.Close()
	server := httptest.NewServer(db.Handler())
	defer server.Close()

	client := dynamodb.New(dynamodb.Options{
		BaseEndpoint: aws.String(server.URL), Region: "us-east-1",
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "any", SecretAccessKey: "any"}, nil
		}),
	})
	tables, err := client.ListTables(context.Background(), &dynamodb.ListTablesInput{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(tables.TableNames))
	// Output: 0
}

// Salvage copies a directory; Check verifies the copy.
func ExampleSalvage() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "mayfly")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	from, to := filepath.Join(dir, "data"), filepath.Join(dir, "salvaged")
	db, err := mayfly.Open(from, mayfly.Options{})
	if err != nil {
		log.Fatal(err)
	}
	createSessions(ctx, db)
	if err := db.Close(); err != nil {
		log.Fatal(err)
	}

	lost := func(f mayfly.Fault) { fmt.Println("lost:", f) }
	tables, err := mayfly.Salvage(ctx, from, to, nil, lost)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(tables), "table")
	fault := func(f mayfly.Fault) { fmt.Println("fault:", f) }
	if err := mayfly.Check(ctx, to, nil, fault); err != nil {
		log.Fatal(err)
	}
	fmt.Println("sound")
	// Output:
	// 1 table
	// sound
}

// Check reports each fault of a directory, and changes nothing.
func ExampleCheck() {
	dir, err := os.MkdirTemp("", "mayfly")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	db, err := mayfly.Open(dir, mayfly.Options{})
	if err != nil {
		log.Fatal(err)
	}
	if err := db.Close(); err != nil {
		log.Fatal(err)
	}
	faults := 0
	err = mayfly.Check(context.Background(), dir, func(done, total int64) {}, func(mayfly.Fault) { faults++ })
	fmt.Println(faults, err)
	// Output: 0 <nil>
}

// A reminder calls a Go function an hour before the instant that an item names.
func ExampleReminder() {
	ctx := context.Background()
	mail := target.Func(func(_ context.Context, d target.Delivery) error {
		fmt.Printf("%s %s\n", d.Time.Format(time.TimeOnly), d.Body)
		return nil
	})
	db, err := mayfly.Open("", mayfly.Options{
		Start: noon, Frozen: true,
		Targets: []target.Mapping{{ARN: "arn:app:mail", Target: mail}},
		Reminders: []mayfly.Reminder{{
			Name: "visit", Table: "sessions", Attribute: "at", Offset: -time.Hour, Target: "arn:app:mail",
			Input: "visit <$.id>",
		}},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	createSessions(ctx, db)
	_, err = db.DynamoDB().PutItem(ctx, &dynamodb.PutItemInput{
		TableName: aws.String("sessions"),
		Item: map[string]types.AttributeValue{
			"id": &types.AttributeValueMemberS{Value: "s-1"},
			"at": &types.AttributeValueMemberS{Value: "2030-01-02T09:00:00Z"},
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	if _, err := db.Clock().Advance(ctx, 24*time.Hour); err != nil {
		log.Fatal(err)
	}
	// Output: 08:00:00 visit s-1
}

// A program that embeds a database ends when the database fails, as with a full disk.
func ExampleDB_Failed() {
	db := open()
	defer db.Close()
	select {
	case <-db.Failed():
		log.Fatal(db.Err())
	default:
		fmt.Println("it runs:", db.Err())
	}
	// Output: it runs: <nil>
}

// A server for tests, which POST /_mayfly/reset or Reset empties.
func ExampleOpenServer() {
	s, err := mayfly.OpenServer("", mayfly.Options{Start: noon, Frozen: true}, mayfly.ServerOptions{})
	if err != nil {
		log.Fatal(err)
	}
	defer s.Close()
	for range 2 {
		tables, err := s.DB().DynamoDB().ListTables(context.Background(), &dynamodb.ListTablesInput{})
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(s.DB().Clock().Now().Format(time.TimeOnly), tables.TableNames)
		createSessions(context.Background(), s.DB())
		if _, err := s.DB().Clock().Advance(context.Background(), time.Hour); err != nil {
			log.Fatal(err)
		}
		if err := s.Reset(context.Background()); err != nil {
			log.Fatal(err)
		}
	}
	// Output:
	// 12:00:00 []
	// 12:00:00 []
}
