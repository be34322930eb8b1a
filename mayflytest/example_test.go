package mayflytest_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/mayflydb/mayfly/mayflytest"
)

// shown are the tests that the examples show. TestExamples runs them.
var shown []func(t *testing.T)

func show(test func(t *testing.T)) { shown = append(shown, test) }

func TestExamples(t *testing.T) {
	shown = nil
	ExampleOpen()
	ExampleIndex()
	ExampleDB_CreateTable()
	ExampleRunning()
	for _, test := range shown {
		t.Run("", test)
	}
	if len(shown) != 4 {
		t.Errorf("%d examples", len(shown))
	}
}

// A test of items that expire: the clock stands still until the test moves it.
func ExampleOpen() {
	show(func(t *testing.T) {
		db := mayflytest.Open(t)
		db.CreateTable("sessions", "user, began:N", mayflytest.TTL("expires"), mayflytest.Index("byBegin", "began:N"))
		put(t, db, "sessions", Session{"ada", 1, db.Clock().Now().Add(time.Hour)})

		db.Advance(time.Hour - time.Millisecond)
		if n := len(db.Expired("sessions")); n != 0 {
			t.Errorf("%d sessions ended early", n)
		}
		db.Advance(time.Millisecond)
		if n := len(db.Expired("sessions")); n != 1 {
			t.Errorf("%d sessions ended", n)
		}
	})
}

// The key of an index can have up to four attributes of each kind.
func ExampleIndex() {
	show(func(t *testing.T) {
		db := mayflytest.Open(t)
		table := db.CreateTable("orders", "id", mayflytest.Index("byPlace", "country + city, year:N + month:N"))
		if key := table.GlobalSecondaryIndexes[0].KeySchema; len(key) != 4 || *key[1].AttributeName != "city" || *key[2].AttributeName != "year" {
			t.Errorf("the index is %+v", key)
		}
	})
}

// The form of a table follows from a struct with tags.
func ExampleDB_CreateTable() {
	show(func(t *testing.T) {
		db := mayflytest.Open(t)
		table := db.CreateTable("sessions", Session{})
		if n := len(table.KeySchema); n != 2 || *table.KeySchema[0].AttributeName != "user" {
			t.Errorf("the table is %+v", table)
		}
		if moved := db.Set(mayflytest.Start.Add(24 * time.Hour)); moved.To.Day() != 2 {
			t.Errorf("the clock moved to %s", moved.To)
		}
	})
}

// In a bubble of testing/synctest, time.Sleep moves the database.
func ExampleRunning() {
	show(func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			db := mayflytest.Open(t, mayflytest.Running())
			db.CreateTable("sessions", Session{})
			put(t, db, "sessions", Session{"ada", 1, time.Now().Add(time.Hour)})
			time.Sleep(2 * time.Hour)
			if n := len(db.Expired("sessions")); n != 1 {
				t.Errorf("%d sessions ended", n)
			}
		})
	})
}
