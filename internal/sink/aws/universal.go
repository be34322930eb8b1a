package aws

import (
	"context"
	"slices"
	"strings"

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

// operation makes a universal target's call.
type operation struct {
	input func() any                        // a new input, into which the Input is decoded
	do    func(c call, in any) (any, error) // the call with it, and its output
}

// call has the arguments of an operation.
type call struct {
	*clients
	ctx    context.Context
	region string
}

func input[In any]() any { return new(In) }

// operations are the calls of universal targets, by service and action: actions that send, start,
// stop or set something at set times. Reading actions are excluded, as in EventBridge Scheduler.
// Actions that build and deploy are left out, since each adds 20 KB to the program.
//
// To add one: an entry here. They are spelled out because a shorter form (finding methods by name,
// or a generic function over clients) would make the linker keep every operation of every service
// in the program.
var operations = map[string]operation{
	"sqs:sendMessage": {input[sqs.SendMessageInput], func(c call, in any) (any, error) {
		return c.sqs.SendMessage(c.ctx, in.(*sqs.SendMessageInput), c.atSQS)
	}},
	"sqs:sendMessageBatch": {input[sqs.SendMessageBatchInput], func(c call, in any) (any, error) {
		return c.sqs.SendMessageBatch(c.ctx, in.(*sqs.SendMessageBatchInput), c.atSQS)
	}},
	"sqs:deleteMessage": {input[sqs.DeleteMessageInput], func(c call, in any) (any, error) {
		return c.sqs.DeleteMessage(c.ctx, in.(*sqs.DeleteMessageInput), c.atSQS)
	}},
	"sqs:deleteMessageBatch": {input[sqs.DeleteMessageBatchInput], func(c call, in any) (any, error) {
		return c.sqs.DeleteMessageBatch(c.ctx, in.(*sqs.DeleteMessageBatchInput), c.atSQS)
	}},
	"sqs:changeMessageVisibility": {input[sqs.ChangeMessageVisibilityInput], func(c call, in any) (any, error) {
		return c.sqs.ChangeMessageVisibility(c.ctx, in.(*sqs.ChangeMessageVisibilityInput), c.atSQS)
	}},
	"sqs:changeMessageVisibilityBatch": {input[sqs.ChangeMessageVisibilityBatchInput], func(c call, in any) (any, error) {
		return c.sqs.ChangeMessageVisibilityBatch(c.ctx, in.(*sqs.ChangeMessageVisibilityBatchInput), c.atSQS)
	}},
	"sqs:purgeQueue": {input[sqs.PurgeQueueInput], func(c call, in any) (any, error) { return c.sqs.PurgeQueue(c.ctx, in.(*sqs.PurgeQueueInput), c.atSQS) }},
	"sqs:createQueue": {input[sqs.CreateQueueInput], func(c call, in any) (any, error) {
		return c.sqs.CreateQueue(c.ctx, in.(*sqs.CreateQueueInput), c.atSQS)
	}},
	"sqs:deleteQueue": {input[sqs.DeleteQueueInput], func(c call, in any) (any, error) {
		return c.sqs.DeleteQueue(c.ctx, in.(*sqs.DeleteQueueInput), c.atSQS)
	}},
	"sqs:setQueueAttributes": {input[sqs.SetQueueAttributesInput], func(c call, in any) (any, error) {
		return c.sqs.SetQueueAttributes(c.ctx, in.(*sqs.SetQueueAttributesInput), c.atSQS)
	}},
	"sqs:startMessageMoveTask": {input[sqs.StartMessageMoveTaskInput], func(c call, in any) (any, error) {
		return c.sqs.StartMessageMoveTask(c.ctx, in.(*sqs.StartMessageMoveTaskInput), c.atSQS)
	}},
	"sqs:cancelMessageMoveTask": {input[sqs.CancelMessageMoveTaskInput], func(c call, in any) (any, error) {
		return c.sqs.CancelMessageMoveTask(c.ctx, in.(*sqs.CancelMessageMoveTaskInput), c.atSQS)
	}},

	"sns:publish": {input[sns.PublishInput], func(c call, in any) (any, error) { return c.sns.Publish(c.ctx, in.(*sns.PublishInput), c.atSNS) }},
	"sns:publishBatch": {input[sns.PublishBatchInput], func(c call, in any) (any, error) {
		return c.sns.PublishBatch(c.ctx, in.(*sns.PublishBatchInput), c.atSNS)
	}},
	"sns:createTopic": {input[sns.CreateTopicInput], func(c call, in any) (any, error) {
		return c.sns.CreateTopic(c.ctx, in.(*sns.CreateTopicInput), c.atSNS)
	}},
	"sns:deleteTopic": {input[sns.DeleteTopicInput], func(c call, in any) (any, error) {
		return c.sns.DeleteTopic(c.ctx, in.(*sns.DeleteTopicInput), c.atSNS)
	}},
	"sns:setTopicAttributes": {input[sns.SetTopicAttributesInput], func(c call, in any) (any, error) {
		return c.sns.SetTopicAttributes(c.ctx, in.(*sns.SetTopicAttributesInput), c.atSNS)
	}},
	"sns:subscribe": {input[sns.SubscribeInput], func(c call, in any) (any, error) { return c.sns.Subscribe(c.ctx, in.(*sns.SubscribeInput), c.atSNS) }},
	"sns:unsubscribe": {input[sns.UnsubscribeInput], func(c call, in any) (any, error) {
		return c.sns.Unsubscribe(c.ctx, in.(*sns.UnsubscribeInput), c.atSNS)
	}},
	"sns:setSubscriptionAttributes": {input[sns.SetSubscriptionAttributesInput], func(c call, in any) (any, error) {
		return c.sns.SetSubscriptionAttributes(c.ctx, in.(*sns.SetSubscriptionAttributesInput), c.atSNS)
	}},

	"lambda:invoke": {input[lambda.InvokeInput], func(c call, in any) (any, error) { return c.lambda.Invoke(c.ctx, in.(*lambda.InvokeInput), c.atLambda) }},
	"lambda:updateFunctionConfiguration": {input[lambda.UpdateFunctionConfigurationInput], func(c call, in any) (any, error) {
		return c.lambda.UpdateFunctionConfiguration(c.ctx, in.(*lambda.UpdateFunctionConfigurationInput), c.atLambda)
	}},
	"lambda:publishVersion": {input[lambda.PublishVersionInput], func(c call, in any) (any, error) {
		return c.lambda.PublishVersion(c.ctx, in.(*lambda.PublishVersionInput), c.atLambda)
	}},
	"lambda:updateAlias": {input[lambda.UpdateAliasInput], func(c call, in any) (any, error) {
		return c.lambda.UpdateAlias(c.ctx, in.(*lambda.UpdateAliasInput), c.atLambda)
	}},
	"lambda:putFunctionConcurrency": {input[lambda.PutFunctionConcurrencyInput], func(c call, in any) (any, error) {
		return c.lambda.PutFunctionConcurrency(c.ctx, in.(*lambda.PutFunctionConcurrencyInput), c.atLambda)
	}},
	"lambda:deleteFunctionConcurrency": {input[lambda.DeleteFunctionConcurrencyInput], func(c call, in any) (any, error) {
		return c.lambda.DeleteFunctionConcurrency(c.ctx, in.(*lambda.DeleteFunctionConcurrencyInput), c.atLambda)
	}},
	"lambda:putProvisionedConcurrencyConfig": {input[lambda.PutProvisionedConcurrencyConfigInput], func(c call, in any) (any, error) {
		return c.lambda.PutProvisionedConcurrencyConfig(c.ctx, in.(*lambda.PutProvisionedConcurrencyConfigInput), c.atLambda)
	}},
	"lambda:deleteProvisionedConcurrencyConfig": {input[lambda.DeleteProvisionedConcurrencyConfigInput], func(c call, in any) (any, error) {
		return c.lambda.DeleteProvisionedConcurrencyConfig(c.ctx, in.(*lambda.DeleteProvisionedConcurrencyConfigInput), c.atLambda)
	}},
	"lambda:updateEventSourceMapping": {input[lambda.UpdateEventSourceMappingInput], func(c call, in any) (any, error) {
		return c.lambda.UpdateEventSourceMapping(c.ctx, in.(*lambda.UpdateEventSourceMappingInput), c.atLambda)
	}},
	"lambda:deleteEventSourceMapping": {input[lambda.DeleteEventSourceMappingInput], func(c call, in any) (any, error) {
		return c.lambda.DeleteEventSourceMapping(c.ctx, in.(*lambda.DeleteEventSourceMappingInput), c.atLambda)
	}},

	"sfn:startExecution": {input[sfn.StartExecutionInput], func(c call, in any) (any, error) {
		return c.sfn.StartExecution(c.ctx, in.(*sfn.StartExecutionInput), c.atSFN)
	}},
	"sfn:startSyncExecution": {input[sfn.StartSyncExecutionInput], func(c call, in any) (any, error) {
		return c.sfn.StartSyncExecution(c.ctx, in.(*sfn.StartSyncExecutionInput), c.atSFN)
	}},
	"sfn:stopExecution": {input[sfn.StopExecutionInput], func(c call, in any) (any, error) {
		return c.sfn.StopExecution(c.ctx, in.(*sfn.StopExecutionInput), c.atSFN)
	}},
	"sfn:redriveExecution": {input[sfn.RedriveExecutionInput], func(c call, in any) (any, error) {
		return c.sfn.RedriveExecution(c.ctx, in.(*sfn.RedriveExecutionInput), c.atSFN)
	}},
	"sfn:sendTaskSuccess": {input[sfn.SendTaskSuccessInput], func(c call, in any) (any, error) {
		return c.sfn.SendTaskSuccess(c.ctx, in.(*sfn.SendTaskSuccessInput), c.atSFN)
	}},
	"sfn:sendTaskFailure": {input[sfn.SendTaskFailureInput], func(c call, in any) (any, error) {
		return c.sfn.SendTaskFailure(c.ctx, in.(*sfn.SendTaskFailureInput), c.atSFN)
	}},
	"sfn:sendTaskHeartbeat": {input[sfn.SendTaskHeartbeatInput], func(c call, in any) (any, error) {
		return c.sfn.SendTaskHeartbeat(c.ctx, in.(*sfn.SendTaskHeartbeatInput), c.atSFN)
	}},
	"sfn:updateMapRun": {input[sfn.UpdateMapRunInput], func(c call, in any) (any, error) {
		return c.sfn.UpdateMapRun(c.ctx, in.(*sfn.UpdateMapRunInput), c.atSFN)
	}},
	"sfn:updateStateMachineAlias": {input[sfn.UpdateStateMachineAliasInput], func(c call, in any) (any, error) {
		return c.sfn.UpdateStateMachineAlias(c.ctx, in.(*sfn.UpdateStateMachineAliasInput), c.atSFN)
	}},

	"kinesis:putRecord": {input[kinesis.PutRecordInput], func(c call, in any) (any, error) {
		return c.kinesis.PutRecord(c.ctx, in.(*kinesis.PutRecordInput), c.atKinesis)
	}},
	"kinesis:putRecords": {input[kinesis.PutRecordsInput], func(c call, in any) (any, error) {
		return c.kinesis.PutRecords(c.ctx, in.(*kinesis.PutRecordsInput), c.atKinesis)
	}},
	"kinesis:createStream": {input[kinesis.CreateStreamInput], func(c call, in any) (any, error) {
		return c.kinesis.CreateStream(c.ctx, in.(*kinesis.CreateStreamInput), c.atKinesis)
	}},
	"kinesis:deleteStream": {input[kinesis.DeleteStreamInput], func(c call, in any) (any, error) {
		return c.kinesis.DeleteStream(c.ctx, in.(*kinesis.DeleteStreamInput), c.atKinesis)
	}},
	"kinesis:updateShardCount": {input[kinesis.UpdateShardCountInput], func(c call, in any) (any, error) {
		return c.kinesis.UpdateShardCount(c.ctx, in.(*kinesis.UpdateShardCountInput), c.atKinesis)
	}},
	"kinesis:updateStreamMode": {input[kinesis.UpdateStreamModeInput], func(c call, in any) (any, error) {
		return c.kinesis.UpdateStreamMode(c.ctx, in.(*kinesis.UpdateStreamModeInput), c.atKinesis)
	}},
	"kinesis:splitShard": {input[kinesis.SplitShardInput], func(c call, in any) (any, error) {
		return c.kinesis.SplitShard(c.ctx, in.(*kinesis.SplitShardInput), c.atKinesis)
	}},
	"kinesis:mergeShards": {input[kinesis.MergeShardsInput], func(c call, in any) (any, error) {
		return c.kinesis.MergeShards(c.ctx, in.(*kinesis.MergeShardsInput), c.atKinesis)
	}},
	"kinesis:increaseStreamRetentionPeriod": {input[kinesis.IncreaseStreamRetentionPeriodInput], func(c call, in any) (any, error) {
		return c.kinesis.IncreaseStreamRetentionPeriod(c.ctx, in.(*kinesis.IncreaseStreamRetentionPeriodInput), c.atKinesis)
	}},
	"kinesis:decreaseStreamRetentionPeriod": {input[kinesis.DecreaseStreamRetentionPeriodInput], func(c call, in any) (any, error) {
		return c.kinesis.DecreaseStreamRetentionPeriod(c.ctx, in.(*kinesis.DecreaseStreamRetentionPeriodInput), c.atKinesis)
	}},
	"kinesis:enableEnhancedMonitoring": {input[kinesis.EnableEnhancedMonitoringInput], func(c call, in any) (any, error) {
		return c.kinesis.EnableEnhancedMonitoring(c.ctx, in.(*kinesis.EnableEnhancedMonitoringInput), c.atKinesis)
	}},
	"kinesis:disableEnhancedMonitoring": {input[kinesis.DisableEnhancedMonitoringInput], func(c call, in any) (any, error) {
		return c.kinesis.DisableEnhancedMonitoring(c.ctx, in.(*kinesis.DisableEnhancedMonitoringInput), c.atKinesis)
	}},

	"eventbridge:putEvents": {input[eventbridge.PutEventsInput], func(c call, in any) (any, error) {
		return c.eventbridge.PutEvents(c.ctx, in.(*eventbridge.PutEventsInput), c.atEventBridge)
	}},
	"eventbridge:putRule": {input[eventbridge.PutRuleInput], func(c call, in any) (any, error) {
		return c.eventbridge.PutRule(c.ctx, in.(*eventbridge.PutRuleInput), c.atEventBridge)
	}},
	"eventbridge:deleteRule": {input[eventbridge.DeleteRuleInput], func(c call, in any) (any, error) {
		return c.eventbridge.DeleteRule(c.ctx, in.(*eventbridge.DeleteRuleInput), c.atEventBridge)
	}},
	"eventbridge:enableRule": {input[eventbridge.EnableRuleInput], func(c call, in any) (any, error) {
		return c.eventbridge.EnableRule(c.ctx, in.(*eventbridge.EnableRuleInput), c.atEventBridge)
	}},
	"eventbridge:disableRule": {input[eventbridge.DisableRuleInput], func(c call, in any) (any, error) {
		return c.eventbridge.DisableRule(c.ctx, in.(*eventbridge.DisableRuleInput), c.atEventBridge)
	}},
	"eventbridge:putTargets": {input[eventbridge.PutTargetsInput], func(c call, in any) (any, error) {
		return c.eventbridge.PutTargets(c.ctx, in.(*eventbridge.PutTargetsInput), c.atEventBridge)
	}},
	"eventbridge:removeTargets": {input[eventbridge.RemoveTargetsInput], func(c call, in any) (any, error) {
		return c.eventbridge.RemoveTargets(c.ctx, in.(*eventbridge.RemoveTargetsInput), c.atEventBridge)
	}},
	"eventbridge:createArchive": {input[eventbridge.CreateArchiveInput], func(c call, in any) (any, error) {
		return c.eventbridge.CreateArchive(c.ctx, in.(*eventbridge.CreateArchiveInput), c.atEventBridge)
	}},
	"eventbridge:updateArchive": {input[eventbridge.UpdateArchiveInput], func(c call, in any) (any, error) {
		return c.eventbridge.UpdateArchive(c.ctx, in.(*eventbridge.UpdateArchiveInput), c.atEventBridge)
	}},
	"eventbridge:deleteArchive": {input[eventbridge.DeleteArchiveInput], func(c call, in any) (any, error) {
		return c.eventbridge.DeleteArchive(c.ctx, in.(*eventbridge.DeleteArchiveInput), c.atEventBridge)
	}},
	"eventbridge:startReplay": {input[eventbridge.StartReplayInput], func(c call, in any) (any, error) {
		return c.eventbridge.StartReplay(c.ctx, in.(*eventbridge.StartReplayInput), c.atEventBridge)
	}},
	"eventbridge:cancelReplay": {input[eventbridge.CancelReplayInput], func(c call, in any) (any, error) {
		return c.eventbridge.CancelReplay(c.ctx, in.(*eventbridge.CancelReplayInput), c.atEventBridge)
	}},

	"ses:sendEmail": {input[ses.SendEmailInput], func(c call, in any) (any, error) { return c.ses.SendEmail(c.ctx, in.(*ses.SendEmailInput), c.atSES) }},
	"ses:sendRawEmail": {input[ses.SendRawEmailInput], func(c call, in any) (any, error) {
		return c.ses.SendRawEmail(c.ctx, in.(*ses.SendRawEmailInput), c.atSES)
	}},
	"ses:sendTemplatedEmail": {input[ses.SendTemplatedEmailInput], func(c call, in any) (any, error) {
		return c.ses.SendTemplatedEmail(c.ctx, in.(*ses.SendTemplatedEmailInput), c.atSES)
	}},
	"ses:sendBulkTemplatedEmail": {input[ses.SendBulkTemplatedEmailInput], func(c call, in any) (any, error) {
		return c.ses.SendBulkTemplatedEmail(c.ctx, in.(*ses.SendBulkTemplatedEmailInput), c.atSES)
	}},
	"ses:sendCustomVerificationEmail": {input[ses.SendCustomVerificationEmailInput], func(c call, in any) (any, error) {
		return c.ses.SendCustomVerificationEmail(c.ctx, in.(*ses.SendCustomVerificationEmailInput), c.atSES)
	}},
	"ses:sendBounce": {input[ses.SendBounceInput], func(c call, in any) (any, error) { return c.ses.SendBounce(c.ctx, in.(*ses.SendBounceInput), c.atSES) }},
	"ses:updateAccountSendingEnabled": {input[ses.UpdateAccountSendingEnabledInput], func(c call, in any) (any, error) {
		return c.ses.UpdateAccountSendingEnabled(c.ctx, in.(*ses.UpdateAccountSendingEnabledInput), c.atSES)
	}},
	"ses:updateConfigurationSetSendingEnabled": {input[ses.UpdateConfigurationSetSendingEnabledInput], func(c call, in any) (any, error) {
		return c.ses.UpdateConfigurationSetSendingEnabled(c.ctx, in.(*ses.UpdateConfigurationSetSendingEnabledInput), c.atSES)
	}},

	"sesv2:sendEmail": {input[sesv2.SendEmailInput], func(c call, in any) (any, error) {
		return c.sesv2.SendEmail(c.ctx, in.(*sesv2.SendEmailInput), c.atSESv2)
	}},
	"sesv2:sendBulkEmail": {input[sesv2.SendBulkEmailInput], func(c call, in any) (any, error) {
		return c.sesv2.SendBulkEmail(c.ctx, in.(*sesv2.SendBulkEmailInput), c.atSESv2)
	}},
	"sesv2:sendCustomVerificationEmail": {input[sesv2.SendCustomVerificationEmailInput], func(c call, in any) (any, error) {
		return c.sesv2.SendCustomVerificationEmail(c.ctx, in.(*sesv2.SendCustomVerificationEmailInput), c.atSESv2)
	}},
	"sesv2:createContact": {input[sesv2.CreateContactInput], func(c call, in any) (any, error) {
		return c.sesv2.CreateContact(c.ctx, in.(*sesv2.CreateContactInput), c.atSESv2)
	}},
	"sesv2:updateContact": {input[sesv2.UpdateContactInput], func(c call, in any) (any, error) {
		return c.sesv2.UpdateContact(c.ctx, in.(*sesv2.UpdateContactInput), c.atSESv2)
	}},
	"sesv2:deleteContact": {input[sesv2.DeleteContactInput], func(c call, in any) (any, error) {
		return c.sesv2.DeleteContact(c.ctx, in.(*sesv2.DeleteContactInput), c.atSESv2)
	}},
	"sesv2:putSuppressedDestination": {input[sesv2.PutSuppressedDestinationInput], func(c call, in any) (any, error) {
		return c.sesv2.PutSuppressedDestination(c.ctx, in.(*sesv2.PutSuppressedDestinationInput), c.atSESv2)
	}},
	"sesv2:deleteSuppressedDestination": {input[sesv2.DeleteSuppressedDestinationInput], func(c call, in any) (any, error) {
		return c.sesv2.DeleteSuppressedDestination(c.ctx, in.(*sesv2.DeleteSuppressedDestinationInput), c.atSESv2)
	}},
	"sesv2:putAccountSendingAttributes": {input[sesv2.PutAccountSendingAttributesInput], func(c call, in any) (any, error) {
		return c.sesv2.PutAccountSendingAttributes(c.ctx, in.(*sesv2.PutAccountSendingAttributesInput), c.atSESv2)
	}},
	"sesv2:putConfigurationSetSendingOptions": {input[sesv2.PutConfigurationSetSendingOptionsInput], func(c call, in any) (any, error) {
		return c.sesv2.PutConfigurationSetSendingOptions(c.ctx, in.(*sesv2.PutConfigurationSetSendingOptionsInput), c.atSESv2)
	}},
}

func (c call) atSQS(o *sqs.Options)                 { o.Region = c.region }
func (c call) atSNS(o *sns.Options)                 { o.Region = c.region }
func (c call) atLambda(o *lambda.Options)           { o.Region = c.region }
func (c call) atSFN(o *sfn.Options)                 { o.Region = c.region }
func (c call) atKinesis(o *kinesis.Options)         { o.Region = c.region }
func (c call) atEventBridge(o *eventbridge.Options) { o.Region = c.region }
func (c call) atSES(o *ses.Options)                 { o.Region = c.region }
func (c call) atSESv2(o *sesv2.Options)             { o.Region = c.region }

// textMembers are the members that hold bytes as plain text in an Input, by operation. All others
// are base64.
var textMembers = map[string][]string{
	"lambda:invoke": {"Payload"},
}

// toCall makes universal targets' calls. Without a configured region it uses the schedule's.
func (s *clients) toCall(a arn) (sender, error) {
	name := a.universalOf + ":" + a.universalCall
	operation, known := operations[name]
	if !known {
		return nil, unsupported(a)
	}
	if err := s.unnamed[a.universalOf]; err != nil {
		return nil, err
	}
	return singly(func(ctx context.Context, d *target.Delivery) error {
		there := a
		if from, err := parseARN(d.Source); err == nil && s.loaded.Region == "" {
			there.region = from.region
		}
		in := operation.input()
		if err := decodeInput(d.Body, in, textMembers[name]...); err != nil {
			return err
		}
		out, err := operation.do(call{s, ctx, s.region(there)}, in)
		if err != nil {
			return err
		}
		return outcome(out)
	}), nil
}

// callsOf lists the actions of a service, for messages.
func callsOf(service string) string {
	var calls []string
	for name := range operations {
		if of, call, _ := strings.Cut(name, ":"); of == service {
			calls = append(calls, call)
		}
	}
	slices.Sort(calls)
	return strings.Join(calls, ", ")
}
