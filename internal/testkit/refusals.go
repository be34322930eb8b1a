package testkit

import (
	"bytes"
	"io"
	"net/http"
	"strings"
)

// Refusals is an HTTP client, and a transport, of a DynamoDB endpoint that refuses some calls.
type Refusals struct {
	Next func(*http.Request) (*http.Response, error) // makes the other calls
	// Code returns the code of the error that answers a call; "" if the call is made
	Code func(operation string, body []byte) string
}

// Do makes or refuses a call.
func (c Refusals) Do(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	_, operation, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	code := c.Code(operation, body)
	if code == "" {
		return c.Next(r)
	}
	answer := `{"__type":"com.amazonaws.dynamodb.v20120810#` + code + `","message":"by the test"}`
	return &http.Response{StatusCode: http.StatusBadRequest, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(answer))}, nil
}

// RoundTrip is Do.
func (c Refusals) RoundTrip(r *http.Request) (*http.Response, error) { return c.Do(r) }
