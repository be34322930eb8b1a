package planner

import (
	"math"
	"time"
)

// Strategy is one way to remove items at their deadlines, with its cost on demand.
type Strategy struct {
	Name       string  `json:"name"`
	Late       string  `json:"late"`            // lateness of removals
	PerMillion float64 `json:"usd_per_million"` // expiries
	Month      float64 `json:"usd_per_month"`
	Parts      []Part  `json:"parts"` // of PerMillion
	Shards     int     `json:"shards,omitempty"`
	Why        string  `json:"why,omitempty"` // advice
}

// Part is one part of a strategy's cost.
type Part struct {
	Of  string  `json:"of"`
	USD float64 `json:"usd_per_million"`
}

// Names of the parts.
const (
	// deletes of items, with their entries in the table's indexes and in the sweeper's
	partDeletes = "deletes"
	// additional writes for the sweeper's index or guard's table of deadlines
	partWriters = "writers"
	partReads   = "reads"            // reads of the index or the table
	partFirings = "firings"          // firings of schedules
	partStream  = "stream"           // GetRecords
	partLambda  = "functions"        // Lambda
	partFleet   = "leases and looks" // rows and polls by which guard's workers coordinate
)

// Assumptions about the published functions: their memory, and the duration of their calls.
const (
	windowGB       = 2.0   // GB
	shardedGB      = 0.125 // Lambda's default
	streamGB       = 0.125
	runSeconds     = 1.0  // of an empty run
	batchSeconds   = 0.02 // per BatchWriteItem of 25, in sequence
	batchItems     = 25
	streamBatch    = 100        // records per call of the function
	scheduleSecond = 0.02       // per call of the Scheduler, in sequence
	guardShare     = 16         // partitions of guard's stream strategy
	windowText     = 49 + 16    // bytes: a window's text and the attribute's name
	entryText      = 2 + 16 + 8 // bytes: a shard's
)

// expire computes the cost of each strategy. It divides fixed monthly costs by the month's
// expiries. With less than one expiry a month the report has no strategies.
func (r *Report) expire(s *Shape) {
	w := &r.Workload
	perS := r.newItems() * w.Expiring
	if perS == 0 {
		return
	}
	// fixed costs would be divided by almost zero
	if r.Expiries = perS * secondsPerMonth; r.Expiries < 1 {
		return
	}
	peak := 0.0
	for _, p := range s.Points {
		peak = max(peak, p.Writes)
	}
	if s.Units {
		peak /= w.tableWrite()
	}
	r.PeakExpiry = peak * (1 - w.Updates) * w.Expiring
	e := &expiry{r: r, w: w, p: r.Prices, perMonth: r.Expiries}
	shards := shardsFor(r.PeakExpiry*WriteUnits(w.KeyBytes+entryText, false)*(1+2*w.Renewals), 0)
	r.Expiry = []Strategy{
		{Name: "native TTL", Late: "minutes to days", Why: "costs nothing, and reads show the items until then"},
		e.window(), e.sharded(shards), e.schedules(),
		e.guardLocal(), e.guardStream(), e.guardIndex(shards), e.guardSchedule(), e.guardScan(),
	}
	for i := range r.Expiry {
		for _, part := range r.Expiry[i].Parts {
			r.Expiry[i].PerMillion += part.USD
		}
		r.Expiry[i].Month = r.Expiry[i].PerMillion * r.Expiries / 1e6
	}
}

// expiry has the inputs that all strategies share.
type expiry struct {
	r        *Report
	w        *Workload
	p        *Prices
	perMonth float64 // expiries
}

// writes returns the cost of a million expiries that take this many write units each.
func (e *expiry) writes(units float64) float64 { return units * e.p.OnDemand.Write }

func (e *expiry) reads(units float64) float64 { return units * e.p.OnDemand.Read }

// spread returns the share of a million expiries in a monthly cost.
func (e *expiry) spread(usd float64) float64 { return usd / e.perMonth * 1e6 }

// function returns a million expiries' share of the cost of a month's runs of a function, which
// take this many seconds together.
func (e *expiry) function(runs, seconds, gb float64) float64 {
	return e.spread(runs/1e6*e.p.Lambda.Request + seconds*gb*e.p.Lambda.GBSecond)
}

// firings returns a million expiries' share of the cost of a month's firings of schedules.
func (e *expiry) firings(n float64) float64 {
	return e.spread(max(n-e.r.free(e.p.Scheduler.FreeFirings), 0) / 1e6 * e.p.Scheduler.Firing)
}

// delete returns the units of a delete other than TTL's: the item and its index entries.
func (e *expiry) delete() float64 {
	units := WriteUnits(e.w.ItemBytes, false)
	for i := range e.w.Indexes {
		units += e.w.Indexes[i].Share * WriteUnits(e.w.Indexes[i].EntryBytes, false)
	}
	return units
}

// entry returns the units that an index entry adds to its writers: one write, and two for each
// renewal, which changes its key.
func (e *expiry) entry(bytes int) float64 { return WriteUnits(bytes, false) * (1 + 2*e.w.Renewals) }

// pages returns the read units for each entry of this size, read in pages of 1 MB, eventually
// consistent.
func pages(bytes int) float64 { return float64(bytes) / readBlock / 2 }

func perMonth(every time.Duration) float64 { return secondsPerMonth / every.Seconds() }

// window returns the published expiration-window index with projection ALL, whose sweeper runs once
// per window.
func (e *expiry) window() Strategy {
	// the entry is the whole item, which has the window attribute too
	entry, runs := e.w.ItemBytes+windowText, perMonth(e.w.Sweep.Window)
	grown := WriteUnits(entry, false) - WriteUnits(e.w.ItemBytes, false)
	s := Strategy{
		Name: "window sweeper", Late: "0 to " + short(e.w.Sweep.Window) + ", and the run",
		Parts: []Part{
			{partDeletes, e.writes(e.delete() + grown + WriteUnits(entry, false))},
			{partWriters, e.writes(e.entry(entry) + grown*(1+e.w.Renewals))},
			{partReads, e.reads(pages(entry)) + e.spread(runs*0.5/1e6*e.p.OnDemand.Read)},
			{partLambda, e.function(runs, runs*runSeconds+e.perMonth/batchItems*batchSeconds, windowGB)},
		},
		Shards: shardsFor(e.r.PeakExpiry*e.entry(entry), 0),
		Why:    "as published: its rule is free; loses items that are renewed between query and delete",
	}
	if s.Shards > 1 {
		s.Why += "; all that expires in a window is one partition key"
	}
	return s
}

// sharded returns the published index of shards, KEYS_ONLY, and its sweeper.
func (e *expiry) sharded(shards int) Strategy {
	entry, runs := e.w.KeyBytes+entryText, perMonth(e.w.Sweep.Period)
	return Strategy{
		Name: "sharded index", Late: "0 to " + short(e.w.Sweep.Period) + ", a minute, and the run", Shards: shards,
		Parts: []Part{
			{partDeletes, e.writes(e.delete() + WriteUnits(entry, false))},
			{partWriters, e.writes(e.entry(entry))},
			{partReads, e.reads(pages(entry)) + e.spread(runs*float64(shards)*0.5/1e6*e.p.OnDemand.Read)},
			{partFirings, e.firings(runs)},
			{partLambda, e.function(runs, runs*runSeconds+e.perMonth/batchItems*batchSeconds, shardedGB)},
		},
		Why: "as published: loses items that are renewed between query and delete",
	}
}

// schedules returns one schedule per item, which a function on the table's stream creates.
func (e *expiry) schedules() Strategy {
	calls := (2 + e.w.Renewals) * e.perMonth // create, update, and delete
	records := e.r.WritesPerMonth + e.perMonth
	s := Strategy{
		Name: "scheduler per item", Late: "0 to 1 minute",
		Parts: []Part{
			{partDeletes, e.writes(e.delete())},
			{partFirings, e.firings(e.perMonth)},
			{partLambda, e.function(records/streamBatch, calls*scheduleSecond, streamGB)},
		},
		Why: "as published",
	}
	if e.r.PeakExpiry > schedulerPerS {
		s.Why += "; " + number(e.r.PeakExpiry) + " a second at the peak, and the Scheduler makes and fires " + number(schedulerPerS)
	}
	if pending := e.r.newItems() * e.w.Expiring * e.w.Retention.Seconds(); pending > schedulesMax {
		s.Why += "; " + number(pending) + " schedules at a time, and the quota is " + number(schedulesMax)
	}
	return s
}

// Quotas of EventBridge Scheduler.
const (
	schedulerPerS = 1000.0
	schedulesMax  = 10e6
)

// streamReads returns a million expiries' share of the monthly cost of one reader of the stream.
func (e *expiry) streamReads() Part {
	return Part{partStream, e.spread(max(e.r.readerCalls()-e.r.free(e.p.Streams.FreeReads), 0) / 1e6 * e.p.Streams.Read)}
}

func (e *expiry) guardLocal() Strategy {
	return Strategy{Name: "guard stream, --deadlines DIR", Late: "milliseconds", Parts: []Part{{partDeletes, e.writes(e.delete())}, e.streamReads()}, Why: "one process with a disk"}
}

// guardStream returns guard's stream strategy, which writes each deadline into a table and deletes
// it there.
func (e *expiry) guardStream() Strategy {
	return Strategy{
		Name: "guard stream", Late: "milliseconds",
		Parts: []Part{
			{partDeletes, e.writes(e.delete())},
			{partWriters, e.writes(2 * (1 + e.w.Renewals))},
			e.streamReads(),
			// readers of the stream and owners of partitions, which poll every 5/4 of a lease
			{partFleet, e.fleet(2, guardShare/1.25)},
		},
	}
}

// fleet returns a million expiries' share of the monthly cost of coordination. In the time of a
// lease each worker writes its row four times, and queries all rows four times, for each crew that
// it joins. looks is the number of further queries in that time, which does not grow with the
// workers. A query is consistent and takes one unit. A single worker does none of this.
func (e *expiry) fleet(crews, looks float64) float64 {
	if e.w.Sweep.Workers == 1 {
		return 0
	}
	rows := 4 * crews * float64(e.w.Sweep.Workers)
	return e.spread((rows*e.p.OnDemand.Write + (rows+looks)*e.p.OnDemand.Read) * perMonth(e.w.Sweep.Lease) / 1e6)
}

// guardIndex returns guard's strategy over an index of shards, KEYS_ONLY.
func (e *expiry) guardIndex(shards int) Strategy {
	entry, looks := e.w.KeyBytes+entryText, perMonth(e.w.Sweep.Ahead)*float64(shards)
	return Strategy{
		Name: "guard index", Late: "milliseconds", Shards: shards,
		Parts: []Part{
			{partDeletes, e.writes(e.delete() + WriteUnits(entry, false))},
			{partWriters, e.writes(e.entry(entry))},
			// each entry is read ahead of its deadline and at it
			{partReads, e.reads(2*pages(entry)) + e.spread(looks*0.5/1e6*e.p.OnDemand.Read)},
			{partFleet, e.fleet(1, 0)},
		},
		Why: "if it was written " + short(e.w.Sweep.Ahead) + " before",
	}
}

func (e *expiry) guardSchedule() Strategy {
	return Strategy{
		Name: "guard schedule", Late: "0 to 1 minute",
		Parts: []Part{{partDeletes, e.writes(e.delete())}, {partFirings, e.firings(e.perMonth)}, e.streamReads(), {partFleet, e.fleet(1, 0)}},
		Why:   "nothing to fire at Amazon, and to the second, where mayfly is the scheduler",
	}
}

// guardScan returns guard's strategy that reads the whole table repeatedly.
func (e *expiry) guardScan() Strategy {
	pass := e.r.StoredItems * pages(e.w.ItemBytes) / 1e6 * e.p.OnDemand.Read
	return Strategy{
		Name: "guard scan", Late: "milliseconds, or a pass of " + short(e.w.Sweep.Pass),
		Parts: []Part{{partDeletes, e.writes(e.delete())}, {partReads, e.spread(math.Max(pass, 0) * perMonth(e.w.Sweep.Pass))}, {partFleet, e.fleet(1, 0)}},
		Why:   "needs neither stream nor index",
	}
}
