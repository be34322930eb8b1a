// Package dynamo is the vocabulary of the data model: attribute values, items, keys, numbers, and the errors that the
// API defines. Everything above the key-value store speaks it; it imports nothing of ours.
//
// # Binary form
//
// Values and items live as bytes from the moment that a request is read, and decode only where something touches
// them. The form is canonical: equal values have equal bytes, so "did this write change anything" is bytes.Equal.
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
// Every value can be skipped without being read, so finding an attribute costs its position and not its neighbours' size.
//
// # Who makes it and who trusts it
//
// The form is made by JSON (requests), the Append functions, Builder, Item.With and the arithmetic of numbers, which keep it
// canonical. The methods of Value, Item and Number read it in place, trust it, and hand out views of it; on other bytes
// they may panic. CheckItem and CheckValue say whether bytes from elsewhere deserve that trust.
//
// # Errors
//
// What a request did wrong is an *Error with AWS's code and text. Reading a request knows two kinds: a SerializationException
// (malformed JSON, a member of the wrong type) ends the reading; a ValidationException (a bad number, an empty set, too deep
// a nesting) is remembered while the reading goes on, because it ranks behind the former and behind other checks of the
// request (docs/spec/errors.md §4). Bytes that CheckItem refuses are a fault, not an answer: those errors are plain.
package dynamo

// Kind says which of DynamoDB's ten types a value has. It is the first byte of the binary form.
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

// Value is one attribute value in binary form, kind byte included. The zero Value (nil) means "no value".
// A Value usually aliases the bytes of its item: do not change it, and copy it to keep it longer.
type Value []byte

// Item is an item (or a key, or a projection of one) in binary form. nil means "no item"; an empty map is not nil.
type Item []byte
