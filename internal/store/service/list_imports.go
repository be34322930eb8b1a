package service

import "context"

// ListImports returns the imports into one table or into all, oldest first, a page at a time. They
// outlive their tables, so no table needs to exist.
//
// The order of checks: the shape; the table's ARN; NextToken.
func (s *Service) ListImports(_ context.Context, in *ListImportsInput) (*ListImportsOutput, error) {
	var sh shape
	sh.length("tableArn", in.TableARN, 1, arnLengthMax)
	sh.least("pageSize", in.Limit, 1)
	sh.most("pageSize", in.Limit, jobsPageMax)
	sh.length("nextToken", in.Token, pageTokenLength, pageTokenLengthMax)
	if err := sh.err(); err != nil {
		return nil, err
	}
	table, err := tableOf("TableArn", in.TableARN)
	if err != nil {
		return nil, err
	}
	all, err := s.bulk.Imports()
	if err != nil {
		return nil, apiError(err, "")
	}
	page, next, err := pageOfJobs(all, jobOfImport, table, in.Token, in.Limit)
	if err != nil {
		return nil, err
	}
	out := &ListImportsOutput{Token: next}
	for _, i := range page {
		out.Imports = append(out.Imports, s.importSummary(i))
	}
	return out, nil
}
