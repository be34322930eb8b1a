package scheduler

import (
	"encoding/json"

	"github.com/mayflydb/mayfly/internal/work/template"
)

// mustJSON returns a value of strings and numbers as JSON.
func mustJSON(v any) []byte {
	text, err := json.Marshal(v)
	if err != nil {
		panic("scheduler: a value does not marshal: " + err.Error())
	}
	return text
}

// compactJSON returns a value that was parsed from JSON as JSON, without escaping < and >.
func compactJSON(v any) []byte {
	text, err := template.CompactJSON(v)
	if err != nil {
		panic("scheduler: a value does not marshal: " + err.Error())
	}
	return text
}
