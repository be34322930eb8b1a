package rpc

import (
	"bytes"
	"reflect"
	"strconv"
	"time"
)

// element is the name of the elements of lists.
const element = "member"

// sink writes a message in one protocol. begin and end enclose a member of a structure, and an
// element of a list.
type sink interface {
	beginStruct(members int)
	endStruct()
	beginList(elements int)
	endList()
	begin(name string)
	end(name string)
	text(v string)
	integer(v int64)
	float(v float64)
	boolean(v bool)
	time(v time.Time)
}

// appendFloat appends a number that readers without a model take for a floating-point one: 2.0.
func appendFloat(b []byte, v float64) []byte {
	from := len(b)
	b = strconv.AppendFloat(b, v, 'g', -1, 64)
	if !bytes.ContainsAny(b[from:], ".e") {
		b = append(b, ".0"...)
	}
	return b
}

// appendValue writes a structure to a sink and returns the sink.
func appendValue[S sink](to S, v any) S {
	walk(to, reflect.Indirect(reflect.ValueOf(v)))
	return to
}

func walk(to sink, v reflect.Value) {
	if v.Kind() == reflect.Pointer {
		v = v.Elem()
	}
	switch {
	case v.Type() == typeTime:
		to.time(v.Interface().(Time).Time)
	case v.Kind() == reflect.Struct:
		walkStruct(to, v)
	case v.Kind() == reflect.Slice:
		to.beginList(v.Len())
		for i := range v.Len() {
			to.begin(element)
			walk(to, v.Index(i))
			to.end(element)
		}
		to.endList()
	case v.Kind() == reflect.String:
		to.text(v.String())
	case v.Kind() == reflect.Bool:
		to.boolean(v.Bool())
	case v.CanInt():
		to.integer(v.Int())
	case v.CanFloat():
		to.float(v.Float())
	default:
		panic("rpc: a message cannot have a " + v.Type().String())
	}
}

func walkStruct(to sink, v reflect.Value) {
	absent := func(i int) bool {
		f := v.Field(i)
		return (f.Kind() == reflect.Pointer || f.Kind() == reflect.Slice) && f.IsNil()
	}
	members := 0
	for i := range v.NumField() {
		if !absent(i) {
			members++
		}
	}
	to.beginStruct(members)
	for i := range v.NumField() {
		if absent(i) {
			continue
		}
		name := memberName(v.Type().Field(i))
		to.begin(name)
		walk(to, v.Field(i))
		to.end(name)
	}
	to.endStruct()
}
