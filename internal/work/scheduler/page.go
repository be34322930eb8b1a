package scheduler

import (
	"encoding/base64"
	"encoding/json"
)

// listed is a place in a list, as a NextToken carries it. It is opaque to clients: what is not one of ours, or comes with other filters than those that it was
// given out for, is refused.
type listed struct {
	Operation string `json:"o"`
	Filter    string `json:"f,omitempty"` // what the list was narrowed to
	Group     string `json:"g,omitempty"` // of the last element
	Name      string `json:"n"`           // of the last element
}

func (l listed) token() string {
	text, err := json.Marshal(l)
	if err != nil {
		panic("scheduler: a token does not marshal: " + err.Error()) // it is made of strings
	}
	return base64.RawURLEncoding.EncodeToString(text)
}

// from gives where a list goes on: nil where it begins.
func from(token *string, operation, filter string) (*listed, error) {
	if token == nil {
		return nil, nil
	}
	l := &listed{}
	text, err := base64.RawURLEncoding.DecodeString(*token)
	if err == nil {
		err = json.Unmarshal(text, l)
	}
	if err != nil || l.Operation != operation || l.Filter != filter || l.Name == "" {
		return nil, invalid("The NextToken is not valid for this request.")
	}
	return l, nil
}

// filter is what a list was narrowed to, in a form in which no two are the same.
func filter(by ...*string) string {
	text, err := json.Marshal(by)
	if err != nil {
		panic("scheduler: a filter does not marshal: " + err.Error()) // it is made of strings
	}
	return string(text)
}
