package target

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
)

// failures returns the failed IDs in a batch's answer, or an error if the answer is unclear.
func (a answer) failures(sent []string) (map[string]bool, error) {
	body := bytes.TrimSpace(a.body)
	if len(body) == 0 || body[0] != '{' {
		if a.err != nil && !errors.Is(a.err, errTooLong) {
			return nil, &Error{Code: codeConnection, Message: "the answer ended early", Err: a.err}
		}
		return nil, nil // not an object: the status alone counts
	}
	garbled := func(why string) error {
		return &Error{Code: codeAnswer, Message: "invalid batchItemFailures in the answer: " + why, Err: a.err}
	}
	if a.err != nil {
		return nil, garbled(a.err.Error())
	}
	var object map[string]json.RawMessage
	if err := json.Unmarshal(body, &object); err != nil {
		if bytes.Contains(body, []byte("batchItemFailures")) {
			return nil, garbled("it is not JSON")
		}
		return nil, nil
	}
	var items []struct {
		ItemIdentifier *string `json:"itemIdentifier"`
	}
	if list, there := object["batchItemFailures"]; !there {
		return nil, nil
	} else if err := json.Unmarshal(list, &items); err != nil {
		return nil, garbled("it is not a list of objects with an itemIdentifier")
	}
	failed := map[string]bool{}
	for i, item := range items {
		switch {
		case item.ItemIdentifier == nil || *item.ItemIdentifier == "":
			return nil, garbled(fmt.Sprintf("item %d has no itemIdentifier", i+1))
		case !slices.Contains(sent, *item.ItemIdentifier):
			return nil, garbled(fmt.Sprintf("item %d names an event that was not in the request", i+1))
		}
		failed[*item.ItemIdentifier] = true
	}
	return failed, nil
}
