// Package dynamo is the vocabulary of the data model: attribute values, items, keys, numbers, and
// the errors that the API defines. Every package above the key-value store uses it. It imports no
// other package of mayfly.
//
// # Binary form
//
// Values and items are bytes from the moment that a request is read, and are decoded only where
// they are used. The form is canonical: equal values have equal bytes, so bytes.Equal shows whether
// a write changes anything.
//
//	value  = kind payload
//	NULL     (nothing)
//	BOOL     0x00 | 0x01
//	S, B     uvarint(length) bytes
//	N        length(1 byte) number            number: see Number
//	L        uvarint(bytes that follow) uvarint(count) value*
//	M        uvarint(bytes that follow) uvarint(count) (uvarint(length) name value)*    names ascending, no name twice
//	SS, BS   uvarint(bytes that follow) uvarint(count) (uvarint(length) bytes)*         ascending, none twice
//	NS       uvarint(bytes that follow) uvarint(count) (length(1 byte) number)*         ascending, none twice
//	item   = uvarint(count) (uvarint(length) name value)*                               as M, without its length
//
// Every value can be skipped unread, so the cost of finding an attribute depends on its position,
// not on the size of its neighbours.
//
// # Trust
//
// JSON (requests), the Append functions, Builder, Item.With and the arithmetic of numbers make the
// form and keep it canonical. The methods of Value, Item and Number read it in place, without
// checks, and return views of it; on other bytes they may panic. Check bytes from other sources
// with CheckItem.
//
// # Errors
//
// An error in a request is an *Error with AWS's code and text. Reading a request has two kinds. A
// SerializationException (malformed JSON, a member of the wrong type) ends the reading. A
// ValidationException (a bad number, an empty set, too deep a nesting) waits while the reading goes
// on, because it ranks after the former and after other checks of the request (docs/spec/errors.md
// §4). Bytes that CheckItem refuses are a fault, not an answer: those errors are plain.
package dynamo

// Kind is one of DynamoDB's ten types of values. It is the first byte of the binary form.
type Kind byte

// The kinds; the numbers are part of the storage format and never change.
const (
	KindNull   Kind = 1
	KindBool   Kind = 2
	KindString Kind = 3
	KindNumber Kind = 4
	KindBinary Kind = 5
	KindList   Kind = 6
	KindMap    Kind = 7
	KindSS     Kind = 8
	KindNS     Kind = 9
	KindBS     Kind = 10
)

// Value is one attribute value in binary form, kind byte included. The zero Value (nil) means "no
// value". A Value usually aliases the bytes of its item: do not change it, and copy it to keep it
// longer.
type Value []byte

// Item is an item (or a key, or a projection of one) in binary form. nil means "no item"; an empty
// map is not nil.
type Item []byte
