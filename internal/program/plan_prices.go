package program

import (
	"cmp"
	"context"

	"github.com/mayflydb/mayfly/planner"
)

type planPricesCommand struct {
	Name string `arg:"" optional:"" help:"us-east-1 (the default), or us-east-1-2018 (prices until October 2024)."`
}

func (planPricesCommand) Help() string {
	return `Example:

    mayfly plan prices > eu-west-1.yaml        # change the figures, the region and the date
    mayfly plan --writes 100 --prices eu-west-1.yaml`
}

// Run prints the table.
func (c planPricesCommand) Run(_ context.Context, s streams) error {
	text, err := planner.Table(cmp.Or(c.Name, planner.USEast1))
	if err != nil {
		return misused(err, "print one with mayfly plan prices, edit it, and pass the file to --prices")
	}
	_, err = s.out.Write(text)
	return err
}
