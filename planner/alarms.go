package planner

import (
	"bytes"
	"fmt"
	"math"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"
)

// Thresholds are the figures above which alarms fire. A figure of 0 disables its alarm.
type Thresholds struct {
	Consumed []Consumption // by a table at mayfly and by its global indexes
	// items past their deadlines and not removed yet, at mayfly or at guard of one table
	Backlog        float64
	LateMS         float64 // p99 of the lateness of removals, in milliseconds
	OverdueMS      float64 // age of the oldest deadline that guard has not handled yet
	GuardWrites    float64 // write units per second that guard consumes at a table
	GuardReads     float64
	CostPerMillion float64 // dollars per million removals by guard
}

// Consumption is in units per second: of a global index, or, with an empty Index, of a table with
// its local indexes.
type Consumption struct {
	Index         string
	Writes, Reads float64
}

// slack is the ratio between a threshold and the plan's own figure.
const slack = 1.25

// Thresholds returns thresholds for the plan: a quarter above its peaks, a minute's expiries as
// backlog, but 1,000 at least, and a quarter above the cost of a million removals by guard's most
// expensive strategy. The limits of lateness are the same for all plans: a second for LateMS and a
// minute for OverdueMS. If nothing expires, the figures of guard's consumption and cost are 0.
func (r *Report) Thresholds() Thresholds {
	t := Thresholds{LateMS: 1000, OverdueMS: 60_000, Backlog: math.Max(1000, math.Ceil(r.PeakExpiry*60))}
	above := func(planned float64) float64 { return math.Ceil(planned * slack) }
	for i := 0; i < len(r.Tracks); i += 2 {
		index, _ := strings.CutPrefix(r.Tracks[i].Resource, indexResource)
		if i == 0 {
			index = ""
		}
		t.Consumed = append(t.Consumed, Consumption{index, above(r.Tracks[i].Peak), above(r.Tracks[i+1].Peak)})
	}
	if r.Expiries > 0 {
		e := expiry{w: &r.Workload}
		t.GuardWrites = above(r.PeakExpiry * (e.delete() + 1)) // with the index entry
		// A scan's default limit, and index entries, each read twice: ahead of its deadline and at
		// it.
		t.GuardReads = above(scanReads + r.PeakExpiry*2*pages(r.Workload.KeyBytes+entryText))
		for _, s := range r.Expiry {
			if strings.HasPrefix(s.Name, "guard") {
				t.CostPerMillion = math.Max(t.CostPerMillion, above(s.PerMillion*100)/100)
			}
		}
	}
	return t
}

// scanReads is the default limit for guard's scans, in read units per second.
const scanReads = 100

// Matchers of requests that fail at mayfly and not by a mistake of the caller.
const (
	throttle = `code=~"ProvisionedThroughputExceededException|ThrottlingException|RequestLimitExceeded"`
	fault    = `code=~"InternalServerError|InternalServerException|InternalException"` // of tables and streams, of schedules, of rules
)

// rule is an alarm in Prometheus's form.
type rule struct {
	Alert       string            `yaml:"alert"`
	Expr        string            `yaml:"expr"`
	For         string            `yaml:"for,omitempty"`
	Labels      map[string]string `yaml:"labels"`
	Annotations map[string]string `yaml:"annotations"`
}

type ruleGroup struct {
	Name  string  `yaml:"name"`
	Rules ruleSet `yaml:"rules"`
}

// Severities.
const (
	page   = "page"   // look now
	ticket = "ticket" // look today
)

func alarm(name, expr, lasts, severity, summary, next string) rule {
	return rule{name, expr, lasts, map[string]string{"severity": severity}, map[string]string{"summary": summary, "description": next}}
}

// rose returns a PromQL expression that is true if a counter has risen within a time. A counter that
// appears counts as risen from 0, which increase does not see.
func rose(series, within, by string) string {
	return fmt.Sprintf("sum by (%s) (increase(%s[%s])) > 0\nor\nsum by (%s) (%s unless %s offset %s) > 0", by, series, within, by, series, series, within)
}

// late returns a PromQL expression that is true while the 99th percentile of a histogram is above a
// limit in milliseconds.
func late(histogram, by string, limit float64) string {
	return fmt.Sprintf("histogram_quantile(0.99, sum by (%s, le) (rate(%s_bucket[5m]))) > %s", by, histogram, decimal(limit))
}

// consuming returns a PromQL expression that is true while units are consumed faster than a limit.
func consuming(counter, matchers, by string, limit float64) string {
	return fmt.Sprintf("sum by (%s) (rate(%s{%s}[5m])) > %s", by, counter, matchers, decimal(limit))
}

func decimal(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }

type ruleSet []rule

func (to *ruleSet) add(r ...rule) { *to = append(*to, r...) }

// above adds a rule unless its threshold is 0.
func (to *ruleSet) above(threshold float64, r rule) {
	if threshold > 0 {
		to.add(r)
	}
}

// Rules returns Prometheus rules, as YAML, for the metrics of mayfly and mayfly guard.
func Rules(t Thresholds) []byte {
	var out bytes.Buffer
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	// Encoding strings to a buffer cannot fail.
	_ = encoder.Encode(struct {
		Groups []ruleGroup `yaml:"groups"`
	}{[]ruleGroup{{"mayfly", serverRules(t)}, {"mayfly-guard", guardRules(t)}}})
	return out.Bytes()
}

func serverRules(t Thresholds) (all ruleSet) {
	for _, k := range []struct {
		alert, kind, next string
		of                func(Consumption) float64
	}{
		{"MayflyWriteCapacity", "write", "Plan anew with mayfly plan: capacity, partitions and cost grow with it.", func(c Consumption) float64 { return c.Writes }},
		{"MayflyReadCapacity", "read", "Plan anew with mayfly plan.", func(c Consumption) float64 { return c.Reads }},
	} {
		var exprs []string
		for _, c := range t.Consumed {
			if limit := k.of(c); limit > 0 {
				exprs = append(exprs, consuming(metricConsumed, fmt.Sprintf("kind=%q,index=%q", k.kind, c.Index), "instance, TableName, index", limit))
			}
		}
		all.above(float64(len(exprs)), alarm(k.alert, strings.Join(exprs, "\nor\n"), "10m", ticket,
			"{{ $labels.TableName }}{{ with $labels.index }}, index {{ . }},{{ end }} of {{ $labels.instance }} consumes {{ $value | humanize }} "+k.kind+" units a second, more than planned", k.next))
	}
	all.add(
		alarm("MayflyThrottles", `sum by (instance, operation) (rate(mayfly_requests_total{`+throttle+`}[5m])) > 0.1`, "5m", ticket,
			"{{ $labels.instance }} throttles {{ $labels.operation }}: {{ $value | humanize }} a second", "No table is throttled, but schedules are refused while deliveries are far behind: see MayflyStreamHeld."),
		alarm("MayflySystemErrors", rose("mayfly_requests_total{"+fault+"}", "5m", "instance, operation"), "", page,
			"{{ $labels.instance }} answered {{ $labels.operation }} with a fault of its own", "The log has the cause. Nothing that was acknowledged is lost."),
		alarm("MayflyStoreFailed", "mayfly_store_failed == 1", "", page,
			"the store of {{ $labels.instance }} has stopped", "A write or sync of the log failed: look at the disk and start the server again."),
		alarm("MayflyDiskFull", "mayfly_disk_full == 1", "", page,
			"{{ $labels.instance }} refuses writes that grow data: its disk is full", "Make room; deletes and expiry go on meanwhile."))
	all.above(t.Backlog, alarm("MayflyExpiryBacklog", "mayfly_backlog_items > "+decimal(t.Backlog), "2m", ticket,
		"{{ $value | humanize }} items of {{ $labels.instance }} are due and not reaped", "Nobody sees them, but their stream records are late. Calls go first while processors are few."))
	all.above(t.LateMS, alarm("MayflyExpiryLate", late("mayfly_lateness_commit_seconds", "instance", t.LateMS/1000), "5m", ticket,
		"expiry at {{ $labels.instance }} is late: p99 {{ $value | humanizeDuration }}", "See mayfly_backlog_items, and what else the machine does."))
	const redrive = "mayfly deadletter list, then mayfly deadletter redrive."
	all.add(
		alarm("MayflyStreamHeld", "mayfly_stream_held_full == 1 or mayfly_stream_held_age_seconds > 3600", "5m", ticket,
			"the streams of {{ $labels.instance }} keep records that a consumer has not got to", "See mayfly_stream_held_records by consumer; mayfly trigger list and mayfly deadletter list."),
		alarm("MayflyClockStanding", "mayfly_clock_standing == 1", "1m", page,
			"the clock of {{ $labels.instance }} stands: the machine's lies behind an instant that was already used", "Nothing expires until the machine's clock has caught up. Correct it if it is behind; if it is right and was once ahead, wait."),
		alarm("MayflyDeadLetters", rose("mayfly_scheduler_dead_letters_total", "15m", "instance, group"), "", ticket, "firings of {{ $labels.group }} became dead letters", redrive),
		alarm("MayflyTriggerDeadLetters", rose("mayfly_trigger_dead_letters_total", "15m", "instance, trigger"), "", ticket, "deliveries of the trigger {{ $labels.trigger }} became dead letters", redrive))
	return all
}

func guardRules(t Thresholds) (all ruleSet) {
	about := func(name, expr, lasts, severity, summary, next string) rule {
		return alarm(name, expr, lasts, severity, "{{ $labels.TableName }}: "+summary, next)
	}
	all.above(t.OverdueMS, about("GuardOverdue", "mayfly_guard_oldest_overdue_seconds > "+decimal(t.OverdueMS/1000), "1m", page,
		"the oldest overdue item is {{ $value | humanizeDuration }} late", "Removals do not keep up: see GuardThrottled, --max-wcu and the worker's log."))
	all.above(t.Backlog, about("GuardBacklog", "mayfly_guard_due > "+decimal(t.Backlog), "2m", ticket, "{{ $value | humanize }} items are due and not removed", "More workers, or more write capacity."))
	all.above(t.LateMS, about("GuardLate", late("mayfly_guard_lateness_seconds", "TableName", t.LateMS/1000), "5m", ticket,
		"removals are late, p99 {{ $value | humanizeDuration }}", "See mayfly_guard_throttled_total and mayfly_guard_retries_total."))
	all.add(
		about("GuardProblem", "mayfly_guard_problem > 0", "1m", page,
			"some or all removals wait: problem {{ $labels.code }}", "The worker's log and /readyz name the cause. Guard goes on by itself once that has passed."),
		about("GuardThrottled", "sum by (TableName) (rate(mayfly_guard_throttled_total[5m])) > 1", "5m", ticket,
			"guard is throttled {{ $value | humanize }} times a second", "The table or its index has too little capacity, or a partition is hot: mayfly plan."),
		about("GuardGivesUp", rose("mayfly_guard_removals_failed_total", "1h", "TableName"), "", ticket, "removals failed for good", "The endpoint refuses them; the worker's log says why."),
		about("GuardBadValues", rose("mayfly_guard_bad_values_total", "1d", "TableName"), "", ticket,
			"some TTL attributes are no number of epoch seconds", "Find the writer: those items never expire."))
	all.add(about("GuardMissed", rose("mayfly_guard_missed_total", "1d", "TableName"), "", ticket,
		"the audit removed overdue items that the strategy did not know of", "The worker's log names one a minute. Check that the index has all items, and that nothing else writes to mayfly.deadlines or the schedules."))
	for _, k := range []struct {
		alert, kind string
		limit       float64
		next        string
	}{
		{"GuardWriteCapacity", "write", t.GuardWrites, "More expires than planned, or --max-wcu is to bound it."}, {"GuardReadCapacity", "read", t.GuardReads, "A longer --period, or --max-rcu."},
	} {
		all.above(k.limit, about(k.alert, consuming(metricGuard, fmt.Sprintf("kind=%q", k.kind), "TableName", k.limit), "10m", ticket,
			"guard consumes {{ $value | humanize }} "+k.kind+" units a second, more than planned", k.next))
	}
	all.above(t.CostPerMillion, about("GuardCost", "mayfly_guard_cost_per_million_usd > "+decimal(t.CostPerMillion), "1h", ticket,
		"a million removals cost {{ $value | humanize }} dollars, more than planned", "See what is consumed besides deletes: scans, sweeps, leases."))
	return all
}
