package fromkafka

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// asker queries the brokers about the topic and the group, and consumes nothing.
type asker struct {
	client *kgo.Client
	name   string
	group  string
}

// topic is the brokers' description of a topic.
type topic struct {
	id         [16]byte // zero if the brokers have no ids
	partitions []int32
	leaders    map[int32]int32 // brokers, by partition
}

// askLimit limits the retries of a query.
const askLimit = 5 * time.Second

func newAsker(o Options) (*asker, error) {
	client, err := kgo.NewClient(append(slices.Clip(o.Client), kgo.RetryTimeout(askLimit))...)
	if err != nil {
		return nil, fmt.Errorf("the client of Kafka: %w", err)
	}
	return &asker{client, o.Topic, o.Group}, nil
}

func (a *asker) close() { a.client.Close() }

// topic reads the description of the topic, without creating it. Its error is ErrNoTopic if the
// brokers lack the topic.
func (a *asker) topic(ctx context.Context) (found topic, err error) {
	request := kmsg.NewPtrMetadataRequest()
	wanted := kmsg.NewMetadataRequestTopic()
	wanted.Topic = new(a.name)
	request.Topics = append(request.Topics, wanted)
	answer, err := request.RequestWith(ctx, a.client)
	if err != nil {
		return found, err
	}
	if len(answer.Topics) != 1 {
		return found, fmt.Errorf("the brokers returned %d topics instead of one", len(answer.Topics))
	}
	t := answer.Topics[0]
	err = kerr.ErrorForCode(t.ErrorCode)
	if errors.Is(err, kerr.UnknownTopicOrPartition) || errors.Is(err, kerr.UnknownTopicID) {
		err = fmt.Errorf("%w: %q", ErrNoTopic, a.name)
	}
	found.id, found.leaders = t.TopicID, map[int32]int32{}
	for _, p := range t.Partitions {
		found.partitions = append(found.partitions, p.Partition)
		found.leaders[p.Partition] = p.Leader
	}
	return found, err
}

// Special offsets of a partition.
const (
	atStart = -2 // the first record
	atEnd   = -1 // after the last record that is not part of an open transaction
)

// offsets returns the start or the end of each partition.
func (a *asker) offsets(ctx context.Context, which int64) (map[int32]int64, error) {
	there, err := a.topic(ctx)
	if err != nil {
		return nil, err
	}
	request := kmsg.NewPtrListOffsetsRequest()
	request.ReplicaID, request.IsolationLevel = -1, 1
	wanted := kmsg.NewListOffsetsRequestTopic()
	wanted.Topic = a.name
	for _, partition := range there.partitions {
		p := kmsg.NewListOffsetsRequestTopicPartition()
		p.Partition, p.Timestamp = partition, which
		wanted.Partitions = append(wanted.Partitions, p)
	}
	request.Topics = append(request.Topics, wanted)
	answer, err := request.RequestWith(ctx, a.client)
	if err != nil {
		return nil, err
	}
	found := map[int32]int64{}
	for _, t := range answer.Topics {
		for _, p := range t.Partitions {
			if err := kerr.ErrorForCode(p.ErrorCode); err != nil {
				return nil, err
			}
			found[p.Partition] = p.Offset
		}
	}
	return found, nil
}

// committed returns the group's committed offsets, without partitions that have none.
func (a *asker) committed(ctx context.Context, partitions []int32) (map[int32]int64, error) {
	request := kmsg.NewPtrOffsetFetchRequest()
	request.Group, request.RequireStable = a.group, true
	wanted := kmsg.NewOffsetFetchRequestTopic()
	wanted.Topic, wanted.Partitions = a.name, partitions
	request.Topics = append(request.Topics, wanted)
	answer, err := request.RequestWith(ctx, a.client)
	if err != nil {
		return nil, err
	}
	if err := kerr.ErrorForCode(answer.ErrorCode); err != nil {
		return nil, err
	}
	found := map[int32]int64{}
	for _, t := range answer.Topics {
		for _, p := range t.Partitions {
			if err := kerr.ErrorForCode(p.ErrorCode); err != nil {
				return nil, err
			}
			if p.Offset >= 0 {
				found[p.Partition] = p.Offset
			}
		}
	}
	return found, nil
}

// pass returns the offset up to which a partition has nothing to read, starting at from: compaction
// may have removed the last records, and transactions leave marks. It reads the next batch only,
// and returns from if that has a record. end is the end of the partition, possibly outdated.
func (a *asker) pass(ctx context.Context, there topic, partition int32, from, end int64) (int64, error) {
	request := kmsg.NewPtrFetchRequest()
	// a broker returns a whole batch, whatever the limit
	request.MaxWaitMillis, request.MinBytes, request.MaxBytes, request.IsolationLevel = 0, 0, 1, 1
	wanted := kmsg.NewFetchRequestTopic()
	wanted.Topic, wanted.TopicID = a.name, there.id
	p := kmsg.NewFetchRequestTopicPartition()
	p.Partition, p.FetchOffset, p.PartitionMaxBytes = partition, from, 1
	wanted.Partitions = append(wanted.Partitions, p)
	request.Topics = append(request.Topics, wanted)
	some, err := a.client.Broker(int(there.leaders[partition])).RetriableRequest(ctx, request)
	if err != nil {
		return from, err
	}
	answer := some.(*kmsg.FetchResponse)
	if err := kerr.ErrorForCode(answer.ErrorCode); err != nil {
		return from, err
	}
	if len(answer.Topics) != 1 || len(answer.Topics[0].Partitions) != 1 {
		return from, fmt.Errorf("the brokers returned %d topics instead of one", len(answer.Topics))
	}
	found := &answer.Topics[0].Partitions[0]
	batch, next := kgo.ProcessFetchPartition(kgo.ProcessFetchPartitionOpts{
		Offset: from, IsolationLevel: kgo.ReadCommitted(), Topic: a.name, Partition: partition,
	}, found, kgo.DefaultDecompressor(), nil)
	switch {
	case batch.Err != nil:
		return from, batch.Err
	case len(batch.Records) > 0:
		return from, nil
	case len(found.RecordBatches) == 0 && found.LastStableOffset >= end:
		return end, nil
	}
	return next, nil
}

// lasting are errors that need an administrator, or another configuration.
var lasting = []error{
	kerr.TopicAuthorizationFailed, kerr.GroupAuthorizationFailed, kerr.ClusterAuthorizationFailed, kerr.SaslAuthenticationFailed, kerr.UnsupportedSaslMechanism, kerr.IllegalSaslState,
	kerr.InvalidGroupID, kerr.InconsistentGroupProtocol, kerr.GroupMaxSizeReached, kerr.InvalidSessionTimeout, kerr.UnsupportedVersion, kerr.InvalidTopicException, ErrNoTopic,
}

func fatal(err error) bool {
	for _, e := range lasting {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// explain turns an error into one about the topic and the group.
func (in *ingesting) explain(err error) error {
	switch {
	case errors.Is(err, ErrNoTopic):
		return err
	case errors.Is(err, kerr.TopicAuthorizationFailed):
		return fmt.Errorf("the user may not read the topic %q: %w", in.o.Topic, err)
	case errors.Is(err, kerr.GroupAuthorizationFailed):
		return fmt.Errorf("the user may not read with the group %q: %w", in.o.Group, err)
	case errors.Is(err, kerr.SaslAuthenticationFailed), errors.Is(err, kerr.UnsupportedSaslMechanism), errors.Is(err, kerr.IllegalSaslState):
		return fmt.Errorf("the brokers do not know the user: %w", err)
	}
	return fmt.Errorf("the topic %q: %w", in.o.Topic, err)
}
