package main

import (
	"context"
	"errors"
	"regexp"
	"strings"

	"github.com/mayflydb/mayfly/guard"
)

// guardCommand removes expired items from tables of any endpoint.
type guardCommand struct {
	Run    guardRunCommand    `cmd:"" default:"withargs" help:"Remove expired items on time. \"mayfly guard\" alone means this."`
	Init   guardInitCommand   `cmd:"" help:"Create the index for the index strategy and fill it."`
	Status guardStatusCommand `cmd:"" help:"Show workers, leases, overdue items and coming expiries."`
	Policy guardPolicyCommand `cmd:"" help:"Print the IAM policy that a guard command needs."`
	Proxy  guardProxyCommand  `cmd:"" help:"Run a proxy that hides expired items from clients until they are removed."`
}

func (guardCommand) Help() string {
	return `Examples:

    mayfly guard --endpoint aws --table orders
    mayfly guard --endpoint http://127.0.0.1:8000 --table orders --attribute expires_at --strategy scan --max-rcu 200

It removes expired items on time from tables at any endpoint with the DynamoDB API: docs/guard.md.
mayfly guard run --help shows the flags.`
}

// endpointClockFlag sets the clock that decides on deadlines.
type endpointClockFlag struct {
	EndpointClock string `help:"Where to learn the endpoint's time: date is the Date headers of its answers; local is this machine's clock, for endpoints without such headers." enum:"date,local" default:"date"`
}

func (f endpointClockFlag) localClock() bool { return f.EndpointClock == "local" }

// optionFlags maps the guard's and the server's options to flags that have other names.
var optionFlags = map[string]string{"DB": "endpoint", "Credentials": "access-key", "IndexName": "index", "Role": "scheduler-role", "DeadLetters": "scheduler-queue", "Version": "version-attribute", "LocalClock": "endpoint-clock"}

// optionFlag returns the flag that sets an option: --max-wcu for MaxWCU, --access-key for Credentials[2].
func optionFlag(name string) string {
	name, _, _ = strings.Cut(name, "[")
	if flag := optionFlags[name]; flag != "" {
		return "--" + flag
	}
	return "--" + strings.ToLower(capital.ReplaceAllString(name, "$1-$2"))
}

var capital = regexp.MustCompile("([a-z])([A-Z])")

// Exit codes of mayfly guard. They show whether a restart can help.
const (
	exitTable       = 3 // the table, its stream, its index, its TTL attribute
	exitForbidden   = 4 // credentials or permissions
	exitClock       = 5 // the endpoint's clock
	exitUnavailable = 6 // no answer from the endpoint; a later attempt may work
)

var guardExits = map[guard.Code]int{
	guard.AccessDenied: exitForbidden, guard.Credentials: exitForbidden,
	guard.Skew: exitClock, guard.NoDate: exitClock,
	guard.Unavailable: exitUnavailable,
}

// adviseCredentials returns the error with the exit code for missing credentials, if it is one.
func adviseCredentials(err error) error {
	var a *advised
	if errors.Is(err, errNoCredentials) && errors.As(err, &a) {
		return &advised{error: a.error, next: a.next, exit: exitForbidden}
	}
	return err
}

// adviseGuard returns a readable form of package guard's error, with the next step and the exit
// code.
func (e *endpoint) adviseGuard(err error) error {
	var p *guard.Problem
	if !errors.As(err, &p) {
		return e.advise(err)
	}
	if errors.Is(err, context.Canceled) {
		return errors.New("interrupted")
	}
	code, known := guardExits[p.Code]
	if !known {
		code = exitTable
	}
	message := *p
	message.Message = strings.Replace(p.Message, "not found at the endpoint", "not found at "+e.name(), 1)
	return &advised{error: &guardError{&message}, next: p.Next, exit: code}
}

// guardError is a problem whose message leaves out the next step.
type guardError struct{ problem *guard.Problem }

func (g *guardError) Error() string {
	if g.problem.Err == nil {
		return g.problem.Message
	}
	if errors.Is(g.problem.Err, context.DeadlineExceeded) {
		return g.problem.Message + " in time"
	}
	return g.problem.Message + ": " + reasonOf(g.problem.Err).Error()
}

func (g *guardError) Unwrap() error { return g.problem }
