package aws

import (
	"context"
	"strings"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	"github.com/aws/aws-sdk-go-v2/service/sns/types"

	"github.com/mayflydb/mayfly/target"
)

// toTopic publishes: the message is the delivery's body, the attributes are String attributes. A
// FIFO topic gets the group and the de-duplication ID that a FIFO queue would get (see toQueue).
func (s *clients) toTopic(a arn) (sender, error) {
	fifo := strings.HasSuffix(a.resource, fifoSuffix)
	there := func(o *sns.Options) { o.Region = s.region(a) }
	return batcher[types.PublishBatchRequestEntry]{
		most: messagesMost, bytes: messagesBytes, ordered: fifo,
		entry: func(d *target.Delivery) (types.PublishBatchRequestEntry, int, error) { return topicEntry(d, fifo) },
		one: func(ctx context.Context, e types.PublishBatchRequestEntry) error {
			_, err := s.sns.Publish(ctx, &sns.PublishInput{
				TopicArn: &a.text, Message: e.Message, MessageAttributes: e.MessageAttributes,
				MessageGroupId: e.MessageGroupId, MessageDeduplicationId: e.MessageDeduplicationId,
			}, there)
			return err
		},
		call: func(ctx context.Context, entries []types.PublishBatchRequestEntry, results []error) error {
			for i := range entries {
				entries[i].Id = entryID(i)
			}
			out, err := s.sns.PublishBatch(ctx, &sns.PublishBatchInput{TopicArn: &a.text, PublishBatchRequestEntries: entries}, there)
			if err != nil {
				return err
			}
			answers := tally{results: results}
			for _, e := range out.Successful {
				answers.place(e.Id)
			}
			for _, e := range out.Failed {
				answers.failed(e.Id, e.Code, e.Message, e.SenderFault)
			}
			return answers.complete()
		},
	}.deliver, nil
}

func topicEntry(d *target.Delivery, fifo bool) (types.PublishBatchRequestEntry, int, error) {
	m, err := newMessage(d, fifo)
	if err != nil {
		return types.PublishBatchRequestEntry{}, 0, err
	}
	attributes := make(map[string]types.MessageAttributeValue, len(m.attributes))
	for name, value := range m.attributes {
		attributes[name] = types.MessageAttributeValue{DataType: sdk.String(attributeType), StringValue: &value}
	}
	return types.PublishBatchRequestEntry{
		Message: &m.body, MessageAttributes: attributes, MessageGroupId: m.group, MessageDeduplicationId: m.id,
	}, m.size, nil
}
