package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/mayflydb/mayfly/planner"
)

// planCommand is what a table will need and cost.
type planCommand struct {
	Show   planShowCommand   `cmd:"" default:"withargs" help:"Compute capacity and cost of a workload; what mayfly plan alone does."`
	Alarms planAlarmsCommand `cmd:"" help:"Print alarm rules for Prometheus with the workload's figures."`
	Record planRecordCommand `cmd:"" help:"Watch the traffic of a running mayfly, or of guard, and print it as a CSV file for --shape."`
	Prices planPricesCommand `cmd:"" help:"Print a price table, to change and give to --prices."`
}

// Help is the part of --help behind the flags.
func (planCommand) Help() string {
	return `Examples:

    mayfly plan --writes 10000 --item-size 150 --retention 30d --page plan.html
    mayfly plan --shape traffic.csv --item-size 2KB --reads-eventual 1 --index byDay=KEYS_ONLY

It is arithmetic: nothing is asked of any endpoint. docs/plan.md tells what the figures rest on.`
}

// workloadFlags say what is asked of a table.
type workloadFlags struct {
	Config configFlag `help:"YAML or JSON file that sets any of these flags by name. Command line and environment rank above it." placeholder:"FILE"`

	Writes        float64  `help:"Writes a second." placeholder:"N"`
	ReadsEventual float64  `help:"Eventually consistent reads of one item a second; with --shape, in what proportion to the others." placeholder:"N"`
	ReadsStrong   float64  `help:"Strongly consistent ones." placeholder:"N"`
	ReadsTransact float64  `name:"reads-transactional" help:"Transactional ones." placeholder:"N"`
	ItemSize      byteSize `help:"Size of an item, names and values: 150, 2KB." default:"1KB" placeholder:"SIZE"`
	KeySize       byteSize `help:"Size of its key. Default: 64, or the item's." placeholder:"SIZE"`
	Transactional float64  `name:"writes-transactional" help:"Share of the writes that are part of transactions, 0 to 1." placeholder:"SHARE"`
	Updates       float64  `help:"Share of the writes that change an item that is there, 0 to 1; the others make a new one." placeholder:"SHARE"`
	Index         []string `help:"Secondary index, NAME[=ALL|KEYS_ONLY|INCLUDE], with settings behind commas: bytes=, share=, moves=, reads=, keys=, local. Can be given several times." placeholder:"INDEX" sep:"none"`
	Shape         string   `help:"CSV file of the traffic: minute or timestamp, writes and reads a second, or CloudWatch's sums of consumed units. In place of --writes." placeholder:"FILE"`
	HottestKey    float64  `help:"Share of the traffic that the busiest partition key gets, 0 to 1. Default: it is spread evenly." placeholder:"SHARE"`

	Retention     span    `help:"Time after which an item expires: 90s, 30d. Default: never." placeholder:"DURATION"`
	Expiring      float64 `help:"Share of the new items that expire, 0 to 1. Default: all, with a retention." default:"1" placeholder:"SHARE"`
	Items         float64 `help:"Items that are stored. Default: what is written in the retention." placeholder:"N"`
	Renewals      float64 `help:"How often an item's deadline is moved until it expires." placeholder:"N"`
	StreamReaders int     `help:"Readers of the stream besides Lambda's." placeholder:"N"`

	MinWrite float64 `help:"Least write capacity of autoscaling. Default: 1." placeholder:"UNITS"`
	MaxWrite float64 `help:"Most write capacity. Default: 40000." placeholder:"UNITS"`
	MinRead  float64 `help:"Least read capacity. Default: 1." placeholder:"UNITS"`
	MaxRead  float64 `help:"Most read capacity. Default: 40000." placeholder:"UNITS"`
	Target   float64 `help:"Utilisation that autoscaling aims at, in percent, 20 to 90." default:"70" placeholder:"PERCENT"`
	Band     float64 `help:"How far below it, in points, capacity is taken back." default:"20" placeholder:"POINTS"`
	Delay    int     `help:"Minutes from an alarm of autoscaling to the new capacity." default:"2" placeholder:"MINUTES"`

	Window  span `help:"Window of the window sweeper, and how often it runs." default:"1m" placeholder:"DURATION"`
	Period  span `help:"How often the sweeper of shards runs." default:"5m" placeholder:"DURATION"`
	Sweep   span `name:"guard-period" help:"How often guard asks its index." default:"5s" placeholder:"DURATION"`
	Pass    span `name:"guard-pass" help:"How long guard's scan of the table takes." default:"1h" placeholder:"DURATION"`
	Lease   span `name:"guard-lease" help:"Lease of guard's workers." default:"6s" placeholder:"DURATION"`
	Workers int  `name:"guard-workers" help:"Workers of guard." default:"2" placeholder:"N"`

	Prices   string `help:"File of prices, or us-east-1 or us-east-1-2018 (until October 2024)." default:"us-east-1" placeholder:"FILE"`
	FreeTier bool   `help:"Take off what is free each month for an account."`
}

// plan computes.
func (f workloadFlags) plan() (*planner.Report, error) {
	w, err := f.workload()
	if err != nil {
		return nil, err
	}
	prices, err := f.prices()
	if err != nil {
		return nil, err
	}
	report, err := planner.Make(w, prices)
	if err != nil {
		return nil, misused(oneLineError(err), "mayfly plan --help shows what each flag means")
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
	// What the planner takes 0 for is its default; here it has been asked for.
	for _, x := range []struct {
		flag string
		none bool
	}{
		{"--window", f.Window == 0}, {"--period", f.Period == 0}, {"--guard-period", f.Sweep == 0}, {"--guard-pass", f.Pass == 0}, {"--guard-lease", f.Lease == 0}, {"--guard-workers", f.Workers == 0},
		{"--target", f.Target == 0}, {"--item-size", f.ItemSize == 0},
	} {
		if x.none {
			return w, misused(fmt.Errorf("%s is 0", x.flag), "leave it out for the default, which mayfly plan --help shows")
		}
	}
	switch {
	case f.Band < 0 || f.Delay < 0:
		return w, misused(errors.New("--band and --delay are not below 0"), "0 is none of it")
	case f.Expiring == 0 && f.Retention != 0:
		return w, misused(errors.New("--expiring is 0, and there is a --retention"), "leave both out if nothing expires; --items says how many are stored")
	case f.Expiring == 1 && f.Retention == 0:
		w.Expiring = 0 // the default is meant
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
			return w, misused(fmt.Errorf("--index: %w", err), "an index is written as byDay=ALL, or byDay=KEYS_ONLY,share=0.2,keys=10")
		}
		w.Indexes = append(w.Indexes, x)
	}
	switch {
	case f.Shape == "" && f.Writes == 0 && w.Mix.Sum() == 0:
		return w, misused(errors.New("no traffic is given"), "say what is asked of the table with --writes and --reads-eventual, or with --shape FILE")
	case f.Shape != "" && f.Writes != 0:
		return w, misused(errors.New("--writes and --shape are given, and both say how much is written"), "leave one of them out")
	case f.Shape == "":
		return w, nil
	}
	file, err := os.Open(f.Shape)
	if err != nil {
		return w, adviseFile("--shape", err)
	}
	defer file.Close()
	if w.Shape, err = planner.ReadShape(file); err != nil {
		return w, advise(fmt.Errorf("--shape %s: %w", f.Shape, err), "a shape begins with a heading such as minute,writes,reads; docs/plan.md has examples")
	}
	return w, nil
}

func (f workloadFlags) prices() (*planner.Prices, error) {
	if text, err := planner.Table(f.Prices); err == nil {
		return planner.ReadPrices(bytes.NewReader(text))
	}
	file, err := os.Open(f.Prices)
	if err != nil {
		return nil, adviseFile("--prices", err)
	}
	defer file.Close()
	prices, err := planner.ReadPrices(file)
	if err != nil {
		return nil, advise(fmt.Errorf("--prices %s: %w", f.Prices, oneLineError(err)), "mayfly plan prices prints a table to begin with")
	}
	return prices, nil
}

// adviseFile says which flag names a file that cannot be opened.
func adviseFile(flag string, err error) error {
	var path *fs.PathError
	if errors.As(err, &path) {
		err = fmt.Errorf("%s: %w", path.Path, path.Err)
	}
	return advise(fmt.Errorf("%s %w", flag, err), "give the file as %s PATH", flag)
}

// oneLineError puts several complaints on one line.
func oneLineError(err error) error {
	if text := err.Error(); strings.Contains(text, "\n") {
		return errors.New(strings.ReplaceAll(text, "\n", "; "))
	}
	return err
}

// writeNew writes a file beside its place and moves it there, so that there is never half of one.
func writeNew(path string, content []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	var at *fs.PathError
	if errors.As(err, &at) {
		return &fs.PathError{Op: at.Op, Path: path, Err: at.Err} // not of the one beside it, which nobody has named
	} else if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // fails once it has been moved
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
