package command

import (
	"cmp"
	"encoding"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mayflydb/mayfly/internal/when"
)

// Parameter is a flag or an argument of a command. Its field is a string, a number, a switch, a
// duration, a time, an encoding.TextUnmarshaler, a pointer to one of these, a slice, or a map of texts.
type Parameter struct {
	Name   string
	Help   string
	Hidden bool
	Env    []string // environment variables of a flag; earlier ones override later ones

	field reflect.Value
	tag   reflect.StructTag
	env   string           // the variable that messages name
	now   func() time.Time // for relative times; nil: they are errors
	from  source
	given []string // the texts that set the value
}

// source is the origin of a flag's value. Later ones override earlier ones.
type source int

const (
	fromDefault source = iota
	fromFile
	fromEnvironment
	fromLine
)

func has(tag reflect.StructTag, key string) bool {
	_, ok := tag.Lookup(key)
	return ok
}

func (p *Parameter) standard() string { return p.tag.Get("default") }

// isList reports whether a text of a slice is split at commas. A word of arguments is one element.
func (p *Parameter) isList() bool {
	split := p.tag.Get("sep") != "none" && !has(p.tag, "arg")
	return split && p.isMultiple() && p.field.Kind() == reflect.Slice
}

var (
	durationType = reflect.TypeFor[time.Duration]()
	timeType     = reflect.TypeFor[time.Time]()
	readerType   = reflect.TypeFor[encoding.TextUnmarshaler]()
)

// readsText reports whether a type parses its texts itself.
func readsText(t reflect.Type) bool { return reflect.PointerTo(t).Implements(readerType) }

// isMultiple reports whether the parameter has any number of values.
func (p *Parameter) isMultiple() bool {
	kind := p.field.Kind()
	return (kind == reflect.Slice || kind == reflect.Map) && !readsText(p.field.Type())
}

// element returns the type that one text sets.
func (p *Parameter) element() reflect.Type {
	t := p.field.Type()
	if p.isMultiple() || t.Kind() == reflect.Pointer {
		return t.Elem()
	}
	return t
}

func (p *Parameter) isSwitch() bool { return p.element().Kind() == reflect.Bool }

// set sets the field. If first is false, it adds to a slice or map.
func (p *Parameter) set(text string, first bool) error {
	if first || !p.isMultiple() {
		p.given = nil
	}
	p.given = append(p.given, text)
	switch {
	case p.isMultiple() && first:
		p.field.SetZero()
	case p.field.Kind() == reflect.Pointer:
		p.field.Set(reflect.New(p.element()))
		return p.setOne(p.field.Elem(), text)
	case !p.isMultiple():
		return p.setOne(p.field, text)
	}
	if p.field.Kind() == reflect.Map {
		return p.addPairs(text)
	}
	texts := []string{text}
	if p.isList() {
		texts = strings.Split(text, ",")
	}
	for _, text := range texts {
		one := reflect.New(p.element()).Elem()
		if err := p.setOne(one, text); err != nil {
			return err
		}
		p.field.Set(reflect.Append(p.field, one))
	}
	return nil
}

// addPairs adds key=value;key=value.
func (p *Parameter) addPairs(text string) error {
	if p.field.IsNil() {
		p.field.Set(reflect.MakeMap(p.field.Type()))
	}
	for pair := range strings.SplitSeq(text, ";") {
		key, element, ok := strings.Cut(pair, "=")
		if !ok {
			return fmt.Errorf("%q is not of the form KEY=VALUE", pair)
		}
		p.field.SetMapIndex(reflect.ValueOf(key), reflect.ValueOf(element))
	}
	return nil
}

func (p *Parameter) setOne(target reflect.Value, text string) error {
	enum := strings.Split(p.tag.Get("enum"), ",")
	if has(p.tag, "enum") && !slices.Contains(enum, text) {
		return fmt.Errorf("%q is not one of %s", text, strings.TrimRight(strings.Join(enum, ", "), ", "))
	}
	kind := target.Kind()
	reader, readsItself := reflect.TypeAssert[encoding.TextUnmarshaler](target.Addr())
	switch {
	case target.Type() == timeType:
		t, err := when.Instant(text, time.UTC, p.now)
		if err != nil {
			return err
		}
		target.Set(reflect.ValueOf(t))
	case readsItself:
		return reader.UnmarshalText([]byte(text))
	case target.Type() == durationType:
		d, err := when.Duration(text)
		if err != nil {
			return err
		}
		target.SetInt(int64(d))
	case kind == reflect.String:
		target.SetString(text)
	case kind == reflect.Bool:
		on, err := readSwitch(text)
		if err != nil {
			return err
		}
		target.SetBool(on)
	case target.CanInt():
		n, err := strconv.ParseInt(text, 10, target.Type().Bits())
		if err != nil {
			return fmt.Errorf("%q is not a whole number%s", text, rangeNote(err))
		}
		target.SetInt(n)
	case target.CanUint():
		n, err := strconv.ParseUint(text, 10, target.Type().Bits())
		if err != nil {
			return fmt.Errorf("%q is not a whole number of 0 or more%s", text, rangeNote(err))
		}
		target.SetUint(n)
	case target.CanFloat():
		n, err := strconv.ParseFloat(text, target.Type().Bits())
		if err != nil || n-n != 0 { // infinite, or no number
			return fmt.Errorf("%q is not a number", text)
		}
		target.SetFloat(n)
	default:
		panic("no text sets a " + target.Type().String())
	}
	return nil
}

// rangeNote returns the end of the error for a number that is too large, or nothing.
func rangeNote(err error) string {
	if errors.Is(err, strconv.ErrRange) {
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

// refuse returns the error for a text that does not set the parameter. The next step is a valid
// value after the text front, unless the error already shows one.
func (p *Parameter) refuse(err error, name, front string) *Usage {
	return usage("%s: %w", name, err).next("%s", p.example(front))
}

// example returns a valid value after the text front: the default, or one for the type. It returns
// nothing if the error for a wrong value already shows an example.
func (p *Parameter) example(front string) string {
	t, standard := p.element(), p.standard()
	switch kind := t.Kind(); {
	case has(p.tag, "enum"), p.field.Kind() == reflect.Map, readsText(t), kind == reflect.String, t == durationType:
		return ""
	case kind == reflect.Bool:
		standard = "true"
	case kind == reflect.Float32, kind == reflect.Float64:
		standard = cmp.Or(standard, "0.5")
	}
	return "for example " + front + cmp.Or(standard, "10")
}
