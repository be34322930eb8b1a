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

func (l position) token() string {
	return base64.RawURLEncoding.EncodeToString(mustJSON(l))
}

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

// fromName returns the name after which a list continues, from its token.
func fromName(token *string, operation, filters string) (string, error) {
	l, err := parsePosition(token, operation, filters)
	if l == nil {
		return "", err
	}
	return l.Name, nil
}

// pageOf returns a page of a list that is sorted by name.
func pageOf[T any](all []T, name func(T) string, after string, most int, operation, filters string) (page []T, next string) {
	page = []T{}
	for _, v := range all {
		if after != "" && name(v) <= after {
			continue
		}
		if len(page) == most {
			return page, position{Operation: operation, Filter: filters, Name: name(page[most-1])}.token()
		}
		page = append(page, v)
	}
	return page, ""
}
