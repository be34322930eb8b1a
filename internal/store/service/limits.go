package service

import (
	"cmp"
	"context"
)

// The quotas of a new account in a large region, in units per second. None of them is enforced here.
const (
	accountRead, accountWrite = 80_000, 80_000
	tableRead, tableWrite     = 40_000, 40_000
)

// DescribeLimits returns the quotas of the account.
func (s *Service) DescribeLimits(context.Context, *Empty) (*DescribeLimitsOutput, error) {
	return &DescribeLimitsOutput{AccountRead: accountRead, AccountWrite: accountWrite, TableRead: tableRead, TableWrite: tableWrite}, nil
}

// DescribeEndpoints returns the server's one endpoint: the address that the client has used.
func (s *Service) DescribeEndpoints(_ context.Context, in *DescribeEndpointsInput) (*DescribeEndpointsOutput, error) {
	return &DescribeEndpointsOutput{Address: cmp.Or(in.Host, s.endpoint), CacheMinutes: 1440}, nil
}
