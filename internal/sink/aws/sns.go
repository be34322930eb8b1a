package aws

import (
	"context"
	"strings"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	"github.com/aws/aws-sdk-go-v2/service/sns/types"

	"github.com/mayflydb/mayfly/target"
)

// toTopic publishes: the message is the delivery's body, the attributes are String attributes. A FIFO topic gets the delivery's key as its group, and the delivery's
// ID to de-duplicate by.
func (s *clients) toTopic(a arn) (sender, error) {
	fifo := strings.HasSuffix(a.resource, fifoSuffix)
	return batcher[types.PublishBatchRequestEntry]{
		most: messagesMost, bytes: messagesBytes, ordered: fifo,
		entry: func(d *target.Delivery) (types.PublishBatchRequestEntry, int, error) { return topicEntry(d, fifo) },
		call: func(ctx context.Context, entries []types.PublishBatchRequestEntry, results []error) error {
			return s.publish(ctx, a, entries, results)
		},
	}.deliver, nil
}

func topicEntry(d *target.Delivery, fifo bool) (e types.PublishBatchRequestEntry, size int, err error) {
	given, err := parametersOf(d)
	if err != nil {
		return e, 0, err
	}
	e.Message = sdk.String(string(d.Body))
	e.MessageAttributes = map[string]types.MessageAttributeValue{}
	size = len(d.Body)
	for name, value := range attributesOf(d) {
		e.MessageAttributes[name] = types.MessageAttributeValue{DataType: sdk.String("String"), StringValue: sdk.String(value)}
		size += len(name) + len("String") + len(value)
	}
	if fifo {
		group, err := groupOf(d, given.SqsParameters.MessageGroupId)
		if err != nil {
			return e, 0, err
		}
		e.MessageGroupId, e.MessageDeduplicationId = sdk.String(group), sdk.String(d.ID)
	}
	return e, size, nil
}

func (s *clients) publish(ctx context.Context, a arn, entries []types.PublishBatchRequestEntry, results []error) error {
	if err := s.unnamed["sns"]; err != nil {
		return err
	}
	there := func(o *sns.Options) { o.Region = s.region(a) }
	if len(entries) == 1 {
		e := entries[0]
		_, err := s.sns.Publish(ctx, &sns.PublishInput{
			TopicArn: &a.text, Message: e.Message, MessageAttributes: e.MessageAttributes, MessageGroupId: e.MessageGroupId, MessageDeduplicationId: e.MessageDeduplicationId,
		}, there)
		return err
	}
	for i := range entries {
		entries[i].Id = entryID(i)
	}
	out, err := s.sns.PublishBatch(ctx, &sns.PublishBatchInput{TopicArn: &a.text, PublishBatchRequestEntries: entries}, there)
	if err != nil {
		return err
	}
	answers := tally{results: results}
	for _, e := range out.Successful {
		answers.arrived(e.Id)
	}
	for _, e := range out.Failed {
		answers.failed(e.Id, e.Code, e.Message, e.SenderFault)
	}
	return answers.complete()
}
