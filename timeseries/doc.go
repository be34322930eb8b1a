// Package timeseries keeps the readings of many devices in a DynamoDB table, at any endpoint, each until its retention has passed and no longer.
//
//	series, err := timeseries.Create(ctx, db, timeseries.Spec{Table: "weather", Retention: 30 * 24 * time.Hour})
//	w := series.Writer(ctx, timeseries.WriterOptions{})
//	err = w.Write(ctx, timeseries.Sample{Device: "roof", Time: at, Values: map[string]float64{"temperature": 4.1}})
//	latest, err := series.Reader(timeseries.ReaderOptions{}).Latest(ctx, "roof", "cellar")
//	for sample, err := range series.Reader(timeseries.ReaderOptions{}).Range(ctx, timeseries.Query{Device: "roof", From: from, To: to}) { … }
//
// # Where things are
//
//	<table>          the samples: deviceId, timestamp, ttl, a number for each metric, metadata (tags as JSON)
//	<table>.latest   the newest sample of each device, as one small item; so the latest of 100 devices is one BatchGetItem
//	mayfly.series    for each series its settings, the shard counts of its hot devices, and the checkpoints of what is ingested
//
// Settings are in a table of their own and not among the samples, so that a scan, an export or a stream of the samples' table has samples in it and nothing
// else, and so that all the shard counts of a series are one Query: a device that has no row has one shard, and only hot ones have a row. The latest samples are in
// a table of their own for the same reason, and because their updates would go to the very partition that is hot.
//
// # Keys
//
// A sample's sort key is its instant in UTC in nanoseconds, in a fixed width, so that text orders as time does, and behind it what tells two samples of one instant
// apart: a fingerprint of their values and tags, or the number that the writer gave:
//
//	2025-12-04T12:34:56.789000000Z#5f3a09c1d2e4
//
// The key follows from the sample alone. So the same sample written again, by a retry or by another process, is the same item; and two that differ never
// overwrite each other. A hot device is spread over shards: its partition keys are "roof", "roof#shard01", "roof#shard02" and so on, and the shard follows from
// the sort key.
//
// # Shards
//
// A device's shard count grows when one of its writers sees more than a partition takes, or throttling. Readers come first: the new count is announced, readers ask
// all its shards as soon as they see it, and writers use it only when every reader's cache is younger than the announcement. It shrinks the other way round:
// readers ask the old shards until retention has emptied them. While the count changes, one sample may be written to two shards; readers take two samples with one key for one.
//
// # Time
//
// A sample's ttl is its instant plus the retention. At mayfly it is gone at that millisecond. Where the endpoint is late, or has no TTL at all, readers leave
// expired samples out, by their own clock. What is already beyond retention is refused: Amazon would keep it for good if that was more than five years ago.
//
// # How it fails
//
// Write reports which samples it refuses for good, and which it could not write: those may simply be written again. Ingest puts aside the lines that it cannot use, with
// their numbers and reasons, and goes on; stopped, it goes on from its checkpoint. Receive does the same with a broker's messages, and comes back when they may be acknowledged; fromnats, fromkafka and
// fromkinesis are readers of brokers that are built on it.
package timeseries
