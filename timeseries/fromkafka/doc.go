// Package fromkafka ingests readings from a Kafka topic. The committed offsets of a consumer group
// are the checkpoint: they are committed after the samples before them are durable. After a crash
// the later records come again and make the same items.
//
// Several processes of one group share the partitions of a topic. A partition keeps its owner while
// a batch of it is written and committed, so its next owner starts after that batch. Records of
// transactions are read once committed; those of aborted transactions are not read.
//
// The receiver puts unusable records aside and continues. Once started, Ingest waits for absent
// brokers. A fault that needs an administrator, such as a missing or deleted topic or a missing
// permission, ends it.
package fromkafka
