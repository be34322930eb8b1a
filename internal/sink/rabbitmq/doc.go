// Package rabbitmq delivers to exchanges of RabbitMQ, by AMQP 0-9-1.
//
// Messages are persistent and mandatory, and the broker confirms them: a delivery has arrived when
// every queue on its route has stored it. A message without a queue is an error, and so is one that
// the broker refuses to confirm, for example because a queue is full. A message's properties carry
// the delivery's ID (message-id) and time. In binary mode its headers follow the AMQP binding
// of CloudEvents (cloudEvents:id, cloudEvents:source, …; the media type is the property
// content-type). In structured mode it has content-type application/cloudevents+json and no
// headers. RabbitMQ does not remove duplicates: messages of repeated attempts have the same ID.
//
// A call takes a channel from a pool over one connection, publishes all its deliveries in order,
// and then waits for the confirmations. The broker closes a channel for one faulty message, and all
// unconfirmed messages before and after it are lost. If one message may be at fault, the call
// publishes the unconfirmed ones again, each alone.
//
// After the connection breaks, the next call connects again. Meanwhile deliveries fail at once and
// may be retried, and likewise while the broker has blocked publishing for lack of memory or disk.
// A message that is too large, or a routing key that is too long, fails permanently.
package rabbitmq
