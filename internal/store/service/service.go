// Package service is what each operation of the DynamoDB API means: one file each, named after it.
//
// An operation is a method on [Service] that takes an input and gives an output (api.go). The wire turns JSON into
// inputs and outputs into JSON; the engine stores. What lies between is here: which requests are valid, in which
// order a request's faults are named, what a write decides, how a page ends, what it all cost.
//
// # Order of checks
//
// Clients can see it, so every operation keeps AWS's order: the shape of the members (collected by [shape], up to
// ten in one message), the table's name, rules of the operation alone, expressions, whether the table exists, rules
// that need its schema, and last what depends on data. Nothing is touched before all of it has passed.
//
// # Errors
//
// A request that the API refuses gets a *dynamo.Error. Facts that the engine reports become one in [apiError], and
// only there. Everything else is a fault and passes through for the wire to answer as InternalServerError.
//
// # Tables named by ARN
//
// TableName may be an ARN wherever it may be a name. Only the table's name in it counts: all regions and accounts
// see the same tables here, so an ARN of another region or account is accepted. A malformed one is refused.
package service

import (
	"crypto/rand"
	"encoding/binary"
	"time"

	"github.com/mayflydb/mayfly/internal/store/engine"
)

// namespace holds every table that a client can name; systemNamespace those that only mayfly itself writes.
const (
	namespace       = "default"
	systemNamespace = "mayfly"
)

// Options are what a Service is made of.
type Options struct {
	Engine   *engine.Engine
	Region   string // in ARNs and stream records; default "us-east-1"
	Account  string // in ARNs; default "000000000000"
	Endpoint string // what DescribeEndpoints answers; default "localhost:8000"

	// Expiry is how the items of tables expire, as far as their tags do not say it. Seed and Delay may be set with strict expiry: they are
	// for the tables that are tagged aws.
	Expiry engine.Expiry

	// SwitchedOff is told when a table's stream or its TTL was switched off, or the table was deleted, before that is answered; it must be quick. Default: nobody is told.
	SwitchedOff func(table string)

	// Elapsed is the local monotonic time since the process, or anything else fixed, began; shard iterators age by it.
	// Default: the engine's clock.
	Elapsed func() time.Duration
}

// Service serves the API's operations. It holds no state that an answer rests on: that is all in the engine. It is safe
// for use by many goroutines at once.
type Service struct {
	engine   *engine.Engine
	region   string
	account  string
	endpoint string
	expiry   engine.Expiry
	elapsed  func() time.Duration
	off      func(table string)
	began    time.Duration // what elapsed said when the service was made
	run      uint32        // tells shard iterators of this run from those of an earlier one
}

// New gives the service over an engine. It starts nothing.
func New(o Options) *Service {
	s := &Service{
		engine:   o.Engine,
		region:   orDefault(o.Region, "us-east-1"),
		account:  orDefault(o.Account, "000000000000"),
		endpoint: orDefault(o.Endpoint, "localhost:8000"),
		expiry:   o.Expiry,
		elapsed:  o.Elapsed,
		off:      o.SwitchedOff,
	}
	if s.off == nil {
		s.off = func(string) {}
	}
	if s.elapsed == nil {
		s.elapsed = func() time.Duration { return time.Duration(s.engine.Now()) * time.Millisecond }
	}
	s.began = s.elapsed()
	var run [4]byte
	rand.Read(run[:])
	s.run = binary.BigEndian.Uint32(run[:])
	return s
}

// describedTable finds a table and the description to check a request against. An answer may rest on it: no crash takes back what it says.
func describedTable(e *engine.Engine, name string) (*engine.Table, *engine.TableDesc, error) {
	t, err := e.Table(namespace, name)
	if err != nil {
		return nil, nil, err
	}
	d, err := t.Describe()
	return t, d, err
}

func orDefault(s, def string) string {
	if s == "" {
		return def
	}
	return s
}
