package service

import (
	"cmp"
	"context"
)

// DescribeLimits returns the quotas of a new account in a large region. None of them is enforced
// here.
func (s *Service) DescribeLimits(context.Context, *Empty) (*DescribeLimitsOutput, error) {
	return &DescribeLimitsOutput{AccountRead: 80_000, AccountWrite: 80_000, TableRead: 40_000, TableWrite: 40_000}, nil
}

// DescribeEndpoints returns the server's one endpoint: the address by which the client has reached it.
func (s *Service) DescribeEndpoints(_ context.Context, in *DescribeEndpointsInput) (*DescribeEndpointsOutput, error) {
	return &DescribeEndpointsOutput{Address: cmp.Or(in.Host, s.endpoint), CacheMinutes: 1440}, nil
}
