package aws

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
)

const (
	idleConnectionsPerHost = 64
	idleConnectionTimeout  = 90 * time.Second
	// above the largest answers of all services: Lambda's, with 6 MB, or 20 MB if streamed
	answerBytesMax = 24 << 20
)

// newTransport returns the standard library's transport. It keeps as many idle connections to one
// endpoint as a lane's concurrent calls use.
func newTransport() *http.Transport {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.MaxIdleConnsPerHost = idleConnectionsPerHost
	t.MaxIdleConns = 4 * idleConnectionsPerHost
	t.IdleConnTimeout = idleConnectionTimeout
	return t
}

// carrier is the transport of the SDK's clients.
//
// It wraps the request's body. The SDK closes its own body as soon as it has the head of an answer.
// If the transport then still checks for more to send, it takes that for a failure and closes the
// connection, in the middle of the answer.
//
// It also cuts off answers that are longer than any of these services sends, so that a faulty
// endpoint cannot exhaust memory.
type carrier struct{ over http.RoundTripper }

func (c carrier) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil && r.Body != http.NoBody {
		body, err := io.ReadAll(r.Body)
		_ = r.Body.Close()
		if err != nil {
			return nil, err
		}
		r = r.WithContext(r.Context()) // a copy: a RoundTripper changes no request
		r.Body = io.NopCloser(bytes.NewReader(body))
	}
	answer, err := c.over.RoundTrip(r)
	if err == nil {
		answer.Body = &boundedBody{answer.Body, answerBytesMax}
	}
	return answer, err
}

type boundedBody struct {
	io.ReadCloser
	left int64
}

var errAnswerTooLong = errors.New("the answer is longer than 24 MB")

func (b *boundedBody) Read(p []byte) (int, error) {
	if b.left < 0 {
		return 0, errAnswerTooLong
	}
	n, err := b.ReadCloser.Read(p)
	b.left -= int64(n)
	return n, err
}

// namedCredentials adds a type to the failure to find credentials: the SDK's own error only names
// the failed operation.
type namedCredentials struct{ from sdk.CredentialsProvider }

func (n namedCredentials) Retrieve(ctx context.Context) (sdk.Credentials, error) {
	found, err := n.from.Retrieve(ctx)
	if err != nil && ctx.Err() == nil {
		return found, &credentialsError{err}
	}
	return found, err
}
