// Package routes returns the operations of schedules, rules and triggers as tables for the wire.
// The embedded database and a worker beside a remote endpoint both use them.
package routes

import (
	"context"
	"net/http"
	"strings"

	"github.com/mayflydb/mayfly/internal/front/wire"
	"github.com/mayflydb/mayfly/internal/work/scheduler"
	"github.com/mayflydb/mayfly/internal/work/trigger"
)

// The services of these APIs, by their names in signatures.
const (
	serviceScheduler = "scheduler"
	serviceEvents    = "events"
	serviceLambda    = "lambda"
)

// Do answers a call of an operation.
type Do = func(ctx context.Context, c *wire.Call) (any, error)

// Of returns the operations that requests find by path, and those that they find by name. making,
// if not nil, wraps each operation that may create the first piece of work.
func Of(s *scheduler.Scheduler, t *trigger.Triggers, making func(Do) Do) ([]wire.Route, []wire.Action) {
	around := func(makes bool, do Do) Do {
		if !makes || making == nil {
			return do
		}
		return making(do)
	}
	var routes []wire.Route
	for _, op := range s.Operations() {
		routes = append(routes, wire.Route{
			Service: serviceScheduler, Name: op.Name, Method: op.Method, Path: op.Path,
			Do: around(op.Method != http.MethodGet, func(ctx context.Context, c *wire.Call) (any, error) { return op.Do(ctx, schedulerRequest(c)) }),
		})
	}
	for _, op := range t.Operations() {
		routes = append(routes, wire.Route{
			Service: serviceLambda, Name: op.Name, Method: op.Method, Path: op.Path, Status: op.Status,
			Do: around(op.Method == http.MethodPost, func(ctx context.Context, c *wire.Call) (any, error) {
				return op.Do(ctx, &trigger.Request{Path: c.Path, Query: c.Query, Decode: c.Decode})
			}),
		})
	}
	var actions []wire.Action
	for _, a := range s.Actions() {
		actions = append(actions, wire.Action{
			Service: serviceEvents, Target: "AWSEvents." + a.Name,
			Do: around(strings.HasPrefix(a.Name, "Put"), func(ctx context.Context, c *wire.Call) (any, error) { return a.Do(ctx, schedulerRequest(c)) }),
		})
	}
	return routes, actions
}

func schedulerRequest(c *wire.Call) *scheduler.Request {
	return &scheduler.Request{Path: c.Path, Query: c.Query, Header: c.Header.Get, Decode: c.Decode, Region: c.Region}
}
