package rpc

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"time"
	"unicode/utf8"
)

// readJSON returns the tree of a JSON text.
func readJSON(body []byte) (any, error) {
	if !utf8.Valid(body) {
		return nil, errors.New("the body is not UTF-8")
	}
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	r := jsonReader{d: d}
	tree, err := r.value(0)
	if err == nil {
		if _, more := d.Token(); more != io.EOF {
			err = errors.New("the body has more than one value")
		}
	}
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		err = errEnds
	}
	return tree, err
}

type jsonReader struct {
	d      *json.Decoder
	values int
}

func (r *jsonReader) value(depth int) (any, error) {
	if r.values++; r.values > valuesMax {
		return nil, errMany
	}
	token, err := r.d.Token()
	if err != nil {
		return nil, err
	}
	open, nested := token.(json.Delim)
	switch {
	case !nested:
		return token, nil
	case depth == depthMax:
		return nil, errDeep
	case open == '[':
		list := []any{}
		for r.d.More() {
			element, err := r.value(depth + 1)
			if err != nil {
				return nil, err
			}
			list = append(list, element)
		}
		_, err = r.d.Token()
		return list, err
	}
	members := map[string]any{}
	for r.d.More() {
		name, err := r.d.Token()
		if err != nil {
			return nil, err
		}
		if members[name.(string)], err = r.value(depth + 1); err != nil {
			return nil, err
		}
	}
	_, err = r.d.Token()
	return members, err
}

// jsonSink writes JSON.
type jsonSink struct{ b []byte }

// separate writes a comma unless the value or the name is the first.
func (s *jsonSink) separate() {
	if n := len(s.b); n > 0 && s.b[n-1] != '{' && s.b[n-1] != '[' && s.b[n-1] != ':' {
		s.b = append(s.b, ',')
	}
}

func (s *jsonSink) beginStruct(int) { s.separate(); s.b = append(s.b, '{') }
func (s *jsonSink) endStruct()      { s.b = append(s.b, '}') }
func (s *jsonSink) beginList(int)   { s.separate(); s.b = append(s.b, '[') }
func (s *jsonSink) endList()        { s.b = append(s.b, ']') }
func (s *jsonSink) end(string)      {}

func (s *jsonSink) begin(name string) {
	if name != element {
		s.text(name)
		s.b = append(s.b, ':')
	}
}

func (s *jsonSink) text(v string) {
	s.separate()
	quoted, _ := json.Marshal(v) // a string has no error
	s.b = append(s.b, quoted...)
}

func (s *jsonSink) integer(v int64) { s.separate(); s.b = strconv.AppendInt(s.b, v, 10) }
func (s *jsonSink) float(v float64) { s.separate(); s.b = appendFloat(s.b, v) }
func (s *jsonSink) boolean(v bool)  { s.separate(); s.b = strconv.AppendBool(s.b, v) }

func (s *jsonSink) time(v time.Time) {
	s.separate()
	s.b = strconv.AppendFloat(s.b, float64(v.UnixMilli())/1000, 'f', -1, 64)
}
