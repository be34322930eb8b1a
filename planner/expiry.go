package planner

import (
	"math"
	"time"
)

// Strategy is what a way to remove items at their deadlines costs, on demand.
type Strategy struct {
	Name       string  `json:"name"`
	Late       string  `json:"late"`            // how late an item goes
	PerMillion float64 `json:"usd_per_million"` // expiries
	Month      float64 `json:"usd_per_month"`
	Parts      []Part  `json:"parts"` // of PerMillion
	Shards     int     `json:"shards,omitempty"`
	Why        string  `json:"why,omitempty"` // what to know
}

// Part is what a part of it costs.
type Part struct {
	Of  string  `json:"of"`
	USD float64 `json:"usd_per_million"`
}

// The parts.
const (
	partDeletes = "deletes"          // of the items, with their entries in the table's indexes and in the sweeper's
	partWriters = "writers"          // what the sweeper's index, or guard's table of deadlines, adds to the writes
	partReads   = "reads"            // of the index or the table
	partFirings = "firings"          // of schedules
	partStream  = "stream"           // GetRecords
	partLambda  = "functions"        // Lambda
	partFleet   = "leases and looks" // what guard's workers tell each other
)

// What the published functions are taken to use: their memory, and how long a call of so many items takes.
const (
	windowGB       = 2.0   // GB
	shardedGB      = 0.125 // Lambda's default
	streamGB       = 0.125
	runSeconds     = 1.0  // of a run that finds nothing
	batchSeconds   = 0.02 // of a BatchWriteItem of 25, one after another
	batchItems     = 25
	streamBatch    = 100        // records that a call of the function gets
	scheduleSecond = 0.02       // of a call of the Scheduler, one after another
	guardShare     = 16         // partitions of guard's stream strategy
	windowText     = 49 + 16    // bytes: of a window's text, and the attribute's name
	entryText      = 2 + 16 + 8 // of a shard's
)

// expire costs the ways to remove. Shares that a month has whatever expires are divided by what expires.
func (r *Report) expire(s *Shape) {
	w := &r.Workload
	perS := r.newItems() * w.Expiring
	if perS == 0 {
		return
	}
	if r.Expiries = perS * secondsPerMonth; r.Expiries < 1 { // what is paid whatever expires would be divided by next to nothing
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

// expiry has what the ways have in common.
type expiry struct {
	r        *Report
	w        *Workload
	p        *Prices
	perMonth float64 // expiries
}

// writes is what so many write units for each expiry cost a million of them.
func (e *expiry) writes(units float64) float64 { return units * e.p.OnDemand.Write }

func (e *expiry) reads(units float64) float64 { return units * e.p.OnDemand.Read }

// spread divides what a month costs by its expiries, and gives it for a million.
func (e *expiry) spread(usd float64) float64 { return usd / e.perMonth * 1e6 }

// function is what runs of a function cost in a month, with their seconds.
func (e *expiry) function(runs, seconds, gb float64) float64 {
	return e.spread(runs/1e6*e.p.Lambda.Request + seconds*gb*e.p.Lambda.GBSecond)
}

// firings is what schedules' firings in a month cost.
func (e *expiry) firings(n float64) float64 {
	return e.spread(max(n-e.r.free(e.p.Scheduler.FreeFirings), 0) / 1e6 * e.p.Scheduler.Firing)
}

// delete is the units of a delete that is not TTL's: of the item, and of its entries.
func (e *expiry) delete() float64 {
	units := WriteUnits(e.w.ItemBytes, false)
	for i := range e.w.Indexes {
		units += e.w.Indexes[i].Share * WriteUnits(e.w.Indexes[i].EntryBytes, false)
	}
	return units
}

// entry is the units that an index entry of so many bytes adds to its writers: one write, and two for each renewal, which changes its key.
func (e *expiry) entry(bytes int) float64 { return WriteUnits(bytes, false) * (1 + 2*e.w.Renewals) }

// pages is what reading entries of so many bytes takes, for each of them, in pages of 1 MB.
func pages(bytes int) float64 { return float64(bytes) / readBlock / 2 }

func perMonth(every time.Duration) float64 { return secondsPerMonth / every.Seconds() }

// window is the published expiration-window index with projection ALL, and the sweeper that runs once in a window.
func (e *expiry) window() Strategy {
	entry, runs := e.w.ItemBytes+windowText, perMonth(e.w.Sweep.Window) // the entry is the item, which has grown by the attribute
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

// sharded is the published index of shards, KEYS_ONLY, and its sweeper.
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

// schedules is one schedule for each item, made by a function on the table's stream.
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

// streamReads is what one reader of the stream costs.
func (e *expiry) streamReads() Part {
	return Part{partStream, e.spread(max(e.r.readerCalls()-e.r.free(e.p.Streams.FreeReads), 0) / 1e6 * e.p.Streams.Read)}
}

func (e *expiry) guardLocal() Strategy {
	return Strategy{Name: "guard stream, --deadlines DIR", Late: "milliseconds", Parts: []Part{{partDeletes, e.writes(e.delete())}, e.streamReads()}, Why: "one process with a disk"}
}

// guardStream writes each deadline into a table and deletes it there.
func (e *expiry) guardStream() Strategy {
	return Strategy{
		Name: "guard stream", Late: "milliseconds",
		Parts: []Part{
			{partDeletes, e.writes(e.delete())},
			{partWriters, e.writes(2 * (1 + e.w.Renewals))},
			e.streamReads(),
			{partFleet, e.fleet(2, guardShare/1.25)}, // readers of the stream and owners of partitions, which look every 5/4 of a lease
		},
	}
}

// fleet is what workers that know of each other cost: in a lease's time, four writes of each worker's row and four queries of all rows, in each crew that it is in; and looks, which are queries
// that do not grow with the workers. The queries are consistent, and a unit. A worker that is alone does none of it.
func (e *expiry) fleet(crews, looks float64) float64 {
	if e.w.Sweep.Workers == 1 {
		return 0
	}
	rows := 4 * crews * float64(e.w.Sweep.Workers)
	return e.spread((rows*e.p.OnDemand.Write + (rows+looks)*e.p.OnDemand.Read) * perMonth(e.w.Sweep.Lease) / 1e6)
}

// guardIndex is an index of shards, KEYS_ONLY.
func (e *expiry) guardIndex(shards int) Strategy {
	entry, looks := e.w.KeyBytes+entryText, perMonth(e.w.Sweep.Ahead)*float64(shards)
	return Strategy{
		Name: "guard index", Late: "milliseconds", Shards: shards,
		Parts: []Part{
			{partDeletes, e.writes(e.delete() + WriteUnits(entry, false))},
			{partWriters, e.writes(e.entry(entry))},
			{partReads, e.reads(2*pages(entry)) + e.spread(looks*0.5/1e6*e.p.OnDemand.Read)}, // each is seen ahead, and asked for again
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

// guardScan reads the whole table again and again.
func (e *expiry) guardScan() Strategy {
	pass := e.r.StoredItems * pages(e.w.ItemBytes) / 1e6 * e.p.OnDemand.Read
	return Strategy{
		Name: "guard scan", Late: "milliseconds, or a pass of " + short(e.w.Sweep.Pass),
		Parts: []Part{{partDeletes, e.writes(e.delete())}, {partReads, e.spread(math.Max(pass, 0) * perMonth(e.w.Sweep.Pass))}, {partFleet, e.fleet(1, 0)}},
		Why:   "needs neither stream nor index",
	}
}
