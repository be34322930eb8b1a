package program

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"syscall"
	"time"

	"github.com/mayflydb/mayfly/internal/clock"
	"github.com/mayflydb/mayfly/internal/option"
	"github.com/mayflydb/mayfly/planner"
)

type planRecordCommand struct {
	Metrics string `help:"Address of /metrics: http://127.0.0.1:8000/metrics." required:"" placeholder:"URL"`
	Table   string `help:"Table to record. Default: all tables of a mayfly together." placeholder:"NAME"`
	For     span   `help:"How long to watch." default:"1h" placeholder:"DURATION"`
	Every   span   `help:"Time of one row, in whole minutes." default:"1m" placeholder:"DURATION"`
}

func (planRecordCommand) Help() string {
	return `Examples:

    mayfly plan record --metrics http://127.0.0.1:8000/metrics --table orders --for 1d > orders.csv
    mayfly plan --shape orders.csv --item-size 2KB

mayfly counts the units consumed on each of its tables. guard counts the units that it consumes itself (--metrics-port).
The units of global indexes are left out: the planner computes them from the table. A row is printed when its time has
passed, so an interrupted recording is a valid shape. A row in which the server restarted has no traffic. Rows in which
it did not answer share the traffic counted when it answers again.`
}

const (
	recordMax     = 366 * 24 * time.Hour
	scrapeTimeout = 10 * time.Second
)

func (c planRecordCommand) check() error {
	every, whole := time.Duration(c.Every), time.Duration(c.For)
	u, err := url.Parse(c.Metrics)
	switch {
	case err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https"):
		return misused(fmt.Errorf("--metrics: invalid address %q", option.Address(c.Metrics)), "for example --metrics http://127.0.0.1:8000/metrics")
	case every < time.Minute || every%time.Minute != 0 || every > 24*time.Hour:
		return misused(fmt.Errorf("--every: %v is not whole minutes from 1m to 1d", c.Every), "for example --every 5m")
	case whole < every || whole > recordMax:
		return misused(fmt.Errorf("--for: %v is not between %v (--every) and 366d", c.For, c.Every), "for example --for 1d")
	}
	return nil
}

// Run records the load until ctx is done.
func (c planRecordCommand) Run(ctx context.Context, s streams) error {
	if err := c.check(); err != nil {
		return err
	}
	return c.record(ctx, s, time.Now, func(until time.Time) { clock.Pause(time.Until(until), ctx.Done()) })
}

// record prints a row at the end of each interval until ctx is done. wait returns at an instant, or
// when ctx is done.
func (c planRecordCommand) record(ctx context.Context, s streams, now func() time.Time, wait func(until time.Time)) error {
	before, err := c.scrape(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintln(s.out, "minute,ConsumedWriteCapacityUnits,ConsumedReadCapacityUnits")
	begun, every := now(), time.Duration(c.Every)
	last, row := begun, time.Duration(0)
	for at := every; at <= time.Duration(c.For); at += every {
		wait(begun.Add(at))
		after, err := c.scrape(ctx)
		switch {
		case ctx.Err() != nil:
			return nil // the printed rows stay valid
		case err != nil: // the server may be back at the next attempt
			fmt.Fprintln(s.err, err)
			continue
		}
		instant := now()
		p, ok := after.Since(before, instant.Sub(last).Seconds())
		if !ok {
			fmt.Fprintln(s.err, "the counters were reset: the server was restarted or the table recreated")
		}
		before, last = after, instant
		// sum of the interval, as in CloudWatch
		sum := func(perS float64) string { return strconv.FormatFloat(perS*every.Seconds(), 'f', 3, 64) }
		// missed intervals share the load evenly
		for ; row < at; row += every {
			if _, err := fmt.Fprintf(s.out, "%d,%s,%s\n", row/time.Minute, sum(p.Writes), sum(p.Reads)); err != nil {
				return err
			}
		}
	}
	return nil
}

// scrape reads the metrics once.
func (c planRecordCommand) scrape(ctx context.Context) (planner.Scrape, error) {
	ctx, cancel := context.WithTimeout(ctx, scrapeTimeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, c.Metrics, nil)
	if err != nil {
		return nil, err
	}
	answer, err := http.DefaultClient.Do(r)
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return nil, advise(fmt.Errorf("nothing listens at %s", option.Address(c.Metrics)), "mayfly serve has /metrics on its own port, mayfly guard on --metrics-port")
	case err != nil:
		return nil, fmt.Errorf("--metrics: %w", reasonOf(err))
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		_, _ = io.Copy(io.Discard, io.LimitReader(answer.Body, 64<<10))
		return nil, advise(fmt.Errorf("%s answered %s", option.Address(c.Metrics), answer.Status), "the path must be /metrics")
	}
	scraped, err := planner.ReadScrape(answer.Body, c.Table)
	if err != nil {
		return scraped, fmt.Errorf("%s: %w", option.Address(c.Metrics), err)
	}
	return scraped, nil
}
