package strict

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// Middleware makes a client of the AWS SDK strict:
//
//	db := dynamodb.NewFromConfig(config, strict.Middleware(strict.Rules{Tables: map[string]string{"sessions": "expiresAt"}}))
//
// Requests are rewritten before they are signed, and answers before they become the operation's output, so retries, signatures, checksums and typed errors work as
// ever. What it learns about tables it keeps, so one is made for each endpoint, and can be used by any number of its clients. With rules that are wrong every call fails and says
// why.
func Middleware(rules Rules) func(*dynamodb.Options) {
	r, err := newRewriter(rules)
	return func(o *dynamodb.Options) {
		o.APIOptions = append(o.APIOptions, func(stack *middleware.Stack) error {
			if err != nil {
				return fmt.Errorf("strict: invalid rules: %w", err)
			}
			if err := stack.Finalize.Add(requests{r}, middleware.Before); err != nil {
				return err
			}
			return stack.Deserialize.Insert(answers{}, "OperationDeserializer", middleware.After)
		})
	}
}

// exchangeKey is of a context's value *exchanged.
type exchangeKey struct{}

// exchanged connects the two middlewares: answers notes the endpoint's answer in it and shows an empty one to the operation, or shows what is given instead of
// asking the endpoint.
type exchanged struct {
	noted answer
	shown *answer
}

// requests carries out an operation, with as many calls as that takes.
type requests struct{ r *rewriter }

func (requests) ID() string { return "mayfly:StrictRequests" }

// targetPrefix begins the X-Amz-Target of DynamoDB's operations.
const (
	headerTarget = "X-Amz-Target"
	targetPrefix = "DynamoDB_20120810."
)

func (m requests) HandleFinalize(ctx context.Context, in middleware.FinalizeInput, next middleware.FinalizeHandler) (
	out middleware.FinalizeOutput, metadata middleware.Metadata, err error,
) {
	request, ok := in.Request.(*smithyhttp.Request)
	if !ok {
		return out, metadata, fmt.Errorf("strict: unknown transport type %T", in.Request)
	}
	operation := strings.TrimPrefix(request.Header.Get(headerTarget), targetPrefix)
	if operations[operation] == nil {
		return next.HandleFinalize(ctx, in)
	}
	body, err := io.ReadAll(request.GetStream())
	if err != nil {
		return out, metadata, &smithy.SerializationError{Err: err}
	}
	once := func(ctx context.Context, operation string, body []byte, e *exchanged) (err error) {
		one := request.Clone()
		one.Header.Set(headerTarget, targetPrefix+operation)
		one.ContentLength = int64(len(body))
		if one, err = one.SetStream(bytes.NewReader(body)); err != nil {
			return &smithy.SerializationError{Err: err}
		}
		out, metadata, err = next.HandleFinalize(context.WithValue(ctx, exchangeKey{}, e), middleware.FinalizeInput{Request: one})
		return err
	}
	a, err := m.r.exchange(ctx, operation, body, func(ctx context.Context, operation string, body []byte) (answer, error) {
		var e exchanged
		err := once(ctx, operation, body, &e)
		if err != nil && (e.noted.status == 0 || e.noted.ok()) {
			return answer{}, err
		}
		e.noted.err = err
		return e.noted, nil
	})
	switch {
	case err != nil:
		return out, metadata, err
	case a.err != nil:
		return out, metadata, a.err
	}
	err = once(ctx, operation, body, &exchanged{shown: &a})
	return out, metadata, err
}

// answers is between the endpoint's answers and what makes an operation's output of them.
type answers struct{}

func (answers) ID() string { return "mayfly:StrictAnswers" }

// answerMax is the size of the largest answer that is read: 16 MB of items, as JSON that escapes each of their bytes.
const answerMax = 128 << 20

func (answers) HandleDeserialize(ctx context.Context, in middleware.DeserializeInput, next middleware.DeserializeHandler) (
	out middleware.DeserializeOutput, metadata middleware.Metadata, err error,
) {
	e, ours := ctx.Value(exchangeKey{}).(*exchanged)
	if !ours {
		return next.HandleDeserialize(ctx, in)
	}
	if e.shown != nil {
		out.RawResponse = e.shown.response()
		return out, metadata, nil
	}
	e.noted = answer{}
	out, metadata, err = next.HandleDeserialize(ctx, in)
	if err != nil {
		return out, metadata, err
	}
	response, ok := out.RawResponse.(*smithyhttp.Response)
	if !ok {
		return out, metadata, &smithy.DeserializationError{Err: fmt.Errorf("strict: unknown transport type %T", out.RawResponse)}
	}
	body, err := readAnswer(response.Body)
	response.Body.Close() // what it says, also of a checksum that the endpoint has not sent, the SDK logs and goes on
	if err != nil {
		return out, metadata, &smithy.DeserializationError{Err: err}
	}
	e.noted = answer{status: response.StatusCode, header: response.Header, body: body}
	if e.noted.ok() {
		body = []byte("{}") // the operation's may be another than this call's
	}
	response.Body, response.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	return out, metadata, nil
}

// readAnswer reads an answer's body whole.
func readAnswer(from io.Reader) ([]byte, error) {
	body, err := io.ReadAll(io.LimitReader(from, answerMax+1))
	if err == nil && len(body) > answerMax {
		err = fmt.Errorf("strict: the answer is larger than %d bytes", answerMax)
	}
	return body, err
}

// response is the answer as if the endpoint had given it.
func (a *answer) response() *smithyhttp.Response {
	header := a.header.Clone()
	if header == nil {
		header = http.Header{}
	}
	for _, of := range []string{"X-Amz-Crc32", "Content-Length", "Content-Encoding"} { // of the body that came
		header.Del(of)
	}
	return &smithyhttp.Response{Response: &http.Response{
		Status: http.StatusText(a.status), StatusCode: a.status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: header, ContentLength: int64(len(a.body)), Body: io.NopCloser(bytes.NewReader(a.body)),
	}}
}
