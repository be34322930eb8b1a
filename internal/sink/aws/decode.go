package aws

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mayflydb/mayfly/target"
)

// decodeInput decodes the Input of a universal target into an operation's input. Members have the
// API's names in PascalCase, as in EventBridge Scheduler. An unknown member is an error, since its
// effect would be missing. Bytes are base64, as in the APIs' own JSON; members named in text are
// plain text. Times are RFC 3339 or epoch seconds.
//
// encoding/json would do most of this, but accepts names in any case, and its errors for a wrong
// type name Go types.
func decodeInput(body []byte, into any, text ...string) error {
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber()
	var given any
	if err := decoder.Decode(&given); err != nil {
		if errors.Is(err, io.EOF) {
			err = errors.New("it is empty")
		}
		return invalid("The Input is not JSON: %v", err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return invalid("The Input has more than one JSON value")
	}
	return inputDecoder{text}.value(reflect.ValueOf(into).Elem(), given, "")
}

// invalid is the refusal of an Input, which no other attempt can mend.
func invalid(format string, arguments ...any) error {
	return target.Permanent(codeInvalid, fmt.Sprintf(format, arguments...))
}

type inputDecoder struct{ text []string }

var timeType = reflect.TypeFor[time.Time]()

// value decodes a JSON value into a Go value. A null leaves it unchanged.
func (d inputDecoder) value(into reflect.Value, given any, path string) error {
	if given == nil {
		return nil
	}
	if into.Type() == timeType {
		return setTime(into, given, path)
	}
	switch into.Kind() {
	case reflect.Pointer:
		into.Set(reflect.New(into.Type().Elem()))
		return d.value(into.Elem(), given, path)
	case reflect.Struct:
		return d.structure(into, given, path)
	case reflect.Slice:
		if into.Type().Elem().Kind() == reflect.Uint8 {
			return d.blob(into, given, path)
		}
		return d.list(into, given, path)
	case reflect.Map:
		return d.dictionary(into, given, path)
	default:
		return scalar(into, given, path)
	}
}

func (d inputDecoder) structure(into reflect.Value, given any, path string) error {
	object, ok := given.(map[string]any)
	if !ok {
		return mismatch(path, "an object", given)
	}
	for name, value := range object {
		field, known := into.Type().FieldByName(name)
		if !known || !field.IsExported() || field.Anonymous {
			return unknownMember(into.Type(), path, name)
		}
		if err := d.value(into.FieldByIndex(field.Index), value, member(path, name)); err != nil {
			return err
		}
	}
	return nil
}

func (d inputDecoder) list(into reflect.Value, given any, path string) error {
	array, ok := given.([]any)
	if !ok {
		return mismatch(path, "an array", given)
	}
	list := reflect.MakeSlice(into.Type(), len(array), len(array))
	for i, value := range array {
		if err := d.value(list.Index(i), value, path+"["+strconv.Itoa(i)+"]"); err != nil {
			return err
		}
	}
	into.Set(list)
	return nil
}

func (d inputDecoder) dictionary(into reflect.Value, given any, path string) error {
	object, ok := given.(map[string]any)
	if !ok {
		return mismatch(path, "an object", given)
	}
	dictionary := reflect.MakeMapWithSize(into.Type(), len(object))
	for name, value := range object {
		element := reflect.New(into.Type().Elem()).Elem()
		if err := d.value(element, value, member(path, name)); err != nil {
			return err
		}
		dictionary.SetMapIndex(reflect.ValueOf(name).Convert(into.Type().Key()), element)
	}
	into.Set(dictionary)
	return nil
}

func (d inputDecoder) blob(into reflect.Value, given any, path string) error {
	text, ok := given.(string)
	if !ok {
		return mismatch(path, "a string", given)
	}
	if slices.Contains(d.text, path) {
		into.SetBytes([]byte(text))
		return nil
	}
	blob, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return invalid("The member %s must be base64", path)
	}
	into.SetBytes(blob)
	return nil
}

func scalar(into reflect.Value, given any, path string) error {
	switch into.Kind() {
	case reflect.String:
		text, ok := given.(string)
		if !ok {
			return mismatch(path, "a string", given)
		}
		into.SetString(text)
	case reflect.Bool:
		truth, ok := given.(bool)
		if !ok {
			return mismatch(path, "true or false", given)
		}
		into.SetBool(truth)
	case reflect.Int32, reflect.Int64:
		number, _ := given.(json.Number)
		n, err := strconv.ParseInt(number.String(), 10, into.Type().Bits())
		if err != nil {
			return mismatch(path, "a whole number", given)
		}
		into.SetInt(n)
	case reflect.Float32, reflect.Float64:
		number, _ := given.(json.Number)
		n, err := strconv.ParseFloat(number.String(), into.Type().Bits())
		if err != nil {
			return mismatch(path, "a number", given)
		}
		into.SetFloat(n)
	default:
		return invalid("The member %s cannot be set in an Input", path)
	}
	return nil
}

func setTime(into reflect.Value, given any, path string) error {
	switch given := given.(type) {
	case string:
		if at, err := time.Parse(time.RFC3339, given); err == nil {
			into.Set(reflect.ValueOf(at))
			return nil
		}
	case json.Number:
		if seconds, err := given.Float64(); err == nil && math.Abs(seconds) < 1e11 {
			into.Set(reflect.ValueOf(time.UnixMilli(int64(math.Round(seconds * 1000))).UTC()))
			return nil
		}
	}
	return mismatch(path, "a time, as 2030-01-02T03:04:05Z or in epoch seconds", given)
}

func member(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

func mismatch(path, want string, given any) error {
	kind := "null"
	switch given.(type) {
	case string:
		kind = "a string"
	case bool:
		kind = "a boolean"
	case json.Number:
		kind = "a number"
	case []any:
		kind = "an array"
	case map[string]any:
		kind = "an object"
	}
	if path == "" {
		return invalid("The Input must be %s, and is %s", want, kind)
	}
	if kind == want || strings.HasPrefix(want, "a whole") && kind == "a number" {
		return invalid("The member %s must be %s in range", path, want)
	}
	return invalid("The member %s must be %s, and is %s", path, want, kind)
}

func unknownMember(of reflect.Type, path, name string) error {
	for f := range of.Fields() {
		if f.IsExported() && strings.EqualFold(f.Name, name) {
			return invalid("The Input has a member %s that the operation does not have; it is called %s", member(path, name), member(path, f.Name))
		}
	}
	return invalid("The Input has a member %s that the operation does not have", member(path, name))
}
