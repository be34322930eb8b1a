package guard

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// noStream returns the reason that excludes the stream strategy.
func (g *Guard) noStream() string {
	switch {
	case g.streams == nil:
		return "no client for streams"
	case g.table.stream == "":
		return "no stream"
	}
	return "the stream has the view type " + string(g.table.view)
}

// choose returns the strategy of Options, or for Auto the first that the table offers.
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

// hasWindowIndex reports whether the table has an index that the index strategy can ask.
func (g *Guard) hasWindowIndex() bool {
	_, why := g.table.expirationIndex(g.o)
	return why == nil
}

// offersIndex reports whether Auto can use an index: a named one, one with a known partition key,
// or one whose layout Init has stored.
func (g *Guard) offersIndex(ctx context.Context) bool {
	x, why := g.table.expirationIndex(g.o)
	if why != nil {
		return false
	}
	if g.o.IndexName != "" || x.known() {
		return true
	}
	rows, err := g.shares(Index).Rows(ctx)
	if _, noted := readLayout(rows[layoutName].Checkpoint); err == nil && noted {
		return true
	}
	g.log.Warn("the table has an index that may hold deadlines; name it with --index to use it", "table", g.o.Table, "index", x.name)
	return false
}
