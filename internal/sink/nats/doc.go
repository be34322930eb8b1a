// Package nats delivers to NATS: to a stream of JetStream, which acknowledges and removes duplicates, or to whoever listens.
//
// A message's headers are those of the NATS binding of CloudEvents in binary mode (ce-id, ce-source, …, ce-datacontenttype, percent-encoded), or content-type
// application/cloudevents+json in structured mode. In every mode Nats-Msg-Id is the delivery's ID, by which JetStream knows a delivery that it has already got: within the stream's
// duplicate window (two minutes unless it says otherwise) a repeated attempt makes no second message.
//
// A call publishes all its deliveries without waiting, in their order, and then waits for the acknowledgements. With Core there are none; a delivery has
// arrived when the server has answered a ping sent after it, over the same connection, and whether anyone listened is not known.
//
// The client reconnects by itself. While it is not connected deliveries fail at once and are worth another attempt, like everything that time can mend: a stream that
// is not there, or full. What cannot be mended, a message that is too large or a subject that is none, is permanent.
package nats
