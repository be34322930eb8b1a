package program

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sort"
	"sync"
	"time"

	"github.com/mayflydb/mayfly"
	"github.com/mayflydb/mayfly/internal/when"
	"github.com/mayflydb/mayfly/lifecycle"
)

type lifecycleSimulateCommand struct {
	File       string   `arg:"" help:"YAML or JSON file of a definition."`
	Attributes []string `arg:"" optional:"" help:"Attributes of the entities: name=value; the value is a string or JSON."`
	Entities   int      `help:"Number of entities, 1 to 100000. A transition takes some 0.5 ms: 1000 entities take seconds, 100000 minutes." default:"100"`
	Spread     span     `help:"They begin one after another over this time." default:"1d"`
	For        span     `help:"How long to simulate." default:"365d"`
	Start      string   `help:"Start of the simulation: 2030-01-01T12:00:00 (UTC), or now." default:"now" placeholder:"TIME"`
	Trace      bool     `help:"Print each change as it happens, instead of a table."`
	JSON       bool     `name:"json" help:"Print JSON lines."`
}

func (lifecycleSimulateCommand) Help() string {
	return `Examples:

    mayfly lifecycle simulate trial.yaml email=ada@example.com
    mayfly lifecycle simulate trial.yaml email=ada@example.com --entities 1 --trace --start 2030-03-01

The entities live in a database in memory, whose clock jumps from transition to transition. No handler is called and no
entity is moved by hand.`
}

const (
	entitiesMost = 100_000
	spreadSteps  = 1000 // number of instants at which entities are created
	yearSteps    = 200  // number of redraws of the bar
)

// simulation runs entities in a database of its own.
type simulation struct {
	lifecycleSimulateCommand
	db    *mayfly.DB
	l     *lifecycle.Lifecycles
	begin time.Time
	mu    struct {
		sync.Mutex
		ways  map[wayKey]*wayCount
		trace []lifecycle.Change
		calls map[string]int
	}
}

type wayKey struct{ from, to string }

type wayCount struct {
	n           int
	first, last time.Time
}

// Run simulates a lifecycle.
func (c lifecycleSimulateCommand) Run(ctx context.Context, s streams) error {
	if c.Entities < 1 || c.Entities > entitiesMost {
		return misused(fmt.Errorf("--entities %d is not between 1 and %d", c.Entities, entitiesMost), "for example --entities 100")
	}
	if c.Spread > c.For {
		return misused(fmt.Errorf("--spread %s is longer than --for %s", c.Spread, c.For), "choose a --spread of at most --for")
	}
	d, err := readDefinition(c.File, nil)
	if err != nil {
		return err
	}
	attributes, err := readAttributes(c.Attributes)
	if err != nil {
		return err
	}
	m, err := when.Parse(c.Start, time.UTC, time.Now)
	if err != nil {
		return misused(fmt.Errorf("--start: %w", err), "for example --start 2030-01-01T12:00:00")
	}
	sim := &simulation{lifecycleSimulateCommand: c, begin: m.At}
	sim.mu.ways, sim.mu.calls = map[wayKey]*wayCount{}, map[string]int{}
	moreProcessors()
	sim.db, err = mayfly.Open("", mayfly.Options{Start: m.At, Frozen: true})
	if err != nil {
		return err
	}
	err = sim.live(ctx, s, d, attributes)
	if closing := sim.db.Close(); err == nil {
		err = closing
	}
	if err != nil {
		return err
	}
	return sim.print(s, d)
}

// live runs the entities to the end of the simulation.
func (sim *simulation) live(ctx context.Context, s streams, d *lifecycle.Definition, attributes lifecycle.Item) error {
	handlers := map[string]lifecycle.Handler{}
	for i := range d.States {
		for _, t := range d.States[i].Next {
			handlers[t.Handler] = func(context.Context, lifecycle.Call) error { return nil }
		}
	}
	handlers[d.OnFailure] = handlers[""]
	delete(handlers, "")
	var err error
	sim.l, err = lifecycle.New(lifecycle.Options{
		DB: sim.db.DynamoDB(), Streams: sim.db.Streams(), Now: sim.db.Clock().Now, Registry: sim.db.Registry(), Alone: true, Handlers: handlers, Unmapped: true, Observe: sim.observe,
	})
	if err != nil {
		return err
	}
	running, cancel := context.WithCancel(ctx)
	ran := make(chan error, 1)
	go func() { ran <- sim.l.Run(running) }()
	defer func() {
		cancel()
		<-ran
	}()
	select {
	case <-sim.l.Ready():
	case err := <-ran:
		ran <- nil
		return err
	}
	if _, err := sim.l.Apply(ctx, *d, lifecycle.ApplyOptions{}); err != nil {
		return err
	}
	return sim.pass(ctx, newBar(s.err), d.Name, attributes)
}

// pass moves the clock and creates entities.
func (sim *simulation) pass(ctx context.Context, b bar, name string, attributes lifecycle.Item) error {
	defer b.clear()
	to := func(at time.Duration) error {
		for {
			moved, err := sim.db.Clock().Set(ctx, sim.begin.Add(at))
			if err != nil {
				return err
			}
			sim.mu.Lock()
			made := 0
			for _, w := range sim.mu.ways {
				made += w.n
			}
			sim.mu.Unlock()
			b.draw(int64(moved.To.Sub(sim.begin)), int64(sim.For), fmt.Sprintf("%s: %d transitions", when.UTC(moved.To), made))
			if !moved.Unfinished {
				return nil
			}
		}
	}
	step := max(sim.Entities/spreadSteps, 1)
	for i := range sim.Entities {
		if i%step == 0 {
			if err := to(time.Duration(float64(sim.Spread) * float64(i) / float64(sim.Entities))); err != nil {
				return err
			}
		}
		if _, err := sim.l.Create(ctx, name, fmt.Sprintf("e%06d", i+1), attributes); err != nil {
			return err
		}
	}
	at := sim.db.Clock().Now().Sub(sim.begin)
	for left := time.Duration(sim.For) - at; at < time.Duration(sim.For); {
		at = min(at+left/yearSteps+time.Millisecond, time.Duration(sim.For))
		if err := to(at); err != nil {
			return err
		}
	}
	return nil
}

// observe records a change: in the trace, if there is one, and a transition by time in the counts.
func (sim *simulation) observe(c lifecycle.Change) {
	sim.mu.Lock()
	defer sim.mu.Unlock()
	if sim.Trace {
		sim.mu.trace = append(sim.mu.trace, c)
	}
	if c.Kind != lifecycle.KindTransition {
		return
	}
	k := wayKey{c.From, c.To}
	w := sim.mu.ways[k]
	if w == nil {
		w = &wayCount{first: c.Due}
		sim.mu.ways[k] = w
	}
	w.n++
	if c.Due.Before(w.first) {
		w.first = c.Due
	}
	if c.Due.After(w.last) {
		w.last = c.Due
	}
	if c.Handler != "" {
		sim.mu.calls[c.Handler]++
	}
}

// print prints the counts.
func (sim *simulation) print(s streams, d *lifecycle.Definition) error {
	if sim.Trace {
		return sim.printTrace(s)
	}
	place := map[string]int{}
	for i := range d.States {
		place[d.States[i].Name] = i
	}
	ways := slices.Collect(maps.Keys(sim.mu.ways))
	sort.Slice(ways, func(i, j int) bool {
		a, b := ways[i], ways[j]
		return cmp.Or(place[a.from]-place[b.from], place[a.to]-place[b.to]) < 0
	})
	heading := []string{"From", "To", "Transitions", "First (UTC)", "Last (UTC)"}
	shown := listing{table: table{heading: heading}, json: sim.JSON}
	for _, k := range ways {
		w := sim.mu.ways[k]
		line := map[string]any{"from": k.from, "to": k.to, "transitions": w.n, "first": wireTimeOf(w.first), "last": wireTimeOf(w.last)}
		if err := shown.show(s, line, k.from, k.to, fmt.Sprint(w.n), when.UTC(w.first), when.UTC(w.last)); err != nil {
			return err
		}
	}
	if err := shown.end(s); err != nil || sim.JSON {
		return err
	}
	for _, h := range slices.Sorted(maps.Keys(sim.mu.calls)) {
		fmt.Fprintf(s.out, "%s would have been called %d times\n", h, sim.mu.calls[h])
	}
	return nil
}

func (sim *simulation) printTrace(s streams) error {
	for _, c := range sim.mu.trace {
		if sim.JSON {
			if err := writeJSON(s.out, eventJSON(c.Entity, c.Event)); err != nil {
				return err
			}
			continue
		}
		at := c.At
		if !c.Due.IsZero() {
			at = c.Due
		}
		text := c.To
		if c.From != "" && c.From != c.To {
			text = c.From + " → " + c.To
		}
		if c.Handler != "" {
			text += ", calls " + c.Handler
		}
		fmt.Fprintf(s.out, "%s  %s  %s  %s\n", when.UTC(at), c.Entity, c.Kind, text)
	}
	return nil
}
