// Package kafka delivers to topics of Kafka, and of brokers with its protocol.
//
// A record has the delivery's key, so deliveries of one key go to one partition. In binary mode its
// headers follow the Kafka binding of CloudEvents (ce_id, ce_source, …, content-type); in
// structured mode it has content-type application/cloudevents+json. The producer is idempotent: its
// own retries after a lost answer make no second record. A later attempt of the delivery does, with
// the same ce_id.
//
// A call passes all its deliveries to the client in order, and waits for the result of each:
// written by all replicas in sync. The client finds the brokers and the partitions' leaders, and
// recovers from failures. Records that are unsent after Timeout fail and may be retried, and so do
// all failures that time or an administrator can mend. A record that the broker will never accept,
// for example because of its size, fails permanently.
package kafka
