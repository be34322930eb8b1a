package wire

import (
	"github.com/mayflydb/mayfly/internal/store/dynamo"
	"github.com/mayflydb/mayfly/internal/store/service"
)

// decoder reads one request body into a service input. Its errors stick, as dynamo.JSON's do: the decode functions read on
// without checking, and the caller asks for the error at the end. Each decode function is called inside a structure and
// reads its members; members that it does not know are passed over, and null members never arrive.
type decoder struct {
	dynamo.JSON
	request  *Request
	response *Response
	body     []byte // of the request, decompressed
	arena    []byte // items and values of this request, one after the other; never reused, since inputs refer to it
	invalid  error  // a ValidationException that is not about the body; it ranks behind the body's errors of type
}

// store makes the bytes that were appended to the arena since start a value of their own.
func (d *decoder) store(out []byte, start int) []byte {
	d.arena = out
	if len(out) == start {
		return nil
	}
	return out[start:len(out):len(out)]
}

// space gives the arena. It is made when the first item is read, in the size of what is to come: the binary form of an item
// is smaller than its JSON.
func (d *decoder) space() []byte {
	if d.arena == nil {
		d.arena = make([]byte, 0, len(d.body))
	}
	return d.arena
}

// item reads an AttributeMap that is a member of a structure.
func (d *decoder) item() service.ItemArg {
	start := len(d.arena)
	out, invalid, _ := d.AppendItem(d.space())
	return service.ItemArg{Item: d.store(out, start), Err: invalid}
}

// itemElement reads an AttributeMap that is an element of a list.
func (d *decoder) itemElement() service.ItemArg {
	start := len(d.arena)
	out, invalid, _ := d.AppendItemElement(d.space())
	return service.ItemArg{Item: d.store(out, start), Err: invalid}
}

// value reads an AttributeValue that is an element of a list or map. The first that is invalid goes into bad.
func (d *decoder) value(bad *error) dynamo.Value {
	start := len(d.arena)
	out, invalid, _ := d.AppendValue(d.space())
	keepFirst(bad, invalid)
	return d.store(out, start)
}

// valueMember is value for the member of a structure.
func (d *decoder) valueMember(bad *error) dynamo.Value {
	start := len(d.arena)
	out, invalid, _ := d.AppendValueMember(d.space())
	keepFirst(bad, invalid)
	return d.store(out, start)
}

func keepFirst(kept *error, err error) {
	if *kept == nil {
		*kept = err
	}
}

func (d *decoder) text() service.Opt[string] { return service.Some(d.CopyText()) }

func (d *decoder) boolean() service.Opt[bool] { return service.Some(d.Bool()) }

func (d *decoder) integer() service.Opt[int64] { return service.Some(int64(d.Int())) }

func (d *decoder) long() service.Opt[int64] { return service.Some(d.Long()) }

// texts reads a list of strings; the result is nil for null only.
func (d *decoder) texts() []string {
	return list(d, func(d *decoder, s *string) { *s = d.CopyText() })
}

// list reads a list with one call of read for each element; the result is nil for null only.
func list[T any](d *decoder, read func(*decoder, *T)) []T {
	if !d.List() {
		return nil
	}
	return elements(d, read)
}

// keepMembers is how many members of a list, and how many tables of a batch, are kept. The API allows no more than a few
// hundred of any, so the service refuses what is longer; without this, a body of 16 MB could become an input of gigabytes.
const keepMembers = 1000

// elements reads the rest of a list that has begun.
func elements[T any](d *decoder, read func(*decoder, *T)) []T {
	all := []T{}
	for d.NextElement() {
		var one T
		read(d, &one)
		if len(all) < keepMembers {
			all = append(all, one)
		}
	}
	return all
}

// structs reads a list of structures of the type typ. A null among them is an empty structure.
func structs[T any](d *decoder, typ string, read func(*decoder, *T)) []T {
	return list(d, func(d *decoder, one *T) {
		if d.StructElement(typ) {
			read(d, one)
		}
	})
}

// structure reads a structure that is a member of another; nil: it was null.
func structure[T any](d *decoder, typ string, read func(*decoder, *T)) *T {
	if !d.Struct(typ) {
		return nil
	}
	one := new(T)
	read(d, one)
	return one
}
