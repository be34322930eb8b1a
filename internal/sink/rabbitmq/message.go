package rabbitmq

import (
	"fmt"
	"strings"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/mayflydb/mayfly/internal/sink"
	"github.com/mayflydb/mayfly/target"
)

// maxHeaders is the most bytes of a message's headers. They must fit into one frame, usually of 128
// KB; the broker closes a connection for a larger one.
const maxHeaders = 100 << 10

// prefix begins the names of headers with an event's attributes.
const prefix = "cloudEvents:"

// message converts a delivery to a message.
func (s *Sink) message(d target.Delivery) (*publishing, error) {
	m := s.config.Mode.Message(d)
	p := &publishing{key: s.key.Expand(d, clean)}
	p.message = amqp.Publishing{
		Headers: amqp.Table{}, ContentType: m.ContentType, DeliveryMode: amqp.Persistent, MessageId: d.ID, Timestamp: d.Time, AppId: "mayfly", Body: m.Body,
	}
	size := 0
	for name, value := range m.Attributes {
		p.message.Headers[prefix+name] = value
		if size += len(prefix) + len(name) + len(value) + 8; len(prefix+name) > maxShort {
			return nil, target.Permanent(codeHeaders, fmt.Sprintf("the name of a header has %d bytes; the limit is %d", len(prefix+name), maxShort))
		}
	}
	switch {
	case len(p.key) > maxShort:
		return nil, target.Permanent(codeKey, fmt.Sprintf("the routing key has %d bytes; the limit is %d", len(p.key), maxShort))
	case len(d.ID) > maxShort || len(m.ContentType) > maxShort || size > maxHeaders:
		return nil, target.Permanent(codeHeaders, fmt.Sprintf("the properties have %d bytes; at most %d are allowed, and %d for ID and content type", size, maxHeaders, maxShort))
	}
	return p, nil
}

// clean turns a value into one word of a routing key.
var clean = func(s string) string { return strings.ReplaceAll(s, ".", "_") }

// Codes of failures, in addition to the common ones and AMQP's own, such as "NO_ROUTE".
const (
	codeBlocked = "ConnectionBlocked"
	codeNack    = "NotConfirmed"
	codeKey     = "InvalidRoutingKey"
	codeHeaders = "InvalidHeaders"
)

// replyNames are the names of reply codes in AMQP 0-9-1.
var replyNames = map[int]string{
	311: "CONTENT_TOO_LARGE", 312: "NO_ROUTE", 313: "NO_CONSUMERS", 320: "CONNECTION_FORCED", 402: "INVALID_PATH", 403: "ACCESS_REFUSED", 404: "NOT_FOUND",
	405: "RESOURCE_LOCKED", 406: "PRECONDITION_FAILED", 501: "FRAME_ERROR", 502: "SYNTAX_ERROR", 503: "COMMAND_INVALID", 504: "CHANNEL_ERROR",
	505: "UNEXPECTED_FRAME", 506: "RESOURCE_ERROR", 530: "NOT_ALLOWED", 540: "NOT_IMPLEMENTED", 541: "INTERNAL_ERROR",
}

func replyName(code int) string {
	if name := replyNames[code]; name != "" {
		return name
	}
	return fmt.Sprintf("AMQP%d", code)
}

// isMessageFault reports whether the broker closed a channel because of one message.
func isMessageFault(err error) bool {
	e := target.AsError(err)
	return e != nil && (e.Code == replyNames[amqp.ContentTooLarge] || e.Code == replyNames[amqp.PreconditionFailed])
}

// classify returns the delivery's error for an error of the client.
func classify(err error) error {
	why, ok := err.(*amqp.Error) //nolint:errorlint // the client does not wrap them, and those that it makes itself tell little
	if !ok || !why.Server {
		return &target.Error{Code: sink.CodeConnection, Message: err.Error(), Err: err}
	}
	return &target.Error{Code: replyName(why.Code), Message: why.Reason, Throttled: why.Code == amqp.ResourceError, Err: err}
}
