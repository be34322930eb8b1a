package aws

import (
	"maps"
	"slices"

	"github.com/mayflydb/mayfly/target"
)

// Limits of a call to SQS or SNS. SQS now accepts larger messages; batches that are split at the
// older limit suit every version of it.
const (
	messagesMost   = 10
	messagesBytes  = 256 << 10
	attributesMost = 10
)

const (
	fifoSuffix    = ".fifo" // of the names of queues and topics that keep an order
	attributeType = "String"
)

// message is a delivery as SQS and SNS take it.
type message struct {
	body       string
	attributes map[string]string
	group, id  *string // of a FIFO queue or topic: the message group and the de-duplication ID
	size       int     // as the services count it: body and attributes
}

// newMessage returns the message for a delivery. fifo is set for a queue or topic that keeps an
// order.
func newMessage(d *target.Delivery, fifo bool) (message, error) {
	parameters, err := parametersOf(d)
	if err != nil {
		return message{}, err
	}
	m := message{body: string(d.Body), attributes: messageAttributes(d.Attributes), size: len(d.Body)}
	for name, value := range m.attributes {
		m.size += len(name) + len(attributeType) + len(value)
	}
	if fifo {
		group, err := messageGroup(d, parameters.SqsParameters.MessageGroupId)
		if err != nil {
			return message{}, err
		}
		m.group, m.id = &group, &d.ID
	}
	return m, nil
}

// messageGroup returns the group of a FIFO message: the configured one, or the delivery's key.
func messageGroup(d *target.Delivery, configured string) (string, error) {
	switch {
	case configured != "":
		return configured, nil
	case d.Key != "":
		return d.Key, nil
	}
	return "", target.Permanent("MissingParameter", "The target "+d.TargetARN+" is FIFO, so it needs a MessageGroupId: set SqsParameters.MessageGroupId")
}

// messageAttributes returns the attributes that are not empty: the first attributesMost by name.
func messageAttributes(all map[string]string) map[string]string {
	if len(all) == 0 {
		return nil
	}
	first := make(map[string]string, len(all))
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if value := all[name]; value != "" && len(first) < attributesMost {
			first[name] = value
		}
	}
	return first
}
