// Package sinktest is shared by the tests of the brokers' sinks: their deliveries, and results in a
// comparable form.
package sinktest

import (
	"strings"
	"time"

	"github.com/mayflydb/mayfly/target"
)

// Deliveries returns deliveries of one schedule and one key with these IDs. Each has its ID in its
// body.
func Deliveries(ids ...string) (all []target.Delivery) {
	for _, id := range ids {
		all = append(all, target.Delivery{
			ID: id, Source: "arn:aws:scheduler:us-east-1:000000000000:schedule/default/a", Type: "Scheduled Event", Time: time.Unix(1e9, 0), Attempt: 1,
			Key: "k.1", ContentType: "application/json", Body: []byte(`{"id":"` + id + `"}`), TargetARN: "arn:aws:sqs:us-east-1:000000000000:jobs",
		})
	}
	return all
}

// Codes returns the results' codes: "-" for success, with * for a permanent failure and ! for
// throttling.
func Codes(results []error) string {
	var all []string
	for _, err := range results {
		e := target.AsError(err)
		switch {
		case e == nil:
			all = append(all, "-")
		case e.Permanent:
			all = append(all, e.Code+"*")
		case e.Throttled:
			all = append(all, e.Code+"!")
		default:
			all = append(all, e.Code)
		}
	}
	return strings.Join(all, " ")
}
