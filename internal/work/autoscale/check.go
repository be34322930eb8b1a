package autoscale

import (
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly/internal/constraint"
	"github.com/mayflydb/mayfly/internal/work/api"
)

const (
	namespace = "dynamodb"
	// the lengths of texts in requests
	resourceMax = 1600
	nameMax     = 256
)

// dimensions are the scalable dimensions that are served, with the kinds of their resources.
var dimensions = []string{
	"dynamodb:table:ReadCapacityUnits", "dynamodb:table:WriteCapacityUnits",
	"dynamodb:index:ReadCapacityUnits", "dynamodb:index:WriteCapacityUnits",
}

// isResource reports whether an id is one of a table or an index: table/T or table/T/index/I.
func isResource(id string) bool {
	table, found := strings.CutPrefix(id, "table/")
	table, index, indexed := strings.Cut(table, "/index/")
	return found && constraint.IsTable(table) && (!indexed || constraint.IsTable(index))
}

func invalid(message string) error {
	return &api.Error{Code: "ValidationException", Message: message, Status: http.StatusBadRequest}
}

func missing(message string) error {
	return &api.Error{Code: "ObjectNotFoundException", Message: message, Status: http.StatusBadRequest}
}

func notFound(err error) bool {
	_, ok := errors.AsType[*types.ResourceNotFoundException](err)
	return ok
}

// shape collects the members of a request that violate the API's model.
type shape struct{ constraint.Problems }

func (s *shape) err() error {
	if s.Any() {
		return invalid(s.Message())
	}
	return nil
}

// text checks a member. If it is nil, it is missing or, if it is not required, absent.
func (s *shape) text(path string, v *string, required bool, most int) {
	switch {
	case v != nil:
		s.Length(path, *v, 1, most)
	case required:
		s.Null(path)
	}
}

// namespace checks the member ServiceNamespace.
func (s *shape) namespace(v *string) {
	if v == nil {
		s.Null("serviceNamespace")
	}
}

// checkNamespace refuses services other than DynamoDB.
func checkNamespace(v *string) error {
	if *v != namespace {
		return invalid("Unsupported service namespace: " + *v + "; mayfly scales tables and global indexes of dynamodb only.")
	}
	return nil
}

// newPlace checks the three members that name a place, and returns the place.
func newPlace(s *shape, service, resource, dimension *string) (place, error) {
	s.namespace(service)
	s.text("resourceId", resource, true, resourceMax)
	if dimension == nil {
		s.Null("scalableDimension")
	}
	if err := s.err(); err != nil {
		return place{}, err
	}
	if err := checkNamespace(service); err != nil {
		return place{}, err
	}
	p := place{*resource, *dimension}
	kind := "dynamodb:table:"
	if strings.Contains(p.Resource, "/index/") {
		kind = "dynamodb:index:"
	}
	switch {
	case !slices.Contains(dimensions, p.Dimension):
		return p, invalid("Unsupported service namespace, resource type or scalable dimension: " + p.Dimension)
	case !isResource(p.Resource) || !strings.HasPrefix(p.Dimension, kind):
		return p, invalid("Unsupported resource ID for the scalable dimension " + p.Dimension + ": " + p.Resource)
	}
	return p, nil
}

// described returns a place as texts of errors have it.
func (p place) described() string {
	return "service namespace: " + namespace + ", resource ID: " + p.Resource + ", scalable dimension: " + p.Dimension
}

// minutePlace returns the place of an item that stands for a minute.
func minutePlace(id string) (place, bool) {
	parts := strings.Split(id, "|")
	if len(parts) != 4 || parts[0] != kindMinute {
		return place{}, false
	}
	return place{parts[2], parts[1]}, true
}
