// Package aws delivers to services of AWS: to Amazon's own, or to servers of their APIs at
// configured endpoints.
//
// A delivery's target is its ARN. A resource's ARN selects the call that EventBridge Scheduler
// makes for it:
//
//	arn:aws:lambda:…:function:f              Invoke, not waiting for the function (Event)
//	arn:aws:sqs:…:q                          SendMessage
//	arn:aws:sns:…:t                          Publish
//	arn:aws:kinesis:…:stream/s               PutRecord
//	arn:aws:firehose:…:deliverystream/d      PutRecord
//	arn:aws:events:…:event-bus/b             PutEvents
//	arn:aws:states:…:stateMachine:m          StartExecution
//	arn:aws:scheduler:::aws-sdk:<service>:<action>   the universal target: that action, with the body as its input
//
// Several deliveries to one resource go in the services' batch calls, within their limits of count
// and size, and each has its own result. If a target keeps an order (FIFO queues and topics,
// Kinesis), deliveries of one key never share a call, so that none passes another that failed.
//
// The delivery's ID, the same in every attempt, is the de-duplication ID of FIFO queues and topics
// and the name of an execution: a repetition has no second effect there.
//
// The SDK makes one attempt of a call. Its error becomes a [target.Error] with the API's own code
// and message. It is permanent if the API refused the request (4xx), and may be retried if the API
// is busy, failing or out of reach. The caller retries.
package aws

import (
	"context"
	"encoding/json"

	"github.com/mayflydb/mayfly/target"
)

// Sink is a target for every ARN of the services above. It is safe for concurrent use.
//
// It reaches its clients through functions only. Were they in its fields, the linker would take
// their types for used by reflection (a Sink becomes an interface value) and keep every operation
// of every service in the program: 12 MB of them.
type Sink struct {
	to    func(arn) (sender, error)
	ask   func(context.Context, arn, *target.Delivery) ([]byte, error)
	close func()
}

var (
	_ target.Target  = (*Sink)(nil)
	_ target.Invoker = (*Sink)(nil)
)

// New checks a configuration and reads the SDK's files and environment. It calls nothing.
func New(ctx context.Context, c Config) (*Sink, error) {
	clients, err := newClients(ctx, c)
	if err != nil {
		return nil, err
	}
	return &Sink{to: clients.sender, ask: clients.ask, close: clients.transport.CloseIdleConnections}, nil
}

// Close closes idle connections. Deliveries under way end by themselves. It returns nil.
func (s *Sink) Close() error {
	s.close()
	return nil
}

// sender makes the calls for the deliveries at the indexes, which have one ARN, and sets their
// results.
type sender func(ctx context.Context, deliveries []target.Delivery, indexes []int, results []error)

// Deliver makes the calls that the deliveries' ARNs stand for.
func (s *Sink) Deliver(ctx context.Context, deliveries []target.Delivery) []error {
	results := make([]error, len(deliveries))
	var order []string
	byARN := make(map[string][]int)
	for i := range deliveries {
		name := deliveries[i].TargetARN
		if _, seen := byARN[name]; !seen {
			order = append(order, name)
		}
		byARN[name] = append(byARN[name], i)
	}
	for _, name := range order {
		send, err := s.sender(name)
		if err != nil {
			for _, i := range byARN[name] {
				results[i] = failure(err)
			}
			continue
		}
		send(ctx, deliveries, byARN[name], results)
	}
	return results
}

// sender finds the call for an ARN.
func (s *Sink) sender(name string) (sender, error) {
	a, err := parseARN(name)
	if err != nil {
		return nil, target.Permanent(codeInvalid, "The target ARN "+name+" is not one")
	}
	return s.to(a)
}

// Invoke asks a Lambda function and waits for its answer. Other targets have none: the delivery is
// handed over as Deliver does.
func (s *Sink) Invoke(ctx context.Context, d target.Delivery) ([]byte, error) {
	a, err := parseARN(d.TargetARN)
	if err == nil && a.service == "lambda" {
		return s.ask(ctx, a, &d)
	}
	return nil, s.Deliver(ctx, []target.Delivery{d})[0]
}

// blocks are the parameter blocks of a schedule's target that these services have.
type blocks struct {
	SqsParameters         struct{ MessageGroupId string }
	KinesisParameters     struct{ PartitionKey string }
	EventBridgeParameters struct{ DetailType, Source string }
}

// parametersOf reads the blocks that a delivery brings. Blocks of other services are passed over:
// the scheduler has checked that they fit the target.
func parametersOf(d *target.Delivery) (b blocks, err error) {
	if len(d.Parameters) == 0 {
		return b, nil
	}
	if err := json.Unmarshal(d.Parameters, &b); err != nil {
		return b, target.Permanent(codeInvalid, "The target's parameters cannot be read: "+err.Error())
	}
	return b, nil
}
