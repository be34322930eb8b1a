package planner

import (
	"errors"
	"fmt"
	"math"
	"time"
)

// Report is a plan: the needs and costs of a workload. Dollars are per month of 30 days.
type Report struct {
	Workload Workload `json:"workload"`
	Prices   *Prices  `json:"prices"`

	ShapeMinutes int `json:"shape_minutes"` // 0: constant traffic
	Minutes      int `json:"simulated_minutes"`

	WritesPerS     float64 `json:"writes_per_s"` // mean
	ReadsPerS      float64 `json:"reads_per_s"`
	WritesPerDay   float64 `json:"writes_per_day"`
	WritesPerMonth float64 `json:"writes_per_month"`

	Modes   Modes        `json:"modes"`
	Tracks  []Autoscaled `json:"autoscaled"` // of the table: writes, reads; then of each global index
	Demands []OnDemand   `json:"on_demand"`  // in the same order

	StoredItems float64 `json:"stored_items"`
	StoredBytes float64 `json:"stored_bytes"` // with the overhead of items and index entries
	StorageUSD  float64 `json:"storage_usd_per_month"`
	StreamReads float64 `json:"stream_reads_per_month"`
	StreamUSD   float64 `json:"stream_usd_per_month"`
	Hot         []Hot   `json:"partitions"`
	// KinesisShards is the number of shards that a Kinesis data stream needs at the peak, if writes
	// come through one.
	KinesisShards int `json:"kinesis_shards"`

	Expiries   float64    `json:"expiries_per_month"`
	PeakExpiry float64    `json:"expiries_peak_per_s"`
	Expiry     []Strategy `json:"expiry,omitempty"`
	Notes      []string   `json:"notes,omitempty"`

	start time.Time
}

// Modes compares the capacity modes. It excludes storage and streams, which cost the same in each.
type Modes struct {
	OnDemandUSD   float64 `json:"on_demand_usd"`
	AutoscaledUSD float64 `json:"autoscaled_usd"`
	// provisioned for the peak at the target, without autoscaling
	PeakUSD float64 `json:"provisioned_for_the_peak_usd"`
	// the cheaper one of on demand and autoscaled
	Cheaper Mode `json:"cheaper"`
	// autoscaling refuses a part of the traffic, which then costs nothing
	Throttles bool `json:"autoscaled_throttles"`
	// utilisation at which both modes cost the same
	CrossingWrites float64 `json:"crossing_writes"`
	CrossingReads  float64 `json:"crossing_reads"`
}

// Mode is a capacity mode.
type Mode string

// The modes.
const (
	ModeOnDemand   Mode = "on demand"
	ModeAutoscaled Mode = "provisioned with autoscaling"
)

// indexResource is the prefix of an index's name.
const indexResource = "index "

// resource is the table or a global index.
type resource struct {
	name          string
	writes, reads float64 // units per write and read of the shape
	constant      float64 // read units per second that do not follow the shape
	hottest       float64 // share of the busiest partition key; 0: even
	bytes         float64 // stored
}

// Make returns the plan of a workload. Its error reports all problems of the workload.
func Make(w Workload, p *Prices) (*Report, error) {
	asked := w
	w, err := w.filled()
	if w.Shape != nil {
		err = errors.Join(err, w.Shape.check())
	}
	if err != nil {
		return nil, err
	}
	r := &Report{Workload: w, Prices: p, Minutes: minutesPerMonth}
	s := w.Shape
	if s == nil {
		s = &Shape{Points: []Point{{w.Writes, w.Mix.Sum()}}}
	} else {
		r.ShapeMinutes = len(s.Points)
		r.Minutes = max(minutesPerMonth, len(s.Points))
	}
	r.start = s.Start
	mean := s.mean()
	r.WritesPerS, r.ReadsPerS = mean.Writes, mean.Reads
	if s.Units { // the rest computes with operations
		r.WritesPerS, r.ReadsPerS = mean.Writes/w.tableWrite(), mean.Reads/w.tableRead()
	}
	r.WritesPerDay, r.WritesPerMonth = r.WritesPerS*24*3600, r.WritesPerS*secondsPerMonth

	r.store()
	all := r.resources(s)
	r.simulate(s, all)
	r.stream(all)
	r.partitions(all)
	r.expire(s)
	r.note(asked)
	return r, nil
}

// tableWrite returns the units of a write at the table and its local indexes.
func (w *Workload) tableWrite() float64 {
	units := WriteUnits(w.ItemBytes, false) * (1 + w.TransactionalWrites)
	for i := range w.Indexes {
		if x := &w.Indexes[i]; x.Local {
			units += x.write(w.Updates)
		}
	}
	return units
}

// tableRead returns the mean units of a read.
func (w *Workload) tableRead() float64 {
	sum := w.Mix.Sum()
	if sum == 0 {
		return ReadUnits(w.ItemBytes, Eventual)
	}
	return (w.Mix.Strong*ReadUnits(w.ItemBytes, Strong) + w.Mix.Eventual*ReadUnits(w.ItemBytes, Eventual) + w.Mix.Transactional*ReadUnits(w.ItemBytes, Transactional)) / sum
}

// write returns the index's units per write of the table: an entry for a new item; for a changed
// item one write if a projected attribute changes, and two if the key does.
func (x *Index) write(updates float64) float64 {
	one := x.Share * WriteUnits(x.EntryBytes, false)
	changed := 1 - x.Moves
	if x.Projection == KeysOnly {
		changed = 0
	}
	return one * ((1 - updates) + updates*(changed+2*x.Moves))
}

// resources returns the table and the global indexes, whose capacities are separate. The units of a
// shape are the table's: resources converts them to operations, and those to the units of each
// index.
func (r *Report) resources(s *Shape) []resource {
	w := &r.Workload
	perWrite, perRead := 1.0, 1.0
	if s.Units {
		perWrite, perRead = 1/w.tableWrite(), 1/w.tableRead()
	}
	all := []resource{{name: "table", writes: w.tableWrite() * perWrite, reads: w.tableRead() * perRead, hottest: w.HottestKey, bytes: r.StoredItems * float64(w.ItemBytes)}}
	for i := range w.Indexes {
		x := &w.Indexes[i]
		units := x.Reads * ReadUnits(x.EntryBytes, Eventual)
		if x.Local {
			all[0].constant += units
			continue
		}
		of := resource{name: indexResource + x.Name, writes: x.write(w.Updates) * perWrite, bytes: r.StoredItems * x.Share * float64(x.EntryBytes), hottest: w.HottestKey}
		if x.Keys > 0 {
			of.hottest = 1 / float64(x.Keys)
		}
		if mean := r.ReadsPerS; mean > 0 { // its reads follow the table's
			of.reads = units / mean * perRead
		} else {
			of.constant = units
		}
		all = append(all, of)
	}
	return all
}

func (r *Report) simulate(s *Shape, all []resource) {
	w, p := &r.Workload, r.Prices
	for i, of := range all {
		writes := &track{factor: of.writes, base: func(p *Point) float64 { return p.Writes }, price: p.Provisioned.Write, least: w.Scaling.MinWrite, most: w.Scaling.MaxWrite}
		reads := &track{factor: 1, base: func(p *Point) float64 { return of.reads*p.Reads + of.constant }, price: p.Provisioned.Read, least: w.Scaling.MinRead, most: w.Scaling.MaxRead}
		writes.Resource, writes.Kind, reads.Resource, reads.Kind = of.name, Writes, of.name, Reads
		if i == 0 {
			writes.series, reads.series = newSeries(r.Minutes), newSeries(r.Minutes)
		}
		autoscale(s, r.Minutes, &w.Scaling, []*track{writes, reads})
		for _, t := range []*track{writes, reads} {
			perMillion := p.OnDemand.Write
			if t.Kind == Reads {
				perMillion = p.OnDemand.Read
			}
			demand := t.onDemand(s, r.Minutes, perMillion)
			if t.Asked > 0 {
				t.Requests = t.Throttled / t.Asked * r.requests(t.Kind) * float64(r.Minutes) * 60
			}
			r.Tracks, r.Demands = append(r.Tracks, t.Autoscaled), append(r.Demands, demand)
			r.Modes.OnDemandUSD += demand.USD
			r.Modes.AutoscaledUSD += t.USD
			r.Modes.Throttles = r.Modes.Throttles || t.Throttled > 0
			r.Modes.PeakUSD += math.Max(math.Ceil(t.Peak/w.Scaling.Target-1e-9), t.least) * hoursPerMonth * t.price
		}
	}
	m := &r.Modes
	m.CrossingWrites, m.CrossingReads = p.Crossing(Writes), p.Crossing(Reads)
	if m.Cheaper = ModeAutoscaled; m.OnDemandUSD <= m.AutoscaledUSD {
		m.Cheaper = ModeOnDemand
	}
}

// requests returns the requests of a kind per second.
func (r *Report) requests(k Kind) float64 {
	if k == Reads {
		return r.ReadsPerS
	}
	return r.WritesPerS
}

// newItems returns the new items per second.
func (r *Report) newItems() float64 { return r.WritesPerS * (1 - r.Workload.Updates) }

func (r *Report) store() {
	w := &r.Workload
	if r.StoredItems = w.Items; w.Items == 0 {
		kept := time.Duration(secondsPerMonth) * time.Second
		if w.Retention > 0 {
			kept = w.Retention
		}
		r.StoredItems = r.newItems() * kept.Seconds()
	}
	each := float64(w.ItemBytes + itemOverhead)
	for i := range w.Indexes {
		each += w.Indexes[i].Share * float64(w.Indexes[i].EntryBytes+itemOverhead)
	}
	r.StoredBytes = r.StoredItems * each
	r.StorageUSD = max(r.StoredBytes/r.Prices.Storage.GBBytes-r.free(r.Prices.Storage.FreeGB), 0) * r.Prices.Storage.GBMonth
}

// free returns the amount if the free tier applies, and 0 otherwise.
func (r *Report) free(amount float64) float64 {
	if r.Workload.FreeTier {
		return amount
	}
	return 0
}

// Limits of a GetRecords call, and a reader's poll rate of a quiet shard.
const (
	callRecords   = 1000
	callBytes     = 1 << 20
	callsPerShard = 1.0 // per second
)

// stream counts the calls of its readers: each polls each shard once a second, and more often if a
// call cannot carry the records. A partition has one shard.
func (r *Report) stream(all []resource) {
	r.StreamReads = float64(r.Workload.StreamReaders) * r.readerCalls()
	r.StreamUSD = max(r.StreamReads-r.free(r.Prices.Streams.FreeReads), 0) / 1e6 * r.Prices.Streams.Read
}

// readerCalls returns the calls of one reader in a month.
func (r *Report) readerCalls() float64 {
	shards := r.tablePartitions()
	records := math.Max(r.WritesPerS/callRecords, r.WritesPerS*2*float64(r.Workload.ItemBytes)/callBytes) // both images
	return math.Max(shards*callsPerShard, records) * secondsPerMonth
}

// tablePartitions estimates the table's partitions from its peak and its size.
func (r *Report) tablePartitions() float64 {
	return partitionsOf(r.Tracks[0].Peak, r.Tracks[1].Peak, r.StoredItems*float64(r.Workload.ItemBytes))
}

func partitionsOf(writes, reads, bytes float64) float64 {
	return math.Max(1, math.Max(math.Ceil(writes/partitionWrites+reads/partitionReads), math.Ceil(bytes/partitionBytes)))
}

// note adds notes about surprising figures.
func (r *Report) note(asked Workload) {
	add := func(format string, args ...any) { r.Notes = append(r.Notes, fmt.Sprintf(format, args...)) }
	w := &r.Workload
	if w.Retention == 0 && asked.Items == 0 {
		add("nothing expires: the storage shown is for one month's new items and grows by that much each month")
	}
	for _, d := range r.Demands {
		if d.Throttled > 0 {
			add("a new on-demand table would throttle %s of the %s during %d minutes; warm it to %s units a second first", d.Kind, d.Resource, d.Minutes, number(d.Warm))
		}
	}
	for _, t := range r.Tracks {
		if t.Peak > 40_000 {
			add("%s of the %s reach %s units a second: the quota of a table or index is 40,000 until it is raised", t.Kind, t.Resource, number(t.Peak))
		}
		if t.Throttled > 0 {
			add("autoscaling throttles %s of %s of the %s, about %s requests, during %s of %s minutes", percent(t.Throttled/t.Asked), t.Kind, t.Resource, millions(t.Requests), number(float64(t.Minutes)), number(float64(r.Minutes)))
		}
	}
	if moved := w.Renewals * w.Expiring * (1 - w.Updates); moved > w.Updates+1e-9 {
		add("a write moves a deadline: %s renewals of each item are %s of the writes; include them in --updates", number(w.Renewals), percent(moved/(moved+1-w.Updates)))
	}
	if w.FreeTier {
		add("the free tier is subtracted from storage, streams and firings, as if nothing else in the account used it")
	}
}
