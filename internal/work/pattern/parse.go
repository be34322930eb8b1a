package pattern

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"
)

// branches is a pattern with its "$or" expanded. One of the branches must hold.
type branches [][]field

// field is the list of tests at the end of a path. One of the tests must hold.
type field struct {
	path   []string
	tests  []test
	absent bool
}

const keywordOr = "$or"

// reserved are names that a member inside "$or" cannot have: AWS's compiler takes them for tests
// without a list.
var reserved = []string{
	opExactly, opEqualsIgnoreCase, opPrefix, opSuffix, opAnythingBut, opExists, opWildcard, opNumeric, opCIDR, "=", "<", "<=", ">", ">=",
	"regex", "not-wildcard", "not-equals-ignore-case", "date-after", "date-on-or-after", "date-before", "date-on-or-before", "in-date-range",
	"ip-address-in-range", "ip-address-not-in-range",
}

// parser parses a pattern from a stream of tokens, which preserves duplicate members and the
// position of faults.
type parser struct {
	decoder *json.Decoder
	path    []string
}

// parse parses a pattern. Its errors are sentences for the pattern's author.
func parse(text string) (branches, error) {
	if n := utf8.RuneCountInString(text); n > maxText {
		return nil, fmt.Errorf("it has %d characters; the limit is %d", n, maxText)
	}
	p := &parser{decoder: json.NewDecoder(strings.NewReader(text))}
	p.decoder.UseNumber()
	switch token, err := p.next(); {
	case err != nil:
		return nil, err
	case token != json.Delim('{'):
		return nil, errors.New("it is not a JSON object")
	}
	b, err := p.object(branches{nil}, false)
	if err != nil {
		return nil, err
	}
	if _, err := p.decoder.Token(); err != io.EOF {
		return nil, errors.New("something follows the JSON object")
	}
	return b, nil
}

// next returns the next token, or an error at the end.
func (p *parser) next() (json.Token, error) {
	token, err := p.decoder.Token()
	switch {
	case err == io.EOF:
		return nil, errors.New("it is incomplete JSON")
	case err != nil:
		return nil, fmt.Errorf("it is not JSON: %w", err)
	}
	return token, nil
}

// object parses the members of an object after its brace, and adds their tests to every branch.
func (p *parser) object(b branches, inOr bool) (branches, error) {
	for count := 0; ; count++ {
		token, err := p.next()
		if err != nil {
			return nil, err
		}
		step, ok := token.(string)
		if !ok { // the closing brace: the decoder returns a name or the brace
			if count == 0 {
				return nil, fmt.Errorf("%s is an empty object; a pattern must test something", p.where())
			}
			return b, nil
		}
		if b, err = p.member(b, step, inOr); err != nil {
			return nil, err
		}
	}
}

func (p *parser) member(b branches, step string, inOr bool) (branches, error) {
	if step == keywordOr {
		return p.or(b)
	}
	if inOr && slices.Contains(reserved, step) {
		return nil, fmt.Errorf("%q is the name of a test and cannot be a member inside %s", step, keywordOr)
	}
	if len(p.path) == maxDepth {
		return nil, fmt.Errorf("it is nested deeper than %d levels", maxDepth)
	}
	p.path = append(p.path, step)
	defer func() { p.path = p.path[:len(p.path)-1] }()
	token, err := p.next()
	if err != nil {
		return nil, err
	}
	switch token {
	case json.Delim('{'):
		return p.object(b, inOr)
	case json.Delim('['):
		f, err := p.list()
		if err != nil {
			return nil, err
		}
		return b.and(f, p.where())
	}
	return nil, fmt.Errorf("%s must be an object or an array", p.where())
}

// or multiplies the branches by the alternatives of "$or".
func (p *parser) or(b branches) (branches, error) {
	switch token, err := p.next(); {
	case err != nil:
		return nil, err
	case token != json.Delim('['):
		return nil, fmt.Errorf("%s must be an array of patterns", keywordOr)
	}
	var all branches
	for count := 0; ; count++ {
		token, err := p.next()
		switch {
		case err != nil:
			return nil, err
		case token == json.Delim(']') && count < 2:
			return nil, fmt.Errorf("%s needs at least two patterns", keywordOr)
		case token == json.Delim(']'):
			return all, nil
		case token != json.Delim('{'):
			return nil, fmt.Errorf("%s must be an array of patterns", keywordOr)
		}
		added, err := p.object(slices.Clone(b), true)
		if err != nil {
			return nil, err
		}
		if all = append(all, added...); len(all) > maxBranches {
			return nil, errors.New(tooManyBranches)
		}
	}
}

// and adds a field to every branch. It refuses a path that a branch has already, since either could
// count. (AWS's compiler supports both; Lambda's choice is unknown.)
func (b branches) and(f field, where string) (branches, error) {
	for i, fields := range b {
		if slices.ContainsFunc(fields, func(other field) bool { return slices.Equal(other.path, f.path) }) {
			return nil, fmt.Errorf("%s is given twice", where)
		}
		b[i] = append(slices.Clip(fields), f)
	}
	return b, nil
}

// list parses the tests of a field, after its bracket.
func (p *parser) list() (field, error) {
	f := field{path: slices.Clone(p.path)}
	for {
		token, err := p.next()
		if err != nil {
			return f, err
		}
		var t test
		switch v := token.(type) {
		case string:
			t = exactly(v)
		case json.Number:
			t = number(v.String())
		case bool:
			t = literal(kindFalse)
			if v {
				t = literal(kindTrue)
			}
		case nil:
			t = literal(kindNull)
		case json.Delim:
			switch v {
			case ']':
				if len(f.tests) == 0 && !f.absent {
					return f, fmt.Errorf("%s is an empty array, which nothing can match", p.where())
				}
				return f, nil
			case '[':
				return f, fmt.Errorf("%s has an array in its array; only strings, numbers, true, false, null and tests are allowed", p.where())
			}
			if t, err = p.test(&f); err != nil {
				return f, err
			}
		}
		if t != nil {
			f.tests = append(f.tests, t)
		}
	}
}

// test parses {"prefix": …} and similar tests, after the brace. {"exists": false} is no test of a
// leaf: it sets a member of the field.
func (p *parser) test(f *field) (test, error) {
	token, err := p.next()
	if err != nil {
		return nil, err
	}
	op, ok := token.(string)
	if !ok {
		return nil, fmt.Errorf("%s has an empty object where a test should be", p.where())
	}
	var operand json.RawMessage
	if err := p.decoder.Decode(&operand); err != nil {
		return nil, fmt.Errorf("it is not JSON: %w", err)
	}
	switch token, err := p.next(); {
	case err != nil:
		return nil, err
	case token != json.Delim('}'):
		return nil, fmt.Errorf("a test in %s has more than one member; a second test is an object of its own", p.where())
	}
	if op == opExists && bytes.Equal(operand, []byte("false")) {
		f.absent = true
		return nil, nil
	}
	t, err := compileTest(op, operand)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", p.where(), err)
	}
	return t, nil
}

// where returns the path of the current member.
func (p *parser) where() string {
	if len(p.path) == 0 {
		return "it"
	}
	return fmt.Sprintf("%q", strings.Join(p.path, "."))
}
