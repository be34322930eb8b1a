package planner

import (
	"fmt"
	"math"
	"math/bits"
	"time"
)

// sizing computes the size of guard with one strategy.
type sizing struct {
	*GuardSize
	l *GuardLoad
	p *Prices

	written    float64 // deadlines written a second: of new items, and renewals
	hourUSD    float64 // that is not units
	perRemoval float64 // seconds of a worker's work
}

// best returns the size with a strategy. If the load has no duration of a pass, best takes the first
// one that fits.
func (l GuardLoad) best(strategy string, p *Prices) GuardSize {
	if strategy != guardScan || l.Pass > 0 {
		return l.size(strategy, p)
	}
	for _, l.Pass = range guardPasses {
		if s := l.size(strategy, p); s.Fits {
			return s
		}
	}
	l.Pass = guardPasses[0]
	return l.size(strategy, p)
}

func (l GuardLoad) size(strategy string, p *Prices) GuardSize {
	s := &sizing{l: &l, GuardSize: &GuardSize{Strategy: strategy, Fits: true}, p: p, written: l.Expirations * (1 + l.Renewals)}
	s.perRemoval = 1 / l.speed()
	s.WriteUnits = l.Expirations * WriteUnits(l.ItemBytes, false)
	s.DeletesUSD = s.WriteUnits * 3600 / 1e6 * p.OnDemand.Write
	s.StreamShards = int(partitionsOf((s.written+l.Expirations)*WriteUnits(l.ItemBytes, false), 0, l.Items*float64(l.ItemBytes)))
	switch strategy {
	case guardLocal:
		s.local()
	case guardStream:
		s.stream()
	case guardIndex:
		s.index()
	case guardSchedule:
		s.schedule()
	case guardScan:
		s.scan()
	}
	s.lateness()
	each := armedBytes
	if strategy == guardLocal || strategy == guardStream {
		each = armedRowBytes
	}
	idle := idleBytes
	if strategy == guardLocal {
		idle = localBytes
	}
	s.MemoryBytes = idle + s.Armed*(each+float64(l.KeyBytes))
	s.complain(s.Armed > armedMax, "%s deadlines wait in memory; a worker holds %s", number(s.Armed), number(armedMax))
	s.complain(s.KeyWrites > partitionWrites*fill, "a partition key takes %s write units a second, of %s", number(s.KeyWrites), number(partitionWrites))
	s.complain(s.KeyReads > partitionReads*fill, "a partition key takes %s read units a second, of %s", number(s.KeyReads), number(partitionReads))
	units := (s.written + l.Expirations) * WriteUnits(l.ItemBytes, false)
	s.note(units > tableUnits, "the table itself takes %s write units a second; raise its quota of %s", number(units), number(tableUnits))
	s.HourUSD = s.hourUSD + 3600/1e6*(s.WriteUnits*p.OnDemand.Write+s.ReadUnits*p.OnDemand.Read+s.StreamCalls*p.Streams.Read)
	return *s.GuardSize
}

func (s *sizing) complain(is bool, format string, args ...any) {
	if is {
		s.Fits, s.Why = false, append(s.Why, fmt.Sprintf(format, args...))
	}
}

func (s *sizing) note(is bool, format string, args ...any) {
	if is {
		s.Notes = append(s.Notes, fmt.Sprintf(format, args...))
	}
}

// speed returns the removals per second of one worker that does nothing else.
func (l *GuardLoad) speed() float64 {
	return math.Min(removalsPerS, guardConcurrency/l.RoundTrip.Seconds())
}

// spread returns a quantile, in seconds, of the lateness of evenly spread deadlines. It grows with
// the load of a worker like the time in a queue, from the measured one.
func (l *GuardLoad) spread(quantile, busy float64) float64 {
	measured, trip := lateP50, l.RoundTrip.Seconds()
	if quantile > 0.5 {
		measured, trip = lateP99, trip*tripP99
	}
	return measured*(1-lateRate/removalsPerS)/(1-math.Min(busy, 0.99)) + trip
}

// most returns the share of a worker's speed that may be used. Deadlines in whole seconds are due
// together, and a worker needs that share of the second for them.
func (l *GuardLoad) most() float64 {
	return math.Min(busy, (l.Late.Seconds()-l.spread(0.99, busy))/0.99)
}

// evenly returns the part of the load that each of some workers has, if it can be divided at will.
func evenly(workers int) float64 { return 1 / float64(workers) }

// fleet sets the number of workers, unless the load has one: at least some, enough for the load, and enough for all of it
// when one has died. part returns the part of the load that the busiest of some workers has.
func (s *sizing) fleet(most, least int, part func(workers int) float64) {
	load := s.l.Expirations * s.perRemoval
	if s.l.Workers > 0 {
		s.Workers, s.Busy = s.l.Workers, load*part(min(s.l.Workers, most))
		s.complain(s.Busy > 0.95, "the work takes %s of each worker", percent(s.Busy))
		s.complain(s.Workers < least, "it takes %s workers", number(float64(least)))
		s.note(s.Workers > most, "the strategy has shares for %s workers, so %s of %s idle", number(float64(most)), number(float64(s.Workers-most)), number(float64(s.Workers)))
		return
	}
	s.Workers = max(int(math.Ceil(load/s.l.most()-1e-9)), int(math.Ceil(load/0.95-1e-9))+1, least)
	for s.Workers < most && (load*part(s.Workers) > s.l.most()+1e-9 || load*part(s.Workers-1) > 0.95+1e-9) {
		s.Workers++
	}
	s.complain(s.Workers > most, "it takes %s workers; the strategy has shares for %s", number(float64(s.Workers)), number(float64(most)))
	s.Busy = load * part(s.Workers)
	if lost := load * part(s.Workers-1); s.Workers <= most {
		s.complain(lost > 1, "when a worker has died, the work takes %s of the one that has its share", percent(lost))
		s.note(lost > 0.95+1e-9 && lost <= 1, "when a worker has died, the work takes %s of the one that has its share", percent(lost))
	}
}

func (s *sizing) lateness() {
	if s.Strategy == guardSchedule {
		s.P50, s.P99, s.WholeP50, s.WholeP99, s.Bound = 30*time.Second, time.Minute, 30*time.Second, time.Minute, time.Minute
		return
	}
	s.P50, s.P99 = seconds(s.l.spread(0.5, s.Busy)), seconds(s.l.spread(0.99, s.Busy))
	s.WholeP50, s.WholeP99 = s.P50+seconds(0.5*s.Busy), s.P99+seconds(0.99*s.Busy)
	if s.Lease > 0 && s.Bound == 0 {
		s.Bound = seconds(s.Lease.Seconds() * takeover)
	}
}

// list notes the listings of the stream's shards by a fleet, over the limit of an account: of all
// shards, and of the children of each shard that is replaced.
func (s *sizing) list() {
	shards := float64(s.StreamShards)
	all := math.Min(float64(s.Workers)*math.Ceil(shards*shardDays/listPage)/listEvery, listsOfAll)
	calls := all + shards*(shardDays-1)/(24*60*60)
	s.complain(calls > listsPerS*fill, "the workers list the stream's shards with %s calls a second; an account may make %s", number(calls), number(listsPerS))
}

// saves returns the checkpoints of the stream's shards a second, at most one for each record, and for
// each page.
func (s *sizing) saves(records float64, lease time.Duration) float64 {
	shards := float64(s.StreamShards)
	pace := math.Max(saveEvery, math.Min(saveShare*shards, lease.Seconds()/2))
	return math.Min(records, shards*math.Min(1/pace, callsBusy))
}

// leases sets the duration of the leases, and adds their units. A crew has a number of rows, and
// another one for each worker. Each worker writes its row and reads all rows of the crew four
// times in a lease. The first crew also saves checkpoints of some number of records a second.
func (s *sizing) leases(records float64, crews ...float64) {
	choices := guardLeases
	if s.l.Lease > 0 {
		choices = []time.Duration{s.l.Lease}
	}
	var writes, reads, keyWrites, keyReads float64
	for _, d := range choices {
		writes, reads, keyWrites, keyReads = 0, 0, 0, 0
		saves := s.saves(records, d)
		beats := 4 * float64(s.Workers) / d.Seconds()
		for i, rows := range crews {
			w, r := beats, beats*math.Ceil((rows+float64(s.Workers))*leaseRowBytes/readBlock)
			if i == 0 {
				w += saves
			}
			writes, reads, keyWrites, keyReads = writes+w, reads+r, math.Max(keyWrites, w), math.Max(keyReads, r)
		}
		s.Lease = d
		// no lease helps if the saves alone are too many
		if (keyWrites <= partitionWrites*fill || saves > partitionWrites*fill) && keyReads <= partitionReads*fill {
			break
		}
	}
	s.WriteUnits, s.ReadUnits = s.WriteUnits+writes, s.ReadUnits+reads
	s.KeyWrites, s.KeyReads = math.Max(s.KeyWrites, keyWrites), math.Max(s.KeyReads, keyReads)
}

// follow adds the reading of the stream and the audit. A shard with a record or more a second is polled
// as often as guard may. It returns the records a second: of a write,
// of each renewal, and of the removal.
func (s *sizing) follow() float64 {
	records := s.written + s.l.Expirations
	shards := float64(s.StreamShards)
	s.StreamCalls = math.Max(math.Min(shards*callsBusy, shards*callsPerShard+records*(callsBusy-callsPerShard)), math.Max(records/callRecords, records*2*float64(s.l.ItemBytes)/callBytes))
	s.ReadUnits += auditUnitsPerS
	return records
}

// scanned sets the time and cost of the first scan, by the items a second of a worker. It reads
// consistently. rows: it writes a row of mayfly.deadlines for each item.
func (s *sizing) scanned(perS float64, rows bool) {
	units, writes := float64(s.l.ItemBytes)/readBlock, 0.0
	all := math.Min(float64(s.Workers)*perS, float64(s.StreamShards)*partitionReads*fill/units)
	if s.l.MaxRCU > 0 {
		all = math.Min(all, s.l.MaxRCU/units)
	}
	if rows { // in transactions, or one by one in a slow scan
		writes = 2
		if s.l.MaxRCU > 0 && s.l.MaxRCU/units <= singlesMost*float64(s.Workers) {
			writes = 1
		}
		all = math.Min(all, tableUnits*fill/writes)
	}
	s.FirstScan = seconds(math.Min(s.l.Items/all, 9e9)) // some 290 years
	s.FirstScanUSD = s.l.Items / 1e6 * (units*s.p.OnDemand.Read + writes*s.p.OnDemand.Write)
}

func (s *sizing) local() {
	s.Workers = 1
	s.perRemoval += s.follow() / s.l.Expirations / localRecordsPerS
	s.Busy = s.l.Expirations * s.perRemoval
	s.complain(s.Busy > s.l.most(), "one process is for up to %s expirations a second", number(math.Floor(s.l.most()/s.perRemoval)))
	s.Armed = math.Min(s.l.Expirations*localAhead, aloneMax*2/3)
	s.DiskBytes = s.l.Items * (diskRowBytes + math.Max(float64(s.l.KeyBytes)-20, 0))
	s.scanned(localScannedPerS, false)
}

func (s *sizing) stream() {
	records := s.follow()
	s.perRemoval += records / s.l.Expirations / recordsPerS
	s.fleet(partitionsMost, 2, evenly)
	// each deadline is put and deleted, perhaps with all others of its minute
	rows, row := 2*s.written, float64(rowBytes+4*s.l.KeyBytes/3)
	keys := math.Ceil(rows / (partitionWrites * fill) / keysPerMinute)
	divided := min(max(partitionsLeast, s.Useful()*partsPerWorker), partitionsMost)
	s.Partitions = power(math.Max(keys, float64(divided)))
	s.complain(s.Partitions > partitionsMost, "it takes %s partitions; the most are %s", number(float64(s.Partitions)), number(partitionsMost))
	n, shards := float64(s.Partitions), float64(s.StreamShards)
	s.KeyWrites = rows / (n * keysPerMinute)
	// directory, and watermark
	s.WriteUnits += rows + 2*math.Min(n/60, s.written) + math.Min(n/60, s.l.Expirations)
	s.list()
	s.leases(records, shards*shardDays, n)
	lease := s.Lease.Seconds()
	s.ReadUnits += n/(polls*lease)*(1+math.Min(keysPerMinute, s.l.Expirations*60/n)) + s.l.Expirations*row/readBlock
	s.Armed = s.l.Expirations / float64(s.Useful()) * (polls*lease + aheadSeconds)
	s.store(row)
	s.note(rows > tableUnits, "mayfly.deadlines takes %s write units a second; raise its quota of %s", number(rows), number(tableUnits))
	s.scanned(scannedPerS, true)
}

// store adds the storage of a row for each item.
func (s *sizing) store(bytes float64) {
	s.hourUSD += s.l.Items * (bytes + itemOverhead) / s.p.Storage.GBBytes * s.p.Storage.GBMonth / hoursPerMonth
}

func (s *sizing) index() {
	entry := s.l.KeyBytes + entryText
	// an entry's writes, two for each renewal, and its delete
	units := s.l.Expirations * s.l.EntryUnits() * (2 + 2*s.l.Renewals)
	shards := shardsFor(units, 0)
	// The sweeps of all shards have that many leases, and a worker has whole ones: of 23 workers, nine
	// have two of the 32, and hence twice as much to do. Fewer shards are made a multiple of the workers.
	leases := func(workers int) int { return min(each(shards, workers)*workers, leasesMost) }
	part := func(workers int) float64 { return float64(each(leases(workers), workers)) / float64(leases(workers)) }
	s.fleet(leasesMost, 2, part)
	s.IndexShards = max(shards, leases(s.Useful()), s.Workers)
	s.complain(s.IndexShards > indexShardsMost, "it takes %s shards; the most are %s", number(float64(s.IndexShards)), number(indexShardsMost))
	s.KeyWrites = units / float64(s.IndexShards)
	s.WriteUnits += units
	s.ReadUnits += auditUnitsPerS + float64(s.IndexShards)/s.l.Period.Seconds()/2 + s.l.Expirations*2*pages(entry)
	s.StreamShards = 0
	s.leases(0, math.Min(leasesMost, float64(s.IndexShards)))
	s.Armed = s.l.Expirations * part(s.Useful()) * 2 * s.l.Period.Seconds()
	lives := s.l.Items / s.l.Expirations
	s.note(lives < 2*s.l.Period.Seconds(), "an item lives for some %s; one that is written less than %v before its deadline is late by up to that time", about(seconds(lives)), short(s.l.Period))
	s.note(units > tableUnits, "the index takes %s write units a second; raise its quota of %s", number(units), number(tableUnits))
	s.store(float64(entry + s.l.KeyBytes))
}

func (s *sizing) schedule() {
	s.perRemoval = s.follow() / s.l.Expirations / recordsPerS
	s.fleet(partitionsMost, 2, evenly)
	s.complain(s.l.Expirations > schedulerPerS*fill, "the plan is for %[2]s firings a second, of the Scheduler's quota of %[1]s, which can be raised", number(schedulerPerS), number(schedulerPerS*fill))
	s.complain(s.l.Items > schedulesMax, "%s schedules are pending; the quota of %s can be raised", number(s.l.Items), number(schedulesMax))
	s.list()
	s.leases(s.written+s.l.Expirations, float64(s.StreamShards)*shardDays)
	s.hourUSD += s.l.Expirations * 3600 / 1e6 * s.p.Scheduler.Firing
	s.scanned(schedulerPerS*fill/float64(s.Workers), false)
}

func (s *sizing) scan() {
	s.Pass, s.Bound, s.StreamShards = s.l.Pass, s.l.Pass, 0
	pass, perS := s.Pass.Seconds(), s.l.Items/s.l.Pass.Seconds()
	s.perRemoval += perS / localScannedPerS / s.l.Expirations
	// a pass arms the deadlines until the next one finds the item again
	ahead := s.l.Expirations * 2 * pass
	s.fleet(leasesMost, max(int(math.Ceil(ahead/(armedMax-scanRoom))), 2), evenly)
	units, workers := perS*pages(s.l.ItemBytes), float64(s.Workers)
	s.ReadUnits += units
	s.MaxRCU = math.Ceil(units)
	s.complain(units > tableUnits*fill, "a pass of %s takes %s read units a second, of %s unless raised", short(s.Pass), number(units), number(tableUnits))
	s.leases(0, leasesMost)
	s.Armed = math.Min(s.l.Items/workers, armedMax)
	lives := s.l.Items / s.l.Expirations
	s.complain(lives < pass, "an item lives for some %s, and a pass of %s finds it late", about(seconds(lives)), short(s.Pass))
	s.FirstScan, s.FirstScanUSD = s.Pass, s.l.Items/1e6*pages(s.l.ItemBytes)*s.p.OnDemand.Read
}

// each returns how many of some shares a worker has at most.
func each(shares, workers int) int { return (shares + workers - 1) / workers }

// power returns the smallest power of two that is at least v.
func power(v float64) int {
	return 1 << bits.Len(uint(math.Ceil(v))-1)
}
