package program

import (
	"bytes"
	"encoding/json"
	"io"
	"reflect"
	"strings"

	scheduler "github.com/aws/aws-sdk-go-v2/service/scheduler/types"
)

// membersOf returns the JSON form of one of the SDK's structures, with the API's names and without
// unset members.
func membersOf(structure any) map[string]any {
	members, _ := wireForm(reflect.ValueOf(structure)).(map[string]any)
	return members
}

// lowerMembers are the structures whose members begin with a small letter in JSON, unlike all
// others (the scheduler's model of 2021-06-30).
var lowerMembers = map[reflect.Type]bool{
	reflect.TypeFor[scheduler.NetworkConfiguration](): true, reflect.TypeFor[scheduler.CapacityProviderStrategyItem](): true,
	reflect.TypeFor[scheduler.PlacementConstraint](): true, reflect.TypeFor[scheduler.PlacementStrategy](): true,
}

// wireForm returns nil for an unset member: a nil pointer, or a zero value that is no pointer.
func wireForm(v reflect.Value) any {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			return nil
		}
		if e := v.Elem(); e.Kind() != reflect.Struct {
			return e.Interface() // set, even if zero
		}
		return wireForm(v.Elem())
	case reflect.Struct:
		return wireStruct(v)
	case reflect.Slice:
		if v.Len() == 0 {
			return nil
		}
		all := make([]any, v.Len())
		for i := range all {
			all[i] = wireForm(v.Index(i))
		}
		return all
	}
	if v.IsZero() {
		return nil
	}
	return v.Interface()
}

func wireStruct(v reflect.Value) map[string]any {
	members := map[string]any{}
	for i := range v.NumField() {
		field := v.Type().Field(i)
		if !field.IsExported() {
			continue
		}
		name := field.Name
		if lowerMembers[v.Type()] {
			name = strings.ToLower(name[:1]) + name[1:]
		}
		if value := wireForm(v.Field(i)); value != nil {
			members[name] = value
		}
	}
	return members
}

// marshalLine returns json.Marshal without HTML escapes: expressions, inputs and patterns contain <
// and >.
func marshalLine(v any) ([]byte, error) {
	var b bytes.Buffer
	to := json.NewEncoder(&b)
	to.SetEscapeHTML(false)
	err := to.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

// writeIndentedJSON prints a value on several lines, for readers.
func writeIndentedJSON(w io.Writer, v any) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	return encoder.Encode(v)
}

// writeJSON prints a value on a line of its own.
func writeJSON(w io.Writer, v any) error {
	text, err := marshalLine(v)
	if err != nil {
		return err
	}
	_, err = w.Write(append(text, '\n'))
	return err
}
