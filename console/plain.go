package console

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly/internal/work/attr"
	"github.com/mayflydb/mayfly/internal/work/transfer"
)

// readPlain reads an item from plain JSON. was is the item that it replaces. JSON has no sets and no
// binary values, so an attribute that was one stays one: a list of texts becomes a set of strings
// again, and a text becomes binary. Where it is not clear which value was one, it is an error: a
// value must not lose its type in silence.
func readPlain(text string, was attr.Item) (attr.Item, error) {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber() // all digits
	v, err := plainValue(d, 0)
	if err != nil {
		return nil, err
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, errors.New("there is text after the object")
	}
	m, ok := v.(*types.AttributeValueMemberM)
	if !ok {
		return nil, errors.New("it is not an object")
	}
	if err := typedMembers(m.Value, was); err != nil {
		return nil, err
	}
	return m.Value, nil
}

// plainValue reads a value with the types of JSON.
func plainValue(d *json.Decoder, depth int) (types.AttributeValue, error) {
	token, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch token := token.(type) {
	case nil:
		return &types.AttributeValueMemberNULL{Value: true}, nil
	case bool:
		return attr.Bool(token), nil
	case json.Number:
		return attr.N(token.String()), nil
	case string:
		return attr.S(token), nil
	case json.Delim:
		if depth > depthMost {
			return nil, fmt.Errorf("it is nested deeper than %d levels", depthMost)
		}
		if token == '{' {
			return plainMap(d, depth)
		}
		return plainList(d, depth)
	}
	return nil, errors.New("it is not JSON")
}

func plainMap(d *json.Decoder, depth int) (types.AttributeValue, error) {
	m := attr.Item{}
	for d.More() {
		token, err := d.Token()
		if err != nil {
			return nil, err
		}
		name := token.(string) // the decoder returns nothing else
		if _, twice := m[name]; twice {
			return nil, fmt.Errorf("%q is there twice", clip(name, cellMost))
		}
		if m[name], err = plainValue(d, depth+1); err != nil {
			return nil, err
		}
	}
	_, err := d.Token()
	return attr.M(m), err
}

func plainList(d *json.Decoder, depth int) (types.AttributeValue, error) {
	var list []types.AttributeValue
	for d.More() {
		v, err := plainValue(d, depth+1)
		if err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	_, err := d.Token()
	return &types.AttributeValueMemberL{Value: list}, err
}

// typedMembers restores the types of a map's members from was, the map that it replaces.
func typedMembers(m, was attr.Item) (err error) {
	for _, name := range slices.Sorted(maps.Keys(m)) {
		if m[name], err = typed(m[name], was[name]); err != nil {
			return fmt.Errorf("%q %w", clip(name, cellMost), err)
		}
	}
	return nil
}

// typed returns a value of plain JSON with the types of the value that it replaces; nil: none. An
// error continues a sentence about the value.
func typed(v, was types.AttributeValue) (types.AttributeValue, error) {
	if list, ok := v.(*types.AttributeValueMemberL); ok {
		return typedList(list, was)
	}
	switch was := was.(type) {
	case *types.AttributeValueMemberN:
		if s, ok := v.(*types.AttributeValueMemberS); ok && s.Value == was.Value { // as appendPlain writes it
			return was, nil
		}
	case *types.AttributeValueMemberB:
		if s, ok := v.(*types.AttributeValueMemberS); ok {
			b, err := base64.StdEncoding.DecodeString(s.Value)
			if err != nil {
				return nil, fmt.Errorf("was binary, and %q is not base64", clip(s.Value, cellMost))
			}
			return attr.B(b), nil
		}
	case *types.AttributeValueMemberM:
		if m, ok := v.(*types.AttributeValueMemberM); ok {
			return m, typedMembers(m.Value, was.Value)
		}
	}
	return v, nil
}

// typedList returns a list of plain JSON as the list or the set that it replaces.
func typedList(list *types.AttributeValueMemberL, was types.AttributeValue) (types.AttributeValue, error) {
	set := func(made types.AttributeValue, ok bool) (types.AttributeValue, error) {
		switch {
		case len(list.Value) == 0:
			return nil, errors.New("was a set, and a set cannot be empty: remove the attribute, or write an empty list as DynamoDB JSON")
		case !ok: // its elements say that it is a list now
			return list, nil
		}
		return made, nil
	}
	switch was := was.(type) {
	case *types.AttributeValueMemberL:
		return list, typedElements(list.Value, was.Value)
	case *types.AttributeValueMemberSS:
		texts, ok := elementsOf[*types.AttributeValueMemberS](list.Value)
		return set(&types.AttributeValueMemberSS{Value: each(texts, func(s *types.AttributeValueMemberS) string { return s.Value })}, ok)
	case *types.AttributeValueMemberNS:
		for i, v := range list.Value {
			if s, ok := v.(*types.AttributeValueMemberS); ok && slices.Contains(was.Value, s.Value) { // as appendPlain writes it
				list.Value[i] = attr.N(s.Value)
			}
		}
		numbers, ok := elementsOf[*types.AttributeValueMemberN](list.Value)
		return set(&types.AttributeValueMemberNS{Value: each(numbers, func(n *types.AttributeValueMemberN) string { return n.Value })}, ok)
	case *types.AttributeValueMemberBS:
		texts, ok := elementsOf[*types.AttributeValueMemberS](list.Value)
		made := &types.AttributeValueMemberBS{}
		for _, s := range texts {
			b, err := base64.StdEncoding.DecodeString(s.Value)
			if err != nil {
				return nil, fmt.Errorf("was a set of binary values, and %q is not base64", clip(s.Value, cellMost))
			}
			made.Value = append(made.Value, b)
		}
		return set(made, ok)
	}
	return list, nil
}

// elementsOf returns the elements of a list as values of one type, and reports whether all are.
func elementsOf[V types.AttributeValue](list []types.AttributeValue) (all []V, ok bool) {
	for _, v := range list {
		one, ok := v.(V)
		if !ok {
			return nil, false
		}
		all = append(all, one)
	}
	return all, true
}

// errElements is the refusal of a list that may have lost the types of its elements.
var errElements = errors.New("is a list with sets or binary values, and it is not clear which of its elements are those now: plain JSON has no types for them. Write this change as DynamoDB JSON")

// typedElements restores the types of a list's elements from was, the list that it replaces. An
// element has no name, so its type is known only if it is unchanged, wherever it stands now, or if
// it is the only one that has changed, at its place.
func typedElements(list, was []types.AttributeValue) error {
	if !slices.ContainsFunc(was, isHidden) {
		for i := range min(len(list), len(was)) { // numbers that are no JSON
			if v, err := typed(list[i], was[i]); err == nil {
				list[i] = v
			}
		}
		return nil
	}
	places := map[string][]int{} // in was, by text
	for i, v := range was {
		text := string(appendPlain(nil, v))
		places[text] = append(places[text], i)
	}
	for _, same := range places { // values of different types with the same text stay where they are
		for _, i := range same {
			if digest(attr.Item{"": was[i]}) != digest(attr.Item{"": was[same[0]]}) && (len(list) != len(was) || !samePlain(list, was, same)) {
				return errElements
			}
		}
	}
	var fresh []int // in list
	for i, v := range list {
		text := string(appendPlain(nil, v))
		left := places[text]
		if len(left) == 0 {
			fresh = append(fresh, i)
			continue
		}
		list[i], places[text] = was[left[0]], left[1:]
	}
	var gone []int // in was
	hidden := false
	for _, left := range places {
		for _, i := range left {
			gone = append(gone, i)
			hidden = hidden || isHidden(was[i])
		}
	}
	switch {
	case !hidden || len(fresh) == 0:
		return nil
	case len(fresh) == 1 && len(gone) == 1 && fresh[0] == gone[0]:
		i := fresh[0]
		if _, text := list[i].(*types.AttributeValueMemberS); text {
			return errElements // a text in place of a binary value may be either
		}
		v, err := typed(list[i], was[i])
		list[i] = v
		return err
	}
	return errElements
}

// samePlain reports whether two lists have the same plain JSON at some places.
func samePlain(a, b []types.AttributeValue, places []int) bool {
	for _, i := range places {
		if !bytes.Equal(appendPlain(nil, a[i]), appendPlain(nil, b[i])) {
			return false
		}
	}
	return true
}

// isHidden reports whether plain JSON hides a type of a value: a set, binary, or around one.
func isHidden(v types.AttributeValue) bool {
	switch v := v.(type) {
	case *types.AttributeValueMemberL:
		return slices.ContainsFunc(v.Value, isHidden)
	case *types.AttributeValueMemberM:
		for _, e := range v.Value {
			if isHidden(e) {
				return true
			}
		}
		return false
	case *types.AttributeValueMemberB, *types.AttributeValueMemberSS, *types.AttributeValueMemberNS, *types.AttributeValueMemberBS:
		return true
	}
	return false
}

// appendPlain appends a value as plain JSON. readPlain reads it back if it knows the value.
func appendPlain(dst []byte, v types.AttributeValue) []byte {
	switch v := v.(type) {
	case *types.AttributeValueMemberS:
		return append(dst, jsonOf(v.Value)...)
	case *types.AttributeValueMemberN:
		if !json.Valid([]byte(v.Value)) { // an endpoint may keep numbers such as +5
			return append(dst, jsonOf(v.Value)...)
		}
		return append(dst, v.Value...)
	case *types.AttributeValueMemberB:
		return append(dst, jsonOf(v.Value)...)
	case *types.AttributeValueMemberBOOL:
		return strconv.AppendBool(dst, v.Value)
	case *types.AttributeValueMemberM:
		dst = append(dst, '{')
		for i, name := range slices.Sorted(maps.Keys(v.Value)) {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = appendPlain(append(append(dst, jsonOf(name)...), ':'), v.Value[name])
		}
		return append(dst, '}')
	case *types.AttributeValueMemberL:
		return appendList(dst, v.Value)
	case *types.AttributeValueMemberSS:
		return append(dst, jsonOf(v.Value)...)
	case *types.AttributeValueMemberNS:
		return appendList(dst, each(v.Value, attr.N))
	case *types.AttributeValueMemberBS:
		return append(dst, jsonOf(v.Value)...)
	}
	return append(dst, "null"...)
}

func appendList(dst []byte, all []types.AttributeValue) []byte {
	dst = append(dst, '[')
	for i, v := range all {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendPlain(dst, v)
	}
	return append(dst, ']')
}

// pretty indents JSON for an editor, except for an item so large that it would take long to show.
func pretty(text string) string {
	const most = 64 << 10
	if len(text) > most {
		return text
	}
	var b bytes.Buffer
	if json.Indent(&b, []byte(text), "", "  ") != nil {
		return text
	}
	return b.String()
}

// digest identifies the contents of an item.
func digest(item attr.Item) string {
	sum := sha256.Sum256(transfer.AppendItem(nil, item))
	return hex.EncodeToString(sum[:16])
}
