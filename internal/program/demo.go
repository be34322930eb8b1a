package program

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"time"

	"golang.org/x/term"

	"github.com/mayflydb/mayfly"
	"github.com/mayflydb/mayfly/internal/demo"
)

type demoCommand struct {
	Items  int           `help:"Number of readings to write, 1 to 1000000." default:"10000"`
	Spread time.Duration `help:"Time over which their deadlines are spread, 1s to 1h." default:"10s"`
	Unit   demo.Unit     `name:"deadline-unit" help:"Unit of the deadlines: seconds or milliseconds. With seconds, as in real TTL values, all items of a second are due at one instant." enum:"seconds,milliseconds" default:"seconds"`
	Port   int           `help:"Port of the endpoint. If it is 0 or in use, a free one is chosen." default:"8000"`
	Exit   bool          `help:"End when all items have expired, instead of leaving the endpoint running. Without a terminal the demo always ends."`
	JSON   bool          `name:"json" help:"Print JSON lines."`

	logFlags
}

func (demoCommand) Help() string {
	return `Example:

    mayfly demo
    mayfly demo --items 100000 --spread 30s --exit
    mayfly demo --deadline-unit milliseconds

It keeps a database in a temporary directory, writes real weather readings as items of devices with deadlines, and
watches every item: none may be removed early, be visible after its deadline, be lost or be recorded twice. If that
happens to an item, the exit code is 1.`
}

// Run shows the experiment. On a terminal, the endpoint then keeps running.
func (c demoCommand) Run(ctx context.Context, s streams) error {
	moreProcessors()
	raiseHeap(64<<20, false) // the library's default cache
	dir, err := os.MkdirTemp("", "mayfly-demo-")
	if err != nil {
		return fmt.Errorf("make a directory for the demo: %w", err)
	}
	defer os.RemoveAll(dir)
	db, err := mayfly.Open(dir, mayfly.Options{Logger: c.logger(s.err)})
	if err != nil {
		return adviseOpen(err, dir)
	}
	listener, err := listenOrElse(c.Port)
	if err != nil {
		return errors.Join(err, closeDB(db))
	}
	ctx, cancel := context.WithCancel(ctx)
	served := make(chan error, 1)
	go func() { served <- serveHTTP(ctx, db, listener) }()
	err = c.show(ctx, s, db, stage{dir: dir, endpoint: "http://" + listener.Addr().String()})
	cancel()
	return errors.Join(err, <-served, closeDB(db))
}

// stage is the data of a run that displays show.
type stage struct {
	dir, endpoint string
	items         int
	spread        time.Duration
	unit          demo.Unit
}

// display shows a run: its start, its progress several times a second, and its end.
type display interface {
	begin(stage)
	progress(demo.Report, time.Duration)
	end(demo.Report, time.Duration)
}

// show runs the experiment. On a terminal, it then waits for ctx.
func (c demoCommand) show(ctx context.Context, s streams, db *mayfly.DB, at stage) error {
	experiment, err := demo.New(demo.Options{
		DB: db.DynamoDB(), Streams: db.Streams(), Now: db.Clock().Now, Items: c.Items, Spread: c.Spread, Unit: c.Unit,
	})
	if err != nil {
		return misusedOptions(err, nil, "mayfly demo --help")
	}
	at.items, at.spread, at.unit = c.Items, c.Spread, c.Unit
	screen, interactive := c.display(s)
	screen.begin(at)
	report, took, err := watch(ctx, experiment, screen)
	if err != nil {
		if ctx.Err() != nil {
			return nil // the user interrupted it
		}
		return fmt.Errorf("demo: %w", err)
	}
	screen.end(report, took)
	if broken := report.Broken(); len(broken) > 0 {
		return fmt.Errorf("a law was broken: %s", strings.Join(broken, "; "))
	}
	if interactive && !c.Exit {
		printTryIt(s.out, at.endpoint)
		<-ctx.Done()
	}
	return nil
}

// display returns the display of the run. interactive reports whether it is on a terminal.
func (c demoCommand) display(s streams) (d display, interactive bool) {
	file, ok := s.out.(*os.File)
	interactive = ok && term.IsTerminal(int(file.Fd())) && os.Getenv("TERM") != "dumb"
	switch {
	case c.JSON:
		return &jsonLines{out: s.out}, interactive
	case interactive && roomFor(file):
		return newScreen(file), true
	}
	return &plainLines{out: s.out}, interactive
}

// roomFor reports whether the terminal is large enough for the screen.
func roomFor(terminal *os.File) bool {
	width, height, err := term.GetSize(int(terminal.Fd()))
	return err == nil && width >= screenWidth && height >= screenHeight
}

// watch runs the experiment and shows its progress.
func watch(ctx context.Context, experiment *demo.Demo, screen display) (demo.Report, time.Duration, error) {
	type result struct {
		report demo.Report
		err    error
	}
	start := time.Now()
	done := make(chan result, 1)
	go func() {
		report, err := experiment.Run(ctx)
		done <- result{report, err}
	}()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case r := <-done:
			return r.report, time.Since(start), r.err
		case <-tick.C:
			screen.progress(experiment.Snapshot(), time.Since(start))
		}
	}
}

// listenOrElse opens the port, or a free one if the port is in use.
func listenOrElse(port int) (net.Listener, error) {
	l, err := listen("127.0.0.1", port)
	if err != nil && port >= 0 && port <= 65535 {
		return listen("127.0.0.1", 0)
	}
	return l, err
}
