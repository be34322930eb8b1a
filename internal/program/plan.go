package program

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/mayflydb/mayfly/planner"
)

// planCommand computes the capacity and cost of a table.
type planCommand struct {
	Show   planShowCommand   `cmd:"" default:"withargs" help:"Compute capacity and cost of a workload. \"mayfly plan\" alone means this."`
	Guard  planGuardCommand  `cmd:"" help:"Compute the workers, lateness and cost of mayfly guard for a table."`
	Alarms planAlarmsCommand `cmd:"" help:"Print Prometheus alarm rules for the workload."`
	AWS    planAWSCommand    `cmd:"" name:"aws" help:"Print autoscaling and CloudWatch alarms of the table for Amazon: CloudFormation, Terraform or AWS CLI."`
	Record planRecordCommand `cmd:"" help:"Record the traffic of a running mayfly or guard as CSV for --shape."`
	Prices planPricesCommand `cmd:"" help:"Print a price table to edit and pass to --prices."`
}

func (planCommand) Help() string {
	return `Examples:

    mayfly plan --writes 10000 --item-size 150 --retention 30d --page plan.html
    mayfly plan --shape traffic.csv --item-size 2KB --reads-eventual 1 --index byDay=KEYS_ONLY

It only computes and calls no endpoint. docs/plan.md explains the figures.`
}

// workloadFlags describe the load of a table.
type workloadFlags struct {
	Config configFlag `help:"YAML or JSON file that sets any of these flags by name. The command line and the environment override it." placeholder:"FILE"`

	Writes        float64  `help:"Writes a second." placeholder:"N"`
	ReadsEventual float64  `help:"Eventually consistent reads of one item a second; with --shape, their proportion to the other reads." placeholder:"N"`
	ReadsStrong   float64  `help:"Strongly consistent reads a second." placeholder:"N"`
	ReadsTransact float64  `name:"reads-transactional" help:"Transactional reads a second." placeholder:"N"`
	ItemSize      byteSize `help:"Size of an item with its attribute names: 150, 2KB." default:"1KB" placeholder:"SIZE"`
	KeySize       byteSize `help:"Size of its key. Default: 64, or the item's size if smaller." placeholder:"SIZE"`
	Transactional float64  `name:"writes-transactional" help:"Share of the writes that are in transactions, 0 to 1." placeholder:"SHARE"`
	Updates       float64  `help:"Share of the writes that change an existing item, 0 to 1; the others create one." placeholder:"SHARE"`
	Index         []string `help:"Secondary index, NAME[=ALL|KEYS_ONLY|INCLUDE], followed by settings: ,bytes=,share=,moves=,reads=,keys=,local. Repeatable." placeholder:"INDEX" sep:"none"`
	Shape         string   `help:"CSV file of the traffic, instead of --writes: minute or timestamp, then writes and reads a second, or CloudWatch sums of consumed units." placeholder:"FILE"`
	HottestKey    float64  `help:"Share of the traffic for the busiest partition key, 0 to 1. Default: spread evenly." placeholder:"SHARE"`

	Retention     span    `help:"Time after which an item expires: 90s, 30d. Default: never." placeholder:"DURATION"`
	Expiring      float64 `help:"Share of the new items that expire, 0 to 1." default:"1" placeholder:"SHARE"`
	Items         float64 `help:"Stored items. Default: those written within the retention." placeholder:"N"`
	Renewals      float64 `help:"Number of times an item's deadline is moved before it expires." placeholder:"N"`
	StreamReaders int     `help:"Readers of the stream besides Lambda's." placeholder:"N"`

	MinWrite float64 `help:"Lowest write capacity for autoscaling. Default: 1." placeholder:"UNITS"`
	MaxWrite float64 `help:"Highest write capacity. Default: 40000." placeholder:"UNITS"`
	MinRead  float64 `help:"Lowest read capacity. Default: 1." placeholder:"UNITS"`
	MaxRead  float64 `help:"Highest read capacity. Default: 40000." placeholder:"UNITS"`
	Target   float64 `help:"Target utilisation of autoscaling, in percent, 20 to 90." default:"70" placeholder:"PERCENT"`
	Band     float64 `help:"Percentage points below the target at which capacity is reduced." default:"20" placeholder:"POINTS"`
	Delay    int     `help:"Minutes from an autoscaling alarm to the new capacity." default:"2" placeholder:"MINUTES"`

	Window  span `help:"Window of the window sweeper, which is also its interval." default:"1m" placeholder:"DURATION"`
	Period  span `help:"Interval of the shard sweeper." default:"5m" placeholder:"DURATION"`
	Sweep   span `name:"guard-period" help:"How often guard queries its index." default:"5s" placeholder:"DURATION"`
	Pass    span `name:"guard-pass" help:"Duration of guard's scan of the table." default:"1h" placeholder:"DURATION"`
	Lease   span `name:"guard-lease" help:"Lease of the guard workers." default:"6s" placeholder:"DURATION"`
	Workers int  `name:"guard-workers" help:"Number of guard workers." default:"2" placeholder:"N"`

	Prices   pricesFlag `help:"Price file, or us-east-1, or us-east-1-2018 (prices until October 2024)." default:"us-east-1" placeholder:"FILE"`
	FreeTier bool       `help:"Subtract the monthly free tier."`
}

// plan returns the report for the workload.
func (f workloadFlags) plan() (*planner.Report, error) {
	w, err := f.workload()
	if err != nil {
		return nil, err
	}
	prices, err := f.Prices.read()
	if err != nil {
		return nil, err
	}
	report, err := planner.Make(w, prices)
	if err != nil {
		return nil, misusedOptions(err, nil, "mayfly plan --help")
	}
	return report, nil
}

func (f workloadFlags) workload() (w planner.Workload, err error) {
	w = planner.Workload{
		ItemBytes: int(min(f.ItemSize, 1<<30)), KeyBytes: int(min(f.KeySize, 1<<30)), Writes: f.Writes,
		Mix:                 planner.Mix{Strong: f.ReadsStrong, Eventual: f.ReadsEventual, Transactional: f.ReadsTransact},
		TransactionalWrites: f.Transactional, Updates: f.Updates, HottestKey: f.HottestKey,
		Retention: time.Duration(f.Retention), Expiring: f.Expiring, Items: f.Items, Renewals: f.Renewals, StreamReaders: f.StreamReaders, FreeTier: f.FreeTier,
		Scaling: planner.Scaling{MinWrite: f.MinWrite, MaxWrite: f.MaxWrite, MinRead: f.MinRead, MaxRead: f.MaxRead, Target: f.Target / 100, Band: f.Band / 100, Delay: f.Delay},
		Sweep:   planner.Sweep{Window: time.Duration(f.Window), Period: time.Duration(f.Period), Ahead: time.Duration(f.Sweep), Pass: time.Duration(f.Pass), Lease: time.Duration(f.Lease), Workers: f.Workers},
	}
	// The planner replaces 0 by its defaults, but here the user has set it.
	for _, x := range []struct {
		flag string
		none bool
	}{
		{"--window", f.Window == 0}, {"--period", f.Period == 0}, {"--guard-period", f.Sweep == 0}, {"--guard-pass", f.Pass == 0}, {"--guard-lease", f.Lease == 0}, {"--guard-workers", f.Workers == 0},
		{"--target", f.Target == 0}, {"--item-size", f.ItemSize == 0},
	} {
		if x.none {
			return w, misused(fmt.Errorf("%s is 0", x.flag), "drop it to get the default")
		}
	}
	switch {
	case f.Band < 0 || f.Delay < 0:
		return w, misused(errors.New("--band and --delay must not be negative"), "")
	case f.Expiring == 0 && f.Retention != 0:
		return w, misused(errors.New("--expiring 0 contradicts --retention"), "drop both if nothing expires, and set --items to the number of stored items")
	case f.Expiring == 1 && f.Retention == 0:
		w.Expiring = 0 // use the default
	}
	if f.Band == 0 {
		w.Scaling.Band = -1
	}
	if f.Delay == 0 {
		w.Scaling.Delay = -1
	}
	for _, text := range f.Index {
		x, err := planner.ReadIndex(text)
		if err != nil {
			return w, misused(fmt.Errorf("--index: %w", err), "for example --index byDay=ALL or --index byDay=KEYS_ONLY,share=0.2,keys=10")
		}
		w.Indexes = append(w.Indexes, x)
	}
	switch {
	case f.Shape == "" && f.Writes == 0 && w.Mix.Sum() == 0:
		return w, misused(errors.New("no traffic"), "set --writes and --reads-eventual, or --shape FILE")
	case f.Shape != "" && f.Writes != 0:
		return w, misused(errors.New("--writes and --shape cannot be used together"), "drop one of them")
	case f.Shape == "":
		return w, nil
	}
	file, err := os.Open(f.Shape)
	if err != nil {
		return w, adviseFile("--shape", err)
	}
	defer file.Close()
	if w.Shape, err = planner.ReadShape(file); err != nil {
		return w, misused(fmt.Errorf("--shape %s: %w", f.Shape, err), "a shape file begins with a heading such as minute,writes,reads; docs/plan.md has examples")
	}
	return w, nil
}

// pricesFlag is the name of a built-in price table, or of a file.
type pricesFlag string

func (f pricesFlag) read() (*planner.Prices, error) {
	if text, err := planner.Table(string(f)); err == nil {
		return planner.ReadPrices(bytes.NewReader(text))
	}
	file, err := os.Open(string(f))
	if err != nil {
		return nil, adviseFile("--prices", err)
	}
	defer file.Close()
	prices, err := planner.ReadPrices(file)
	if err != nil {
		err = fmt.Errorf("--prices %s: %s", f, complaints(err, nil))
		return nil, misused(err, "mayfly plan prices > prices.yaml prints a table to edit")
	}
	return prices, nil
}

// adviseFile returns the error for a file of a flag that cannot be opened.
func adviseFile(flag string, err error) error {
	if path, ok := errors.AsType[*fs.PathError](err); ok {
		err = fmt.Errorf("%s: %w", path.Path, path.Err)
	}
	return misused(fmt.Errorf("%s %w", flag, err), "")
}

// writeNew replaces a file by renaming a complete new one, so that no reader sees half of it.
func writeNew(path string, content []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if at, ok := errors.AsType[*fs.PathError](err); ok {
		// the path that the user wrote, not the temporary one
		return &fs.PathError{Op: at.Op, Path: path, Err: at.Err}
	} else if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // fails after the rename
	_, err = f.Write(content)
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = os.Chmod(f.Name(), 0o644)
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	return err
}
