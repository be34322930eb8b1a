package service

import (
	"strings"

	"github.com/mayflydb/mayfly/internal/constraint"
)

// The bounds of table and index names, in characters.
const (
	nameLengthMin = 3
	nameLengthMax = 255
	arnLengthMax  = 1024
)

// tableRef is a table as a request named it.
type tableRef struct {
	name  string // the table's own name
	given string // the name or ARN in the request; answers repeat it
}

// dataTable checks the TableName of a data plane operation. A fault is a shape error, but is
// reported alone.
func dataTable(v Opt[string]) (tableRef, error) {
	var s shape
	ref := s.dataTable("tableName", v)
	if err := s.err(); err != nil {
		return ref, err
	}
	return ref.resolve()
}

// dataTable collects the faults of a data plane TableName at path. The caller resolves the result:
// before, its name may be an ARN.
func (s *shape) dataTable(path string, v Opt[string]) tableRef {
	switch {
	case !v.Set:
		s.Null(path)
	case isARN(v.V):
		s.length(path, v, 1, arnLengthMax)
	case v.V == "":
		s.length(path, v, 1, nameLengthMax)
	case !constraint.NameLetters(v.V):
		s.pattern(path, v.V)
	default:
		s.length(path, v, nameLengthMin, nameLengthMax)
	}
	return tableRef{name: v.V, given: v.V}
}

// controlTable checks the TableName of a control plane operation. Each fault is reported alone.
func controlTable(v Opt[string]) (tableRef, error) {
	switch {
	case !v.Set:
		return tableRef{}, invalid("The parameter 'TableName' is required but was not present in the request")
	case isARN(v.V):
		return tableRef{given: v.V}.resolve()
	case len(v.V) < nameLengthMin || len(v.V) > nameLengthMax:
		return tableRef{}, invalid("TableName must be at least 3 characters long and at most 255 characters long")
	case !constraint.NameLetters(v.V):
		var s shape
		s.pattern("tableName", v.V)
		return tableRef{}, s.err()
	}
	return tableRef{name: v.V, given: v.V}, nil
}

// resolve replaces an ARN by the table's name in it. A plain name stays.
func (r tableRef) resolve() (tableRef, error) {
	if !isARN(r.given) {
		return r, nil
	}
	resource, err := arnResource(r.given)
	if err != nil {
		return r, err
	}
	name, ok := strings.CutPrefix(resource, "table/")
	if !ok || !constraint.NameLetters(name) {
		return r, invalid(envelope + "Invalid resource type in '" + r.given + "'")
	}
	r.name = name
	return r, nil
}

func isARN(s string) bool { return strings.HasPrefix(s, "arn:") }

// arnResource returns the last of the six parts of a DynamoDB ARN, such as "table/Music".
func arnResource(arn string) (string, error) {
	parts := strings.SplitN(arn, ":", 6)
	switch {
	case len(parts) != 6 || parts[2] != "dynamodb":
		return "", invalid(envelope + "Valid ARN format is arn:aws:dynamodb:region:account-id:resource, not '" + arn + "'")
	case !strings.HasPrefix(parts[1], "aws"):
		return "", invalid(envelope + "Invalid AWS partition in '" + arn + "'")
	case parts[3] == "":
		return "", invalid(envelope + "Invalid AWS region in '" + arn + "'")
	}
	return parts[5], nil
}

// tableARN returns the ARN of a table in this region and account.
func (s *Service) tableARN(table string) string {
	return s.tables + table
}

func (s *Service) indexARN(table, index string) string { return s.tableARN(table) + "/index/" + index }

func (s *Service) streamARN(table, label string) string {
	return s.tableARN(table) + "/stream/" + label
}
