package api

import (
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"reflect"
	"testing"
)

type sample struct {
	Name  string   `json:"-" from:"path Name"`
	Catch string   `json:"-" from:"header X-Catch"`
	Where string   `json:"-" from:"region"`
	Token *string  `json:"-" from:"query token"`
	Most  *int     `json:"-" from:"query most"`
	Keys  []string `json:"-" from:"query key"`
	Body  string
}

// Members come from their sources, and the others from the body.
func TestBind(t *testing.T) {
	echo := func(_ context.Context, in *sample) (*sample, error) { return in, nil }
	r := &Request{
		Path: map[string]string{"Name": "n"}, Query: url.Values{"token": {""}, "most": {"7"}, "key": {"a", "b"}}, Region: "eu",
		Header: func(name string) string { return name + "!" }, Decode: func(into any) error { return json.Unmarshal([]byte(`{"Name":"no","Body":"b"}`), into) },
	}
	token, most := "", 7
	got, err := Bind(echo)(t.Context(), r)
	if want := (&sample{"n", "X-Catch!", "eu", &token, &most, []string{"a", "b"}, "b"}); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v; want %+v", got, err, want)
	}
	r.Query = url.Values{"most": {"many"}}
	var e *Error
	if _, err := Bind(echo)(t.Context(), r); !errors.As(err, &e) || e.Code != "SerializationException" || e.HTTPStatus() != 400 {
		t.Errorf("the error is %v", err)
	}
	r.Query = nil
	failed := errors.New("not JSON")
	r.Decode = func(any) error { return failed }
	if _, err := Bind(echo)(t.Context(), r); !errors.Is(err, failed) {
		t.Errorf("the error is %v", err)
	}
}

// Without a member in the body, nothing is decoded; the error of an operation is returned alone.
func TestBindWithoutBody(t *testing.T) {
	type named struct {
		Name string `from:"path Name"`
	}
	failed := errors.New("failed")
	out, err := Bind(func(_ context.Context, in *named) (*named, error) {
		if in.Name == "bad" {
			return nil, failed
		}
		return in, nil
	})(t.Context(), &Request{Path: map[string]string{"Name": "bad"}})
	if out != nil || !errors.Is(err, failed) {
		t.Errorf("%v, %v", out, err)
	}
}
