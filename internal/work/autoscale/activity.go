package autoscale

import (
	"cmp"
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/mayflydb/mayfly/internal/work/api"
)

// noDeadline is the due instant of items that stay.
var noDeadline time.Time

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
	found, err := all[storedActivity](ctx, s, kindActivity)
	if err != nil {
		return nil, err
	}
	latest := int64(1) << 53
	l.flat = true
	page, next := pageOf(l, found, func(a *storedActivity) (place, string) {
		return a.place, fmt.Sprintf("%016d %s", latest-a.At, a.ID)
	})
	out := &DescribeActivitiesOutput{ScalingActivities: []ScalingActivity{}, NextToken: next}
	for i := range page {
		a := &page[i]
		out.ScalingActivities = append(out.ScalingActivities, ScalingActivity{
			a.ID, namespace, a.Resource, a.Dimension, a.Description, a.Cause, Timestamp(a.At), Timestamp(a.At), a.Status, a.Reason,
		})
	}
	return out, nil
}

func unknownResource(arn string) error {
	return &api.Error{Code: "ResourceNotFoundException", Message: "The ARN of no scalable target: " + arn, Status: http.StatusBadRequest}
}

// pageMost is the greatest and the usual number of elements in a page.
const pageMost = 50

// listing is a request for a page of a list.
type listing struct {
	resources []string // nil: all
	dimension *string  // nil: all
	names     []string // nil: all
	flat      bool     // in the order of names only
	after     string   // the element that the page before ended with; "": none
	most      int
}

func newListing(service *string, resources []string, dimension *string, most *int64, token *string) (*listing, error) {
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
	if token != nil {
		text, err := base64.RawURLEncoding.DecodeString(*token)
		if err != nil || len(text) == 0 {
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
		if l.flat {
			return name
		}
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
		token := base64.RawURLEncoding.EncodeToString([]byte(key(&found[l.most-1])))
		next = &token
	}
	return found, next
}

// one returns a list of an optional value.
func one(v *string) []string {
	if v == nil {
		return nil
	}
	return []string{*v}
}
