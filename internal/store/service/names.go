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
	given string // what the request said: the name, or an ARN; answers repeat it
}

// dataTable checks the TableName of a data plane operation. Its faults are of the shape kind but are reported alone.
func dataTable(v Opt[string]) (tableRef, error) {
	var s shape
	ref := s.dataTable("tableName", v)
	if err := s.err(); err != nil {
		return ref, err
	}
	return ref.resolve()
}

// dataTable collects what is wrong with a data plane TableName at path.
func (s *shape) dataTable(path string, v Opt[string]) tableRef {
	switch {
	case !v.Set:
		s.null(path)
	case isARN(v.V):
		s.length(path, v, 1, arnLengthMax)
	case v.V == "":
		s.length(path, v, 1, nameLengthMax)
	case !constraint.NameLetters(v.V):
		s.pattern(path, v.V)
	default:
		s.length(path, v, 1, nameLengthMax)
	}
	return tableRef{name: v.V, given: v.V}
}

// controlTable checks the TableName of a control plane operation; each fault is reported alone.
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

// resolve takes the table's name out of an ARN, and leaves a plain name alone.
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

// arnResource gives the last of an ARN's six parts, which must be an ARN of DynamoDB: "table/Music".
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

// tableARN is the ARN of a table of this region and account.
func (s *Service) tableARN(table string) string {
	return "arn:aws:dynamodb:" + s.region + ":" + s.account + ":table/" + table
}

func (s *Service) indexARN(table, index string) string { return s.tableARN(table) + "/index/" + index }

func (s *Service) streamARN(table, label string) string {
	return s.tableARN(table) + "/stream/" + label
}
