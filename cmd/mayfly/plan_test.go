package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/mayflydb/mayfly"
	"github.com/mayflydb/mayfly/internal/admin"
	"github.com/mayflydb/mayfly/planner"
)

// A server's own metrics become a shape: what is asked of it in each minute, and nothing in the one in which it was started again.
func TestPlanRecord(t *testing.T) {
	open := func() *mayfly.DB {
		db, err := mayfly.Open("", mayfly.Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { db.Close() })
		return db
	}
	db := open()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { db.Handler().ServeHTTP(w, r) }))
	defer server.Close()
	call := func(operation, body string) {
		t.Helper()
		r, _ := http.NewRequest(http.MethodPost, server.URL, strings.NewReader(body))
		r.Header.Set("X-Amz-Target", "DynamoDB_20120810."+operation)
		r.Header.Set("Content-Type", "application/x-amz-json-1.0")
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		if text, _ := io.ReadAll(answer.Body); answer.StatusCode != http.StatusOK {
			t.Fatalf("%s: %s", operation, text)
		}
	}
	create := func() {
		call("CreateTable", `{"TableName":"orders","AttributeDefinitions":[{"AttributeName":"id","AttributeType":"S"}],"KeySchema":[{"AttributeName":"id","KeyType":"HASH"}],"BillingMode":"PAY_PER_REQUEST"}`)
	}
	create()
	put := func(n int) {
		for i := range n {
			call("PutItem", fmt.Sprintf(`{"TableName":"orders","Item":{"id":{"S":"%d"}}}`, i))
		}
	}
	put(3) // before it is watched
	c := planRecordCommand{Metrics: server.URL + "/metrics", For: span(4 * time.Minute), Every: span(time.Minute), PerBatch: 10}
	if err := c.check(); err != nil {
		t.Fatal(err)
	}
	now := time.Unix(1_900_000_000, 0)
	minutes := []func(){
		func() { put(30) },
		func() {
			call("BatchWriteItem", `{"RequestItems":{"orders":[{"DeleteRequest":{"Key":{"id":{"S":"1"}}}}]}}`)
			call("GetItem", `{"TableName":"orders","Key":{"id":{"S":"1"}}}`)
			call("Scan", `{"TableName":"orders"}`)
			call("Scan", `{"TableName":"orders"}`)
		},
		func() { db = open(); create(); put(5) },
		func() { put(6) },
	}
	var out, log bytes.Buffer
	err := c.record(t.Context(), streams{&out, &log}, func() time.Time { return now }, func(until time.Time) {
		minutes[0]()
		minutes, now = minutes[1:], until
	})
	if err != nil {
		t.Fatal(err)
	}
	if want := "minute,writes,reads\n0,0.500,0.000\n1,0.167,0.050\n2,0.000,0.000\n3,0.100,0.000\n"; out.String() != want {
		t.Errorf("got\n%swant\n%s", &out, want)
	}
	if !strings.Contains(log.String(), "begun anew") {
		t.Errorf("it is not said that the counters have begun anew: %s", &log)
	}
	if s, err := planner.ReadShape(&out); err != nil || len(s.Points) != 4 {
		t.Errorf("what is printed is no shape: %v, %v", s, err)
	}
}

// A table's units are guard's, and are told as sums; ended early, what has been printed is a shape.
func TestPlanRecordOfTable(t *testing.T) {
	metrics := admin.NewGuard(func() []admin.GuardTable { return nil })
	metrics.Begin("orders")
	server := httptest.NewServer(metrics.Handler(nil))
	defer server.Close()
	c := planRecordCommand{Metrics: server.URL + "/metrics", Table: "orders", For: span(time.Hour), Every: span(2 * time.Minute), PerBatch: 25}
	ctx, stop := context.WithCancel(t.Context())
	now, rows := time.Unix(1_900_000_000, 0), 0
	var out bytes.Buffer
	err := c.record(ctx, streams{&out, io.Discard}, func() time.Time { return now }, func(until time.Time) {
		metrics.Consumed("orders", 60, 120)
		metrics.Consumed("others", 1, 1)
		if now, rows = until, rows+1; rows == 3 {
			stop()
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if want := "minute,ConsumedWriteCapacityUnits,ConsumedReadCapacityUnits\n0,120.000,60.000\n2,120.000,60.000\n"; out.String() != want {
		t.Errorf("got\n%swant\n%s", &out, want)
	}
	s, err := planner.ReadShape(&out)
	if err != nil || len(s.Points) != 4 || s.Points[0] != (planner.Point{Writes: 1, Reads: 0.5}) {
		t.Errorf("%v, %v", s, err)
	}
}
