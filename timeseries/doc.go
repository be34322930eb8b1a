// Package timeseries stores the readings of many devices in a DynamoDB table, at any endpoint, and
// removes each when its retention ends.
//
//	series, err := timeseries.Create(ctx, db, timeseries.Spec{Table: "weather", Retention: 30 * 24 * time.Hour})
//	w, err := series.Writer(ctx, timeseries.WriterOptions{})
//	err = w.Write(ctx, timeseries.Sample{Device: "roof", Time: at, Values: map[string]float64{"temperature": 4.1}})
//	latest, err := series.Reader(timeseries.ReaderOptions{}).Latest(ctx, "roof", "cellar")
//	for sample, err := range series.Reader(timeseries.ReaderOptions{}).Range(ctx, timeseries.Query{Device: "roof", From: from, To: to}) { … }
//
// # Tables
//
//	<table>          samples: deviceId, timestamp, ttl, a number per metric, metadata (tags as JSON)
//	<table>.latest   newest sample of each device, as a small item: the latest of 100 devices is one BatchGetItem
//	mayfly.series    per series its settings, the shard counts of hot devices, and the checkpoints of ingestion
//
// Settings have a table of their own, so that a scan, an export or a stream of the first table
// contains samples only, and one Query returns all shard counts of a series. Only hot devices have
// a row of shard counts; all others have one shard. The latest samples have a table of their own
// for the same reason, and because their updates would go to the very partition that is hot.
//
// # Keys
//
// The sort key of a sample starts with its instant in UTC, in nanoseconds and a fixed width, so
// that text sorts by time. It ends in a fingerprint of the values and tags, or in a number from the
// writer, to distinguish two samples of one instant:
//
//	2025-12-04T12:34:56.789000000Z#5f3a09c1d2e4
//
// The key follows from the sample alone. So the same sample written again, by a retry or by another
// process, is the same item, and two different samples never overwrite each other. A hot device is
// spread over shards: its partition keys are "roof", "roof#shard01", "roof#shard02" and so on, and
// the shard follows from the sort key.
//
// # Shards
//
// The shard count of a device grows when a writer sees throttling, or more writes than a partition
// takes. Readers come first: the writer announces the new count, readers query all its shards as
// soon as they see it, and writers use it only when every reader's cache is younger than the
// announcement. It shrinks the other way round: readers query the old shards until retention has
// emptied them. While the count changes, one sample may be written to two shards; readers return it
// once.
//
// # Time
//
// The ttl of a sample is its instant plus the retention. At mayfly the sample disappears at that
// millisecond. At an endpoint with late TTL, or none, readers omit expired samples by their own
// clock. A sample beyond its retention is refused: Amazon never deletes an item whose TTL is more
// than five years in the past.
//
// # Errors
//
// Write returns the samples that were refused for good, and those that it could not write and that
// may be written again. Ingest puts unusable lines aside, with number and reason, and continues;
// after a stop it resumes from its checkpoint. Receive does the same with a broker's messages, and
// returns when they may be acknowledged. Packages fromnats, fromkafka and fromkinesis build on it.
package timeseries
