package service

import (
	"context"
	"strconv"

	"github.com/mayflydb/mayfly/internal/store/expr"
)

// scanSegmentsMax is the greatest TotalSegments.
const scanSegmentsMax = 1_000_000

// onDemandPartitions is the number of partitions of a new table on demand. A scan of the whole table
// visits each.
const onDemandPartitions = 4

// Scan returns a page of a whole table or index, or of one segment, in the order of the partition
// keys' hashes. The order of checks is Query's.
func (s *Service) Scan(ctx context.Context, in *ScanInput) (*PageOutput, error) {
	ref, err := scanShape(in)
	if err != nil {
		return nil, err
	}
	q, err := compileScan(in)
	if err != nil {
		return nil, err
	}
	t, d, err := s.describedTable(ref.name)
	if err != nil {
		return nil, apiError(err, "")
	}
	p := &page{table: t, desc: d, filter: q.filter, projection: q.projection, expired: in.Expired, limit: int(in.Limit.V)}
	if err := p.bindScan(in); err != nil {
		return nil, err
	}
	if err := s.admitPage(p); err != nil {
		return nil, err
	}
	if err := p.read(ctx, s.engine); err != nil {
		return nil, err
	}
	return p.output(ref.given, in.ReturnConsumedCapacity.V), nil
}

func scanShape(in *ScanInput) (tableRef, error) {
	var s shape
	s.least("limit", in.Limit, 1)
	s.enum("returnConsumedCapacity", in.ReturnConsumedCapacity, enumCapacity)
	s.conditions("scanFilter", in.Legacy.ScanFilter)
	s.enum("conditionalOperator", in.Legacy.ConditionalOperator, enumOperator)
	s.least("segment", in.Segment, 0)
	s.most("segment", in.Segment, scanSegmentsMax-1)
	s.attributesToGet("attributesToGet", &in.Legacy)
	ref := s.dataTable("tableName", in.TableName)
	s.enum("select", in.Select, enumSelect)
	s.least("totalSegments", in.TotalSegments, 1)
	s.most("totalSegments", in.TotalSegments, scanSegmentsMax)
	s.name("indexName", in.IndexName)
	if err := s.err(); err != nil {
		return ref, err
	}
	return ref.resolve()
}

// compileScan makes the remaining checks that need no table.
func compileScan(in *ScanInput) (*query, error) {
	q, err := compileLegacy(in.Legacy.ScanFilter, &in.Legacy)
	if err != nil {
		return nil, err
	}
	sess, err := scanSession(in)
	if err != nil {
		return nil, err
	}
	if err := in.Legacy.checkOperator(len(in.Legacy.ScanFilter)); err != nil {
		return nil, err
	}
	if err := checkSegments(in); err != nil {
		return nil, err
	}
	if err := checkSelect(in.Select, in.IndexName, in.Projection, &in.Legacy, wordBare); err != nil {
		return nil, err
	}
	if err := q.compile(sess, in.Filter, in.Projection); err != nil {
		return nil, err
	}
	return q, startKeyArg(in.ExclusiveStartKey)
}

func scanSession(in *ScanInput) (*expr.Session, error) {
	l := &in.Legacy
	p := parameters{
		names: in.Names, values: in.Values,
		legacy: []parameter{
			{"AttributesToGet", l.AttributesToGet != nil}, {"ScanFilter", l.ScanFilter != nil},
			{"ConditionalOperator", l.ConditionalOperator.Set},
		},
		expressions: []parameter{
			{expr.ProjectionExpression, in.Projection.Set}, {expr.FilterExpression, in.Filter.Set},
		},
		valued: []string{expr.FilterExpression},
	}
	return p.session()
}

func checkSegments(in *ScanInput) error {
	switch {
	case in.TotalSegments.Set && !in.Segment.Set:
		return invalid("The Segment parameter is required but was not present in the request when parameter TotalSegments is present")
	case in.Segment.Set && !in.TotalSegments.Set:
		return invalid("The TotalSegments parameter is required but was not present in the request when Segment parameter is present")
	case in.Segment.Set && in.Segment.V >= in.TotalSegments.V:
		return invalid("The Segment parameter is zero-based and must be less than parameter TotalSegments: Segment: " +
			strconv.FormatInt(in.Segment.V, 10) + " is not less than TotalSegments: " + strconv.FormatInt(in.TotalSegments.V, 10))
	}
	return nil
}

// countPartitions notes how many partitions of the table a scan's page visits.
func (p *page) countPartitions() {
	if p.index == nil && p.rng.After == nil && p.desc.API.OnDemand {
		p.partitions = max(onDemandPartitions/max(p.rng.Segments, 1), 1)
	}
}

// bindScan checks the scan against the table's schema.
func (p *page) bindScan(in *ScanInput) error {
	if err := p.useIndex(in.IndexName, in.ConsistentRead); err != nil {
		return err
	}
	if err := p.useStartKey(in.ExclusiveStartKey); err != nil {
		return err
	}
	p.rng.Segment, p.rng.Segments = int(in.Segment.V), int(in.TotalSegments.V)
	p.countPartitions()
	if err := p.checkStartInSegment(); err != nil {
		return err
	}
	return p.useProjection(in.Select, nil)
}

// checkStartInSegment refuses a start key from another segment of a parallel scan.
func (p *page) checkStartInSegment() error {
	if p.rng.After == nil || p.rng.Segments == 0 {
		return nil
	}
	segment, err := p.desc.SegmentOf(p.index, p.rng.After, p.rng.Segments)
	if err != nil {
		return err
	}
	if segment != p.rng.Segment {
		return invalid(msgStartKey + ": Invalid ExclusiveStartKey. Please use ExclusiveStartKey with correct Segment. TotalSegments: " +
			strconv.Itoa(p.rng.Segments) + " Segment: " + strconv.Itoa(p.rng.Segment))
	}
	return nil
}
