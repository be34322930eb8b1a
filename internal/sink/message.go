package sink

import (
	"iter"
	"slices"

	"github.com/mayflydb/mayfly/internal/option"
	"github.com/mayflydb/mayfly/target"
)

// Mode is the conversion of a delivery to a message. The zero value is Binary.
type Mode string

// The modes: the ones in the CloudEvents bindings, and the bare body.
const (
	Binary     Mode = "binary"     // the body unchanged, the event's attributes as headers
	Structured Mode = "structured" // the whole event as JSON
	Plain      Mode = "plain"      // the body unchanged and nothing else
)

// Check returns an error for an unknown mode.
func (m Mode) Check() error {
	if m != "" && !slices.Contains([]Mode{Binary, Structured, Plain}, m) {
		return option.Errorf("mode", "%q is not one of binary, structured, plain", string(m))
	}
	return nil
}

// Message is a delivery as a broker receives it.
type Message struct {
	Body        []byte
	ContentType string // of Body; empty for none
	// of the event, by name, without a prefix; only in Binary mode
	Attributes iter.Seq2[string, string]
}

// Message converts a delivery to a message.
func (m Mode) Message(d target.Delivery) Message {
	event := target.CloudEvent(d)
	switch m {
	case Structured:
		return Message{event.AppendJSON(make([]byte, 0, len(d.Body)+512)), target.CloudEventType, none}
	case Plain:
		return Message{d.Body, event.DataContentType(), none}
	}
	return Message{d.Body, event.DataContentType(), event.Context()}
}

func none(func(name, value string) bool) {}
