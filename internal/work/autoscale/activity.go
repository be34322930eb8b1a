package autoscale

import (
	"cmp"
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/mayflydb/mayfly/internal/work/api"
	"github.com/mayflydb/mayfly/internal/work/attr"
)

func timeOf(ms int64) time.Time { return time.UnixMilli(ms).UTC() }

// ScalingActivity describes a change of a capacity, or an attempt.
type ScalingActivity struct {
	ActivityId, ServiceNamespace, ResourceId, ScalableDimension string
	Description, Cause                                          string
	StartTime, EndTime                                          Timestamp
	StatusCode, StatusMessage                                   string
}

// DescribeActivitiesInput is the input of DescribeScalingActivities.
type DescribeActivitiesInput struct {
	ServiceNamespace, ResourceId, ScalableDimension *string
	MaxResults                                      *int64
	NextToken                                       *string
	IncludeNotScaledActivities                      *bool // there are none here
}

// DescribeActivitiesOutput is a page of activities, the latest first.
type DescribeActivitiesOutput struct {
	ScalingActivities []ScalingActivity
	NextToken         *string `json:",omitempty"`
}

// DescribeScalingActivities lists the activities of the last six weeks.
func (s *Scaler) DescribeScalingActivities(ctx context.Context, in *DescribeActivitiesInput) (*DescribeActivitiesOutput, error) {
	l, err := newListing(in.ServiceNamespace, one(in.ResourceId), in.ScalableDimension, in.MaxResults, in.NextToken)
	if err != nil {
		return nil, err
	}
	if in.ScalableDimension != nil && in.ResourceId == nil {
		return nil, invalid("The parameter ResourceId is required with ScalableDimension.")
	}
	out := &DescribeActivitiesOutput{ScalingActivities: []ScalingActivity{}}
	index, key := byKind, kindActivity
	if in.ResourceId != nil {
		if !isResource(*in.ResourceId) {
			return out, nil
		}
		index, key = byResource, *in.ResourceId
	}
	last := ""
	for it, err := range s.list(ctx, index, key, l.after) {
		var a storedActivity
		if err == nil {
			err = decode(it, &a)
		}
		if err != nil {
			return nil, err
		}
		if l.dimension != nil && a.Dimension != *l.dimension {
			continue
		}
		if len(out.ScalingActivities) == l.most {
			out.NextToken = token(last)
			break
		}
		last = a.rank()
		out.ScalingActivities = append(out.ScalingActivities, ScalingActivity{
			a.ID, namespace, a.Resource, a.Dimension, a.Description, a.Cause, Timestamp(a.At), Timestamp(a.At), a.Status, a.Reason,
		})
	}
	return out, nil
}

// rank orders activities: the latest first.
func (a *storedActivity) rank() string {
	const latest = int64(1) << 53
	return fmt.Sprintf("%016d %s", latest-a.At, a.ID)
}

// putActivity writes an activity, for six weeks.
func (s *Scaler) putActivity(ctx context.Context, a storedActivity) error {
	it := attr.Item{
		attrID: attr.S(a.id(kindActivity, a.rank())), attrKind: attr.S(kindActivity), attrResource: attr.S(a.Resource), attrRank: attr.S(a.rank()),
		attrDue: attr.Seconds(timeOf(a.At).Add(activityLife)),
	}
	return s.write(ctx, it, a)
}

func unknownResource(arn string) error {
	return &api.Error{Code: "ResourceNotFoundException", Message: "The ARN of no scalable target: " + arn, Status: http.StatusBadRequest}
}

const (
	pageMost  = 50   // the greatest and the usual number of elements in a page
	tokenMost = 1024 // bytes in a token: an attribute rank has no more
)

// listing is a request for a page of a list.
type listing struct {
	resources []string // nil: all
	dimension *string  // nil: all
	names     []string // nil: all
	after     string   // the element that the page before ended with; "": none
	most      int
}

func newListing(service *string, resources []string, dimension *string, most *int64, next *string) (*listing, error) {
	var sh shape
	sh.namespace(service)
	if err := sh.err(); err != nil {
		return nil, err
	}
	if err := checkNamespace(service); err != nil {
		return nil, err
	}
	l := &listing{resources: resources, dimension: dimension, most: pageMost}
	if dimension != nil && !slices.Contains(dimensions, *dimension) {
		return nil, invalid("Unsupported service namespace, resource type or scalable dimension: " + *dimension)
	}
	if most != nil {
		if *most < 1 || *most > pageMost {
			return nil, invalid("MaxResults must be between 1 and 50.")
		}
		l.most = int(*most)
	}
	if next != nil {
		text, err := base64.RawURLEncoding.DecodeString(*next)
		if err != nil || len(text) == 0 || len(text) > tokenMost || !utf8.Valid(text) {
			return nil, &api.Error{Code: "InvalidNextTokenException", Message: "The next token is invalid.", Status: http.StatusBadRequest}
		}
		l.after = string(text)
	}
	return l, nil
}

// pageOf returns the page of a list, and the token of the next one. of returns the place and the
// name of an element.
func pageOf[T any](l *listing, found []T, of func(*T) (place, string)) (page []T, next *string) {
	key := func(v *T) string {
		p, name := of(v)
		return p.id("", name)
	}
	found = slices.DeleteFunc(found, func(v T) bool {
		p, name := of(&v)
		return l.resources != nil && !slices.Contains(l.resources, p.Resource) || l.dimension != nil && p.Dimension != *l.dimension ||
			l.names != nil && !slices.Contains(l.names, name) || key(&v) <= l.after
	})
	slices.SortFunc(found, func(a, b T) int { return cmp.Compare(key(&a), key(&b)) })
	if len(found) > l.most {
		found = found[:l.most]
		next = token(key(&found[l.most-1]))
	}
	return found, next
}

// token returns the token of the page behind an element.
func token(last string) *string {
	text := base64.RawURLEncoding.EncodeToString([]byte(last))
	return &text
}

// one returns a list of an optional value.
func one(v *string) []string {
	if v == nil {
		return nil
	}
	return []string{*v}
}
