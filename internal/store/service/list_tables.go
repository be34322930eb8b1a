package service

import (
	"context"
	"slices"
	"sort"
)

// listTablesMax is the longest page, and the default.
const listTablesMax = 100

// ListTables returns names of tables in ascending order, a page at a time.
// It checks the shape alone: the table to start after need not exist.
func (s *Service) ListTables(_ context.Context, in *ListTablesInput) (*ListTablesOutput, error) {
	var sh shape
	sh.name("exclusiveStartTableName", in.Start)
	sh.limit(in.Limit, listTablesMax)
	if err := sh.err(); err != nil {
		return nil, err
	}
	limit := int(in.Limit.Or(listTablesMax))
	names, more, err := s.engine.TableNames(namespace, in.Start.V, limit)
	if err != nil {
		return nil, apiError(err, "")
	}
	if deleted := s.passing.deleted(in.Start.V); len(deleted) > 0 {
		names = append(names, deleted...)
		sort.Strings(names)
		names = slices.Compact(names)
		more = more || len(names) > limit
		names = names[:min(limit, len(names))]
	}
	out := &ListTablesOutput{Names: names}
	if more && len(names) > 0 {
		out.Last = names[len(names)-1]
	}
	return out, nil
}
