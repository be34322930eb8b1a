package bench

import (
	"bytes"
	"context"
	"fmt"
	"strings"
)

// writeRest writes a whole request of an API whose operations are methods and paths, like the
// scheduler's.
func writeRest(b *bytes.Buffer, host, method, path string, body []byte) {
	fmt.Fprintf(b, "%s %s HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nX-Amz-Date: 20260101T000000Z\r\nAuthorization: %s\r\nContent-Length: %d\r\n\r\n",
		method, path, host, restAuthorization, len(body))
	b.Write(body)
}

var restAuthorization = strings.Replace(authorization, ";x-amz-target", "", 1)

// rest makes one call over a connection of its own. The caller owns the returned body.
func (e *endpoint) rest(ctx context.Context, method, path, body string) ([]byte, error) {
	var b bytes.Buffer
	writeRest(&b, e.address, method, path, []byte(body))
	a, err := e.exchange(ctx, b.Bytes())
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", method, path, err)
	}
	if a.status < 200 || a.status > 299 {
		return nil, fmt.Errorf("%s %s: %w", method, path, newRefusal(a))
	}
	return a.body, nil
}
