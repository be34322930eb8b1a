package full

import (
	"context"
	"errors"
	"iter"
	"log/slog"
	"time"

	"github.com/mayflydb/mayfly/internal/program"
	"github.com/mayflydb/mayfly/target"
	"github.com/mayflydb/mayfly/timeseries"
	"github.com/mayflydb/mayfly/timeseries/archive"
	"github.com/mayflydb/mayfly/timeseries/archive/bucket"
)

// parquet is an archive of Parquet files.
type parquet struct {
	store archive.Store
	log   *slog.Logger
}

// openArchive returns the archive in a directory, or under a prefix in a bucket.
func openArchive(ctx context.Context, place string, l *slog.Logger) (program.Archive, error) {
	if !bucket.Is(place) {
		return parquet{archive.Dir(place), l}, nil
	}
	store, err := bucket.Open(ctx, place, l)
	if err != nil {
		return nil, err
	}
	return parquet{store, l}, nil
}

func (p parquet) String() string { return p.store.String() }

func (p parquet) Export(ctx context.Context, s *timeseries.Series, o program.Export) (program.Exported, error) {
	r, err := archive.New(p.store).Export(ctx, s, archive.ExportOptions{
		From: o.From, To: o.To, Segments: o.Segments, Rows: o.Rows, Eventual: o.Eventual,
		Progress: func(r archive.Report) { o.Progress(exported(r)) },
	})
	return exported(r), adviseMixed(err)
}

func exported(r archive.Report) program.Exported {
	return program.Exported{Read: r.Read, Written: r.Written, Kept: r.Kept, Files: r.Files}
}

func (p parquet) Follow(ctx context.Context, s *timeseries.Series, o program.Follow) error {
	return adviseMixed(archive.New(p.store).Follow(ctx, s, archive.FollowOptions{
		DB: o.DB, Streams: o.Streams, Name: o.Name, Every: o.Every, Rows: o.Rows, Mark: o.Mark, Lease: o.Lease, Archived: o.Archived, Logger: p.log,
	}))
}

func (p parquet) Target(ctx context.Context, wait time.Duration, mark string) (target.Target, func(), error) {
	t, err := archive.New(p.store).Target(ctx, archive.TargetOptions{Wait: wait, Mark: mark, Logger: p.log})
	if err != nil {
		return nil, nil, adviseMixed(err)
	}
	return t, t.Close, nil
}

func (p parquet) Union(ctx context.Context, live *timeseries.Reader, q timeseries.Query) iter.Seq2[timeseries.Sample, error] {
	return archive.New(p.store).Union(ctx, live, q)
}

// adviseMixed adds the next step to an error about a directory that has files of the other kind.
func adviseMixed(err error) error {
	if _, ok := errors.AsType[*archive.MixedError](err); ok {
		return program.Advise(err, "use another directory; mayfly series range --archive reads either kind")
	}
	return err
}
