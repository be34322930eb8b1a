// Package kafka delivers to topics of Kafka, and of what speaks its protocol.
//
// A record's key is the delivery's, so deliveries of one key go to one partition; its headers are those of the Kafka binding of CloudEvents in binary mode (ce_id, ce_source, …,
// content-type), or content-type application/cloudevents+json in structured mode. The producer is idempotent: what it repeats by itself after a lost answer makes no second record. What
// a later attempt repeats does, with the same ce_id.
//
// A call hands all its deliveries to the client, in their order, and waits for the results, each its own: written by all replicas in sync. The client finds the brokers, the partitions'
// leaders and its way back after a failure. Records that it has not sent within Timeout fail, and are worth another attempt; so is everything else that time or an administrator can mend. What the
// broker will never take, such as a record that is too large, is permanent.
package kafka
