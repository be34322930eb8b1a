package sink

import (
	"fmt"
	"iter"
	"slices"

	"github.com/mayflydb/mayfly/target"
)

// Mode says how a delivery becomes a message. The zero value is Binary.
type Mode string

// The modes: those of the CloudEvents bindings, and the bare body.
const (
	Binary     Mode = "binary"     // the body as it is, the event's attributes as headers
	Structured Mode = "structured" // the whole event as JSON
	Plain      Mode = "plain"      // the body as it is and nothing else
)

// Check says what is wrong with the mode.
func (m Mode) Check() error {
	if m != "" && !slices.Contains([]Mode{Binary, Structured, Plain}, m) {
		return fmt.Errorf("mode: %q is not one of binary, structured, plain", string(m))
	}
	return nil
}

// Message is what a broker gets of a delivery.
type Message struct {
	Body        []byte
	ContentType string                    // of Body; empty where there is none
	Attributes  iter.Seq2[string, string] // of the event, by name, without a prefix; none but in Binary mode
}

// Message makes a message of a delivery.
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
