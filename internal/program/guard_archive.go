package program

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
	"github.com/mayflydb/mayfly/internal/work/resolve"
	"github.com/mayflydb/mayfly/target"
	"github.com/mayflydb/mayfly/timeseries"
)

// parquetScheme is the prefix of an archive's address, before a directory or a bucket.
const parquetScheme = "parquet:"

// parquetPlace returns the place of the Parquet files; ok is false if --archive names a target.
func (c guardRunCommand) parquetPlace() (place string, ok bool) {
	if place, ok = strings.CutPrefix(c.Archive, parquetScheme); ok {
		return place, true
	}
	return c.Archive, strings.HasPrefix(c.Archive, bucketScheme)
}

// checkArchive returns an error if --archive contradicts other flags, or they need it.
func (c guardRunCommand) checkArchive() error {
	place, parquet := c.parquetPlace()
	switch {
	case !parquet && (c.Archive == "") != (c.Targets == ""):
		return misused(errors.New("--archive ARN and --targets need each other"), "set --archive to the target's ARN and --targets to the file that maps it; for Parquet files use --archive parquet:DIR alone")
	case !parquet && c.ArchiveWait != archiveWaitDefault:
		return misused(errors.New("--archive-wait works only with an archive of Parquet files"), "drop --archive-wait, or use --archive parquet:DIR or s3://bucket/prefix")
	case !parquet:
		return nil
	case c.ArchiveWait < time.Millisecond || c.ArchiveWait > time.Minute:
		return misused(fmt.Errorf("--archive-wait: %s is not between 1ms and 1m", c.ArchiveWait), "mayfly guard run --help")
	case place == "":
		return misused(errors.New("--archive parquet: has no directory"), "for example --archive parquet:/data/expired")
	case c.Targets != "":
		return misused(errors.New("--targets does not go with --archive "+c.Archive+", an archive of Parquet files"), "drop --targets")
	case len(c.Table) > 1:
		return misused(errors.New("an archive of Parquet files holds one series, but --table is given several times"), "run one mayfly guard for each table, each with its own directory")
	case c.Strategy == string(guard.Schedule):
		return misused(errors.New("--archive does not work with the schedule strategy: the Scheduler deletes items without archiving them"), "use --strategy stream, index or scan")
	}
	if parts.Archive == nil {
		return &missingPart{"an archive of Parquet files"}
	}
	return nil
}

// archiveWaitDefault is the default of --archive-wait.
const archiveWaitDefault = 100 * time.Millisecond

// openArchive opens the target that receives items before their removal.
func (c guardRunCommand) openArchive(ctx context.Context, o *guard.Options) (shut func() error, err error) {
	if place, parquet := c.parquetPlace(); parquet {
		return c.openParquet(ctx, place, o)
	}
	mappings, shut, err := openTargets(ctx, c.Targets, o.Logger)
	if err != nil || c.Archive == "" {
		return shut, err
	}
	lane, err := resolve.New(mappings, nil, "name it in "+c.Targets).Resolve(c.Archive)
	if err != nil {
		return nil, errors.Join(misused(fmt.Errorf("--archive %s: %w", c.Archive, err), "docs/targets.md shows how to map a target"), shut())
	}
	o.Archive = addressed{lane.Target, c.Archive}
	return shut, nil
}

// openParquet opens an archive of Parquet files for a table with the layout of a series.
func (c guardRunCommand) openParquet(ctx context.Context, place string, o *guard.Options) (shut func() error, err error) {
	if err := checkSeries(ctx, o.DB, c.Table[0], c.Attribute); err != nil {
		return nil, err
	}
	to, err := openArchive(ctx, place, o.Logger)
	if err != nil {
		return nil, misused(fmt.Errorf("--archive: %w", err), "use --archive parquet:DIR or s3://bucket/prefix")
	}
	t, end, err := to.Target(ctx, c.ArchiveWait, c.Mark)
	if err != nil && !isAdvised(err) {
		return nil, advise(fmt.Errorf("--archive: %w", err), "check that the directory or bucket exists and is writable")
	} else if err != nil {
		return nil, err
	}
	o.Archive = t
	return func() error {
		end()
		return nil
	}, nil
}

// checkSeries returns an error if a table has another layout than a series. It ignores failed
// calls, which guard reports. The archive later refuses items that are not samples; they stay.
func checkSeries(ctx context.Context, db *dynamodb.Client, table, attribute string) error {
	if attribute != "" && attribute != timeseries.AttributeTTL {
		return misused(fmt.Errorf("--attribute %s: an archive of Parquet files holds a series, whose TTL attribute is %s", attribute, timeseries.AttributeTTL), "set --archive to a target instead: docs/targets.md")
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
			error: fmt.Errorf("table %s has the key %s, but an archive of Parquet files holds a series, whose key is the strings %s and %s", table, strings.Join(keys, ", "), timeseries.AttributeDevice, timeseries.AttributeTime),
			next:  "set --archive to a target instead: docs/targets.md", exit: exitTable,
		}
	}
	return nil
}

// addressed is a target whose deliveries name one ARN.
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
