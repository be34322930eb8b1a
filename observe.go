package mayfly

import (
	"strconv"
	"time"

	"github.com/mayflydb/mayfly/internal/front/admin"
	"github.com/mayflydb/mayfly/internal/store/engine"
)

// observe counts an answered request, and announces the change of a table that it may have made: an
// operation can fail after its change is durable.
func (db *DB) observe(operation string, status int, code string, took time.Duration) {
	db.metrics.Request(operation, code, took)
	db.countRequest(operation, status, code)
	if operation == "CreateTable" || operation == "UpdateTable" || operation == "DeleteTable" {
		db.changes.announce(db.engine.HoldAll)
	}
}

// reaped records a durable removal in the metrics. The engine calls it when readers of the stream
// can see the records.
func (db *DB) reaped(r engine.Reap) {
	table, err := db.engine.Table(r.Namespace, r.Table)
	streamed := err == nil && table.Desc().Stream.ViewType != ""
	arrived := db.engine.Now().Time()
	for _, due := range r.Due {
		db.metrics.CommitLateness(r.Durable.Sub(due.Time()))
		if streamed {
			db.metrics.StreamLateness(arrived.Sub(due.Time()))
		}
	}
	db.metrics.Reaped(r.Table, len(r.Due))
	db.countReaped(r)
	db.expired.Add(int64(len(r.Due)))
}

// backlogMax bounds the count of one table's backlog in a scrape.
const backlogMax = 100_000

// backlog returns the number of due items that are not yet reaped, counted up to backlogMax in each
// table.
func (db *DB) backlog() int64 {
	total := 0
	for _, t := range db.engine.Tables() {
		n, _, err := t.Backlog(backlogMax)
		if err != nil {
			continue // the table was deleted meanwhile
		}
		total += n
	}
	return int64(total)
}

// expiries returns the expiry of each table's items.
func (db *DB) expiries() (out []admin.TableExpiry) {
	for table, x := range db.service.Expiries() {
		expiry := admin.TableExpiry{Table: table, Mode: ExpiryStrict.String()}
		if x.Mode == engine.ExpiryAWS {
			expiry.Mode, expiry.Delay, expiry.Seed = ExpiryAWS.String(), x.Delay.String(), strconv.FormatUint(x.Seed, 10)
		}
		out = append(out, expiry)
	}
	return out
}

// consumed returns the consumed units of each table and global index.
func (db *DB) consumed() (out []admin.Consumed) {
	for _, c := range db.service.Consumed() {
		out = append(out, admin.Consumed(c))
	}
	return out
}

// suspicions returns the writes of TTL values that look like mistakes.
func (db *DB) suspicions() (out []admin.Suspicion) {
	for _, s := range db.service.Suspicions() {
		out = append(out, admin.Suspicion(s))
	}
	return out
}

// held returns the records that streams keep beyond their retention for consumers.
func (db *DB) held() (out []admin.HeldStream) {
	now := db.engine.Now().Time()
	for _, h := range db.engine.Held() {
		out = append(out, admin.HeldStream{
			Table: h.Table, Stream: h.Label, Consumer: h.Consumer, Bytes: h.Bytes, Records: h.Records, Age: now.Sub(h.Oldest.Time()),
		})
	}
	return out
}

// damaged returns the damaged table files.
func (db *DB) damaged() (out []admin.DamagedFile) {
	for _, f := range db.engine.Damages() {
		file := admin.DamagedFile{File: f.File}
		for _, r := range f.Ranges {
			file.Ranges = append(file.Ranges, admin.DamagedRange(r))
		}
		out = append(out, file)
	}
	return out
}

// degraded returns a line for each broken part while the others are served: a full disk, and each
// damaged file.
func (db *DB) degraded() (lines []string) {
	if err := db.engine.FullReason(); err != nil {
		lines = append(lines, err.Error())
	}
	for _, f := range db.engine.Damages() {
		lines = append(lines, f.String()+", and has blocks that cannot be read: see mayfly check and mayfly salvage")
	}
	return lines
}

// sources returns the functions that a scrape calls.
func (db *DB) sources() admin.Sources {
	return admin.Sources{
		Backlog:  db.backlog,
		Clock:    func() admin.ClockState { return admin.ClockState(db.Clock().State()) },
		Consumed: db.consumed,
		Damaged:  db.damaged,
		DiskFull: func() bool { return db.engine.Metrics().ReserveGivenUp },
		Expiry:   db.expiries,
		Failed:   func() bool { return db.engine.Err() != nil },
		Held:     db.held,
		HeldFull: db.engine.HoldsFull,
		Suspect:  db.suspicions,
		Store:    func() []admin.Sample { return append(db.storeSamples(), db.frontSamples()...) },
	}
}

func gauge(name, help string, v float64) admin.Sample {
	return admin.Sample{Name: name, Help: help, Value: v}
}

func counter(name, help string, v float64) admin.Sample {
	return admin.Sample{Name: name, Help: help, Value: v, Counter: true}
}

// frontSamples returns the figures of connections, and of the memory of requests.
func (db *DB) frontSamples() []admin.Sample {
	bodies, answers := db.server.Load()
	return []admin.Sample{
		gauge("connections", "Open connections.", float64(db.peers.Open())),
		gauge("connections_limit", "Most connections at once, so that the store has the file descriptors that it needs.", float64(db.peers.Limit())),
		counter("connections_closed_silent_total", "Connections closed for the places of others, because their clients sent nothing for a second, or no whole request.", float64(db.peers.ClosedSilent())),
		counter("connections_refused_total", "Connections closed at once, because their client's address has three quarters of all.", float64(db.peers.Refused())),
		gauge("request_body_bytes", "Memory taken by the bodies of requests that are received or processed.", float64(bodies.Used())),
		gauge("request_body_limit_bytes", "Most memory for the bodies of requests.", float64(bodies.Size())),
		counter("request_bodies_refused_total", "Requests refused because there was no memory for their body.", float64(bodies.Refused())),
		gauge("answer_bytes", "Memory taken by large answers that are being sent.", float64(answers.Used())),
		counter("answers_refused_total", "Large answers replaced by an error, because there was no memory to hold them.", float64(answers.Refused())),
	}
}

// storeSamples returns the store's figures under the names of metrics.
func (db *DB) storeSamples() []admin.Sample {
	m := db.engine.Metrics()
	return []admin.Sample{
		gauge("store_disk_bytes", "Bytes of all files.", float64(m.DiskBytes)),
		gauge("store_table_bytes", "Bytes of live sorted tables.", float64(m.TableBytes)),
		gauge("store_table_count", "Live sorted tables.", float64(m.TableCount)),
		gauge("store_memtable_bytes", "Bytes in memtables.", float64(m.MemTableBytes)),
		gauge("store_log_bytes", "Bytes of the live part of the log.", float64(m.LogBytes)),
		counter("store_log_written_bytes_total", "Bytes written to the log.", float64(m.LogWrittenBytes)),
		gauge("store_cache_bytes", "Bytes in the block cache.", float64(m.CacheBytes)),
		counter("store_cache_hits_total", "Blocks found in the cache.", float64(m.CacheHits)),
		counter("store_cache_misses_total", "Blocks read from files.", float64(m.CacheMisses)),
		counter("store_flushes_total", "Memtables written out.", float64(m.Flushes)),
		counter("store_compactions_total", "Compactions done.", float64(m.Compactions)),
		gauge("store_compactions_running", "Compactions under way.", float64(m.CompactionsRunning)),
		gauge("store_compaction_debt_bytes", "Bytes to be compacted until the levels have their shape.", float64(m.CompactionDebtBytes)),
		counter("store_compaction_read_bytes_total", "Bytes read by compactions.", float64(m.CompactionReadBytes)),
		counter("store_compaction_written_bytes_total", "Bytes written by flushes and compactions.", float64(m.CompactionWriteBytes)),
		gauge("store_read_amplification", "Sorted tables that a point read may have to look at.", float64(m.ReadAmplification)),
		gauge("store_tombstones", "Stored markers of deletion.", float64(m.Tombstones)),
		gauge("store_snapshots", "Open snapshots.", float64(m.Snapshots)),
	}
}
