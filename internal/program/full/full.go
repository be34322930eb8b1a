// Package full has the parts of the program that only mayfly-full has; see program.Parts.
package full

import (
	"context"
	"log/slog"

	"github.com/mayflydb/mayfly/guard/journal"
	"github.com/mayflydb/mayfly/internal/objects"
	"github.com/mayflydb/mayfly/internal/program"
	"github.com/mayflydb/mayfly/internal/sink/kinds"
	"github.com/mayflydb/mayfly/timeseries/archive/bucket"
)

// Parts returns all parts.
func Parts() program.Parts {
	return program.Parts{Commands: program.AllCommands, Kinds: kinds.All, Bench: runBench, BenchExpiry: runBenchExpiry, Simulate: runSimulation, Torture: runTorture, Source: openSource, Archive: openArchive, Bucket: openBucket, Objects: openObjects}
}

// openBucket opens a bucket for a journal.
func openBucket(ctx context.Context, address string, l *slog.Logger) (journal.Store, error) {
	store, err := bucket.Open(ctx, address, l)
	if err != nil {
		return nil, err
	}
	return journalBucket{store}, nil
}

// journalBucket is a bucket as package journal sees it.
type journalBucket struct{ *bucket.Store }

func (b journalBucket) Open(ctx context.Context, name string) (journal.Object, error) {
	return b.Store.Open(ctx, name)
}

// openObjects opens a bucket for an export.
func openObjects(ctx context.Context, address string, l *slog.Logger) (objects.Store, error) {
	store, err := bucket.Open(ctx, address, l)
	if err != nil {
		return nil, err
	}
	return objectBucket{store}, nil
}

// objectBucket is a bucket as package exportfile sees it.
type objectBucket struct{ *bucket.Store }

func (b objectBucket) Open(ctx context.Context, name string) (objects.File, error) {
	return b.Store.Open(ctx, name)
}
