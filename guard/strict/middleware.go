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

// Middleware returns an option that makes a client of the AWS SDK strict:
//
//	db := dynamodb.NewFromConfig(config, strict.Middleware(strict.Rules{Tables: map[string]string{"sessions": "expiresAt"}}))
//
// It rewrites requests before they are signed, and answers before the SDK decodes them, so retries,
// signatures, checksums and typed errors work as usual. It caches facts about tables: make one for
// each endpoint, and share it among all its clients. With invalid rules, every call fails with an
// error that explains them.
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

// exchangeKey is the context key of an *exchanged.
type exchangeKey struct{}

// exchanged passes an answer between the two middlewares of a call. If shown is nil, answers calls
// the endpoint, keeps its answer in noted, and gives the SDK an empty one to decode. Otherwise
// answers calls nothing and gives the SDK shown.
type exchanged struct {
	noted answer
	shown *answer
}

// requests runs above signing and retries: it executes one operation of the SDK by as many calls of
// the endpoint as the rewriter makes, and passes the final answer to the SDK.
type requests struct{ r *rewriter }

func (requests) ID() string { return "mayfly:StrictRequests" }

const (
	headerTarget = "X-Amz-Target"
	targetPrefix = "DynamoDB_20120810." // of DynamoDB's operations in X-Amz-Target
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

// answers runs below the decoding of answers, once for each call of the endpoint. See exchanged.
type answers struct{}

func (answers) ID() string { return "mayfly:StrictAnswers" }

// answerMax is the size of the largest accepted answer: 16 MB of items, as JSON with every byte
// escaped.
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
	// an error, such as a missing checksum, is logged by the SDK and does not matter
	response.Body.Close()
	if err != nil {
		return out, metadata, &smithy.DeserializationError{Err: err}
	}
	e.noted = answer{status: response.StatusCode, header: response.Header, body: body}
	if e.noted.ok() {
		body = []byte("{}") // this call may be of another operation
	}
	response.Body, response.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	return out, metadata, nil
}

// readAnswer returns the whole body of an answer, or an error if it exceeds answerMax.
func readAnswer(from io.Reader) ([]byte, error) {
	body, err := io.ReadAll(io.LimitReader(from, answerMax+1))
	if err == nil && len(body) > answerMax {
		err = fmt.Errorf("strict: the answer is larger than %d bytes", answerMax)
	}
	return body, err
}

// response returns the answer in the SDK's form.
func (a *answer) response() *smithyhttp.Response {
	header := a.header.Clone()
	if header == nil {
		header = http.Header{}
	}
	// the headers of the original body
	for _, name := range []string{"X-Amz-Crc32", "Content-Length", "Content-Encoding"} {
		header.Del(name)
	}
	return &smithyhttp.Response{Response: &http.Response{
		Status: http.StatusText(a.status), StatusCode: a.status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: header, ContentLength: int64(len(a.body)), Body: io.NopCloser(bytes.NewReader(a.body)),
	}}
}
