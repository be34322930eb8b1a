package trigger

import (
	"context"
	"sort"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/mayflydb/mayfly/internal/constraint"
)

// ListEventSourceMappings returns a page of mappings, in the order of their UUIDs.
func (t *Triggers) ListEventSourceMappings(ctx context.Context, in *ListEventSourceMappingsInput) (*ListEventSourceMappingsOutput, error) {
	var p constraint.Problems
	if in.EventSourceArn != nil {
		checkSource(&p, *in.EventSourceArn)
	}
	if in.FunctionName != nil {
		t.checkFunction(&p, *in.FunctionName)
	}
	if in.MaxItems != nil {
		p.Least("maxItems", int64(*in.MaxItems), 1)
		p.Most("maxItems", int64(*in.MaxItems), listItemsMax)
	}
	if err := modelError(&p); err != nil {
		return nil, err
	}
	all, err := t.all(ctx)
	if err != nil {
		return nil, err
	}
	out := &ListEventSourceMappingsOutput{EventSourceMappings: []EventSourceMapping{}}
	most := min(orElse(in.MaxItems, listMax), listMax)
	marker := aws.ToString(in.Marker)
	from := sort.Search(len(all), func(i int) bool { return all[i].UUID > marker })
	for _, m := range all[from:] {
		if in.EventSourceArn != nil && m.EventSourceArn != *in.EventSourceArn || in.FunctionName != nil && m.FunctionArn != t.o.functionARN(*in.FunctionName) {
			continue
		}
		if len(out.EventSourceMappings) == most {
			out.NextMarker = out.EventSourceMappings[most-1].UUID
			break
		}
		out.EventSourceMappings = append(out.EventSourceMappings, m.EventSourceMapping)
	}
	return out, nil
}
