package service

import "context"

// DescribeContributorInsights returns the Contributor Insights setting of a table or global index.
//
// The order of checks: the table's name; the index's name; whether the table and the index exist.
func (s *Service) DescribeContributorInsights(_ context.Context, in *DescribeInsightsInput) (*Insights, error) {
	ref, err := controlTable(in.TableName)
	if err != nil {
		return nil, err
	}
	if err := insightsIndex(in.IndexName); err != nil {
		return nil, err
	}
	_, d, err := s.describedTable(ref.name)
	if err != nil {
		return nil, apiError(err, ref.name)
	}
	setting, err := insightsOf(d, in.IndexName)
	if err != nil {
		return nil, err
	}
	out := describeInsights(d, in.IndexName.V, setting)
	return &out, nil
}
