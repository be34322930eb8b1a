package guard

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
)

// A double is another endpoint: a proxy on a socket of its own, in front of the embedded database,
// which changes requests and answers as its quirks demand. It passes on none of mayfly's own
// headers.

// members are the members of a JSON object. Numbers are json.Number.
type members = map[string]any

// exchange is one request on its way through a double, and then its answer.
type exchange struct {
	operation string
	again     bool // the SDK repeats the call
	in        members
	status    int
	header    http.Header
	out       members
	body      []byte // is sent in place of out, if it is not nil
	emptied   bool   // the page is to be empty: see emptyPages
}

// quirk is one thing that an endpoint does unlike Amazon.
type quirk struct {
	name   string
	source string // where it is documented, or why it was made up
	// refuses returns the code of the error that answers a call in place of the database; "": the
	// call is passed on. It may change the request
	refuses func(c *exchange) (code string)
	changes func(c *exchange)                        // an answer
	writes  func(w http.ResponseWriter, c *exchange) // writes an answer in an unusual form
	options func(o *Options)                         // of the guard at this endpoint
	ends    map[Strategy]Code                        // the problems that end guard; without one it goes on
	logs    string                                   // a text that guard logs, and only once
}

// errorOf returns the code of a refusal; "" for another answer.
func (c *exchange) errorOf() string {
	text, _ := c.out["__type"].(string)
	return text[strings.LastIndexByte(text, '#')+1:]
}

// refuse makes a refusal the answer.
func (c *exchange) refuse(status int, code string) {
	c.status, c.header = status, http.Header{"Content-Type": {"application/x-amz-json-1.0"}}
	c.out = members{"__type": "com.amazonaws.dynamodb.v20120810#" + code, "message": c.operation + " is refused by the double"}
}

// object returns a member that is an object; nil if there is none.
func object(m members, name string) members {
	o, _ := m[name].(members)
	return o
}

// objects returns the objects in a member that is a list.
func objects(m members, name string) (all []members) {
	list, _ := m[name].([]any)
	for _, one := range list {
		if o, ok := one.(members); ok {
			all = append(all, o)
		}
	}
	return all
}

// double serves a quirky endpoint for the length of a test, and returns clients of it.
func (w *world) double(t *testing.T, quirks ...quirk) (*dynamodb.Client, *dynamodbstreams.Client) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	to := *w.db.Options().BaseEndpoint
	inner := &http.Transport{MaxIdleConnsPerHost: 256}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := relay(w, r, to, inner, quirks); err != nil && !errors.Is(err, context.Canceled) {
			panic(http.ErrAbortHandler) // the connection is cut
		}
	})}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	outer := &http.Transport{MaxIdleConnsPerHost: 256}
	t.Cleanup(func() {
		outer.CloseIdleConnections()
		must(t, server.Close())
		<-served
		inner.CloseIdleConnections()
	})
	config := aws.Config{
		Region: "us-east-1", Credentials: credentials.NewStaticCredentialsProvider("k", "s", ""), BaseEndpoint: aws.String("http://" + listener.Addr().String()),
		HTTPClient: &http.Client{Transport: outer},
	}
	return dynamodb.NewFromConfig(config), dynamodbstreams.NewFromConfig(config)
}

// relay passes a request on, and its answer back.
func relay(w http.ResponseWriter, r *http.Request, to string, over http.RoundTripper, quirks []quirk) error {
	c := &exchange{operation: operationOf(r), again: !strings.HasPrefix(r.Header.Get("Amz-Sdk-Request"), "attempt=1;")}
	if err := decode(r.Body, &c.in); err != nil {
		return err
	}
	refused := false
	for _, q := range quirks {
		if q.refuses == nil || refused {
			continue
		}
		if code := q.refuses(c); code != "" {
			refused = true
			c.refuse(http.StatusBadRequest, code)
		}
	}
	if !refused {
		if err := c.pass(r, to, over); err != nil {
			return err
		}
	}
	write := (*exchange).write
	for _, q := range quirks {
		if q.changes != nil {
			q.changes(c)
		}
		if q.writes != nil {
			write = func(c *exchange, w http.ResponseWriter) { q.writes(w, c) }
		}
	}
	write(c, w)
	return nil
}

// pass asks the database.
func (c *exchange) pass(r *http.Request, to string, over http.RoundTripper) error {
	body, err := json.Marshal(c.in)
	if err != nil {
		return err
	}
	on, err := http.NewRequestWithContext(r.Context(), r.Method, to+r.URL.Path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	for name, values := range r.Header {
		if !strings.HasPrefix(name, "X-Mayfly-") {
			on.Header[name] = values
		}
	}
	on.Header.Set("Accept-Encoding", "identity") // since the answer is changed
	answer, err := over.RoundTrip(on)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	c.status, c.header = answer.StatusCode, http.Header{}
	for name, values := range answer.Header {
		if !strings.HasPrefix(name, "X-Mayfly-") && name != "Content-Length" && name != "X-Amz-Crc32" {
			c.header[name] = values
		}
	}
	return decode(answer.Body, &c.out)
}

func decode(r io.Reader, into *members) error {
	d := json.NewDecoder(r)
	d.UseNumber()
	return d.Decode(into)
}

// text returns the body of the answer.
func (c *exchange) text() []byte {
	if c.body != nil {
		return c.body
	}
	body, err := json.Marshal(c.out)
	if err != nil {
		panic(fmt.Sprintf("the answer to %s: %v", c.operation, err))
	}
	return body
}

// write writes the answer as most endpoints do.
func (c *exchange) write(w http.ResponseWriter) {
	body := c.text()
	for name, values := range c.header {
		w.Header()[name] = values
	}
	if w.Header().Get("Content-Length") == "" {
		w.Header().Set("Content-Length", fmt.Sprint(len(body)))
	}
	w.WriteHeader(cmp.Or(c.status, http.StatusOK))
	_, _ = w.Write(body)
}
