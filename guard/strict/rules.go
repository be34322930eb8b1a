package strict

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/mayflydb/mayfly/internal/clock"
	"github.com/mayflydb/mayfly/internal/constraint"
	"github.com/mayflydb/mayfly/internal/store/dynamo"
)

// Rules say which tables are strict, and set the clock.
type Rules struct {
	// Tables are the guarded tables, by name or ARN, each with its TTL attribute. If the attribute
	// is empty, DescribeTimeToLive is asked for it, once a minute, or every 10 seconds for a table
	// without one, which is not guarded. Requests may name a table either way. Range: 1 to 1,000
	// tables, or none with All.
	Tables map[string]string
	// All also guards every other table for which DescribeTimeToLive returns an attribute. It costs
	// that call once a minute for each table, and every 10 seconds for a table without TTL.
	All bool
	// Now returns the time of the endpoint's own clock, if the caller has it, as in tests with an
	// embedded database. The default is the earlier of this machine's time and the earliest time that
	// the Date headers of answers permit: an item is hidden up to a second late, never early, and
	// after many answers only some milliseconds late. Without such headers, it is this machine's
	// clock. An item is removed only if the Date of an answer also shows that its deadline has
	// passed.
	Now func() time.Time
	// MaxSkew is the maximum difference between this machine's clock and the endpoint's. Beyond it,
	// requests for guarded tables fail with an InternalServerError until the clocks agree again,
	// since a wrong clock would hide or remove live items. Not used with Now. Default: 5 s. Range:
	// 2 s to 1,000 hours.
	MaxSkew time.Duration

	bounded bool // Now is unset and this machine's
}

const (
	tablesMax      = 1000
	maxSkewDefault = 5 * time.Second
	maxSkewLeast   = 2 * time.Second // a Date has whole seconds
	maxSkewMost    = 1000 * time.Hour
)

// withDefaults returns the rules with defaults for unset fields, and with tables under their names.
func (r Rules) withDefaults() Rules {
	if r.Now == nil {
		r.Now, r.bounded = clock.New().Now, true
	}
	r.MaxSkew = cmp.Or(r.MaxSkew, maxSkewDefault)
	tables := make(map[string]string, len(r.Tables))
	for table, attribute := range r.Tables {
		tables[tableName(table)] = attribute
	}
	r.Tables = tables
	return r
}

// check returns all errors in the rules, before they have their defaults.
func (r Rules) check() error {
	var all []error
	complain := func(format string, args ...any) { all = append(all, fmt.Errorf(format, args...)) }
	if len(r.Tables) < 1 && !r.All || len(r.Tables) > tablesMax {
		complain("Tables: %d is not between 1 and %d", len(r.Tables), tablesMax)
	}
	if r.MaxSkew != 0 && (r.MaxSkew < maxSkewLeast || r.MaxSkew > maxSkewMost) {
		complain("MaxSkew: %v is not between %v and %v", r.MaxSkew, maxSkewLeast, maxSkewMost)
	}
	attributes := map[string]string{}
	for table, attribute := range r.Tables {
		name := tableName(table)
		if !constraint.IsTable(name) {
			complain("Tables: %q is neither a table name (3 to 255 of a-z, A-Z, 0-9, _, - and .) nor an ARN", table)
		}
		if len(attribute) > 255 {
			complain("Tables: the TTL attribute of %q is longer than 255 bytes", table)
		}
		if other, twice := attributes[name]; twice && other != attribute {
			complain("Tables: %q has two TTL attributes, %q and %q", name, other, attribute)
		}
		attributes[name] = attribute
	}
	return errors.Join(all...)
}

// tableName returns the name of a table in a name or ARN.
func tableName(given string) string {
	if _, name, ok := strings.Cut(given, ":table/"); ok && strings.HasPrefix(given, "arn:") {
		name, _, _ = strings.Cut(name, "/")
		return name
	}
	return given
}

// attributeOf returns the TTL attribute of a table, by its name in a request, or "" if the table is
// not guarded. It returns an error for a guarded table while the endpoint's clock is in doubt.
func (c *call) attributeOf(ctx context.Context, given string) (attribute string, err error) {
	name := tableName(given)
	attribute, guarded := c.rules.Tables[name]
	if attribute == "" && (guarded || c.rules.All) && constraint.IsTable(name) {
		attribute, err = c.tables.attribute(ctx, name, c.send)
	}
	if attribute != "" && c.doubt != nil {
		return "", c.doubt
	}
	return attribute, err
}

// guardsAny reports whether a text may name a guarded table, and returns it.
func (r *rewriter) guardsAny(text string) (table string, yes bool) {
	if r.rules.All {
		return "(any)", true
	}
	text = strings.ToLower(text)
	for name := range r.rules.Tables {
		if strings.Contains(text, strings.ToLower(name)) {
			return name, true
		}
	}
	return "", false
}

// legacyError refuses legacy parameters that would have to be rewritten.
func legacyError(table string, members ...string) *dynamo.Error {
	return dynamo.Invalid("strict reads: " + strings.Join(members, ", ") + " cannot be used with table " + table + ", whose expired items are hidden: use expressions")
}
