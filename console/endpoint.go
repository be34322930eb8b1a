package console

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/smithy-go"

	"github.com/mayflydb/mayfly/internal/clock"
	"github.com/mayflydb/mayfly/internal/front/sigv4"
	"github.com/mayflydb/mayfly/internal/sdk"
)

// endpoint is the endpoint with the credentials of a visitor.
type endpoint struct {
	sdk.Endpoint
	visible string       // the URL for programs of the visitor
	machine *clock.Clock // the wall clock
}

// endpoint returns the endpoint for calls with an access key. Without a key, the calls use the
// credentials of the options, or made-up ones, which a server without keys accepts. A server of this
// process may keep regions apart: KEY/REGION is a key with a region.
func (p *pages) endpoint(key, secret string) (*endpoint, error) {
	e := &endpoint{sdk.Endpoint{Config: p.Config.Copy(), URL: p.URL}, p.URL, p.machine}
	if name, region, found := strings.Cut(key, "/"); found && p.api != nil {
		if name == "" || !sigv4.IsRegion(region) { // the server would take it for another key or region
			return nil, errRegion
		}
		key, e.Config.Region = name, region
	}
	switch {
	case key != "":
		// the SDK signs with no empty secret
		e.Config.Credentials = credentials.NewStaticCredentialsProvider(key, cmp.Or(secret, "none"), "")
	case e.Config.Credentials == nil:
		e.Config.Credentials = credentials.NewStaticCredentialsProvider("any", "any", "")
	}
	return e, nil
}

// answerMost is the size of the largest answer to ask.
const answerMost = 8 << 20

// ask sends a signed request to one of mayfly's own paths, and returns the body of the answer.
func (e *endpoint) ask(ctx context.Context, method, path string, in any) ([]byte, error) {
	if e.IsAWS() {
		return nil, errNotMayfly
	}
	body := []byte{}
	if in != nil {
		var err error
		if body, err = json.Marshal(in); err != nil {
			return nil, err
		}
	}
	answer, err := e.Ask(ctx, method, path, body, e.machine.Now())
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(http.MaxBytesReader(nil, answer.Body, answerMost))
	if err != nil {
		return nil, err
	}
	if answer.StatusCode != http.StatusOK {
		return nil, refusal(answer.StatusCode, text)
	}
	return text, nil
}

// refusal returns the error of an answer of one of mayfly's own paths.
func refusal(status int, body []byte) error {
	var said struct {
		Type    string `json:"__type"` // of a refusal for its key
		Error   string `json:"error"`
		Message string `json:"message"`
	}
	if json.Unmarshal(body, &said) == nil && said.Error+said.Message != "" {
		if said.Type != "" {
			return &smithy.GenericAPIError{Code: said.Type[strings.LastIndexByte(said.Type, '#')+1:], Message: said.Message, Fault: smithy.FaultClient}
		}
		return &pageError{status, said.Error + said.Message}
	}
	return fmt.Errorf("the endpoint answered %d %s", status, http.StatusText(status))
}

// inProcess is an HTTP client that calls a handler of this process, for a visitor: what the server
// permits may depend on the visitor's address, and on whether others can read the connection.
type inProcess struct {
	http.Handler
	remote string // the visitor's address
	tls    *tls.ConnectionState
}

// Do implements aws.HTTPClient.
func (c inProcess) Do(r *http.Request) (*http.Response, error) {
	if r.Body == nil {
		r.Body = http.NoBody
	}
	r.Host, r.RequestURI, r.RemoteAddr, r.TLS = r.URL.Host, r.URL.RequestURI(), c.remote, c.tls
	w := &buffered{header: http.Header{}, status: http.StatusOK}
	c.ServeHTTP(w, r)
	if err := r.Context().Err(); err != nil {
		return nil, err // as net/http's client: the answer is not the API's
	}
	return &http.Response{
		StatusCode: w.status, Status: http.StatusText(w.status), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: w.header, Body: io.NopCloser(&w.body), ContentLength: int64(w.body.Len()), Request: r,
	}, nil
}

// buffered keeps an answer.
type buffered struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (b *buffered) Header() http.Header         { return b.header }
func (b *buffered) WriteHeader(status int)      { b.status = status }
func (b *buffered) Write(p []byte) (int, error) { return b.body.Write(p) }
