package program

import (
	"bytes"
	"encoding/json"
)

// mapping is an event source mapping in a request or an answer of the Lambda API. It has the
// members that the commands set or show. A member with its zero value is not sent.
type mapping struct {
	EventSourceArn                 string            `json:",omitzero"`
	StartingPosition               string            `json:",omitzero"`
	Enabled                        *bool             `json:",omitzero"`
	FunctionName                   string            `json:",omitzero"`
	FilterCriteria                 *mappingFilters   `json:",omitzero"`
	BatchSize                      *int32            `json:",omitzero"`
	MaximumBatchingWindowInSeconds *int32            `json:",omitzero"`
	ParallelizationFactor          *int32            `json:",omitzero"`
	BisectBatchOnFunctionError     *bool             `json:",omitzero"`
	FunctionResponseTypes          []string          `json:",omitzero"` // an empty list removes all
	MaximumRetryAttempts           *int32            `json:",omitzero"`
	MaximumRecordAgeInSeconds      *int32            `json:",omitzero"`
	DestinationConfig              *mappingOnFailure `json:",omitzero"`

	// only in answers
	UUID                      string    `json:",omitzero"`
	State                     string    `json:",omitzero"`
	StateTransitionReason     string    `json:",omitzero"`
	FunctionArn               string    `json:",omitzero"`
	LastProcessingResult      string    `json:",omitzero"`
	LastModified              *wireTime `json:",omitzero"`
	StartingPositionTimestamp *wireTime `json:",omitzero"`

	answer []byte
}

type (
	mappingFilters   struct{ Filters []mappingFilter }
	mappingFilter    struct{ Pattern string }
	mappingOnFailure struct {
		OnFailure *mappingTarget `json:",omitzero"`
	}
	mappingTarget struct{ Destination string } // an empty ARN removes the target
)

// mappingPage is a page of a list. The last page has no NextMarker.
type mappingPage struct {
	EventSourceMappings []mapping
	NextMarker          string
}

// UnmarshalJSON implements json.Unmarshaler. It keeps the text for members.
func (m *mapping) UnmarshalJSON(text []byte) error {
	type plain mapping
	m.answer = bytes.Clone(text)
	return json.Unmarshal(text, (*plain)(m))
}

// members returns the members of an answer that are set, also those that mapping lacks.
func (m *mapping) members() map[string]any {
	all := map[string]any{}
	d := json.NewDecoder(bytes.NewReader(m.answer))
	d.UseNumber()
	_ = d.Decode(&all) // without an error, since UnmarshalJSON had none
	if m.LastModified != nil {
		all["LastModified"] = m.LastModified
	}
	if m.StartingPositionTimestamp != nil {
		all["StartingPositionTimestamp"] = m.StartingPositionTimestamp
	}
	dropUnset(all)
	return all
}

// dropUnset removes the members that are null or an empty list. It returns nil for such a value.
func dropUnset(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for name, member := range v {
			if v[name] = dropUnset(member); v[name] == nil {
				delete(v, name)
			}
		}
	case []any:
		if len(v) == 0 {
			return nil
		}
		for i := range v {
			v[i] = dropUnset(v[i])
		}
	}
	return v
}
