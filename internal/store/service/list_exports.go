package service

import "context"

// ListExports returns the exports of one table or of all, oldest first, a page at a time. They
// outlive their tables, so no table needs to exist.
//
// The order of checks: the shape; the table's ARN; NextToken.
func (s *Service) ListExports(_ context.Context, in *ListExportsInput) (*ListExportsOutput, error) {
	var sh shape
	sh.length("tableArn", in.TableARN, 1, arnLengthMax)
	sh.least("maxResults", in.Limit, 1)
	sh.most("maxResults", in.Limit, jobsPageMax)
	if err := sh.err(); err != nil {
		return nil, err
	}
	table, err := tableOf("TableArn", in.TableARN)
	if err != nil {
		return nil, err
	}
	all, err := s.bulk.Exports()
	if err != nil {
		return nil, apiError(err, "")
	}
	page, next, err := pageOfJobs(all, jobOfExport, table, in.Token, in.Limit)
	if err != nil {
		return nil, err
	}
	out := &ListExportsOutput{Token: next}
	for _, e := range page {
		out.Exports = append(out.Exports, s.exportSummary(e))
	}
	return out, nil
}
