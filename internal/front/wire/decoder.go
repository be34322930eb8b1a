package wire

import (
	"github.com/mayflydb/mayfly/internal/front/fault"
	"github.com/mayflydb/mayfly/internal/store/dynamo"
	"github.com/mayflydb/mayfly/internal/store/service"
)

// decoder reads one request body into a service input. Its errors stick, as dynamo.JSON's do: the
// decode functions read on without checks, and the caller asks for the error at the end. A decode
// function is called after the opening brace of a structure and reads its members. Unknown members
// are skipped, and null ones count as absent.
type decoder struct {
	dynamo.JSON
	request  *Request
	response *Response
	caller   *caller
	faults   *fault.Faults
	name     string // of the operation
	body     []byte // the decompressed body of the request
	running  any    // the input of the operation while its method runs
	// items and values of this request, one after the other. It is never reused, since inputs refer
	// to it
	arena []byte
	// a ValidationException from outside the body; type errors of the body come first
	invalid error
}

// stored returns the value that read appends to the arena, or nil if it appends nothing. The first
// value allocates the arena with the size of the body, because the binary form of all items is
// smaller than their JSON.
func (d *decoder) stored(read func(dst []byte) (out []byte, invalid, fatal error)) ([]byte, error) {
	if d.arena == nil {
		d.arena = make([]byte, 0, len(d.body))
	}
	start := len(d.arena)
	out, invalid, _ := read(d.arena)
	d.arena = out
	if len(out) == start {
		return nil, invalid
	}
	return out[start:len(out):len(out)], invalid
}

// item reads an AttributeMap that is a member of a structure.
func (d *decoder) item() service.ItemArg {
	item, invalid := d.stored(d.AppendItem)
	return service.ItemArg{Item: item, Err: invalid}
}

// itemElement reads an AttributeMap that is an element of a list.
func (d *decoder) itemElement() service.ItemArg {
	item, invalid := d.stored(d.AppendItemElement)
	return service.ItemArg{Item: item, Err: invalid}
}

// value reads an AttributeValue in a list or map. It stores the error of the first invalid one in
// bad.
func (d *decoder) value(bad *error) dynamo.Value {
	v, invalid := d.stored(d.AppendValue)
	keepFirst(bad, invalid)
	return v
}

// valueMember is value for a member of a structure.
func (d *decoder) valueMember(bad *error) dynamo.Value {
	v, invalid := d.stored(d.AppendValueMember)
	keepFirst(bad, invalid)
	return v
}

func keepFirst(first *error, err error) {
	if *first == nil {
		*first = err
	}
}

// member is a member of a structure: its name, and a pointer to the variable that receives its
// value. The variable's type decides how the value is read; see readMember.
type member struct {
	name string
	into any
}

// members are members of one structure. They are few, so comparing their names is faster than a
// map, and a literal of them stays on the stack.
type members []member

// find returns the pointer of the member with this name, or nil.
func (m members) find(name []byte) any {
	for i := range m {
		if m[i].name == string(name) {
			return m[i].into
		}
	}
	return nil
}

// read reads the members of a structure, after its opening brace: those of two lists. It skips all
// others.
func (d *decoder) read(list members, others ...member) {
	var name []byte
	for d.NextMember(&name) {
		into := list.find(name)
		if into == nil {
			into = members(others).find(name)
		}
		if into != nil {
			d.readMember(into)
		} else {
			d.Skip()
		}
	}
}

// readMember reads a value into the variable that into points to. For a type with several forms in
// requests, into is a function that reads the value.
func (d *decoder) readMember(into any) {
	switch v := into.(type) {
	case *service.Opt[string]:
		*v = service.Some(d.CopyText())
	case *service.ItemArg:
		*v = d.item()
	case *service.Names:
		*v = d.names()
	case *service.Values:
		*v = d.values()
	case *service.Opt[bool]:
		*v = service.Some(d.Bool())
	case *service.Opt[int64]:
		*v = service.Some(int64(d.Int()))
	case *[]string:
		*v = d.texts()
	case func():
		v()
	default:
		d.readStructure(into)
	}
}

// long returns a function that reads a member that is a Long; most integers are an Integer.
func (d *decoder) long(into *service.Opt[int64]) func() {
	return func() { *into = service.Some(d.Long()) }
}

// texts reads a list of strings. It returns nil for null only.
func (d *decoder) texts() []string {
	return list(d, func(d *decoder, s *string) { *s = d.CopyText() })
}

// list reads a list with one call of read for each element. It returns nil for null only.
func list[T any](d *decoder, read func(*decoder, *T)) []T {
	if !d.List() {
		return nil
	}
	return elements(d, read)
}

// keepMembers limits the members of a list and the tables of a batch that are stored. The API
// allows at most a few hundred, so the service refuses longer lists. Without the limit, a body of
// 16 MB could become an input of gigabytes.
const keepMembers = 1000

// elements reads the elements of a list after its opening bracket, all of them, and returns the
// first keepMembers.
func elements[T any](d *decoder, read func(*decoder, *T)) []T {
	elems := []T{}
	for d.NextElement() {
		var elem T
		read(d, &elem)
		if len(elems) < keepMembers {
			elems = append(elems, elem)
		}
	}
	return elems
}

// structs reads a list of structures of the type typ. A null in it is an empty structure.
func structs[T any](d *decoder, typ string, read func(*decoder, *T)) []T {
	return list(d, func(d *decoder, elem *T) {
		if d.StructElement(typ) {
			read(d, elem)
		}
	})
}

// structure reads a member that is a structure. It returns nil for null.
func structure[T any](d *decoder, typ string, read func(*decoder, *T)) *T {
	if !d.Struct(typ) {
		return nil
	}
	v := new(T)
	read(d, v)
	return v
}
