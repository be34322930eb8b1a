package program

import (
	"context"
	"errors"
	"time"

	"github.com/mayflydb/mayfly/planner"
)

type planGuardCommand struct {
	Config configFlag `help:"YAML or JSON file that sets any of these flags by name. The command line and the environment override it." placeholder:"FILE"`

	Items       float64  `help:"Items that have a deadline." placeholder:"N"`
	Expirations float64  `help:"Expirations a second at the peak." placeholder:"N"`
	ItemSize    byteSize `help:"Size of an item with its attribute names: 150, 2KB." default:"1KB" placeholder:"SIZE"`
	KeySize     byteSize `help:"Size of its key. Default: 64, or the item's size if smaller." placeholder:"SIZE"`
	Renewals    float64  `help:"Number of times an item's deadline is moved before it expires." placeholder:"N"`
	Strategy    string   `help:"Strategy of guard: stream, index, schedule or scan. Default: all of them." placeholder:"NAME"`
	Workers     int      `help:"Number of workers. Default: as many as --late takes, and enough if one has died." placeholder:"N"`
	Late        span     `help:"Lateness that 99 % of the removals should have if deadlines are whole seconds." default:"1s" placeholder:"TIME"`
	Lease       span     `help:"Lease of the workers. Default: the shortest that fits, from 6s on." placeholder:"TIME"`
	Period      span     `help:"How often guard queries an index." default:"5s" placeholder:"TIME"`
	Pass        span     `help:"Duration of a pass of the scan strategy. Default: 1h if that fits." placeholder:"TIME"`
	MaxRCU      float64  `name:"max-rcu" help:"Read units a second of the first scan, of all workers together. Default: no limit." placeholder:"N"`
	RoundTrip   span     `help:"Time from a request to the endpoint's answer." default:"10ms" placeholder:"TIME"`

	Prices pricesFlag `help:"Price file, or us-east-1, or us-east-1-2018 (prices until October 2024)." default:"us-east-1" placeholder:"FILE"`
	JSON   bool       `name:"json" help:"Print JSON."`
}

func (planGuardCommand) Help() string {
	return `Examples:

    mayfly plan guard --items 1e8 --expirations 1000
    mayfly plan guard --items 5e6 --expirations 200 --item-size 2KB --strategy stream --late 250ms --json

It only computes and calls no endpoint. docs/guard-sizing.md explains the figures.`
}

// Run prints the sizes.
func (c planGuardCommand) Run(_ context.Context, s streams) error {
	if c.Items == 0 || c.Expirations == 0 {
		return misused(errors.New("--items and --expirations are required"), "for example --items 1e6 --expirations 100")
	}
	prices, err := c.Prices.read()
	if err != nil {
		return err
	}
	plan, err := planner.SizeGuard(planner.GuardLoad{
		Items: c.Items, Expirations: c.Expirations, ItemBytes: int(min(c.ItemSize, 1<<30)), KeyBytes: int(min(c.KeySize, 1<<30)), Renewals: c.Renewals, Strategy: c.Strategy, Workers: c.Workers,
		Late: time.Duration(c.Late), Lease: time.Duration(c.Lease), Period: time.Duration(c.Period), Pass: time.Duration(c.Pass), MaxRCU: c.MaxRCU, RoundTrip: time.Duration(c.RoundTrip),
	}, prices)
	if err != nil {
		return misusedOptions(err, nil, "mayfly plan guard --help")
	}
	if c.JSON {
		return writeIndentedJSON(s.out, plan)
	}
	return plan.WriteText(s.out)
}
