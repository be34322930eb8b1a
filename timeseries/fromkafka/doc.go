// Package fromkafka ingests readings from a topic of Kafka. The offsets that a consumer group has committed are the checkpoint: they are committed when the samples before them are
// durable, so after a crash the records behind them come again, and their samples are the same items.
//
// Several processes of one group share a topic's partitions. While a batch is written and committed no partition is given away: so whoever takes one over begins where the one before
// was done. Records of transactions are read once they are committed, and those of aborted ones are not.
//
// What cannot be used is put aside by the receiver, and the rest goes on. Brokers that are away are waited for; what nobody but an administrator can mend ends Ingest: a topic that is not there
// or was deleted, a user who may not read it.
package fromkafka
