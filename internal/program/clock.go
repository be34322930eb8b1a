package program

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/mayflydb/mayfly/internal/when"
)

type clockCommand struct {
	Show    clockShow    `cmd:"" default:"withargs" help:"Show the clock of a server. \"mayfly clock\" alone means this."`
	Freeze  clockFreeze  `cmd:"" help:"Stop the clock."`
	Set     clockSet     `cmd:"" help:"Move the clock forward to an instant."`
	Advance clockAdvance `cmd:"" help:"Move the clock forward by a duration."`
	Rate    clockRate    `cmd:"" help:"Let the clock run at a multiple of real time."`
}

func (clockCommand) Help() string {
	return `Examples:

    mayfly clock
    mayfly clock freeze
    mayfly clock advance 1h30m
    mayfly clock set 2030-01-01
    mayfly clock rate 60

set and advance return when everything that was due on the way has happened: expired items are removed, and schedules,
triggers and reminders have run. docs/clock.md shows tests that use it.`
}

// clockFlags are the flags of all clock commands.
type clockFlags struct {
	endpointFlags
	JSON bool `help:"Print the server's answer as JSON."`
}

type clockShow struct{ clockFlags }

func (clockShow) Help() string {
	return `Examples:

    mayfly clock show
    mayfly clock show --json`
}

func (c clockShow) Run(ctx context.Context, s streams) error {
	return c.ask(ctx, s, http.MethodGet, "", nil)
}

type clockFreeze struct{ clockFlags }

func (clockFreeze) Help() string {
	return `Example:

    mayfly clock freeze`
}

func (c clockFreeze) Run(ctx context.Context, s streams) error {
	return c.ask(ctx, s, http.MethodPost, "/freeze", struct{}{})
}

// clockLimit is --limit.
type clockLimit struct {
	Limit time.Duration `help:"Longest real time to wait until everything due has happened; up to 10m." default:"10s"`
}

type clockSet struct {
	To string `arg:"" help:"The instant: 2030-01-01, 2030-01-01T12:00:00 (UTC), RFC 3339, or \"in 5m\"."`
	clockFlags
	clockLimit
}

func (clockSet) Help() string {
	return `Examples:

    mayfly clock set 2030-01-01T12:00:00Z
    mayfly clock set 'in 2d' --limit 1m`
}

func (c clockSet) Run(ctx context.Context, s streams) error {
	if _, err := when.Instant(c.To, time.UTC, time.Now); err != nil {
		return misused(err, "")
	}
	return c.ask(ctx, s, http.MethodPost, "/set", map[string]string{"to": c.To, "limit": c.Limit.String()})
}

type clockAdvance struct {
	By string `arg:"" help:"The duration: 90s, 1h30m, 2d, 2w."`
	clockFlags
	clockLimit
}

func (clockAdvance) Help() string {
	return `Example:

    mayfly clock advance 30d`
}

func (c clockAdvance) Run(ctx context.Context, s streams) error {
	if _, err := when.Duration(c.By); err != nil {
		return misused(err, "")
	}
	return c.ask(ctx, s, http.MethodPost, "/advance", map[string]string{"by": c.By, "limit": c.Limit.String()})
}

type clockRate struct {
	Rate float64 `arg:"" help:"Seconds of the clock per real second: 0 to 1e9. 1 is normal speed, 60 an hour a minute, 0 freezes."`
	clockFlags
}

func (clockRate) Help() string {
	return `Example:

    mayfly clock rate 60`
}

func (c clockRate) Run(ctx context.Context, s streams) error {
	return c.ask(ctx, s, http.MethodPost, "/rate", map[string]float64{"rate": c.Rate})
}

// clockAnswer is the server's answer to a move, or its error.
type clockAnswer struct {
	Now        string   `json:"now"`
	Frozen     bool     `json:"frozen"`
	Rate       float64  `json:"rate"`
	OffsetMS   int64    `json:"offset_ms"`
	Standing   bool     `json:"standing"`
	Control    bool     `json:"control"`
	From       string   `json:"from"`
	Expired    int64    `json:"expired"`
	Unfinished bool     `json:"unfinished"`
	Busy       []string `json:"busy"`
	Error      string   `json:"error"`
}

// ask sends a request to the clock of the server, and prints the answer.
func (c clockFlags) ask(ctx context.Context, s streams, method, move string, body any) error {
	e, err := c.connectServer(ctx)
	if err != nil {
		return err
	}
	text, answer, err := e.moveClock(ctx, method, "/_mayfly/clock"+move, body)
	if err != nil {
		return err
	}
	if c.JSON {
		_, err = s.out.Write(text)
	} else {
		_, err = io.WriteString(s.out, answer.sentence(move != ""))
	}
	if err == nil && answer.Unfinished {
		err = advise(errors.New("the limit passed before everything due had happened"), "mayfly clock advance 0s --limit 1m, which waits for the rest")
	}
	return err
}

// connectServer returns an endpoint that may be a server with a clock to move.
func (f endpointFlags) connectServer(ctx context.Context) (*endpoint, error) {
	if f.url(dynamodb.ServiceID) == endpointAWS {
		return nil, misused(errors.New("the clock of Amazon's service cannot be moved"), "set --endpoint to a server that mayfly serve has started")
	}
	return f.connect(ctx, dynamodb.ServiceID)
}

// moveClock sends a request to a path below /_mayfly and returns the answer, as text too.
func (e *endpoint) moveClock(ctx context.Context, method, path string, body any) (text []byte, answer clockAnswer, err error) {
	var request []byte
	if body != nil {
		if request, err = json.Marshal(body); err != nil {
			return nil, answer, err
		}
	}
	response, err := e.Ask(ctx, method, path, request, time.Now())
	if err != nil {
		return nil, answer, e.advise(err)
	}
	defer response.Body.Close()
	if text, err = io.ReadAll(http.MaxBytesReader(nil, response.Body, 1<<20)); err != nil {
		return nil, answer, e.advise(err)
	}
	switch err := json.Unmarshal(bytes.TrimSpace(text), &answer); {
	case response.StatusCode == http.StatusOK && err == nil && answer.Now != "":
		return text, answer, nil
	case response.StatusCode == http.StatusForbidden && answer.Error == "": // the API's error for a key
		return nil, answer, advise(fmt.Errorf("%s refuses the key for its clock", e.name()), "use a key that allows mayfly:ReadClock and mayfly:MoveClock: docs/security.md")
	case answer.Error == "":
		return nil, answer, advise(fmt.Errorf("%s has no clock to show or move: it answered %s", e.name(), response.Status), "set --endpoint to a server that mayfly serve has started")
	case response.StatusCode == http.StatusBadRequest || response.StatusCode == http.StatusConflict:
		return nil, answer, misused(errors.New(answer.Error), "")
	}
	return nil, answer, errors.New(answer.Error)
}

// sentence returns the answer for people.
func (a clockAnswer) sentence(moved bool) string {
	text := a.Now
	switch {
	case a.Frozen:
		text += ", frozen"
	case a.Rate != 1:
		text += fmt.Sprintf(", %g times as fast as real time", a.Rate)
	}
	if a.Standing {
		text += ", waiting for the machine's clock, which is behind"
	}
	if offset := time.Duration(a.OffsetMS) * time.Millisecond; offset.Abs() >= time.Second {
		text += fmt.Sprintf(", %s %s the machine's clock", span(offset.Abs()), map[bool]string{true: "ahead of", false: "behind"}[offset > 0])
	}
	if moved && a.From != a.Now {
		text += fmt.Sprintf("; moved from %s, %s expired", a.From, counted(int(a.Expired), "item"))
	}
	if !moved && !a.Control {
		text += "; it cannot be moved over HTTP (--clock-control)"
	}
	return text + "\n"
}
