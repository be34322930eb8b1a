package wire

import (
	"context"
	"slices"
	"strings"

	"github.com/mayflydb/mayfly/internal/store/service"
)

// HasOperation reports whether the APIs of tables and streams have an operation.
func HasOperation(name string) bool {
	_, tables := operations()[name]
	_, streams := streamOperations[name]
	return tables || streams
}

// strike applies the server's faults to a permitted request. It skips the calls of the server's own
// work on users' tables: they come at any time, and would shift the calls that rules choose.
func (d *decoder) strike(ctx context.Context, s *service.Service, in any) error {
	if d.faults == nil {
		return nil
	}
	tables := service.ActionTables(in)
	if tables == nil {
		tables = tablesOf(s.Accesses(d.name, in, service.Facts{}))
	}
	if d.request.Own && !slices.ContainsFunc(tables, isOwn) {
		return nil
	}
	return d.faults.Strike(ctx, d.name, tables)
}

// isOwn reports whether a table is one of mayfly's own.
func isOwn(table string) bool { return strings.HasPrefix(table, "mayfly.") }

// tablesOf returns the names of the tables in what a request asks for, one for each access that has
// one.
func tablesOf(list []service.Access) (tables []string) {
	for _, a := range list {
		if _, rest, ok := strings.Cut(a.Resource, ":table/"); ok {
			name, _, _ := strings.Cut(rest, "/")
			tables = append(tables, name)
		}
	}
	return tables
}
