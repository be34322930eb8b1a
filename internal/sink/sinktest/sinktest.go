// Package sinktest is what the tests of the brokers' sinks share: what they deliver, and what comes of it in a form that can be compared.
package sinktest

import (
	"strings"
	"time"

	"github.com/mayflydb/mayfly/target"
)

// Deliveries gives deliveries of one schedule and one key with these ids, each of which is in its body.
func Deliveries(ids ...string) (all []target.Delivery) {
	for _, id := range ids {
		all = append(all, target.Delivery{
			ID: id, Source: "arn:aws:scheduler:us-east-1:000000000000:schedule/default/a", Type: "Scheduled Event", Time: time.Unix(1e9, 0), Attempt: 1,
			Key: "k.1", ContentType: "application/json", Body: []byte(`{"id":"` + id + `"}`), TargetARN: "arn:aws:sqs:us-east-1:000000000000:jobs",
		})
	}
	return all
}

// Codes are the results' codes, "-" for what was delivered, with * where another attempt is no use and ! where the target throttles.
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
