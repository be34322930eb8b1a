// Package mappings calls the Lambda API for event source mappings. The SDK's client of Lambda has all
// operations of Lambda, which would add 0.8 MB to a program and 1 ms to each start. This client uses
// the SDK's middlewares, and the options of the SDK's client of EventBridge Scheduler: the two services
// have the same protocol and the same rules for Amazon's endpoints.
package mappings

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/aws/protocol/restjson"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/scheduler"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/encoding/httpbinding"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// Client calls the operations. It is safe for concurrent use.
type Client struct {
	options scheduler.Options
	skew    atomic.Int64 // the endpoint's clock minus this machine's, in nanoseconds
}

const (
	serviceID    = "Lambda" // in errors
	serviceName  = "lambda" // in signatures and in the names of Amazon's hosts
	mappingsPath = "/2015-03-31/event-source-mappings"
	// AnswerMax is the size of the largest answer, in bytes: a page has up to 100 mappings, and a mapping
	// up to ten filters of 4,096 characters, which JSON may escape.
	AnswerMax = 16 << 20
)

// New returns a client with the endpoint, region, credentials and retries of a client of EventBridge
// Scheduler.
func New(c *scheduler.Client) *Client { return &Client{options: c.Options()} }

// List reads a page into out. The query may have the parameters EventSourceArn, FunctionName and
// Marker.
func (c *Client) List(ctx context.Context, query url.Values, out any) error {
	return c.call(ctx, "ListEventSourceMappings", http.MethodGet, "", query, nil, out)
}

// Create creates a mapping from the JSON of in, and reads the answer into out.
func (c *Client) Create(ctx context.Context, in, out any) error {
	return c.call(ctx, "CreateEventSourceMapping", http.MethodPost, "", nil, in, out)
}

// ErrNoUUID is the error of an empty UUID, whose path would be the list's.
var ErrNoUUID = errors.New("the UUID is empty")

// Get reads a mapping into out.
func (c *Client) Get(ctx context.Context, uuid string, out any) error {
	return c.callOne(ctx, "GetEventSourceMapping", http.MethodGet, uuid, nil, out)
}

// Update changes a mapping as the JSON of in says, and reads the answer into out.
func (c *Client) Update(ctx context.Context, uuid string, in, out any) error {
	return c.callOne(ctx, "UpdateEventSourceMapping", http.MethodPut, uuid, in, out)
}

// Delete deletes a mapping, and reads the answer into out.
func (c *Client) Delete(ctx context.Context, uuid string, out any) error {
	return c.callOne(ctx, "DeleteEventSourceMapping", http.MethodDelete, uuid, nil, out)
}

func (c *Client) callOne(ctx context.Context, operation, method, uuid string, in, out any) error {
	if uuid == "" {
		return ErrNoUUID
	}
	return c.call(ctx, operation, method, uuid, nil, in, out)
}

// call sends a request and decodes the answer into out. in may be nil.
func (c *Client) call(ctx context.Context, operation, method, uuid string, query url.Values, in, out any) error {
	r, err := c.request(ctx, method, uuid, query, in)
	if err == nil {
		err = c.send(ctx, operation, r, out)
	}
	if err != nil {
		return &smithy.OperationError{ServiceID: serviceID, OperationName: operation, Err: err}
	}
	return nil
}

// request returns a request without a signature.
func (c *Client) request(ctx context.Context, method, uuid string, query url.Values, in any) (*smithyhttp.Request, error) {
	u, err := c.endpoint(ctx)
	if err != nil {
		return nil, err
	}
	u.RawPath, u.Path, u.RawQuery = u.EscapedPath()+mappingsPath, u.Path+mappingsPath, query.Encode()
	if uuid != "" {
		u.RawPath, u.Path = u.RawPath+"/"+httpbinding.EscapePath(uuid, true), u.Path+"/"+uuid
	}
	r, _ := smithyhttp.NewStackRequest().(*smithyhttp.Request)
	r.Method, r.URL = method, &u
	if in == nil {
		return r, nil
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(in); err != nil {
		return nil, err
	}
	body := bytes.TrimSuffix(b.Bytes(), []byte("\n"))
	r.Header.Set("Content-Type", "application/json")
	r.ContentLength = int64(len(body))
	return r.SetStream(bytes.NewReader(body))
}

// endpoint returns the configured URL, or Amazon's for the region and the settings of FIPS and
// IPv6, which has the name of Lambda in place of the scheduler's.
func (c *Client) endpoint(ctx context.Context) (url.URL, error) {
	o := c.options
	if !smithyhttp.ValidHostLabel(o.Region) {
		return url.URL{}, fmt.Errorf("invalid region %q", o.Region)
	}
	e, err := o.EndpointResolverV2.ResolveEndpoint(ctx, scheduler.EndpointParameters{
		Region: &o.Region, Endpoint: o.BaseEndpoint,
		UseFIPS:      aws.Bool(o.EndpointOptions.UseFIPSEndpoint == aws.FIPSEndpointStateEnabled),
		UseDualStack: aws.Bool(o.EndpointOptions.UseDualStackEndpoint == aws.DualStackEndpointStateEnabled),
	})
	if o.BaseEndpoint == nil {
		e.URI.Host = serviceName + strings.TrimPrefix(e.URI.Host, "scheduler")
	}
	return e.URI, err
}

// send signs and sends a request, with the SDK's repetitions, and decodes the answer into out.
func (c *Client) send(ctx context.Context, operation string, r *smithyhttp.Request, out any) error {
	stack := middleware.NewStack(operation, func() any { return r })
	attempts := retry.NewAttemptMiddleware(c.options.Retryer, smithyhttp.RequestCloner, func(a *retry.Attempt) { a.ClientSkew = &c.skew })
	err := errors.Join(
		awsmiddleware.AddSDKAgentKey(awsmiddleware.APIMetadata, serviceName)(stack),
		stack.Build.Add(&awsmiddleware.ClientRequestID{}, middleware.After),
		stack.Finalize.Add(attempts, middleware.After),
		stack.Finalize.Add(&v4.ComputePayloadSHA256{}, middleware.After),
		stack.Finalize.Add(middleware.FinalizeMiddlewareFunc("Signing", c.sign), middleware.After),
		// of these, the first one is the last to see the answer
		stack.Deserialize.Add(&awshttp.ResponseErrorWrapper{}, middleware.After),
		stack.Deserialize.Add(&awsmiddleware.RequestIDRetriever{}, middleware.After),
		stack.Deserialize.Add(decoder(out), middleware.After),
		stack.Deserialize.Add(&awsmiddleware.RecordResponseTiming{}, middleware.After),
	)
	if err != nil {
		return err
	}
	_, _, err = middleware.DecorateHandler(smithyhttp.NewClientHandlerWithOptions(c.options.HTTPClient), stack).Handle(ctx, nil)
	return err
}

// sign is the middleware that signs each attempt. The SDK's signer knows the clock's skew.
func (c *Client) sign(ctx context.Context, in middleware.FinalizeInput, next middleware.FinalizeHandler) (out middleware.FinalizeOutput, m middleware.Metadata, err error) {
	scheme := c.options.AuthSchemes[0] // signature version 4
	identity, err := scheme.IdentityResolver(c.options).GetIdentity(ctx, smithy.Properties{})
	if err != nil {
		return out, m, fmt.Errorf("get identity: %w", err)
	}
	var p smithy.Properties
	smithyhttp.SetSigV4SigningName(&p, serviceName)
	smithyhttp.SetSigV4SigningRegion(&p, c.options.Region)
	r, _ := in.Request.(*smithyhttp.Request)
	if err := scheme.Signer().SignRequest(ctx, r, identity, p); err != nil {
		return out, m, fmt.Errorf("sign request: %w", err)
	}
	return next.HandleFinalize(ctx, in)
}

// decoder returns the middleware that decodes an answer into out, or returns its error.
func decoder(out any) middleware.DeserializeMiddleware {
	return middleware.DeserializeMiddlewareFunc("OperationDeserializer",
		func(ctx context.Context, in middleware.DeserializeInput, next middleware.DeserializeHandler) (middleware.DeserializeOutput, middleware.Metadata, error) {
			o, m, err := next.HandleDeserialize(ctx, in)
			if response, ok := o.RawResponse.(*smithyhttp.Response); ok && err == nil {
				defer response.Body.Close()
				err = decodeAnswer(response, out)
			}
			return o, m, err
		})
}

// decodeAnswer decodes an answer into out, or returns its error.
func decodeAnswer(r *smithyhttp.Response, out any) error {
	body, err := io.ReadAll(http.MaxBytesReader(nil, r.Body, AnswerMax))
	if err != nil {
		return &smithy.DeserializationError{Err: err}
	}
	if r.StatusCode/100 == 2 {
		if len(body) == 0 {
			return nil
		}
		err = json.Unmarshal(body, out)
	} else {
		var code, message string
		if code, message, err = restjson.GetErrorInfo(json.NewDecoder(bytes.NewReader(body))); err == nil {
			header := restjson.SanitizeErrorCode(r.Header.Get("X-Amzn-Errortype"))
			return &smithy.GenericAPIError{Code: cmp.Or(header, code, "UnknownError"), Message: cmp.Or(message, "UnknownError")}
		}
	}
	if err != nil {
		return &smithy.DeserializationError{Err: err}
	}
	return nil
}
