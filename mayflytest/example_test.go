package mayflytest_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mayflydb/mayfly/mayflytest"
)

// run stands for the testing package, which passes t to a test.
func run(test func(t *testing.T)) {
	testing.RunTests(func(_, _ string) (bool, error) { return true, nil }, []testing.InternalTest{{Name: "Test", F: test}})
}

// A test of items that expire: the clock stands still until the test moves it.
func ExampleOpen() {
	run(func(t *testing.T) {
		db := mayflytest.Open(t)
		db.CreateTable("sessions", "user, began:N", mayflytest.TTL("expires"), mayflytest.Index("byBegin", "began:N"))
		put(t, db, "sessions", Session{"ada", 1, db.Clock().Now().Add(time.Hour)})

		db.Advance(time.Hour - time.Millisecond)
		fmt.Println(len(db.Expired("sessions")), "expired")
		db.Advance(time.Millisecond)
		fmt.Println(len(db.Expired("sessions")), "expired")
	})
	// Output:
	// 0 expired
	// 1 expired
}

// The form of a table follows from a struct with tags.
func ExampleDB_CreateTable() {
	run(func(t *testing.T) {
		db := mayflytest.Open(t)
		table := db.CreateTable("sessions", Session{})
		for _, key := range table.KeySchema {
			fmt.Println(key.KeyType, *key.AttributeName)
		}
		moved := db.Set(mayflytest.Start.Add(24 * time.Hour))
		fmt.Println(moved.To.Format(time.DateTime))
	})
	// Output:
	// HASH user
	// RANGE began
	// 2030-01-02 12:00:00
}

// In a bubble of testing/synctest, time.Sleep moves the database.
func ExampleRunning() {
	run(func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			db := mayflytest.Open(t, mayflytest.Running())
			db.CreateTable("sessions", Session{})
			put(t, db, "sessions", Session{"ada", 1, time.Now().Add(time.Hour)})
			time.Sleep(2 * time.Hour)
			fmt.Println(len(db.Expired("sessions")), "expired")
		})
	})
	// Output:
	// 1 expired
}
