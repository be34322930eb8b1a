package mayflytest_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly"
	"github.com/mayflydb/mayfly/mayflytest"
)

// Session is an item in the form of an application.
type Session struct {
	User    string    `dynamodbav:"user" mayfly:"hash"`
	Began   int64     `dynamodbav:"began" mayfly:"range"`
	Expires time.Time `dynamodbav:"expires,unixtime" mayfly:"ttl"`
}

func put(t testing.TB, db *mayflytest.DB, table string, item any) {
	t.Helper()
	attributes, err := attributevalue.MarshalMap(item)
	if err != nil {
		t.Fatal(err)
	}
	if _, err = db.DynamoDB().PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &table, Item: attributes}); err != nil {
		t.Fatal(err)
	}
}

func TestPlainTable(t *testing.T) {
	db := mayflytest.Open(t)
	out := db.CreateTable("orders", "id")
	put(t, db, "orders", map[string]string{"id": "o-1"})
	if now := db.Clock().Now(); !now.Equal(mayflytest.Start) || out.TableStatus != types.TableStatusActive || out.LatestStreamArn != nil {
		t.Errorf("at %s the table is %+v", now, out)
	}
}

func TestExpired(t *testing.T) {
	db := mayflytest.Open(t)
	db.CreateTable("sessions", Session{}, mayflytest.Index("byBegin", "began:N, user"))
	for i, user := range []string{"ada", "bob", "eve"} {
		put(t, db, "sessions", Session{user, int64(i), mayflytest.Start.Add(time.Duration(i+1) * time.Hour)})
	}
	if _, err := db.DynamoDB().DeleteItem(t.Context(), &dynamodb.DeleteItemInput{TableName: new("sessions"), Key: map[string]types.AttributeValue{
		"user": &types.AttributeValueMemberS{Value: "bob"}, "began": &types.AttributeValueMemberN{Value: "1"},
	}}); err != nil {
		t.Fatal(err)
	}
	var users []string
	for _, by := range []time.Duration{time.Hour - time.Millisecond, time.Millisecond, 0, time.Hour, time.Hour} {
		moved := db.Advance(by)
		names := ""
		for _, item := range db.Expired("sessions") {
			names += " " + item["user"].(*types.AttributeValueMemberS).Value
		}
		users = append(users, fmt.Sprint(moved.Expired, names))
	}
	if got := strings.Join(users, "; "); got != "0; 1 ada; 0; 0; 1 eve" {
		t.Errorf("expired: %s", got)
	}
	if moved := db.Set(mayflytest.Start.Add(48 * time.Hour)); moved.Expired != 0 {
		t.Errorf("moved: %+v", moved)
	}
}

// Items that expired months ago are returned too. Beyond a year the test fails, instead of missing some.
func TestExpiredLongAgo(t *testing.T) {
	db := mayflytest.Open(&fake{TB: t})
	db.CreateTable("sessions", Session{})
	for range 2 {
		put(t, db, "sessions", Session{"ada", 1, db.Clock().Now().Add(time.Hour)})
		db.Advance(300 * 24 * time.Hour)
		if n := len(db.Expired("sessions")); n != 1 {
			t.Errorf("%d items have expired", n)
		}
	}
	put(t, db, "sessions", Session{"ada", 1, db.Clock().Now().Add(time.Hour)})
	db.Advance(400 * 24 * time.Hour)
	defer func() {
		if got := fmt.Sprint(recover()); !strings.Contains(got, `table "sessions": its stream keeps records for a year`) {
			t.Error(got)
		}
	}()
	db.Expired("sessions")
}

// Many records are several pages.
func TestExpiredInPages(t *testing.T) {
	db := mayflytest.Open(t)
	db.CreateTable("sessions", "user, began:N", mayflytest.TTL("expires"))
	const many = 2500
	for i := range many {
		put(t, db, "sessions", Session{"ada", int64(i), mayflytest.Start.Add(time.Minute)})
	}
	db.Advance(time.Minute)
	if n, again := len(db.Expired("sessions")), len(db.Expired("sessions")); n != many || again != 0 {
		t.Errorf("%d items have expired, and %d afterwards", n, again)
	}
}

func TestInBubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := mayflytest.Open(t, mayflytest.Running())
		db.CreateTable("sessions", "user, began:N", mayflytest.TTL("expires"))
		put(t, db, "sessions", Session{"ada", 1, time.Now().Add(time.Hour)})
		time.Sleep(time.Hour - time.Second)
		early := len(db.Expired("sessions"))
		time.Sleep(2 * time.Second)
		if late := len(db.Expired("sessions")); early != 0 || late != 1 {
			t.Errorf("%d expired early, %d in all", early, late)
		}
	})
}

// A database with other options.
func TestOptions(t *testing.T) {
	db := mayflytest.Open(t, func(o *mayfly.Options) { o.Region = "eu-west-1" })
	if out := db.CreateTable("orders", "id:B"); !strings.Contains(*out.TableArn, ":eu-west-1:") {
		t.Error(*out.TableArn)
	}
}

// fake is a test that panics in place of failing.
type fake struct{ testing.TB }

func (f *fake) Helper() {}

func (f *fake) Fatal(args ...any) { panic(fmt.Sprint(args...)) }

func (f *fake) Fatalf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }

func TestMistakes(t *testing.T) {
	db := mayflytest.Open(&fake{TB: t})
	for want, do := range map[string]func(){
		`table "t1x": key "a, b, c": write the partition key and the sort key, such as "user" or "user, at:N"`: func() { db.CreateTable("t1x", "a, b, c") },
		`table "t2x": key "a:X": the type of a is S, N or B, not X`:                                            func() { db.CreateTable("t2x", "a:X") },
		`table "t3y": key "a+b": only an index can have several attributes of a kind`:                          func() { db.CreateTable("t3y", "a+b") },
		`table "t3z": index "i": key "a+,b": write the partition key`:                                          func() { db.CreateTable("t3z", "a", mayflytest.Index("i", "a+,b")) },
		`table "t3w": index "i": key "a,b+c:X": the type of c is S, N or B, not X`:                             func() { db.CreateTable("t3w", "a", mayflytest.Index("i", "a,b+c:X")) },
		`table "t3x": index "i": key "": write the partition key`:                                              func() { db.CreateTable("t3x", "a", mayflytest.Index("i", "")) },
		`table "t4x": the key is int, and neither a text nor a struct`:                                         func() { db.CreateTable("t4x", 5) },
		`table "t5x": the key is <nil>, and neither a text nor a struct`:                                       func() { db.CreateTable("t5x", nil) },
		`table "t6x": no field of struct { A string } has the tag mayfly:"hash"`:                               func() { db.CreateTable("t6x", struct{ A string }{}) },
		`table "t7x": field A: the tag mayfly is hash, range or ttl, not "key"`: func() {
			db.CreateTable("t7x", struct {
				A string `mayfly:"key"`
			}{})
		},
		`table "t8x": field B: TTL needs a number of seconds; with time.Time add the setting unixtime to dynamodbav`: func() {
			db.CreateTable("t8x", struct {
				A string    `mayfly:"hash"`
				B time.Time `mayfly:"ttl"`
			}{})
		},
		`table "t9x": field A: bool is neither a text, a number nor bytes`: func() {
			db.CreateTable("t9x", struct {
				A bool `mayfly:"hash"`
			}{})
		},
		`table "none" has no stream`:  func() { db.CreateTable("none", "a"); db.Expired("none") },
		"ResourceNotFoundException":   func() { db.Expired("nowhere") },
		"the clock only goes forward": func() { db.Set(mayflytest.Start.Add(-time.Hour)) },
		"ValidationException":         func() { db.CreateTable("a b", "a") },
	} {
		got := func() (got string) {
			defer func() { got = fmt.Sprint(recover()) }()
			do()
			return ""
		}()
		if !strings.Contains(got, want) {
			t.Errorf("%q does not say %q", got, want)
		}
	}
}
