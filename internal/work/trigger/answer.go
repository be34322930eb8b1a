package trigger

import (
	"bytes"
	"encoding/json"
	"slices"
)

// failures reads the answer of a function that reports the failed records of its batch by sequence
// number:
//
//	{"batchItemFailures": [{"itemIdentifier": "3000000000000000000000"}]}
//
// It returns their places in ascending order. No answer, null, an empty string or object, and an
// empty or missing list mean that no record failed. An identifier that is missing, null, empty or
// of no record in the batch means that all failed. So does any other answer, though it is unknown
// whether Lambda agrees.
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

// all returns the places of all records.
func all(entries []entry) []int {
	places := make([]int, len(entries))
	for i := range places {
		places[i] = i
	}
	return places
}
