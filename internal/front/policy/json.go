package policy

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// The functions of this file take parts of a text that is valid JSON. Each reads one level only, so
// the depth that a policy can have is the depth of its grammar.

// member is a member of a JSON object.
type member struct {
	name  string
	value json.RawMessage
}

// members returns the members of an object in their order, and false for any other value.
func members(raw json.RawMessage) (all []member, ok bool) {
	d := json.NewDecoder(bytes.NewReader(raw))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil, false
	}
	for d.More() {
		var m member
		name, err := d.Token()
		if err != nil {
			return nil, false
		}
		m.name, _ = name.(string)
		if d.Decode(&m.value) != nil {
			return nil, false
		}
		all = append(all, m)
	}
	return all, true
}

// textOf returns a string value, and false for any other one. Strings with U+FFFD are refused too:
// that is how half of a surrogate pair is read.
func textOf(raw json.RawMessage) (text string, ok bool) {
	if len(raw) == 0 || raw[0] != '"' || json.Unmarshal(raw, &text) != nil {
		return "", false
	}
	return text, !strings.ContainsRune(text, utf8.RuneError)
}

// excerpt returns the beginning of a value for a message, or "missing" if there is no value.
func excerpt(raw json.RawMessage) string {
	const size = 200
	switch {
	case raw == nil:
		return "missing"
	case len(raw) > size:
		return strings.ToValidUTF8(string(raw[:size]), "") + "…"
	}
	return string(raw)
}

// offset returns the place of a syntax error.
func offset(err error) string {
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		return fmt.Sprintf(", at byte %d", syntax.Offset)
	}
	return ""
}

// document returns the JSON value in a text, if it is one.
func document(text []byte) (raw json.RawMessage, err error) {
	if !utf8.Valid(text) {
		return nil, fmt.Errorf("the policy is not UTF-8; save it in that encoding")
	}
	if err := json.Unmarshal(text, &raw); err != nil {
		return nil, fmt.Errorf("the policy is not JSON: %w%s; correct it there", err, offset(err))
	}
	return raw, nil
}
