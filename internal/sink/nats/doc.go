// Package nats delivers to NATS: to a stream of JetStream, which acknowledges and removes
// duplicates, or to the present subscribers.
//
// In binary mode a message's headers follow the NATS binding of CloudEvents (ce-id,
// ce-source, …, ce-datacontenttype, percent-encoded); in structured mode it has content-type
// application/cloudevents+json. In every mode Nats-Msg-Id is the delivery's ID, and JetStream
// recognizes a repeated delivery: within the stream's duplicate window (two minutes by default) a
// repeated attempt makes no second message.
//
// A call publishes all its deliveries in order, and then waits for the acknowledgements. With Core
// there are none. A delivery then has arrived when the server has answered a later ping over the
// same connection; whether it had subscribers is unknown.
//
// The client reconnects by itself. While it is not connected, deliveries fail at once and may be
// retried, like all failures that time can mend: a stream that is missing or full. A message that
// is too large, or an invalid subject, fails permanently.
package nats
