package scheduler

import (
	"bytes"
	"encoding/json"
)

// mustJSON returns a value of strings and numbers as JSON.
func mustJSON(v any) []byte {
	text, err := json.Marshal(v)
	if err != nil {
		panic("scheduler: a value does not marshal: " + err.Error())
	}
	return text
}

// compactJSON returns a value as JSON, without escaping < and >.
func compactJSON(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic("scheduler: a value does not marshal: " + err.Error()) // it was parsed from JSON
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}
