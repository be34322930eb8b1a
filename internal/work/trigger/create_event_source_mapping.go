package trigger

import (
	"context"
	"crypto/rand"
	"encoding/hex"

	"github.com/mayflydb/mayfly/internal/constraint"
)

// CreateEventSourceMapping creates a mapping, which soon runs. (AWS answers with the status 202.)
func (t *Triggers) CreateEventSourceMapping(ctx context.Context, in *CreateEventSourceMappingInput) (*EventSourceMapping, error) {
	if err := t.checkCreate(in); err != nil {
		return nil, err
	}
	m := &mapping{Enabled: orElse(in.Enabled, true), Tags: in.Tags, revision: 1}
	m.EventSourceMapping = EventSourceMapping{
		UUID: newUUID(), StartingPosition: *in.StartingPosition, EventSourceArn: *in.EventSourceArn, FunctionArn: t.o.functionARN(*in.FunctionName),
		BatchSize: batchDefault, ParallelizationFactor: 1, MaximumRecordAgeInSeconds: infinite, MaximumRetryAttempts: infinite, FunctionResponseTypes: []string{},
		DestinationConfig: DestinationConfig{OnFailure: &Destination{}}, State: stateCreating, StateTransitionReason: userAction, LastProcessingResult: resultNone,
	}
	m.EventSourceMappingArn = t.o.mappingARN(m.UUID)
	m.change(&in.Settings)
	m.touch(t.o.Clock.Now())
	if err := t.checkTargets(m); err != nil {
		return nil, err
	}
	if err := t.checkStream(ctx, m.EventSourceArn); err != nil {
		return nil, err
	}
	if err := t.checkDuplicate(ctx, m); err != nil {
		return nil, err
	}
	if err := t.put(ctx, m); err != nil {
		return nil, err
	}
	t.wake()
	return &m.EventSourceMapping, nil
}

// checkCreate validates the input alone. The order is AWS's as far as it is known: the model's
// constraints first.
func (t *Triggers) checkCreate(in *CreateEventSourceMappingInput) error {
	var p constraint.Problems
	p.Required("functionName", in.FunctionName != nil)
	if in.EventSourceArn != nil {
		checkSource(&p, *in.EventSourceArn)
	}
	if in.StartingPosition != nil {
		p.Enum("startingPosition", *in.StartingPosition, []string{latest, atTimestamp, trimHorizon})
	}
	t.checkModel(&p, &in.Settings)
	if err := modelError(&p); err != nil {
		return err
	}
	switch {
	case in.EventSourceArn == nil || streamTable(*in.EventSourceArn) == "":
		return invalid("Unrecognized event source.")
	case in.Topics != nil:
		return notForStreams("Topics")
	case in.Queues != nil:
		return notForStreams("Queues")
	case present(in.SelfManagedEventSource):
		return notForStreams("SelfManagedEventSource")
	case in.StartingPosition == nil:
		return invalid("1 validation error detected: Value null at 'startingPosition' failed to satisfy constraint: Member must not be null.")
	case in.StartingPositionTimestamp != nil && *in.StartingPosition != atTimestamp:
		return invalid("Timestamp only valid with StartingPosition AT_TIMESTAMP")
	case *in.StartingPosition == atTimestamp:
		return invalid("Unsupported starting position for arn type: %s", *in.EventSourceArn)
	}
	return in.Settings.check()
}

// newUUID returns a random UUID of version 4.
func newUUID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return uuidOf(b[:])
}

// uuidOf returns 16 bytes as a UUID.
func uuidOf(b []byte) string {
	h := hex.EncodeToString(b)
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}
