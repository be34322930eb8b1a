package mayfly

import (
	"time"

	"github.com/mayflydb/mayfly/internal/front/fault"
)

// FaultRule makes some calls of the APIs of tables and streams fail or wait, so that code that retries
// can be tested. A call that fails does nothing else. Further rules apply to the same call: their
// delays add up, and the first error counts. The database's own calls on the program's tables, for
// autoscaling and triggers, are not struck and not counted.
type FaultRule struct {
	// Operation is the operation's name, such as "PutItem". Default: all.
	Operation string

	// Table is a table's name, or the beginning of names followed by "*". Default: all tables but those
	// of mayfly itself ("mayfly.…").
	Table string

	// Every strikes every n-th call that the rule fits. Default: see Probability.
	Every int

	// Probability strikes each call with this probability, above 0 and up to 1. Default, without Every:
	// each call is struck.
	Probability float64

	// Error is the name of the error, such as "ProvisionedThroughputExceededException",
	// "ThrottlingException", "InternalServerError", "ServiceUnavailable" or
	// "TransactionCanceledException". Default: none, so there is only the delay.
	Error string

	// Delay is the real time that passes before the call or the error: up to 10 minutes.
	Delay time.Duration
}

// UnmarshalText reads a rule such as "PutItem table=orders every=3 error=ThrottlingException
// delay=200ms": the operation, then the other members, each once and in any order.
func (f *FaultRule) UnmarshalText(text []byte) error {
	r, err := fault.Parse(string(text))
	if err == nil {
		*f = FaultRule(r)
	}
	return err
}

// MarshalText returns the form that UnmarshalText reads.
func (f FaultRule) MarshalText() ([]byte, error) { return []byte(f.String()), nil }

// String returns the form that UnmarshalText reads.
func (f FaultRule) String() string { return fault.Rule(f).String() }

// faults returns the rules in the form that the wire takes.
func (o Options) faults() *fault.Faults {
	rules := make([]fault.Rule, len(o.Faults))
	for i, f := range o.Faults {
		rules[i] = fault.Rule(f)
	}
	return fault.New(rules, o.FaultSeed)
}
