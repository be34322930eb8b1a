package program

import (
	"context"
	"fmt"
	"time"
)

type seriesArchiveCommand struct {
	seriesFlags
	To    string        `help:"Directory or s3://bucket/prefix for the files: dt=2030-01-01/expired-….parquet. Do not share it with export." required:"" placeholder:"DIR"`
	As    string        `help:"Name of the follower, one for each archive. Default: archive. and the name of the series." placeholder:"NAME"`
	Every span          `help:"Longest time that a sample waits for others to share its file." default:"1m" placeholder:"TIME"`
	Rows  int           `help:"Most samples in a file." default:"50000"`
	Mark  string        `help:"The --mark attribute of mayfly guard, if guard removes the samples." placeholder:"NAME"`
	Lease time.Duration `help:"Time after which others take over a silent follower's shards." default:"10s"`
	JSON  bool          `name:"json" help:"Print each file as a JSON line."`
	logFlags
}

func (seriesArchiveCommand) Help() string {
	return `Examples:

    mayfly series archive weather --to /data/expired
    mayfly series range weather roof --archive /data/expired

It reads the stream of the series' table until stopped; started again, it continues. An expired sample leaves the table first and stays in the
stream until it is in a file, for at most 24 hours.`
}

// Run archives expiring samples until ctx is done.
func (c seriesArchiveCommand) Run(ctx context.Context, s streams) error {
	to, err := openArchive(ctx, c.To, c.logger(s.err))
	if err != nil {
		return misused(err, "mayfly series archive --help")
	}
	e, series, err := c.openSeries(ctx)
	if err != nil {
		return err
	}
	err = to.Follow(ctx, series, Follow{
		DB: e.DynamoDB(), Streams: e.Streams(), Name: c.As, Every: time.Duration(c.Every), Rows: c.Rows, Mark: c.Mark, Lease: c.Lease,
		Archived: func(name string, samples int) { c.print(s, name, samples) },
	})
	return e.adviseArchive(err, c.Name)
}

// print prints the name of a file and its number of samples.
func (c seriesArchiveCommand) print(s streams, name string, samples int) {
	if c.JSON {
		_ = writeJSON(s.out, map[string]any{"file": name, "samples": samples})
		return
	}
	fmt.Fprintf(s.out, "%s: %d samples\n", name, samples)
}
