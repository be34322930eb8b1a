package guard

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// strategy finds deadlines and arms them until ctx is done. That is after the last removal has ended, so that what is to be written down of it can be.
type strategy interface {
	// run returns nil once ctx is done, and a *Problem where it cannot go on.
	run(ctx context.Context) error
}

// settled is the Settle of guard's consumers. A strategy is to end only when the last removal has ended, and Settle is called when Handle has returned: so nothing more will come of
// the records that are not done by then, and there is nothing to wait for.
func settled(context.Context, string) {}

// noStream says why the stream strategy is out of the question.
func (g *Guard) noStream() string {
	switch {
	case g.streams == nil:
		return "no client for streams"
	case g.table.stream == "":
		return "no stream"
	}
	return "the stream has the view type " + string(g.table.view)
}

// choose gives the strategy that Options name, or what the table offers: see Auto.
func (g *Guard) choose(ctx context.Context) (Strategy, strategy) {
	name := g.o.Strategy
	if name == Auto {
		switch {
		case g.streams != nil && g.table.stream != "" && g.table.view == types.StreamViewTypeNewAndOldImages:
			name = Stream
		case g.offersIndex(ctx):
			name = Index
		default:
			name = Scan
			g.o.Logger.Info(g.noStream()+": guard scans the whole table again and again; a stream with NEW_AND_OLD_IMAGES, or the index of mayfly guard init, costs less", "table", g.o.Table)
		}
	}
	switch name {
	case Stream:
		return name, newStream(g)
	case Index:
		return name, newIndex(g)
	case Schedule:
		return name, newSchedule(g)
	}
	return name, newScan(g)
}
