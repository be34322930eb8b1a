package aws

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strings"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sfn"
	"github.com/aws/aws-sdk-go-v2/service/sfn/types"

	"github.com/mayflydb/mayfly/target"
)

// executionNameMax is the length of an execution's name.
const executionNameMax = 80

// toStateMachine starts executions whose input is the delivery's body.
func (s *clients) toStateMachine(a arn) (sender, error) {
	if _, err := a.name("stateMachine:"); err != nil {
		return nil, err
	}
	return singly(func(ctx context.Context, d *target.Delivery) error { return s.startExecution(ctx, a, d) }), nil
}

// startExecution names the execution by the delivery's ID. If an execution of that name exists, an
// earlier attempt has started it and its answer was lost: no other delivery has this ID.
func (s *clients) startExecution(ctx context.Context, a arn, d *target.Delivery) error {
	in := &sfn.StartExecutionInput{StateMachineArn: &a.text, Name: sdk.String(executionName(d.ID))}
	if len(d.Body) > 0 {
		in.Input = sdk.String(string(d.Body))
	}
	_, err := s.sfn.StartExecution(ctx, in, func(o *sfn.Options) { o.Region = s.region(a) })
	if _, ok := errors.AsType[*types.ExecutionAlreadyExists](err); ok {
		return nil
	}
	return err
}

// executionName returns the delivery's ID if it is a valid name for Step Functions, and otherwise
// its hash.
func executionName(id string) string {
	if id != "" && len(id) <= executionNameMax && !strings.ContainsFunc(id, func(c rune) bool {
		return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '-' && c != '_'
	}) {
		return id
	}
	sum := sha256.Sum256([]byte(id))
	return hex.EncodeToString(sum[:])
}
