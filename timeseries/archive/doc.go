// Package archive keeps the samples of a series as Parquet files, in a directory or a bucket, for as long as somebody likes, readable by Athena, Spark and DuckDB.
//
//	a := archive.New(archive.Dir("/data/weather"))
//	report, err := a.Export(ctx, series, archive.ExportOptions{})  // on demand: what the live table has now
//	err = a.Follow(ctx, series, archive.FollowOptions{…})          // for ever: what expires
//	t, err := a.Target(ctx, archive.TargetOptions{})               // for guard.Options.Archive: what guard removes, before it does
//	for sample, err := range a.Union(ctx, series.Reader(timeseries.ReaderOptions{}), timeseries.Query{Device: "roof"}) { … }
//
// # Files
//
//	dt=2026-11-22/samples.parquet                      what Export has found of that day, in UTC: one file, sorted by device and key
//	dt=2026-11-22/expired-<shard>-<first>-<last>.parquet   what Follow has got of that day in one batch: the first and last sequence number of the batch
//	dt=2026-11-22/removed-<writer>-<first>-<last>.parquet  what guard has removed of that day: the numbers of the first and the last file that were put together into it
//
// The columns are deviceId (STRING), timestamp (TIMESTAMP in microseconds, UTC), sample_key (STRING: the sample's Key, with the nanoseconds), metadata (STRING: the tags
// as JSON) and a DOUBLE for each metric, NULL where a sample has none. Pages are compressed with Snappy, which every reader has.
//
// # Laws
//
//	Whole:     a file appears under its name with everything in it, durably, or not at all.
//	Once:      Range gives a sample once, whatever is repeated after whatever crash, and as it went. It is in one file, too, for readers that know of no names, except: a follower
//	           has stalled for longer than its lease between writing a file and naming it; it was in two shards of its device; guard died between archiving and removing it, and its
//	           successor has archived it again; or small files are being put together, until they are removed.
//	Nothing:   Export takes nothing away: what a day's file has, and the live table no longer, stays.
//
//	Bounded:   what a file says of itself is believed by nobody: one that is damaged or made to do harm is an error that names it, and takes bounded memory.
//
// For the sake of the second law an archive is Export's, Follow's or guard's: each refuses one with files of another. Range reads all kinds.
package archive
