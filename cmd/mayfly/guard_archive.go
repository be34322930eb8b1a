package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/mayflydb/mayfly/guard"
	"github.com/mayflydb/mayfly/internal/resolve"
	"github.com/mayflydb/mayfly/internal/sink/targetfile"
	"github.com/mayflydb/mayfly/target"
	"github.com/mayflydb/mayfly/timeseries"
	"github.com/mayflydb/mayfly/timeseries/archive"
	"github.com/mayflydb/mayfly/timeseries/archive/bucket"
)

// parquetScheme begins the address of an archive in a directory, or with a bucket's address behind it, in a bucket.
const parquetScheme = "parquet:"

// parquetPlace is where --archive keeps a series; ok is false where it names a target.
func (c guardRunCommand) parquetPlace() (place string, ok bool) {
	if place, ok = strings.CutPrefix(c.Archive, parquetScheme); ok {
		return place, true
	}
	return c.Archive, bucket.Is(c.Archive)
}

// checkArchive refuses what cannot go together with --archive, or without it.
func (c guardRunCommand) checkArchive() error {
	place, parquet := c.parquetPlace()
	switch {
	case !parquet && (c.Archive == "") != (c.Targets == ""):
		return misused(errors.New("--archive and --targets belong together"), "name the target with --archive, and the file that maps it with --targets; for Parquet files give --archive parquet:DIR alone")
	case !parquet && c.ArchiveWait != archiveWaitDefault:
		return misused(errors.New("--archive-wait belongs to an archive of Parquet files"), "drop it, or give --archive parquet:DIR or s3://bucket/prefix")
	case !parquet:
		return nil
	case c.ArchiveWait < time.Millisecond || c.ArchiveWait > time.Minute:
		return misused(fmt.Errorf("--archive-wait: %s is not between a millisecond and a minute", c.ArchiveWait), "mayfly guard run --help explains the flags")
	case place == "":
		return misused(errors.New("--archive parquet: names no directory"), "give one, as in --archive parquet:/data/expired")
	case c.Targets != "":
		return misused(errors.New("--targets belongs to a target, and --archive "+c.Archive+" is an archive of Parquet files"), "drop --targets")
	case len(c.Table) > 1:
		return misused(errors.New("an archive of Parquet files is of one series, and --table is given several times"), "guard each table by a process of its own, with a directory of its own")
	case c.Strategy == string(guard.Schedule):
		return misused(errors.New("--archive: the schedule strategy has items deleted by the Scheduler, which archives none"), "take another strategy")
	}
	return nil
}

// archiveWaitDefault is that of --archive-wait.
const archiveWaitDefault = 100 * time.Millisecond

// openArchive makes the target that gets items before they go.
func (c guardRunCommand) openArchive(ctx context.Context, o *guard.Options) (shut func() error, err error) {
	shut = func() error { return nil }
	if c.Archive == "" {
		return shut, nil
	}
	if place, parquet := c.parquetPlace(); parquet {
		return c.openParquet(ctx, place, o)
	}
	mappings, shut, err := targetfile.Load(ctx, c.Targets, targetfile.Options{Now: time.Now})
	if err != nil {
		return nil, misused(err, "docs/targets.md explains every setting")
	}
	lane, err := resolve.New(mappings, nil, "name it in "+c.Targets).Resolve(c.Archive)
	if err != nil {
		return nil, errors.Join(misused(fmt.Errorf("--archive %s: %w", c.Archive, err), "docs/targets.md shows how a target is mapped"), shut())
	}
	o.Archive = addressed{lane.Target, c.Archive}
	return shut, nil
}

// openParquet opens an archive of Parquet files for a table that is laid out as a series.
func (c guardRunCommand) openParquet(ctx context.Context, place string, o *guard.Options) (shut func() error, err error) {
	if err := checkSeries(ctx, o.DB, c.Table[0], c.Attribute); err != nil {
		return nil, err
	}
	store, err := openStore(ctx, place)
	if err != nil {
		return nil, misused(fmt.Errorf("--archive: %w", err), "give --archive parquet:DIR or s3://bucket/prefix")
	}
	t, err := archive.New(store).Target(ctx, archive.TargetOptions{Wait: c.ArchiveWait, Mark: c.Mark, Logger: o.Logger})
	if mixed := (*archive.MixedError)(nil); errors.As(err, &mixed) {
		return nil, advise(err, "name another directory; mayfly series range --archive reads either")
	}
	if err != nil {
		return nil, advise(fmt.Errorf("--archive: %w", err), "check that the place is there, and may be written to")
	}
	o.Archive = t
	return func() error {
		t.Close()
		return nil
	}, nil
}

// checkSeries refuses tables that are not laid out as a series. What the endpoint does not tell is for guard to say; an item that is no sample is then refused by the archive, and stays.
func checkSeries(ctx context.Context, db *dynamodb.Client, table, attribute string) error {
	if attribute != "" && attribute != timeseries.AttributeTTL {
		return misused(fmt.Errorf("--attribute %s: Parquet files are of a series, whose samples expire by %s", attribute, timeseries.AttributeTTL), "give --archive the name of a target instead: docs/targets.md")
	}
	out, err := db.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &table})
	if err != nil || out.Table == nil {
		return nil
	}
	if !timeseries.IsLayout(out.Table) {
		var keys []string
		for _, k := range out.Table.KeySchema {
			keys = append(keys, aws.ToString(k.AttributeName))
		}
		return &advised{
			error: fmt.Errorf("the table %s has the key %s, and Parquet files are of a series, whose key is %s and %s, texts", table, strings.Join(keys, ", "), timeseries.AttributeDevice, timeseries.AttributeTime),
			next:  "give --archive the name of a target instead: docs/targets.md", exit: exitTable,
		}
	}
	return nil
}

// addressed is a target whose deliveries are for one ARN.
type addressed struct {
	target.Target
	arn string
}

func (a addressed) Deliver(ctx context.Context, all []target.Delivery) []error {
	all = slices.Clone(all)
	for i := range all {
		all[i].TargetARN = a.arn
	}
	return a.Target.Deliver(ctx, all)
}
