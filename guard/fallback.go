package guard

import (
	"context"

	"github.com/mayflydb/mayfly/guard/internal/scan"
)

// fallBack scans the table while the strategy cannot follow the stream, until ctx is done. If both
// find a deadline, it is armed once, and its removal is conditional as always.
func (g *Guard) fallBack(ctx context.Context) error {
	for {
		select {
		case <-g.troubles.changed:
		case <-ctx.Done():
			return nil
		}
		if !g.troubled(NoStream) {
			continue
		}
		e := g.env()
		setDefault(&e.MaxRCU, scanUnits)
		g.log.Warn("guard scans the table until its stream can be followed", "table", g.o.Table, "units", e.MaxRCU)
		scanning, stop := context.WithCancel(ctx)
		ended := make(chan error, 1)
		go func() { ended <- scan.New(e, g.o.Period).Run(scanning) }()
		for err := error(nil); g.troubled(NoStream); {
			select {
			case <-g.troubles.changed:
				continue
			case err = <-ended:
			case <-ctx.Done():
				err = <-ended
			}
			stop()
			return err
		}
		stop()
		if err := <-ended; err != nil {
			return err
		}
	}
}
