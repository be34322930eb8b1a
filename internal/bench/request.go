package bench

import (
	"bytes"
	"fmt"
	"strings"
)

// authorization has the form that endpoints require. It signs nothing: the measured endpoints do
// not check it, and a client that signed requests would measure itself.
const authorization = "AWS4-HMAC-SHA256 Credential=bench/20260101/us-east-1/dynamodb/aws4_request, " +
	"SignedHeaders=host;x-amz-date;x-amz-target, Signature=0000000000000000000000000000000000000000000000000000000000000000"

const (
	apiPrefix     = "DynamoDB_20120810."
	streamsPrefix = "DynamoDBStreams_20120810."
)

// rawRequest returns a whole POST request. The target is the value of X-Amz-Target; fields are
// further header lines.
func rawRequest(host, target, body string, fields ...string) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "POST / HTTP/1.1\r\nHost: %s\r\nContent-Type: application/x-amz-json-1.0\r\nX-Amz-Target: %s\r\n", host, target)
	fmt.Fprintf(&b, "X-Amz-Date: 20260101T000000Z\r\nAuthorization: %s\r\nContent-Length: %d\r\n", authorization, len(body))
	for _, f := range fields {
		b.WriteString(f + "\r\n")
	}
	b.WriteString("\r\n" + body)
	return b.Bytes()
}

// template is a request for one or several items, with places for their values. It is immutable;
// each connection fills a copy.
type template struct {
	raw    []byte
	places []place
	items  int
}

// place is the position of a mark's value.
type place struct {
	offset int
	mark   string
	item   int // index of the item in the request
}

// newTemplate builds the request from parts of a body: parts[i] is for the i-th item.
func newTemplate(host, operation, head string, parts []string, tail string) *template {
	body := head + strings.Join(parts, ",") + tail
	t := &template{raw: rawRequest(host, apiPrefix+operation, body), items: len(parts)}
	at := len(t.raw) - len(body) + len(head)
	for i, part := range parts {
		for offset := 0; offset+markBytes <= len(part); offset++ {
			for _, m := range marks {
				if part[offset:offset+markBytes] == m {
					t.places = append(t.places, place{at + offset, m, i})
				}
			}
		}
		at += len(part) + 1
	}
	return t
}

// fill writes the values of the items into raw, a copy of the template's request.
func (t *template) fill(raw []byte, of []numbers) {
	for _, p := range t.places {
		of[p.item].fill(raw[p.offset:p.offset+markLength(p.mark)], p.mark)
	}
}

// putDigits writes v in decimal, with leading zeros, and drops digits without room.
func putDigits(dst []byte, v uint64) {
	for i := len(dst) - 1; i >= 0; i-- {
		dst[i] = '0' + byte(v%10)
		v /= 10
	}
}
