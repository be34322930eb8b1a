// Package archive keeps the samples of a series as Parquet files, in a directory or a bucket, for as long as somebody likes, readable by Athena, Spark and DuckDB.
//
//	a := archive.New(archive.Dir("/data/weather"))
//	report, err := a.Export(ctx, series, archive.ExportOptions{})  // on demand: what the live table has now
//	err = a.Follow(ctx, series, archive.FollowOptions{…})          // for ever: what expires
//	for sample, err := range a.Union(ctx, series.Reader(timeseries.ReaderOptions{}), timeseries.Query{Device: "roof"}) { … }
//
// # Files
//
//	dt=2026-11-22/samples.parquet                      what Export has found of that day, in UTC: one file, sorted by device and key
//	dt=2026-11-22/expired-<shard>-<first>-<last>.parquet   what Follow has got of that day in one batch: the first and last sequence number of the batch
//
// The columns are deviceId (STRING), timestamp (TIMESTAMP in microseconds, UTC), sample_key (STRING: the sample's Key, with the nanoseconds), metadata (STRING: the tags
// as JSON) and a DOUBLE for each metric, NULL where a sample has none. Pages are compressed with Snappy, which every reader has.
//
// # Laws
//
//	Whole:     a file appears under its name with everything in it, durably, or not at all.
//	Once:      a sample is in an archive once, whatever is repeated after whatever crash. Beyond that are a follower that stalls for longer than its lease between writing a
//	           file and naming it, and a sample that was in two shards of its device; Range gives either once all the same.
//	Nothing:   Export takes nothing away: what a day's file has, and the live table no longer, stays.
//
// For the sake of the second law an archive is either Export's or Follow's: each refuses one with files of the other. Range reads both kinds.
package archive
