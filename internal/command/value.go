package command

import (
	"cmp"
	"encoding"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

// value is a field that texts can set: a string, a number, a switch, a duration, an
// encoding.TextUnmarshaler, a pointer to one of these, a slice, or a map of texts.
type value struct {
	of   reflect.Value
	enum []string
	sep  string // separator of a slice's elements; "": none
}

func newValue(of reflect.Value, tag reflect.StructTag) value {
	v := value{of: of, sep: ","}
	if tag.Get("sep") == "none" {
		v.sep = ""
	}
	if enum := tag.Get("enum"); enum != "" {
		v.enum = strings.Split(enum, ",")
	}
	if _, is := tag.Lookup("arg"); is { // each word is an element
		v.sep = ""
	}
	return v
}

var (
	durationType = reflect.TypeFor[time.Duration]()
	timeType     = reflect.TypeFor[time.Time]()
	readerType   = reflect.TypeFor[encoding.TextUnmarshaler]()
)

// element returns the type that one text sets.
func (v value) element() reflect.Type {
	t := v.of.Type()
	if v.many() || t.Kind() == reflect.Pointer {
		return t.Elem()
	}
	return t
}

func (v value) many() bool {
	return (v.of.Kind() == reflect.Slice || v.of.Kind() == reflect.Map) && !reflect.PointerTo(v.of.Type()).Implements(readerType)
}

func (v value) isSwitch() bool { return v.element().Kind() == reflect.Bool }

func (v value) isText() bool {
	return v.element().Kind() == reflect.String && !reflect.PointerTo(v.element()).Implements(readerType)
}

// set sets the field. If first is false, it adds to a slice or map.
func (v value) set(text string, first bool) error {
	if !v.many() {
		target := v.of
		if target.Kind() == reflect.Pointer {
			target = reflect.New(target.Type().Elem()).Elem()
		}
		if err := v.setOne(target, text); err != nil {
			return err
		}
		if v.of.Kind() == reflect.Pointer {
			v.of.Set(target.Addr())
		}
		return nil
	}
	if first {
		v.of.SetZero()
	}
	if v.of.Kind() == reflect.Map {
		return v.setPairs(text)
	}
	texts := []string{text}
	if v.sep != "" {
		texts = strings.Split(text, v.sep)
	}
	for _, text := range texts {
		one := reflect.New(v.of.Type().Elem()).Elem()
		if err := v.setOne(one, text); err != nil {
			return err
		}
		v.of.Set(reflect.Append(v.of, one))
	}
	return nil
}

// setPairs adds key=value;key=value.
func (v value) setPairs(text string) error {
	for _, pair := range strings.Split(text, ";") {
		key, of, ok := strings.Cut(pair, "=")
		if !ok {
			return fmt.Errorf("%q is not of the form KEY=VALUE", pair)
		}
		if v.of.IsNil() {
			v.of.Set(reflect.MakeMap(v.of.Type()))
		}
		v.of.SetMapIndex(reflect.ValueOf(key), reflect.ValueOf(of))
	}
	return nil
}

func (v value) setOne(target reflect.Value, text string) error {
	if len(v.enum) > 0 && !slices.Contains(v.enum, text) {
		return fmt.Errorf("%q is not one of %s", text, strings.Join(slices.DeleteFunc(slices.Clone(v.enum), func(s string) bool { return s == "" }), ", "))
	}
	if target.Type() == timeType {
		t, err := time.Parse(time.RFC3339Nano, text)
		if err != nil {
			return fmt.Errorf("invalid time %q; use 2030-01-01T00:00:00Z or 2030-01-01T00:00:00+01:00", text)
		}
		target.Set(reflect.ValueOf(t))
		return nil
	}
	if reader, is := target.Addr().Interface().(encoding.TextUnmarshaler); is {
		return reader.UnmarshalText([]byte(text))
	}
	if target.Type() == durationType {
		d, err := time.ParseDuration(text)
		if err != nil {
			return fmt.Errorf("%q is not a duration", text)
		}
		target.SetInt(int64(d))
		return nil
	}
	switch target.Kind() {
	case reflect.String:
		target.SetString(text)
	case reflect.Bool:
		on, err := readSwitch(text)
		if err != nil {
			return err
		}
		target.SetBool(on)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		n, err := strconv.ParseInt(text, 10, target.Type().Bits())
		if err != nil {
			return fmt.Errorf("%q is not a whole number%s", text, tooLong(err))
		}
		target.SetInt(n)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		n, err := strconv.ParseUint(text, 10, target.Type().Bits())
		if err != nil {
			return fmt.Errorf("%q is not a whole number of 0 or more%s", text, tooLong(err))
		}
		target.SetUint(n)
	case reflect.Float32, reflect.Float64:
		n, err := strconv.ParseFloat(text, target.Type().Bits())
		if err != nil || n-n != 0 {
			return fmt.Errorf("%q is not a number", text)
		}
		target.SetFloat(n)
	default:
		panic("no text sets a " + target.Type().String())
	}
	return nil
}

// example returns a valid value after the text front: the default, or one for the type. It returns
// nothing if the error for a wrong value already shows an example.
func (v value) example(front, standard string) string {
	kind := v.element().Kind()
	switch {
	case len(v.enum) > 0 || v.of.Kind() == reflect.Map || reflect.PointerTo(v.element()).Implements(readerType):
		return ""
	case v.element() == durationType:
		standard = cmp.Or(standard, "30s")
	case kind == reflect.Bool:
		standard = "true"
	case kind == reflect.Float32, kind == reflect.Float64:
		standard = cmp.Or(standard, "0.5")
	case kind == reflect.String:
		return ""
	default:
		standard = cmp.Or(standard, "10")
	}
	return "for example " + front + standard
}

func tooLong(err error) string {
	if n, is := err.(*strconv.NumError); is && n.Err == strconv.ErrRange {
		return " in the range allowed"
	}
	return ""
}

func readSwitch(text string) (bool, error) {
	switch strings.ToLower(text) {
	case "true", "1", "yes":
		return true, nil
	case "false", "0", "no":
		return false, nil
	}
	return false, fmt.Errorf("%q is neither true nor false", text)
}
