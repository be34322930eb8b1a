package admin

import (
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// deliveries counts the events of deliveries: of schedules by group, of triggers by trigger.
type deliveries struct {
	events events
	// dead letters that could not be written to their queue, by code
	failures *prometheus.CounterVec
	lateness *prometheus.HistogramVec
	late     string // the event whose lateness is measured, at the first attempt only
	label    string // the label with the group or trigger
}

// deliveryEvents are the events, with the metric's name and help text. In brackets: the metric of
// Amazon EventBridge Scheduler.
var deliveryEvents = map[string][2]string{
	"fired":                 {"firings_total", "Firings handed over for delivery."},
	"skipped":               {"firings_skipped_total", "Missed occurrences that do not run."},
	"completed":             {"schedules_completed_total", "Schedules deleted after their last firing."},
	"attempted":             {"invocation_attempts_total", "Attempts begun to call a target (InvocationAttemptCount)."},
	"delivered":             {"deliveries_total", "Deliveries that their target has taken."},
	"failed":                {"target_errors_total", "Attempts that failed (TargetErrorCount)."},
	"throttled":             {"target_errors_throttled_total", "Attempts that failed because the target had too much to do (TargetErrorThrottledCount)."},
	"lane_full":             {"invocations_throttled_total", "Deliveries put off without an attempt, because their target has too many waiting (InvocationThrottleCount)."},
	"parked":                {"invocations_parked_total", "Deliveries put off until their next attempt."},
	"dropped":               {"invocations_dropped_total", "Deliveries dropped after the last attempt (InvocationDroppedCount)."},
	"dead_lettered":         {"dead_letters_total", "Dead letters written to the table mayfly.deadletters."},
	"dead_letter_sent":      {"dead_letters_sent_total", "Dead letters that reached the queue they were to go to (InvocationsSentToDeadLetterCount)."},
	"dead_letter_truncated": {"dead_letters_truncated_total", "Dead letters whose body was cut (InvocationsSentToDeadLetterCount_Truncated_MessageSizeExceeded)."},
}

// eventEnded removes the series of a group that was deleted. If the group still has parked
// deliveries, their later events begin new series.
const eventEnded = "ended"

// eventDeadLetterFailed is counted by group and error code, in deliveries.failures; it is none of
// deliveryEvents.
const eventDeadLetterFailed = "dead_letter_failed"

// newDeliveries returns the metrics "mayfly_<owner>_…" with a label. late is the event whose
// lateness is measured, and lateness the help text's description of that lateness.
func newDeliveries(owner, label, late, lateness string) *deliveries {
	name := "mayfly_" + owner + "_"
	return &deliveries{
		events: newEvents(name, deliveryEvents, label),
		failures: newCounters(name+"dead_letters_failed_total",
			"Dead letters that did not reach the queue they were to go to and stay in the table, by error code (InvocationsFailedToBeSentToDeadLetterCount).",
			label, "code"),
		lateness: newHistograms(name+"lateness_seconds", lateness+", by the database's clock, in seconds.", latenessBuckets, label),
		late:     late,
		label:    label,
	}
}

func (d *deliveries) register(r *prometheus.Registry) {
	d.events.register(r)
	r.MustRegister(d.failures, d.lateness)
}

func (d *deliveries) count(e DeliveryEvent, group string) {
	if e.Event == eventEnded {
		d.forget(group)
		return
	}
	if e.Event == eventDeadLetterFailed {
		d.failures.WithLabelValues(group, e.Code).Inc()
		return
	}
	d.events.count(e.Event, group)
	if e.Event == d.late && e.Attempt <= 1 {
		d.lateness.WithLabelValues(group).Observe(seconds(e.Lateness))
	}
}

// forget drops the series of a group.
func (d *deliveries) forget(group string) {
	for _, c := range d.events {
		c.DeleteLabelValues(group)
	}
	d.failures.DeletePartialMatch(prometheus.Labels{d.label: group})
	d.lateness.DeleteLabelValues(group)
}

// DeliveryEvent is an event in the life of a delivery.
type DeliveryEvent struct {
	// one of deliveryEvents, "dead_letter_failed", or "ended", which drops the series of the group;
	// others are ignored
	Event    string
	Group    string        // schedule group; for a trigger, triggerGroup and its id
	Code     string        // of the error, if there is one
	Attempt  int           // 1 is the first; 0 if the event is not about an attempt
	Lateness time.Duration // for a firing, since it was due; otherwise since the delivery's instant
}

// triggerGroup is the prefix of the group of a trigger's deliveries. No schedule group has such a
// name.
const triggerGroup = "trigger:"

// Delivery counts an event.
func (m *Metrics) Delivery(e DeliveryEvent) {
	if trigger, found := strings.CutPrefix(e.Group, triggerGroup); found {
		m.triggers.count(e, trigger)
		return
	}
	m.schedules.count(e, e.Group)
}
