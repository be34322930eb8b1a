package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// authorization has the form that endpoints require. It signs nothing: the measured endpoints do
// not check it, and a client that signed requests would measure itself.
const authorization = "AWS4-HMAC-SHA256 Credential=bench/20260101/us-east-1/dynamodb/aws4_request, " +
	"SignedHeaders=host;x-amz-date, Signature=0000000000000000000000000000000000000000000000000000000000000000"

const (
	apiPrefix     = "DynamoDB_20120810."
	streamsPrefix = "DynamoDBStreams_20120810."
)

// appendRequest appends a whole request. The lines of its header besides Host, X-Amz-Date and
// Content-Length come as one text, each with its end.
func appendRequest(dst []byte, host, methodAndPath, header string, body []byte) []byte {
	dst = append(dst, methodAndPath...)
	dst = append(append(append(dst, " HTTP/1.1\r\nHost: "...), host...), "\r\n"...)
	dst = append(append(dst, header...), "X-Amz-Date: 20260101T000000Z\r\nContent-Length: "...)
	dst = append(strconv.AppendInt(dst, int64(len(body)), 10), "\r\n\r\n"...)
	return append(dst, body...)
}

// apiHeader returns the header of a call of DynamoDB's protocol. The target is the value of
// X-Amz-Target; fields are further lines.
func apiHeader(target string, fields ...string) string {
	lines := append([]string{"Content-Type: application/x-amz-json-1.0", "X-Amz-Target: " + target, "Authorization: " + authorization}, fields...)
	return strings.Join(lines, "\r\n") + "\r\n"
}

// restHeader is the header of a call to an API whose operations are methods and paths.
const restHeader = "Content-Type: application/json\r\nAuthorization: " + authorization + "\r\n"

// rawRequest returns a whole request of DynamoDB's protocol.
func rawRequest(host, target, body string) []byte {
	return appendRequest(nil, host, "POST /", apiHeader(target), []byte(body))
}

// refusal is a response other than success.
type refusal struct {
	status int
	code   string // the error's type, without its prefix
	text   string
}

func (r *refusal) Error() string { return fmt.Sprintf("status %d: %s", r.status, r.text) }

func newRefusal(a answer) *refusal {
	var code string
	member(a.body, "__type", &code) // other bodies have no code
	code = code[strings.LastIndexByte(code, '#')+1:]
	return &refusal{status: a.status, code: code, text: string(a.body[:min(len(a.body), 300)])}
}

const setupLimit = time.Minute // limit for a single call of a preparation

// call makes one call over a connection of its own, for preparations and not for loads. The target
// is the whole value of X-Amz-Target. The caller owns the returned body.
func (e *endpoint) call(ctx context.Context, target, body string) ([]byte, error) {
	return e.succeed(ctx, target, rawRequest(e.address, target, body))
}

// ask makes one call as call does, and decodes the answer.
func (e *endpoint) ask(ctx context.Context, target, body string, answer any) error {
	text, err := e.call(ctx, target, body)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, answer)
}

// callREST makes one call of an API whose operations are methods and paths, like the scheduler's.
func (e *endpoint) callREST(ctx context.Context, methodAndPath, body string) ([]byte, error) {
	return e.succeed(ctx, methodAndPath, appendRequest(nil, e.address, methodAndPath, restHeader, []byte(body)))
}

// get requests a page, with any status.
func (e *endpoint) get(ctx context.Context, path string) (answer, error) {
	return e.exchange(ctx, appendRequest(nil, e.address, "GET "+path, "", nil))
}

// succeed sends a request, and returns the body of its answer or a refusal. The name is for errors.
func (e *endpoint) succeed(ctx context.Context, name string, request []byte) ([]byte, error) {
	a, err := e.exchange(ctx, request)
	if err == nil && (a.status < 200 || a.status > 299) {
		err = newRefusal(a)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return a.body, nil
}

// exchange sends a whole request over a connection of its own.
func (e *endpoint) exchange(ctx context.Context, request []byte) (answer, error) {
	c, err := dial(ctx, e.address)
	if err != nil {
		return answer{}, err
	}
	defer c.close()
	c.net.SetDeadline(time.Now().Add(setupLimit))
	return c.call(request)
}

// member decodes the value of a member whose name occurs nowhere else in the body, and reports
// whether there is one of the value's type. Decoding a whole page would cost more than the page does.
func member(body []byte, name string, value any) bool {
	_, rest, found := bytes.Cut(body, []byte(`"`+name+`"`))
	rest, colon := bytes.CutPrefix(bytes.TrimLeft(rest, " \t\r\n"), []byte(":"))
	return found && colon && json.NewDecoder(bytes.NewReader(rest)).Decode(value) == nil
}
