package scheduler

import (
	"encoding/base64"
	"encoding/json"
)

// position is the position in a list that a NextToken encodes. Clients must not interpret it. A
// token that the scheduler did not issue, or with other filters than the list's, is refused.
type position struct {
	Operation string `json:"o"`
	Filter    string `json:"f,omitempty"` // the filters of the list
	Group     string `json:"g,omitempty"` // of the last element
	Name      string `json:"n"`           // of the last element
}

func (l position) token() string { return base64.RawURLEncoding.EncodeToString(mustJSON(l)) }

// parsePosition returns the position of a token; nil for the beginning of the list.
func parsePosition(token *string, operation, filter string) (*position, error) {
	if token == nil {
		return nil, nil
	}
	l := &position{}
	text, err := base64.RawURLEncoding.DecodeString(*token)
	if err == nil {
		err = json.Unmarshal(text, l)
	}
	if err != nil || l.Operation != operation || l.Filter != filter || l.Name == "" {
		return nil, invalid("The NextToken is not valid for this request.")
	}
	return l, nil
}

// filter returns a text that is unique to the values of filters.
func filter(filters ...*string) string { return string(mustJSON(filters)) }

// listing is a request for a page of a list that is sorted by name.
type listing struct {
	operation, filter string
	after             string // name of the last element of the page before; empty: none
	most              int
}

// newListing returns the request for the page that a token encodes.
func newListing(operation string, token *string, most int, filters ...*string) (*listing, error) {
	l := &listing{operation: operation, filter: filter(filters...), most: most}
	p, err := parsePosition(token, operation, l.filter)
	if p != nil {
		l.after = p.Name
	}
	return l, err
}

// pageOf returns a page of a list, and the token of the next one.
func pageOf[T any](l *listing, all []T, name func(T) string) (page []T, next string) {
	page = []T{}
	for _, v := range all {
		if l.after != "" && name(v) <= l.after {
			continue
		}
		if len(page) == l.most {
			return page, position{Operation: l.operation, Filter: l.filter, Name: name(page[l.most-1])}.token()
		}
		page = append(page, v)
	}
	return page, ""
}
