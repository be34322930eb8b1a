package service

import "context"

// listTablesMax is the longest page, and the default.
const listTablesMax = 100

// ListTables returns names of tables in ascending order, a page at a time.
func (s *Service) ListTables(_ context.Context, in *ListTablesInput) (*ListTablesOutput, error) {
	var sh shape
	sh.name("exclusiveStartTableName", in.Start)
	sh.limit(in.Limit, listTablesMax)
	if err := sh.err(); err != nil {
		return nil, err
	}
	names, more, err := s.engine.TableNames(namespace, in.Start.V, int(in.Limit.Or(listTablesMax)))
	if err != nil {
		return nil, apiError(err, "")
	}
	out := &ListTablesOutput{Names: names}
	if more && len(names) > 0 {
		out.Last = names[len(names)-1]
	}
	return out, nil
}
