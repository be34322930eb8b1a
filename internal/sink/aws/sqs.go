package aws

import (
	"context"
	"strings"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/mayflydb/mayfly/target"
)

// toQueue sends messages: the body is the delivery's, the attributes are String attributes. A FIFO
// queue gets the group of the SqsParameters, else the delivery's key, and the delivery's ID to
// de-duplicate by.
func (s *clients) toQueue(a arn) (sender, error) {
	address, err := s.queueURL(a)
	if err != nil {
		return nil, err
	}
	fifo := strings.HasSuffix(a.resource, fifoSuffix)
	there := func(o *sqs.Options) { o.Region = s.region(a) }
	return batcher[types.SendMessageBatchRequestEntry]{
		most: messagesMost, bytes: messagesBytes, ordered: fifo,
		entry: func(d *target.Delivery) (types.SendMessageBatchRequestEntry, int, error) { return queueEntry(d, fifo) },
		one: func(ctx context.Context, e types.SendMessageBatchRequestEntry) error {
			_, err := s.sqs.SendMessage(ctx, &sqs.SendMessageInput{
				QueueUrl: &address, MessageBody: e.MessageBody, MessageAttributes: e.MessageAttributes,
				MessageGroupId: e.MessageGroupId, MessageDeduplicationId: e.MessageDeduplicationId,
			}, there)
			return err
		},
		call: func(ctx context.Context, entries []types.SendMessageBatchRequestEntry, results []error) error {
			for i := range entries {
				entries[i].Id = entryID(i)
			}
			out, err := s.sqs.SendMessageBatch(ctx, &sqs.SendMessageBatchInput{QueueUrl: &address, Entries: entries}, there)
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

// queueURL returns SQS's URL of a queue: its ARN as an address. At endpoints other than Amazon's
// only its path counts.
func (s *clients) queueURL(a arn) (string, error) {
	if strings.Contains(a.resource, "/") || strings.Contains(a.resource, ":") {
		return "", target.Permanent(codeInvalid, "The ARN "+a.text+" does not name a queue: arn:aws:sqs:<region>:<account>:<name>")
	}
	endpoint := s.addresses["sqs"]
	if endpoint == "" {
		endpoint = "https://sqs." + s.region(a) + "." + domain(a)
	}
	return strings.TrimSuffix(endpoint, "/") + "/" + a.account + "/" + a.resource, nil
}

// domain returns the domain of the services in an ARN's partition.
func domain(a arn) string {
	if strings.HasPrefix(a.text, "arn:aws-cn:") {
		return "amazonaws.com.cn"
	}
	return "amazonaws.com"
}

func queueEntry(d *target.Delivery, fifo bool) (types.SendMessageBatchRequestEntry, int, error) {
	m, err := newMessage(d, fifo)
	if err != nil {
		return types.SendMessageBatchRequestEntry{}, 0, err
	}
	attributes := make(map[string]types.MessageAttributeValue, len(m.attributes))
	for name, value := range m.attributes {
		attributes[name] = types.MessageAttributeValue{DataType: sdk.String(attributeType), StringValue: &value}
	}
	return types.SendMessageBatchRequestEntry{
		MessageBody: &m.body, MessageAttributes: attributes, MessageGroupId: m.group, MessageDeduplicationId: m.id,
	}, m.size, nil
}
