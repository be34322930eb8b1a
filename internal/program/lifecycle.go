package program

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly/internal/when"
	"github.com/mayflydb/mayfly/lifecycle"
)

// lifecycleCommand has the commands for entities whose states change at set times.
type lifecycleCommand struct {
	Validate   lifecycleValidateCommand   `cmd:"" help:"Check a definition and list its mistakes."`
	Draw       lifecycleDrawCommand       `cmd:"" help:"Draw a definition, as text or as SVG."`
	Simulate   lifecycleSimulateCommand   `cmd:"" help:"Simulate entities for a year, in seconds."`
	Apply      lifecycleApplyCommand      `cmd:"" help:"Store a definition at an endpoint, or replace it there."`
	List       lifecycleListCommand       `cmd:"" help:"List the lifecycles of an endpoint, with the number of entities in each state."`
	Show       lifecycleShowCommand       `cmd:"" help:"Show an entity's history and its next transition."`
	Create     lifecycleCreateCommand     `cmd:"" help:"Begin an entity's lifecycle."`
	Move       lifecycleMoveCommand       `cmd:"" help:"Move an entity to another state now."`
	Set        lifecycleSetCommand        `cmd:"" help:"Change attributes of an entity, and the times that depend on them."`
	Pause      lifecyclePauseCommand      `cmd:"" help:"Pause an entity."`
	Resume     lifecycleResumeCommand     `cmd:"" help:"Resume a paused entity."`
	Reschedule lifecycleRescheduleCommand `cmd:"" help:"Move an entity's next transition to another time."`
	Cancel     lifecycleCancelCommand     `cmd:"" help:"End an entity's lifecycle in its present state."`
	Delete     lifecycleDeleteCommand     `cmd:"" help:"Delete an entity or a whole lifecycle. No handler is called."`
	Run        lifecycleRunCommand        `cmd:"" help:"Run the transitions for another DynamoDB endpoint. mayfly serve runs its own."`
}

func (lifecycleCommand) Help() string {
	return `Examples:

    mayfly lifecycle validate trial.yaml
    mayfly lifecycle draw trial.yaml --svg trial.svg
    mayfly lifecycle simulate trial.yaml --entities 1000
    mayfly lifecycle apply trial.yaml
    mayfly lifecycle create trial ada email=ada@example.com
    mayfly lifecycle show trial ada

A lifecycle defines the states of an entity and when they change: docs/lifecycle.md.`
}

// readDefinition reads a definition from a file. The error has a line for each fault, with its
// place.
func readDefinition(path string, known func(string) error) (*lifecycle.Definition, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, misused(fmt.Errorf("lifecycle: %w", err), "give the path of an existing file")
	}
	defer file.Close()
	d, err := lifecycle.Read(file, known)
	faults := lifecycle.FaultsOf(err)
	if faults == nil {
		return d, err
	}
	var lines []string
	for _, f := range faults {
		line := fmt.Sprintf("%s:%d:%d: ", path, f.Line, f.Column)
		if f.Line == 0 {
			line = path + ": "
		}
		if f.Path != "" {
			line += f.Path + ": "
		}
		lines = append(lines, line+f.Text)
	}
	return nil, misused(errors.New("lifecycle: "+strings.Join(lines, "\n")), "docs/lifecycle.md explains each setting")
}

// lifecycles returns the lifecycles of an endpoint, for reading and changing.
func (f endpointFlags) lifecycles(ctx context.Context) (*endpoint, *lifecycle.Lifecycles, error) {
	e, err := f.connect(ctx, serviceDynamoDB)
	if err != nil {
		return nil, nil, err
	}
	l, err := lifecycle.New(lifecycle.Options{DB: e.DynamoDB(), Now: func() time.Time { return e.now(ctx) }, Unmapped: true})
	return e, l, err
}

// adviseLifecycle returns an error of package lifecycle with the next step. names are the
// lifecycle's and the entity's, as far as the command line has them.
func (e *endpoint) adviseLifecycle(err error, names ...string) error {
	lc, entity := "LIFECYCLE", "ENTITY"
	if len(names) > 0 {
		lc = names[0]
	}
	if len(names) > 1 {
		entity = cmp.Or(names[1], entity)
	}
	var inUse *lifecycle.InUse
	var underWay *lifecycle.UnderWay
	switch {
	case errors.Is(err, lifecycle.ErrNoLifecycle):
		return advise(err, "mayfly lifecycle list shows the lifecycles; mayfly lifecycle apply FILE stores one")
	case errors.Is(err, lifecycle.ErrNoEntity):
		return advise(err, "mayfly lifecycle show %[1]s lists the entities; mayfly lifecycle create %[1]s %[2]s begins one", lc, entity)
	case errors.Is(err, lifecycle.ErrNotAllowed):
		return advise(err, "mayfly lifecycle show %s %s shows its state; the definition must have a transition from it", lc, entity)
	case errors.Is(err, lifecycle.ErrPaused):
		return advise(err, "mayfly lifecycle resume %s %s", lc, entity)
	case errors.As(err, &inUse):
		return advise(err, "map those states in the file, as in renamed: {old: new}; or keep them in the definition; or move the entities first")
	case errors.As(err, &underWay):
		return advise(err, "add --cancel to cancel them; mayfly lifecycle show %s lists them", lc)
	case errors.Is(err, lifecycle.ErrNothingNext):
		return advise(err, "mayfly lifecycle show %s %s shows what it waits for; mayfly lifecycle move moves it to another state", lc, entity)
	case errors.Is(err, lifecycle.ErrExists):
		return advise(err, "mayfly lifecycle set %s %s changes its attributes", lc, entity)
	case errors.Is(err, lifecycle.ErrEnded):
		return advise(err, "to begin again, delete it with mayfly lifecycle delete %[1]s %[2]s, then mayfly lifecycle create %[1]s %[2]s", lc, entity)
	}
	return e.advise(err)
}

// readAttributes parses name=value pairs. A value is JSON (a number, true, false, null, a list or
// an object) or otherwise a text. "name=" returns nil for the name, which removes the attribute.
func readAttributes(all []string) (lifecycle.Item, error) {
	out := lifecycle.Item{}
	for _, text := range all {
		name, value, ok := strings.Cut(text, "=")
		if !ok || name == "" {
			return nil, misused(fmt.Errorf("invalid attribute %q: use name=value, such as email=ada@example.com", text), `a value is a string or JSON: n=5, paid=true, tags=["a"]`)
		}
		if value == "" {
			out[name] = nil
			continue
		}
		v, err := readValue(value)
		if err != nil {
			return nil, misused(fmt.Errorf("attribute %s: %w", name, err), `a value is a string or JSON: n=5, paid=true, tags=["a"]`)
		}
		out[name] = v
	}
	return out, nil
}

func readValue(value string) (types.AttributeValue, error) {
	decoder := json.NewDecoder(strings.NewReader(value))
	decoder.UseNumber()
	var plain any
	if err := decoder.Decode(&plain); err != nil || decoder.More() {
		plain = value
	}
	return lifecycle.Value(plain)
}

// eventLine returns the line about an event of an entity.
func eventLine(lc, id string, ev lifecycle.Event) string {
	text := fmt.Sprintf("%s %s: %s, %s", lc, id, ev.Kind, ev.To)
	if ev.To == "" || ev.Kind == lifecycle.KindDeleted {
		text = fmt.Sprintf("%s %s: %s", lc, id, ev.Kind)
	}
	if !ev.Next.IsZero() {
		text += fmt.Sprintf("; %s %s", ev.NextTo, when.UTC(ev.Next))
	}
	return text
}

// entityCommand changes an entity and prints the event.
type entityCommand struct {
	Lifecycle string `arg:"" help:"Name of the lifecycle."`
	Entity    string `arg:"" help:"Name of the entity."`
	JSON      bool   `name:"json" help:"Print JSON."`
	endpointFlags
}

// change calls do for the entity.
func (c entityCommand) change(ctx context.Context, s streams, do entityChange) error {
	e, l, err := c.lifecycles(ctx)
	if err != nil {
		return err
	}
	ev, err := do(l, ctx, c.Lifecycle, c.Entity)
	if err != nil {
		return e.adviseLifecycle(err, c.Lifecycle, c.Entity)
	}
	if c.JSON {
		return writeJSON(s.out, eventJSON(c.Entity, ev))
	}
	_, err = fmt.Fprintln(s.out, eventLine(c.Lifecycle, c.Entity, ev))
	return err
}

// entityChange changes an entity of a lifecycle, as the methods of Lifecycles do.
type entityChange func(l *lifecycle.Lifecycles, ctx context.Context, name, id string) (lifecycle.Event, error)

type lifecycleCreateCommand struct {
	entityCommand
	Attributes []string `arg:"" optional:"" help:"name=value; the value is a string or JSON."`
}

func (lifecycleCreateCommand) Help() string {
	return `Example:

    mayfly lifecycle create trial ada email=ada@example.com seats=5

A value that is valid JSON, such as 5, true or ["a"], is taken as JSON; anything else is a string.`
}

// Run creates an entity.
func (c lifecycleCreateCommand) Run(ctx context.Context, s streams) error {
	attributes, err := readAttributes(c.Attributes)
	if err != nil {
		return err
	}
	return c.change(ctx, s, func(l *lifecycle.Lifecycles, ctx context.Context, name, id string) (lifecycle.Event, error) {
		return l.Create(ctx, name, id, attributes)
	})
}

type lifecycleMoveCommand struct {
	entityCommand
	To string `arg:"" help:"Name of the state."`
}

func (lifecycleMoveCommand) Help() string {
	return `Example:

    mayfly lifecycle move trial ada active

The entity's state must have a transition to the new one, with or without a time, and its condition must hold.`
}

// Run moves an entity.
func (c lifecycleMoveCommand) Run(ctx context.Context, s streams) error {
	return c.change(ctx, s, func(l *lifecycle.Lifecycles, ctx context.Context, name, id string) (lifecycle.Event, error) {
		return l.Move(ctx, name, id, c.To)
	})
}

type lifecycleSetCommand struct {
	entityCommand
	Attributes []string `arg:"" help:"name=value; the value is a string or JSON. name= removes the attribute."`
}

func (lifecycleSetCommand) Help() string {
	return `Example:

    mayfly lifecycle set trial ada paid=true note=`
}

// Run changes attributes.
func (c lifecycleSetCommand) Run(ctx context.Context, s streams) error {
	attributes, err := readAttributes(c.Attributes)
	if err != nil {
		return err
	}
	return c.change(ctx, s, func(l *lifecycle.Lifecycles, ctx context.Context, name, id string) (lifecycle.Event, error) {
		return l.Set(ctx, name, id, attributes)
	})
}

type lifecyclePauseCommand struct{ entityCommand }

func (lifecyclePauseCommand) Help() string {
	return `Example:

    mayfly lifecycle pause trial ada`
}

// Run pauses an entity.
func (c lifecyclePauseCommand) Run(ctx context.Context, s streams) error {
	return c.change(ctx, s, (*lifecycle.Lifecycles).Pause)
}

type lifecycleResumeCommand struct{ entityCommand }

func (lifecycleResumeCommand) Help() string {
	return `Example:

    mayfly lifecycle resume trial ada`
}

// Run resumes an entity.
func (c lifecycleResumeCommand) Run(ctx context.Context, s streams) error {
	return c.change(ctx, s, (*lifecycle.Lifecycles).Resume)
}

type lifecycleRescheduleCommand struct {
	entityCommand
	At string `arg:"" help:"When: 2030-01-01T12:00:00 (UTC), 2030-01-01T12:00:00+01:00, 'in 5m' or now."`
}

func (lifecycleRescheduleCommand) Help() string {
	return `Example:

    mayfly lifecycle reschedule trial ada 'in 5m'`
}

// Run reschedules an entity's next transition.
func (c lifecycleRescheduleCommand) Run(ctx context.Context, s streams) error {
	e, err := c.connect(ctx, serviceDynamoDB)
	if err != nil {
		return err
	}
	m, err := when.Parse(c.At, time.UTC, func() time.Time { return e.now(ctx) })
	if err != nil {
		return misused(err, "")
	}
	return c.change(ctx, s, func(l *lifecycle.Lifecycles, ctx context.Context, name, id string) (lifecycle.Event, error) {
		return l.Reschedule(ctx, name, id, m.At)
	})
}

type lifecycleCancelCommand struct{ entityCommand }

func (lifecycleCancelCommand) Help() string {
	return `Example:

    mayfly lifecycle cancel trial ada`
}

// Run cancels an entity's lifecycle.
func (c lifecycleCancelCommand) Run(ctx context.Context, s streams) error {
	return c.change(ctx, s, (*lifecycle.Lifecycles).Cancel)
}
