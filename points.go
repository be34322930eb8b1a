package mayfly

import (
	"net/http"
	"strings"

	"github.com/mayflydb/mayfly/internal/front/admin"
	"github.com/mayflydb/mayfly/internal/points"
	"github.com/mayflydb/mayfly/internal/store/engine"
	"github.com/mayflydb/mayfly/internal/store/service"
)

// The database's points are what CloudWatch's API shows. Package service counts what is about one
// table; here is the rest.

// countReaped counts a durable removal, at the instant at which it became durable.
func (db *DB) countReaped(r engine.Reap) {
	k := points.Key{Namespace: points.DynamoDB, Metric: points.Deleted, Table: r.Table}
	db.engine.Points().Series(k).AddAt(r.Durable.UnixMilli(), float64(len(r.Due)))
}

// countRequest counts an error of the client.
func (db *DB) countRequest(operation string, status int, code string) {
	if strings.Contains(operation, ":") { // another API's
		return
	}
	if status == http.StatusBadRequest && code != "ConditionalCheckFailedException" && !service.IsThrottling(code) {
		db.engine.Points().Series(points.Key{Namespace: points.DynamoDB, Metric: points.UserErrors}).Add(1)
	}
}

// deliveryMetrics are the metrics of AWS/Scheduler, by the event that they count.
var deliveryMetrics = map[string]string{
	"attempted":             "InvocationAttemptCount",
	"failed":                "TargetErrorCount",
	"throttled":             "TargetErrorThrottledCount",
	"lane_full":             "InvocationThrottleCount",
	"dropped":               "InvocationDroppedCount",
	"skipped":               "InvocationDroppedCount",
	"dead_letter_sent":      "InvocationsSentToDeadLetterCount",
	"dead_letter_truncated": "InvocationsSentToDeadLetterCount_Truncated_MessageSizeExceeded",
	"dead_letter_failed":    "InvocationsFailedToBeSentToDeadLetterCount",
}

// delivery counts an event of a delivery. Those of triggers and reminders have no metric: at Amazon
// Lambda has them. Classic rules count as the schedule group "rules".
func (db *DB) delivery(e admin.DeliveryEvent) {
	db.metrics.Delivery(e)
	metric := deliveryMetrics[e.Event]
	if metric == "" || strings.Contains(e.Group, ":") {
		return
	}
	add := func(metric string) {
		db.engine.Points().Series(points.Key{Namespace: points.Scheduler, Metric: metric, Group: e.Group}).Add(1)
	}
	add(metric)
	if e.Event == "dead_letter_failed" && e.Code != "" {
		add(metric + "_" + e.Code)
	}
}
