// Package routes returns the operations of schedules, rules and triggers as tables for the wire.
// The embedded database and a worker beside a remote endpoint both use them.
package routes

import (
	"context"
	"net/http"
	"strings"

	"github.com/mayflydb/mayfly/internal/front/wire"
	"github.com/mayflydb/mayfly/internal/work/api"
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

// Operations returns the operations that requests find by path, and those that they find by name. o
// is in the ARNs that policies see. wrapCreate, if not nil, wraps each operation that may create the first piece of work.
func Operations(s *scheduler.Scheduler, t *trigger.Triggers, o Owner, wrapCreate func(Do) Do) ([]wire.Route, []wire.Action) {
	wrap := func(creates bool, do Do) Do {
		if !creates || wrapCreate == nil {
			return do
		}
		return wrapCreate(do)
	}
	var routes []wire.Route
	for _, op := range s.Operations() {
		routes = append(routes, wire.Route{
			Service: serviceScheduler, Name: op.Name, Method: op.Method, Path: op.Path,
			Resource: o.schedule(op.Name), Do: wrap(op.Method != http.MethodGet, bind(op)),
		})
	}
	for _, op := range t.Operations() {
		routes = append(routes, wire.Route{
			Service: serviceLambda, Name: op.Name, Method: op.Method, Path: op.Path, Status: op.Status,
			Resource: o.mapping, Do: wrap(op.Method == http.MethodPost, bind(op)),
		})
	}
	var actions []wire.Action
	for _, a := range s.Actions() {
		actions = append(actions, wire.Action{
			Service: serviceEvents, Target: "AWSEvents." + a.Name,
			Resource: o.rule(a.Name), Do: wrap(strings.HasPrefix(a.Name, "Put"), bind(a)),
		})
	}
	return routes, actions
}

// bind returns the function that answers calls of an operation.
func bind(op api.Operation) Do {
	return func(ctx context.Context, c *wire.Call) (any, error) {
		return op.Do(ctx, &api.Request{Path: c.Path, Query: c.Query, Header: c.Header.Get, Decode: c.Decode, Region: c.Region})
	}
}
