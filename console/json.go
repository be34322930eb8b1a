package console

import (
	"bytes"
	"encoding/json"
)

// jsonOf returns a value as JSON. The texts are for people and programs, not for HTML: <, > and &
// stay as they are.
func jsonOf(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(err) // of strings, numbers, lists and maps of them
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}
