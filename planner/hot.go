package planner

import (
	"fmt"
	"math"
)

// Hot compares the load of a table or an index with the capacity of a partition.
type Hot struct {
	Resource   string  `json:"resource"`
	Partitions float64 `json:"partitions"`          // an estimate
	WritePeak  float64 `json:"hottest_write_units"` // per second, of the busiest partition key
	ReadPeak   float64 `json:"hottest_read_units"`
	Shards     int     `json:"shards"` // number of shards to divide that key into; 1: no need
	Risk       Risk    `json:"risk"`
	Why        string  `json:"why,omitempty"`
}

// Risk is the risk that a partition is throttled although the table is not.
type Risk string

// The risks.
const (
	RiskNone Risk = "none"
	RiskNear Risk = "near" // above fill of a partition's capacity
	RiskOver Risk = "over" // above a partition's capacity
)

// fill is the share of a partition's capacity up to which a plan loads it. The published sweeper
// plans so too: it has 4 shards for 3,000 units per second.
const fill = 0.8

// shardsFor returns the number of shards that keeps each below fill.
func shardsFor(writes, reads float64) int {
	return max(1, int(math.Ceil(math.Max(writes/(fill*partitionWrites), reads/(fill*partitionReads))-1e-9)))
}

// Limits of a shard of a Kinesis data stream.
const (
	kinesisRecords = 1000 // per second
	kinesisBytes   = 1e6
)

func (r *Report) partitions(all []resource) {
	peak := r.WritesPerS
	if mean := r.Tracks[0].Demand; mean > 0 {
		peak *= r.Tracks[0].Peak / mean
	}
	r.KinesisShards = int(math.Ceil(math.Max(peak/kinesisRecords, peak*float64(r.Workload.ItemBytes)/kinesisBytes) - 1e-9))
	for i, of := range all {
		writes, reads := r.Tracks[2*i].Peak, r.Tracks[2*i+1].Peak
		h := Hot{Resource: of.name, Partitions: partitionsOf(writes, reads, of.bytes), WritePeak: of.hottest * writes, ReadPeak: of.hottest * reads, Risk: RiskNone, Shards: 1}
		if most := math.Max(h.WritePeak/partitionWrites, h.ReadPeak/partitionReads); most > fill {
			h.Shards, h.Risk = shardsFor(h.WritePeak, h.ReadPeak), RiskNear
			if most > 1 {
				h.Risk = RiskOver
			}
			h.Why = fmt.Sprintf("one partition key gets %s of the traffic: %s write and %s read units a second; a partition allows %s and %s", percent(of.hottest), number(h.WritePeak), number(h.ReadPeak),
				number(partitionWrites), number(partitionReads))
			if h.Risk == RiskOver && i > 0 {
				h.Why += "; the index's throttling holds up the table's writes"
			}
		}
		r.Hot = append(r.Hot, h)
	}
}
