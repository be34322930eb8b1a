package planner

import (
	"bytes"
	"fmt"
	"math"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"
)

// Thresholds are the figures above which alarms are raised. A figure of 0 leaves its alarm out.
type Thresholds struct {
	WritesPerS     float64 // writing requests a second at mayfly
	ReadsPerS      float64 // reading requests
	Backlog        float64 // items that are due and not removed, at mayfly, or by guard of one table
	LateMS         float64 // p99 of how late items are removed, in milliseconds
	OverdueMS      float64 // how long the oldest deadline that guard has not got to is past
	GuardWrites    float64 // write units a second that guard consumes at a table
	GuardReads     float64
	CostPerMillion float64 // dollars that a million of guard's removals cost
}

// Thresholds are those of the plan: a quarter above its peak, a minute's expiries as backlog, and a quarter more than a million removals cost with the dearest of guard's strategies.
func (r *Report) Thresholds() Thresholds {
	t := Thresholds{LateMS: 1000, OverdueMS: 60_000, Backlog: math.Max(1000, math.Ceil(r.PeakExpiry*60))}
	peak := Point{r.WritesPerS, r.ReadsPerS}
	if s := r.Workload.Shape; s != nil {
		peak = Point{}
		for _, p := range s.Points {
			peak = Point{max(peak.Writes, p.Writes), max(peak.Reads, p.Reads)}
		}
		if s.Units {
			peak = Point{peak.Writes / r.Workload.tableWrite(), peak.Reads / r.Workload.tableRead()}
		}
	}
	t.WritesPerS, t.ReadsPerS = math.Ceil(peak.Writes*1.25), math.Ceil(peak.Reads*1.25)
	if r.Expiries > 0 {
		e := expiry{w: &r.Workload}
		t.GuardWrites = math.Ceil(r.PeakExpiry * (e.delete() + 1) * 1.25) // with an entry of its own
		// What a scan may take unless it is told otherwise, and the entries of an index, each seen ahead and asked for again.
		t.GuardReads = math.Ceil((scanReads + r.PeakExpiry*2*pages(r.Workload.KeyBytes+entryText)) * 1.25)
		for _, s := range r.Expiry {
			if strings.HasPrefix(s.Name, "guard") {
				t.CostPerMillion = math.Max(t.CostPerMillion, math.Ceil(s.PerMillion*125)/100)
			}
		}
	}
	return t
}

// scanReads is the read units a second that mayfly guard takes for scans by default.
const scanReads = 100

// What mayfly's requests are for.
const (
	writing  = `operation=~"PutItem|UpdateItem|DeleteItem|BatchWriteItem|TransactWriteItems"`
	reading  = `operation=~"GetItem|BatchGetItem|TransactGetItems|Query|Scan"`
	throttle = `code=~"ProvisionedThroughputExceededException|ThrottlingException|RequestLimitExceeded"`
	fault    = `code=~"InternalServerError|InternalServerException|InternalException"` // of tables and streams, of schedules, of rules
)

// rule is an alarm as Prometheus reads it.
type rule struct {
	Alert       string            `yaml:"alert"`
	Expr        string            `yaml:"expr"`
	For         string            `yaml:"for,omitempty"`
	Labels      map[string]string `yaml:"labels"`
	Annotations map[string]string `yaml:"annotations"`
}

type ruleGroup struct {
	Name  string `yaml:"name"`
	Rules []rule `yaml:"rules"`
}

// severities.
const (
	page   = "page"   // somebody is to look now
	ticket = "ticket" // somebody is to look today
)

func alarm(name, expr, lasts, severity, summary, next string) rule {
	return rule{name, expr, lasts, map[string]string{"severity": severity}, map[string]string{"summary": summary, "description": next}}
}

// rose is whether a counter has risen in a time. One that appears is taken to have risen from 0, which increase does not see.
func rose(series, within, by string) string {
	return fmt.Sprintf("sum by (%s) (increase(%s[%s])) > 0\nor\nsum by (%s) (%s unless %s offset %s) > 0", by, series, within, by, series, series, within)
}

// Rules writes Prometheus rules for the metrics that mayfly and mayfly guard export.
func Rules(t Thresholds) []byte {
	f := func(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }
	var server, guard []rule
	above := func(to *[]rule, threshold float64, r rule) {
		if threshold > 0 {
			*to = append(*to, r)
		}
	}
	above(&server, t.WritesPerS, alarm("MayflyWritesAbovePlan", `sum by (instance) (rate(mayfly_requests_total{`+writing+`}[5m])) > `+f(t.WritesPerS), "10m", ticket,
		"{{ $labels.instance }} is written to more often than planned: {{ $value | humanize }} a second", "Plan anew with mayfly plan: capacity, partitions and cost grow with it."))
	above(&server, t.ReadsPerS, alarm("MayflyReadsAbovePlan", `sum by (instance) (rate(mayfly_requests_total{`+reading+`}[5m])) > `+f(t.ReadsPerS), "10m", ticket,
		"{{ $labels.instance }} is read more often than planned: {{ $value | humanize }} a second", "Plan anew with mayfly plan."))
	server = append(server,
		alarm("MayflyThrottles", `sum by (instance, operation) (rate(mayfly_requests_total{`+throttle+`}[5m])) > 0.1`, "5m", ticket,
			"{{ $labels.instance }} throttles {{ $labels.operation }}: {{ $value | humanize }} a second", "No table is throttled, but schedules are refused while deliveries are far behind: see MayflyStreamHeld."),
		alarm("MayflySystemErrors", rose("mayfly_requests_total{"+fault+"}", "5m", "instance, operation"), "", page,
			"{{ $labels.instance }} answered {{ $labels.operation }} with a fault of its own", "The log has the cause. Nothing that was acknowledged is lost."),
		alarm("MayflyStoreFailed", "mayfly_store_failed == 1", "", page,
			"the store of {{ $labels.instance }} has stopped", "A write or sync of the log failed: look at the disk and start the server again."),
		alarm("MayflyDiskFull", "mayfly_disk_full == 1", "", page,
			"{{ $labels.instance }} refuses writes that grow data: its disk is full", "Make room; deletes and expiry go on meanwhile."))
	above(&server, t.Backlog, alarm("MayflyExpiryBacklog", "mayfly_backlog_items > "+f(t.Backlog), "2m", ticket,
		"{{ $value | humanize }} items of {{ $labels.instance }} are due and not reaped", "Nobody sees them, but their stream records are late. Calls go first while processors are few."))
	above(&server, t.LateMS, alarm("MayflyExpiryLate", `histogram_quantile(0.99, sum by (instance, le) (rate(mayfly_lateness_commit_ms_bucket[5m]))) > `+f(t.LateMS), "5m", ticket,
		"expiry at {{ $labels.instance }} is late: p99 {{ $value | humanize }} ms", "See mayfly_backlog_items, and what else the machine does."))
	server = append(server,
		alarm("MayflyStreamHeld", "mayfly_stream_held_full == 1 or mayfly_stream_held_age_ms > 3600000", "5m", ticket,
			"the streams of {{ $labels.instance }} keep records that a consumer has not got to", "See mayfly_stream_held_records by consumer; mayfly trigger list and mayfly deadletter list."),
		alarm("MayflyClockStanding", "mayfly_clock_standing == 1", "1m", page,
			"the clock of {{ $labels.instance }} stands: the machine's lies behind an instant that was already used", "Set the machine's clock right: nothing expires until then."),
		alarm("MayflyDeadLetters", rose("mayfly_scheduler_dead_letters_total", "15m", "instance, group"), "", ticket,
			"firings of {{ $labels.group }} were given up", "mayfly deadletter list, then mayfly deadletter redrive."),
		alarm("MayflyTriggerDeadLetters", rose("mayfly_trigger_dead_letters_total", "15m", "instance, trigger"), "", ticket,
			"deliveries of the trigger {{ $labels.trigger }} were given up", "mayfly deadletter list, then mayfly deadletter redrive."))

	above(&guard, t.OverdueMS, alarm("GuardOverdue", "mayfly_guard_oldest_overdue_ms > "+f(t.OverdueMS), "1m", page,
		"{{ $labels.TableName }}: the oldest overdue item is {{ $value | humanize }} ms late", "Removals do not keep up: see GuardThrottled, --max-wcu and the worker's log."))
	above(&guard, t.Backlog, alarm("GuardBacklog", "mayfly_guard_due > "+f(t.Backlog), "2m", ticket,
		"{{ $labels.TableName }}: {{ $value | humanize }} items are due and not removed", "More workers, or more write capacity."))
	above(&guard, t.LateMS, alarm("GuardLate", `histogram_quantile(0.99, sum by (TableName, le) (rate(mayfly_guard_lateness_ms_bucket[5m]))) > `+f(t.LateMS), "5m", ticket,
		"{{ $labels.TableName }}: removals are late, p99 {{ $value | humanize }} ms", "See mayfly_guard_throttled_total and mayfly_guard_retries_total."))
	guard = append(guard,
		alarm("GuardThrottled", "sum by (TableName) (rate(mayfly_guard_throttled_total[5m])) > 1", "5m", ticket,
			"{{ $labels.TableName }} throttles guard {{ $value | humanize }} times a second", "The table or its index has too little capacity, or a partition is hot: mayfly plan."),
		alarm("GuardGivesUp", rose("mayfly_guard_removals_failed_total", "1h", "TableName"), "", ticket,
			"{{ $labels.TableName }}: removals were given up", "The endpoint refuses them for good; the worker's log says why."),
		alarm("GuardBadValues", rose("mayfly_guard_bad_values_total", "1d", "TableName"), "", ticket,
			"{{ $labels.TableName }}: some TTL attributes are no number of epoch seconds", "Find the writer: those items never expire."))
	above(&guard, t.GuardWrites, alarm("GuardWriteCapacity", `sum by (TableName) (rate(mayfly_guard_consumed_units_total{kind="write"}[5m])) > `+f(t.GuardWrites), "10m", ticket,
		"{{ $labels.TableName }}: guard consumes {{ $value | humanize }} write units a second, more than planned", "More expires than planned, or --max-wcu is to bound it."))
	above(&guard, t.GuardReads, alarm("GuardReadCapacity", `sum by (TableName) (rate(mayfly_guard_consumed_units_total{kind="read"}[5m])) > `+f(t.GuardReads), "10m", ticket,
		"{{ $labels.TableName }}: guard consumes {{ $value | humanize }} read units a second, more than planned", "A longer --period, or --max-rcu."))
	above(&guard, t.CostPerMillion, alarm("GuardCost", "mayfly_guard_cost_per_million_usd > "+f(t.CostPerMillion), "1h", ticket,
		"{{ $labels.TableName }}: a million removals cost {{ $value | humanize }} dollars, more than planned", "See what is consumed besides deletes: scans, sweeps, leases."))

	var out bytes.Buffer
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	// Encoding to a buffer what is made of texts cannot fail.
	_ = encoder.Encode(struct {
		Groups []ruleGroup `yaml:"groups"`
	}{[]ruleGroup{{"mayfly", server}, {"mayfly-guard", guard}}})
	return out.Bytes()
}
