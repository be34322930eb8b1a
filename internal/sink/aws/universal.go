package aws

import (
	"context"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/ses"
	"github.com/aws/aws-sdk-go-v2/service/sesv2"
	"github.com/aws/aws-sdk-go-v2/service/sfn"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/mayflydb/mayfly/target"
)

// operation makes a universal target's call: decode fills in a new input. It returns the output.
type operation func(c call, decode func(in any) error) (out any, err error)

// call has the arguments of an operation.
type call struct {
	*clients
	ctx    context.Context
	region string
}

// operationOf returns the operation that makes a client's call. In and Out are pointers to
// structs, so all operations share one instance of this code.
//
//go:noinline
func operationOf[In, Out any](do func(c call, in In) (Out, error)) operation {
	return func(c call, decode func(in any) error) (any, error) {
		in := reflect.New(reflect.TypeFor[In]().Elem()).Interface()
		if err := decode(in); err != nil {
			return nil, err
		}
		return do(c, in.(In))
	}
}

// method is a method of a service's client.
type method[Client, Options, In, Out any] = func(*Client, context.Context, In, ...func(*Options)) (Out, error)

// operations are the calls of universal targets, by service and action: actions that send, start,
// stop or set something at set times. Reading actions are excluded, as in EventBridge Scheduler.
// Actions that build and deploy are left out, since each adds 20 KB to the program.
//
// To add one: an entry here. The entries name the methods, and a function per service names its
// client: finding methods by name, or a generic function over clients, would make the linker keep
// every operation of every service in the program.
var operations = sync.OnceValue(func() map[string]operation {
	return map[string]operation{
		"sqs:sendMessage":                  onSQS((*sqs.Client).SendMessage),
		"sqs:sendMessageBatch":             onSQS((*sqs.Client).SendMessageBatch),
		"sqs:deleteMessage":                onSQS((*sqs.Client).DeleteMessage),
		"sqs:deleteMessageBatch":           onSQS((*sqs.Client).DeleteMessageBatch),
		"sqs:changeMessageVisibility":      onSQS((*sqs.Client).ChangeMessageVisibility),
		"sqs:changeMessageVisibilityBatch": onSQS((*sqs.Client).ChangeMessageVisibilityBatch),
		"sqs:purgeQueue":                   onSQS((*sqs.Client).PurgeQueue),
		"sqs:createQueue":                  onSQS((*sqs.Client).CreateQueue),
		"sqs:deleteQueue":                  onSQS((*sqs.Client).DeleteQueue),
		"sqs:setQueueAttributes":           onSQS((*sqs.Client).SetQueueAttributes),
		"sqs:startMessageMoveTask":         onSQS((*sqs.Client).StartMessageMoveTask),
		"sqs:cancelMessageMoveTask":        onSQS((*sqs.Client).CancelMessageMoveTask),

		"sns:publish":                   onSNS((*sns.Client).Publish),
		"sns:publishBatch":              onSNS((*sns.Client).PublishBatch),
		"sns:createTopic":               onSNS((*sns.Client).CreateTopic),
		"sns:deleteTopic":               onSNS((*sns.Client).DeleteTopic),
		"sns:setTopicAttributes":        onSNS((*sns.Client).SetTopicAttributes),
		"sns:subscribe":                 onSNS((*sns.Client).Subscribe),
		"sns:unsubscribe":               onSNS((*sns.Client).Unsubscribe),
		"sns:setSubscriptionAttributes": onSNS((*sns.Client).SetSubscriptionAttributes),

		"lambda:invoke":                             onLambda((*lambda.Client).Invoke),
		"lambda:updateFunctionConfiguration":        onLambda((*lambda.Client).UpdateFunctionConfiguration),
		"lambda:publishVersion":                     onLambda((*lambda.Client).PublishVersion),
		"lambda:updateAlias":                        onLambda((*lambda.Client).UpdateAlias),
		"lambda:putFunctionConcurrency":             onLambda((*lambda.Client).PutFunctionConcurrency),
		"lambda:deleteFunctionConcurrency":          onLambda((*lambda.Client).DeleteFunctionConcurrency),
		"lambda:putProvisionedConcurrencyConfig":    onLambda((*lambda.Client).PutProvisionedConcurrencyConfig),
		"lambda:deleteProvisionedConcurrencyConfig": onLambda((*lambda.Client).DeleteProvisionedConcurrencyConfig),
		"lambda:updateEventSourceMapping":           onLambda((*lambda.Client).UpdateEventSourceMapping),
		"lambda:deleteEventSourceMapping":           onLambda((*lambda.Client).DeleteEventSourceMapping),

		"sfn:startExecution":          onSFN((*sfn.Client).StartExecution),
		"sfn:startSyncExecution":      onSFN((*sfn.Client).StartSyncExecution),
		"sfn:stopExecution":           onSFN((*sfn.Client).StopExecution),
		"sfn:redriveExecution":        onSFN((*sfn.Client).RedriveExecution),
		"sfn:sendTaskSuccess":         onSFN((*sfn.Client).SendTaskSuccess),
		"sfn:sendTaskFailure":         onSFN((*sfn.Client).SendTaskFailure),
		"sfn:sendTaskHeartbeat":       onSFN((*sfn.Client).SendTaskHeartbeat),
		"sfn:updateMapRun":            onSFN((*sfn.Client).UpdateMapRun),
		"sfn:updateStateMachineAlias": onSFN((*sfn.Client).UpdateStateMachineAlias),

		"kinesis:putRecord":                     onKinesis((*kinesis.Client).PutRecord),
		"kinesis:putRecords":                    onKinesis((*kinesis.Client).PutRecords),
		"kinesis:createStream":                  onKinesis((*kinesis.Client).CreateStream),
		"kinesis:deleteStream":                  onKinesis((*kinesis.Client).DeleteStream),
		"kinesis:updateShardCount":              onKinesis((*kinesis.Client).UpdateShardCount),
		"kinesis:updateStreamMode":              onKinesis((*kinesis.Client).UpdateStreamMode),
		"kinesis:splitShard":                    onKinesis((*kinesis.Client).SplitShard),
		"kinesis:mergeShards":                   onKinesis((*kinesis.Client).MergeShards),
		"kinesis:increaseStreamRetentionPeriod": onKinesis((*kinesis.Client).IncreaseStreamRetentionPeriod),
		"kinesis:decreaseStreamRetentionPeriod": onKinesis((*kinesis.Client).DecreaseStreamRetentionPeriod),
		"kinesis:enableEnhancedMonitoring":      onKinesis((*kinesis.Client).EnableEnhancedMonitoring),
		"kinesis:disableEnhancedMonitoring":     onKinesis((*kinesis.Client).DisableEnhancedMonitoring),

		"eventbridge:putEvents":     onEventBridge((*eventbridge.Client).PutEvents),
		"eventbridge:putRule":       onEventBridge((*eventbridge.Client).PutRule),
		"eventbridge:deleteRule":    onEventBridge((*eventbridge.Client).DeleteRule),
		"eventbridge:enableRule":    onEventBridge((*eventbridge.Client).EnableRule),
		"eventbridge:disableRule":   onEventBridge((*eventbridge.Client).DisableRule),
		"eventbridge:putTargets":    onEventBridge((*eventbridge.Client).PutTargets),
		"eventbridge:removeTargets": onEventBridge((*eventbridge.Client).RemoveTargets),
		"eventbridge:createArchive": onEventBridge((*eventbridge.Client).CreateArchive),
		"eventbridge:updateArchive": onEventBridge((*eventbridge.Client).UpdateArchive),
		"eventbridge:deleteArchive": onEventBridge((*eventbridge.Client).DeleteArchive),
		"eventbridge:startReplay":   onEventBridge((*eventbridge.Client).StartReplay),
		"eventbridge:cancelReplay":  onEventBridge((*eventbridge.Client).CancelReplay),

		"ses:sendEmail":                            onSES((*ses.Client).SendEmail),
		"ses:sendRawEmail":                         onSES((*ses.Client).SendRawEmail),
		"ses:sendTemplatedEmail":                   onSES((*ses.Client).SendTemplatedEmail),
		"ses:sendBulkTemplatedEmail":               onSES((*ses.Client).SendBulkTemplatedEmail),
		"ses:sendCustomVerificationEmail":          onSES((*ses.Client).SendCustomVerificationEmail),
		"ses:sendBounce":                           onSES((*ses.Client).SendBounce),
		"ses:updateAccountSendingEnabled":          onSES((*ses.Client).UpdateAccountSendingEnabled),
		"ses:updateConfigurationSetSendingEnabled": onSES((*ses.Client).UpdateConfigurationSetSendingEnabled),

		"sesv2:sendEmail":                         onSESv2((*sesv2.Client).SendEmail),
		"sesv2:sendBulkEmail":                     onSESv2((*sesv2.Client).SendBulkEmail),
		"sesv2:sendCustomVerificationEmail":       onSESv2((*sesv2.Client).SendCustomVerificationEmail),
		"sesv2:createContact":                     onSESv2((*sesv2.Client).CreateContact),
		"sesv2:updateContact":                     onSESv2((*sesv2.Client).UpdateContact),
		"sesv2:deleteContact":                     onSESv2((*sesv2.Client).DeleteContact),
		"sesv2:putSuppressedDestination":          onSESv2((*sesv2.Client).PutSuppressedDestination),
		"sesv2:deleteSuppressedDestination":       onSESv2((*sesv2.Client).DeleteSuppressedDestination),
		"sesv2:putAccountSendingAttributes":       onSESv2((*sesv2.Client).PutAccountSendingAttributes),
		"sesv2:putConfigurationSetSendingOptions": onSESv2((*sesv2.Client).PutConfigurationSetSendingOptions),
	}
})

// The functions below are not inlined, since each of the entries would have its own copy.

//go:noinline
func onSQS[In, Out any](do method[sqs.Client, sqs.Options, In, Out]) operation {
	return operationOf(func(c call, in In) (Out, error) {
		return do(c.sqs, c.ctx, in, func(o *sqs.Options) { o.Region = c.region })
	})
}

//go:noinline
func onSNS[In, Out any](do method[sns.Client, sns.Options, In, Out]) operation {
	return operationOf(func(c call, in In) (Out, error) {
		return do(c.sns, c.ctx, in, func(o *sns.Options) { o.Region = c.region })
	})
}

//go:noinline
func onLambda[In, Out any](do method[lambda.Client, lambda.Options, In, Out]) operation {
	return operationOf(func(c call, in In) (Out, error) {
		return do(c.lambda, c.ctx, in, func(o *lambda.Options) { o.Region = c.region })
	})
}

//go:noinline
func onSFN[In, Out any](do method[sfn.Client, sfn.Options, In, Out]) operation {
	return operationOf(func(c call, in In) (Out, error) {
		return do(c.sfn, c.ctx, in, func(o *sfn.Options) { o.Region = c.region })
	})
}

//go:noinline
func onKinesis[In, Out any](do method[kinesis.Client, kinesis.Options, In, Out]) operation {
	return operationOf(func(c call, in In) (Out, error) {
		return do(c.kinesis, c.ctx, in, func(o *kinesis.Options) { o.Region = c.region })
	})
}

//go:noinline
func onEventBridge[In, Out any](do method[eventbridge.Client, eventbridge.Options, In, Out]) operation {
	return operationOf(func(c call, in In) (Out, error) {
		return do(c.eventbridge, c.ctx, in, func(o *eventbridge.Options) { o.Region = c.region })
	})
}

//go:noinline
func onSES[In, Out any](do method[ses.Client, ses.Options, In, Out]) operation {
	return operationOf(func(c call, in In) (Out, error) {
		return do(c.ses, c.ctx, in, func(o *ses.Options) { o.Region = c.region })
	})
}

//go:noinline
func onSESv2[In, Out any](do method[sesv2.Client, sesv2.Options, In, Out]) operation {
	return operationOf(func(c call, in In) (Out, error) {
		return do(c.sesv2, c.ctx, in, func(o *sesv2.Options) { o.Region = c.region })
	})
}

// textMembers are the members that hold bytes as plain text in an Input, by operation. All others
// are base64.
var textMembers = map[string][]string{
	"lambda:invoke": {"Payload"},
}

// toCall makes universal targets' calls. Without a configured region it uses the schedule's.
func (s *clients) toCall(a arn) (sender, error) {
	name := a.universalOf + ":" + a.universalCall
	operation, known := operations()[name]
	if !known {
		return nil, unsupported(a)
	}
	if err := s.reachable(a.universalOf); err != nil {
		return nil, err
	}
	return singly(func(ctx context.Context, d *target.Delivery) error {
		there := a
		if from, err := parseARN(d.Source); err == nil && s.loaded.Region == "" {
			there.region = from.region
		}
		out, err := operation(call{s, ctx, s.region(there)}, func(in any) error {
			return decodeInput(d.Body, in, textMembers[name]...)
		})
		if err != nil {
			return err
		}
		return outcome(out)
	}), nil
}

// callsOf lists the actions of a service, for messages.
func callsOf(service string) string {
	var calls []string
	for name := range operations() {
		if of, call, _ := strings.Cut(name, ":"); of == service {
			calls = append(calls, call)
		}
	}
	slices.Sort(calls)
	return strings.Join(calls, ", ")
}
