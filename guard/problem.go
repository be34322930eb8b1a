package guard

import "github.com/mayflydb/mayfly/guard/internal/table"

// Problem is the reason why guarding is impossible or no longer possible, in words for the
// operator. It is an error with the fields
//
//	Code    Code   // the kind of the problem
//	Message string // the fault
//	Next    string // the next step for the operator
//	Err     error  // the cause; may be nil
type Problem = table.Problem

// Code is the kind of a problem: a string.
type Code = table.Code

// The kinds of problems.
const (
	NoTable     = table.NoTable     // the table does not exist, or no longer exists
	NewTable    = table.NewTable    // the table was deleted, and made again under the same name
	NoAttribute = table.NoAttribute // Options has no TTL attribute, and the table's TTL is off
	// the table has no stream, not the kind that the strategy needs, or one that cannot be followed
	NoStream     = table.NoStream
	NoIndex      = table.NoIndex      // the table has no index that the strategy could ask
	AccessDenied = table.AccessDenied // a permission is missing
	Credentials  = table.Credentials  // credentials are missing, wrong or expired
	// the local clock is further from the endpoint's than MaxSkew
	Skew          = table.Skew
	NoDate        = table.NoDate        // the endpoint does not send its time
	Misconfigured = table.Misconfigured // another fault that the operator has to fix
	// so many items are overdue that the attribute may be a wrong one: see Options.AcceptOverdue. The
	// cause is an *Overdue
	ManyOverdue = table.ManyOverdue
	Limit       = table.Limit // as many items were removed as Options.MaxRemovals allows
	// the endpoint cannot be reached, or does not work, at the beginning
	Unavailable = table.Unavailable
	// the journal of Options.Undo cannot be written: removals wait
	NoJournal = table.NoJournal
)

// problem returns the problem behind an endpoint's error; nil for a transient one. doing is the
// operation's name in the API, for example "DeleteItem".
func (g *Guard) problem(doing string, err error) *Problem {
	return table.ProblemOf(doing, g.o.Table, err)
}

// atStart returns the problem behind any error before guarding has begun.
func (g *Guard) atStart(doing string, err error) error { return table.AtStart(doing, g.o.Table, err) }

// gone returns the problem of a table that is missing although it existed at the start.
func (g *Guard) gone(p *Problem) *Problem { return table.Gone(p, g.o.Table) }

// fail ends Run with a problem. Only the first counts.
func (g *Guard) fail(p *Problem) {
	select {
	case g.failures <- p:
	default:
	}
}
