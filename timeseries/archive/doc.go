// Package archive keeps the samples of a series as Parquet files in a directory or a bucket,
// without a time limit, readable by Athena, Spark and DuckDB.
//
//	a := archive.New(archive.Dir("/data/weather"))
//	report, err := a.Export(ctx, series, archive.ExportOptions{})  // on demand: the samples of the live table
//	err = a.Follow(ctx, series, archive.FollowOptions{…})          // until ctx is done: samples that expire
//	t, err := a.Target(ctx, archive.TargetOptions{})               // for guard.Options.Archive: samples before guard removes them
//	for sample, err := range a.Union(ctx, series.Reader(timeseries.ReaderOptions{}), timeseries.Query{Device: "roof"}) { … }
//
// # Files
//
//	dt=2026-11-22/samples.parquet                          Export: the samples of that day in UTC, sorted by device and key
//	dt=2026-11-22/expired-<shard>-<first>-<last>.parquet   Follow: a batch, with its first and last sequence number
//	dt=2026-11-22/removed-<writer>-<first>-<last>.parquet  guard: the numbers of the first and the last file combined into this one
//
// The columns are deviceId (STRING), timestamp (TIMESTAMP in microseconds, UTC), sample_key
// (STRING: the sample's Key, with nanoseconds), metadata (STRING: the tags as JSON) and a DOUBLE
// per metric, NULL if a sample lacks it. Pages are compressed with Snappy, which every reader
// supports.
//
// # Laws
//
//	Whole:     a file appears under its name complete and durable, or not at all.
//	Once:      Range returns a sample once, unchanged, whatever a crash repeats. It is also in one file,
//	           for readers that ignore the names, with these exceptions: a follower stalled for longer
//	           than its lease between writing and naming a file; the sample was in two shards of its
//	           device; guard died between archiving and removing it, and its successor archived it again;
//	           small files are being combined, until their removal.
//	Nothing:   Export removes nothing: a sample of a day's file stays there after it leaves the live table.
//	Bounded:   no file is trusted: a damaged or malicious one returns an error that names it, within
//	           bounded memory.
//
// For the second law an archive belongs to Export, to Follow or to guard: each refuses one with
// files of another. Range reads all kinds.
package archive
