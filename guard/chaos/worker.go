package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"

	"github.com/mayflydb/mayfly/guard"
	"github.com/mayflydb/mayfly/internal/sdk"
)

// workerWord is the first argument of a worker's process. The second is a workerConfig as JSON.
const workerWord = "guard-worker"

// workerConfig configures a worker's process.
type workerConfig struct {
	URL      string // the proxy's
	Region   string
	Table    string
	Strategy guard.Strategy
	Batch    int
	MaxSkew  time.Duration
	Lease    time.Duration
	Alone    bool // it keeps the deadlines of the stream strategy in a store of its own
}

// The lines that a worker prints.
const (
	readyLine   = "ready"
	scannedLine = "scanned" // the first scan of the stream strategy has ended
	endedLine   = "ended"   // with the code of a problem and its text
)

// runWorker guards the table until standard input ends, and returns the exit code of the process.
// change may change the options, so that a test can break guard; it may be nil.
func runWorker(config string, change func(*guard.Options)) int {
	signal.Ignore(os.Interrupt) // a terminal sends it to all; the parent ends its workers
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		_, _ = io.Copy(io.Discard, bufio.NewReader(os.Stdin))
		cancel()
	}()
	err := guardTable(ctx, config, change)
	var p *guard.Problem
	switch {
	case err == nil:
		return 0
	case errors.As(err, &p):
		fmt.Printf("%s %s %s\n", endedLine, p.Code, p.Message)
	default:
		fmt.Printf("%s error %v\n", endedLine, err)
	}
	return exitBroken
}

func guardTable(ctx context.Context, config string, change func(*guard.Options)) error {
	var c workerConfig
	if err := json.Unmarshal([]byte(config), &c); err != nil {
		return err
	}
	a := aws.Config{Region: c.Region, Credentials: credentials.NewStaticCredentialsProvider("any", "any", ""), BaseEndpoint: &c.URL, HTTPClient: pooled()}
	o := guard.Options{
		DB: sdk.DynamoDB(a), Streams: sdk.Streams(a), Table: c.Table, Attribute: deadlineAttribute, Strategy: c.Strategy,
		Period: time.Second, Progress: announceScan, Batch: c.Batch, MaxSkew: c.MaxSkew, Lease: c.Lease, Alone: c.Alone, AcceptOverdue: -1, Logger: slog.New(slog.NewTextHandler(os.Stderr, nil)),
	}
	if c.Strategy == guard.Index {
		o.IndexName, o.Shards = shardIndex, shards
	}
	if c.Alone {
		o.Deadlines = sdk.DynamoDB(a) // another client is another store to guard
	}
	if change != nil {
		change(&o)
	}
	g, err := guard.New(o)
	if err != nil {
		return err
	}
	go func() {
		select {
		case <-g.Ready():
			fmt.Println(readyLine)
		case <-ctx.Done():
		}
	}()
	return g.Run(ctx)
}

// announceScan prints that the first scan has ended.
func announceScan(p guard.Progress) {
	if p.Doing == guard.FirstScan && p.Ended {
		fmt.Println(scannedLine)
	}
}
