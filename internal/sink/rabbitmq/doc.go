// Package rabbitmq delivers to exchanges of RabbitMQ, by AMQP 0-9-1.
//
// Messages are persistent and mandatory, and the broker confirms them: a delivery has arrived when every queue that it was routed to has it safely. One that no queue takes is an error, and so is one that the
// broker refuses to confirm, as a full queue may. A message's properties carry the delivery's ID (message-id) and time; its headers are those of the AMQP binding of CloudEvents in
// binary mode (cloudEvents:id, cloudEvents:source, …; the media type is the property content-type), or none with content-type application/cloudevents+json in structured mode. RabbitMQ does not
// remove duplicates: what a repeated attempt publishes twice has the same ID.
//
// A call has a channel to itself, out of a pool over one connection, publishes all its deliveries in their order, and then waits for the confirmations. The broker closes a channel for one message
// that it does not like, and with it everything unconfirmed before and behind; where that may be one message's fault, the call publishes the unconfirmed ones again, each alone.
//
// The connection is made again when it has broken, at the next call. Meanwhile deliveries fail at once and are worth another attempt, as they do while the broker has blocked publishing
// for want of memory or disk. What the broker will never take, a message that is too large or a routing key that is too long, is permanent.
package rabbitmq
