package strict

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/mayflydb/mayfly/internal/clock"
	"github.com/mayflydb/mayfly/internal/constraint"
	"github.com/mayflydb/mayfly/internal/store/dynamo"
)

// Rules say which tables are strict, and by which clock.
type Rules struct {
	// Tables are the guarded tables, each with its TTL attribute. An empty attribute is asked for with DescribeTimeToLive, at most once a minute; while a table has none it
	// is not guarded. A table is given by its name or ARN, and is meant by both in requests. Range: 1 to 1,000 tables, or none with All.
	Tables map[string]string
	// All guards every table besides these for which DescribeTimeToLive names an attribute. It costs each table that call once a minute, and every 10 seconds one without TTL.
	All bool
	// Now is the endpoint's own clock, where that is at hand, as in tests with an embedded database. Default: what the Date headers of the endpoint's answers allow it to be at least, so
	// that an item is hidden up to a second late rather than early, and some milliseconds late once there were many answers; or this machine's, where there are no such headers. No item is
	// removed before the Date of an answer, too, says that its deadline has passed.
	Now func() time.Time

	bounded bool // Now was left out, and is this machine's
}

const tablesMax = 1000

// withDefaults fills in what was left out, and brings tables under their names.
func (r Rules) withDefaults() Rules {
	if r.Now == nil {
		r.Now, r.bounded = clock.New().Now, true
	}
	tables := make(map[string]string, len(r.Tables))
	for table, attribute := range r.Tables {
		tables[tableName(table)] = attribute
	}
	r.Tables = tables
	return r
}

// check reports all that is wrong with the rules, before they have their defaults.
func (r Rules) check() error {
	var all []error
	complain := func(format string, args ...any) { all = append(all, fmt.Errorf(format, args...)) }
	if len(r.Tables) < 1 && !r.All || len(r.Tables) > tablesMax {
		complain("Tables: %d is not between 1 and %d", len(r.Tables), tablesMax)
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

// tableName is the name of a table that is given by name or ARN.
func tableName(given string) string {
	if _, name, ok := strings.Cut(given, ":table/"); ok && strings.HasPrefix(given, "arn:") {
		name, _, _ = strings.Cut(name, "/")
		return name
	}
	return given
}

// attributeOf gives the TTL attribute of a table as a request names it; empty where the table is not guarded.
func (c *call) attributeOf(ctx context.Context, given string) (attribute string, err error) {
	name := tableName(given)
	attribute, guarded := c.rules.Tables[name]
	if attribute != "" || !guarded && !c.rules.All || !constraint.IsTable(name) {
		return attribute, nil
	}
	return c.tables.attribute(ctx, name, c.send)
}

// guardsAny reports whether a text may speak of a guarded table.
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

// legacyError refuses what is older than expressions where it would have to be rewritten.
func legacyError(table string, members ...string) *dynamo.Error {
	return dynamo.Invalid("strict reads: " + strings.Join(members, ", ") + " cannot be used with table " + table + ", whose expired items are hidden: use expressions")
}
