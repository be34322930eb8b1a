package rpc

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"time"
)

// A tree consists of map[string]any, []any, string, int64, float64, json.Number, bool, Time and nil.

var typeTime = reflect.TypeFor[Time]()

// bind puts a tree into a structure. If texts is true, scalars are texts and an empty text is an
// empty list.
func bind(tree any, into any, texts bool) error {
	return binder{texts}.value(tree, reflect.ValueOf(into).Elem(), "")
}

type binder struct{ texts bool }

// value sets v. path is the member's name in messages.
func (b binder) value(tree any, v reflect.Value, path string) error {
	if tree == nil {
		return nil // absent
	}
	if v.Kind() == reflect.Pointer {
		v.Set(reflect.New(v.Type().Elem()))
		v = v.Elem()
	}
	ok := false
	switch {
	case v.Type() == typeTime:
		var t Time
		if t, ok = b.time(tree); ok {
			v.Set(reflect.ValueOf(t))
		}
	case v.Kind() == reflect.Struct:
		members, isMap := tree.(map[string]any)
		if isMap {
			return b.members(members, v, path)
		}
	case v.Kind() == reflect.Slice:
		list, isList := tree.([]any)
		if isList || b.texts && tree == "" {
			return b.list(list, v, path)
		}
	case v.Kind() == reflect.String:
		var s string
		s, ok = tree.(string)
		v.SetString(s)
	case v.Kind() == reflect.Bool:
		var t bool
		t, ok = b.boolean(tree)
		v.SetBool(t)
	case v.CanInt():
		var n float64
		n, ok = b.number(tree)
		ok = ok && n == math.Trunc(n) && math.Abs(n) <= 1<<53 && !v.OverflowInt(int64(n))
		if ok {
			v.SetInt(int64(n))
		}
	case v.CanFloat():
		var n float64
		n, ok = b.number(tree)
		v.SetFloat(n)
	default:
		panic("rpc: a message cannot have a " + v.Type().String())
	}
	if !ok {
		return wrongType(tree, v, path)
	}
	return nil
}

func (b binder) members(members map[string]any, v reflect.Value, path string) error {
	for i := range v.NumField() {
		name := memberName(v.Type().Field(i))
		inner := name
		if path != "" {
			inner = path + "." + name
		}
		if err := b.value(members[name], v.Field(i), inner); err != nil {
			return err
		}
	}
	return nil
}

func (b binder) list(list []any, v reflect.Value, path string) error {
	v.Set(reflect.MakeSlice(v.Type(), len(list), len(list)))
	for i, element := range list {
		at := path + "." + strconv.Itoa(i+1) + ".member"
		if element == nil {
			return errors.New(at + " is null")
		}
		if err := b.value(element, v.Index(i), at); err != nil {
			return err
		}
	}
	return nil
}

func (b binder) number(tree any) (n float64, ok bool) {
	switch t := tree.(type) {
	case int64:
		return float64(t), true
	case float64:
		return t, true
	case json.Number:
		n, err := t.Float64()
		return n, err == nil
	case string:
		n, err := strconv.ParseFloat(t, 64)
		return n, b.texts && err == nil && !math.IsNaN(n) && !math.IsInf(n, 0)
	}
	return 0, false
}

func (b binder) boolean(tree any) (value, ok bool) {
	switch t := tree.(type) {
	case bool:
		return t, true
	case string:
		return t == "true", b.texts && (t == "true" || t == "false")
	}
	return false, false
}

// secondsMax bounds instants, to the years with four digits.
const secondsMax = 253402300799

func (b binder) time(tree any) (Time, bool) {
	switch t := tree.(type) {
	case Time:
		return t, true
	case string:
		if !b.texts {
			return Time{}, false
		}
		for _, layout := range []string{time.RFC3339, "2006-01-02T15:04:05", "2006-01-02T15:04Z07:00", "2006-01-02"} {
			if at, err := time.Parse(layout, t); err == nil {
				return Time{at.UTC()}, true
			}
		}
		return Time{}, false
	}
	seconds, ok := b.number(tree)
	return instant(seconds), ok && math.Abs(seconds) <= secondsMax
}

// instant returns the time at so many seconds after the epoch, to the millisecond.
func instant(seconds float64) Time {
	if !(math.Abs(seconds) <= secondsMax) {
		return Time{}
	}
	return Time{time.UnixMilli(int64(math.Round(seconds * 1000))).UTC()}
}

// wrongType returns the error for a value of a wrong type.
func wrongType(tree any, v reflect.Value, path string) error {
	found := "STRUCTURE_VALUE"
	switch tree.(type) {
	case string:
		found = "STRING_VALUE"
	case int64, float64, json.Number:
		found = "NUMBER_VALUE"
	case bool:
		found = "BOOLEAN_VALUE"
	case []any:
		found = "LIST_VALUE"
	case Time:
		found = "TIMESTAMP_VALUE"
	}
	wanted := "Structure"
	switch {
	case v.Type() == typeTime:
		wanted = "Timestamp"
	case v.Kind() == reflect.Slice:
		wanted = "List"
	case v.Kind() == reflect.String:
		wanted = "String"
	case v.Kind() == reflect.Bool:
		wanted = "Boolean"
	case v.CanInt():
		wanted = "Integer"
	case v.CanFloat():
		wanted = "Double"
	}
	if path == "" {
		return fmt.Errorf("%s cannot be converted to %s", found, wanted)
	}
	return fmt.Errorf("%s: %s cannot be converted to %s", path, found, wanted)
}

// memberName returns the name of a field in messages.
func memberName(f reflect.StructField) string {
	if name := f.Tag.Get("rpc"); name != "" {
		return name
	}
	return f.Name
}
