package aws

import (
	"context"
	"encoding/json"
	"strings"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/lambda/types"

	"github.com/mayflydb/mayfly/target"
)

// toFunction invokes a function as EventBridge Scheduler does: Lambda accepts the event, and
// retries the function itself.
func (s *clients) toFunction(a arn) (sender, error) {
	if _, err := a.name("function:"); err != nil {
		return nil, err
	}
	return singly(func(ctx context.Context, d *target.Delivery) error {
		_, err := s.invoke(ctx, a, d, types.InvocationTypeEvent)
		return err
	}), nil
}

// ask invokes a function and waits for its answer.
func (s *clients) ask(ctx context.Context, a arn, d *target.Delivery) ([]byte, error) {
	answer, err := s.invoke(ctx, a, d, types.InvocationTypeRequestResponse)
	return answer, failure(err)
}

func (s *clients) invoke(ctx context.Context, a arn, d *target.Delivery, kind types.InvocationType) ([]byte, error) {
	if err := s.reachable("lambda"); err != nil {
		return nil, err
	}
	in, err := s.functionOf(a)
	if err != nil {
		return nil, err
	}
	in.InvocationType = kind
	if len(d.Body) > 0 {
		in.Payload = d.Body
	}
	out, err := s.lambda.Invoke(ctx, in, func(o *lambda.Options) { o.Region = s.region(a) })
	if err != nil {
		return nil, err
	}
	return out.Payload, functionFailure(out)
}

// functionOf names the function: to Amazon by its ARN, which also reaches other accounts; to other
// endpoints by name and qualifier, since not all of them know ARNs.
func (s *clients) functionOf(a arn) (*lambda.InvokeInput, error) {
	if s.config.Function != "" {
		return &lambda.InvokeInput{FunctionName: sdk.String(s.config.Function)}, nil
	}
	full, err := a.name("function:")
	if err != nil {
		return nil, err
	}
	if s.addresses["lambda"] == "" {
		return &lambda.InvokeInput{FunctionName: &a.text}, nil
	}
	name, qualifier, qualified := strings.Cut(full, ":")
	in := &lambda.InvokeInput{FunctionName: &name}
	if qualified {
		in.Qualifier = &qualifier
	}
	return in, nil
}

// functionFailure returns the failure of the function itself, or nil. Lambda reports it in a header
// of a successful answer.
func functionFailure(out *lambda.InvokeOutput) error {
	kind := sdk.ToString(out.FunctionError)
	if kind == "" {
		return nil
	}
	f := &target.FunctionError{Kind: kind, Version: sdk.ToString(out.ExecutedVersion), Answer: out.Payload}
	var said struct{ ErrorMessage, ErrorType string }
	if err := json.Unmarshal(out.Payload, &said); err != nil {
		said.ErrorMessage = firstRunes(string(out.Payload), messageMax)
	}
	f.Type, f.Message = said.ErrorType, said.ErrorMessage
	return &target.Error{Code: kind, Message: f.Error(), Err: f}
}

// messageMax is the most characters of a message from an answer that is not JSON.
const messageMax = 1000
