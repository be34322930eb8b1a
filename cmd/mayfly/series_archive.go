package main

import (
	"context"
	"fmt"
	"time"

	"github.com/mayflydb/mayfly/timeseries/archive"
)

type seriesArchiveCommand struct {
	seriesFlags
	To    string        `help:"Directory, or s3://bucket/prefix, that gets the files: dt=2030-01-01/expired-….parquet. Not one that export has filled." required:"" placeholder:"DIR"`
	As    string        `help:"Name of the follower: one for each archive. Default: archive. and the name of the series." placeholder:"NAME"`
	Every span          `help:"How long a sample waits for others at most." default:"1m" placeholder:"TIME"`
	Rows  int           `help:"Samples of a file at most." default:"50000"`
	Mark  string        `help:"Attribute in which mayfly guard notes that it has removed an expired item." placeholder:"NAME"`
	Lease time.Duration `help:"Time after which a silent follower's shards are taken over." default:"10s"`
	logFlags
}

// Help is the part of --help behind the flags.
func (seriesArchiveCommand) Help() string {
	return `Examples:

    mayfly series archive weather --to /data/expired
    mayfly series range weather roof --archive /data/expired

It reads the stream of the series' table and runs until it is stopped; then it goes on where it was. A sample leaves the table first, and stays in the
stream, for 24 hours at most, until it is in a file.`
}

// Run archives until ctx is done.
func (c seriesArchiveCommand) Run(ctx context.Context, s streams) error {
	store, err := openStore(ctx, c.To)
	if err != nil {
		return &advised{error: err, next: "mayfly series archive --help", exit: exitUsage}
	}
	e, series, err := c.openSeries(ctx)
	if err != nil {
		return err
	}
	err = archive.New(store).Follow(ctx, series, archive.FollowOptions{
		DB: e.dynamodb(), Streams: e.streams(), Name: c.As, Every: time.Duration(c.Every), Rows: c.Rows, Mark: c.Mark, Lease: c.Lease, Logger: c.logger(s.err),
		Archived: func(name string, samples int) { fmt.Fprintf(s.out, "%s: %d samples\n", name, samples) },
	})
	return e.adviseArchive(err, c.Name)
}
