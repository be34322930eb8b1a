package trigger

import (
	"bytes"
	"encoding/json"
	"slices"
)

// failures reads the answer of a function that reports which records of its batch have failed, by their sequence numbers:
//
//	{"batchItemFailures": [{"itemIdentifier": "3000000000000000000000"}]}
//
// It gives their places in ascending order. No answer, null, an empty string or object, and an empty or missing list say that none has; an identifier that is missing,
// null, empty or of no record of the batch says that all have. (Any other answer says so too. That is not established.)
func failures(answer []byte, entries []entry) []int {
	answer = bytes.TrimSpace(answer)
	if len(answer) == 0 || string(answer) == "null" || string(answer) == `""` {
		return nil
	}
	var a struct {
		BatchItemFailures []struct {
			ItemIdentifier string `json:"itemIdentifier"`
		} `json:"batchItemFailures"`
	}
	if json.Unmarshal(answer, &a) != nil {
		return all(entries)
	}
	var failed []int
	for _, f := range a.BatchItemFailures {
		i := slices.IndexFunc(entries, func(e entry) bool { return e.sequence == f.ItemIdentifier })
		if i < 0 || f.ItemIdentifier == "" {
			return all(entries)
		}
		failed = append(failed, i)
	}
	slices.Sort(failed)
	return slices.Compact(failed)
}

// all are the places of all records.
func all(entries []entry) []int {
	places := make([]int, len(entries))
	for i := range places {
		places[i] = i
	}
	return places
}
