package program

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/mayflydb/mayfly/planner"
)

// SimulateFlags are the flags of mayfly guard simulate.
type SimulateFlags struct {
	Config configFlag `help:"YAML or JSON file that sets any of these flags by name. The command line and the environment override it." placeholder:"FILE"`

	Items     float64  `help:"Items that have a deadline." placeholder:"N"`
	Rate      float64  `help:"Expirations a second." placeholder:"N"`
	Workers   int      `help:"Workers of the fleet. Default: as many as mayfly plan guard computes." placeholder:"N"`
	ItemSize  byteSize `help:"Size of an item with its attribute names: 150, 2KB." default:"1KB" placeholder:"SIZE"`
	KeySize   byteSize `help:"Size of its key. Default: 64, or the item's size if smaller." placeholder:"SIZE"`
	Strategy  string   `help:"Strategy of guard: stream or index. Default: one after the other." placeholder:"NAME"`
	Lease     span     `help:"Lease of the workers. Default: the plan's." placeholder:"TIME"`
	Period    span     `help:"How often guard queries an index." default:"5s" placeholder:"TIME"`
	RoundTrip span     `help:"Mean time from a request to the endpoint's answer. One of a hundred takes twice as long." default:"10ms" placeholder:"TIME"`
	For       span     `help:"Time whose deadlines are measured, in virtual time." default:"20s" placeholder:"TIME"`
	Share     fraction `help:"Part of the fleet that is simulated, such as 1/10. Default: two workers, or three to ten with --lose." placeholder:"PART"`
	Whole     bool     `name:"whole-seconds" help:"Deadlines are whole seconds, so that those of a second are due together."`
	Seed      uint64   `help:"Seed of the network's delays." default:"1" placeholder:"N"`

	Lose     fraction `help:"Part of the workers that die after a third of the time." placeholder:"PART"`
	Pause    span     `help:"How long one worker's requests stand still, after a third of the time." placeholder:"TIME"`
	Reshard  bool     `help:"Split each shard of the stream, and each partition of the table, after a third of the time."`
	Throttle fraction `help:"Part of the table's partitions that take a tenth of their write units in the middle third of the time." placeholder:"PART"`

	Prices pricesFlag `help:"Price file, or us-east-1, or us-east-1-2018 (prices until October 2024)." default:"us-east-1" placeholder:"FILE"`
	JSON   bool       `name:"json" help:"Print JSON."`
}

// fraction is a part of a whole: 1/3, 0.33 or 33%.
type fraction float64

// UnmarshalText implements encoding.TextUnmarshaler, for the command line.
func (f *fraction) UnmarshalText(text []byte) error {
	whole := 1.0
	digits, below, divided := strings.Cut(string(text), "/")
	digits, percent := strings.CutSuffix(digits, "%")
	v, err := strconv.ParseFloat(digits, 64)
	switch {
	case divided && !percent && err == nil:
		whole, err = strconv.ParseFloat(below, 64)
	case percent && !divided:
		whole = 100
	case divided:
		err = errors.New("both")
	}
	if v /= whole; err != nil || !(v >= 0 && v <= 1) {
		return fmt.Errorf("part %q is not from 0 to 1; use 1/3, 0.33 or 33%%", text)
	}
	*f = fraction(v)
	return nil
}

type guardSimulateCommand struct{ SimulateFlags }

func (guardSimulateCommand) Help() string {
	return `Examples:

    mayfly guard simulate --items 10e9 --rate 100000 --workers 50
    mayfly guard simulate --items 1e8 --rate 1000 --workers 3 --strategy index --lose 1/3 --for 1m

It runs guard's own code in virtual time against a simulated endpoint with Amazon's limits, and compares
the figures with those of mayfly plan guard. It calls no endpoint. Of a large fleet it simulates a share,
and computes the rest from that: docs/guard-sizing.md.
Exit code 1: an item was removed early or never.`
}

// Run simulates.
func (c guardSimulateCommand) Run(ctx context.Context, s streams) error {
	if parts.Simulate == nil {
		return &missingPart{"mayfly guard simulate"}
	}
	return parts.Simulate(ctx, c.SimulateFlags, s.terminal())
}

// ReadPrices reads the price table of a flag.
func ReadPrices(f SimulateFlags) (*planner.Prices, error) { return f.Prices.read() }
