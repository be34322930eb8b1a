package scheduler

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	"github.com/mayflydb/mayfly/internal/work/deliver"
	"github.com/mayflydb/mayfly/target"
)

// ruleOutcome computes the result of a rule's firing: a delivery for each target.
func (s *Scheduler) ruleOutcome(o *outcome, now time.Time) error {
	f := o.firing
	r, t, err := readRule(f.document)
	if err != nil {
		return err
	}
	if !o.setNext(t, s.o.CatchUp, now) {
		return nil
	}
	arn := s.ruleARN(f.name)
	id := f.id(arn)
	e := &ruleEvent{arn: arn, name: f.name, time: timeText(f.occurrence)}
	e.text = compactJSON(s.event("aws.events", arn, id, f.occurrence, struct{}{}))
	for i := range r.Targets {
		parcel, err := s.ruleParcel(f, &r.Targets[i], e, id)
		if err != nil { // as in AWS, an event that does not fit the target is not delivered
			s.o.Logger.Warn("a target of a rule receives nothing", "rule", f.name, "target", *r.Targets[i].Id, "error", err)
			continue
		}
		o.parcels = append(o.parcels, parcel)
	}
	return nil
}

// ruleParcel returns the delivery of a rule's firing to one target.
func (s *Scheduler) ruleParcel(f *firing, t *RuleTarget, e *ruleEvent, id string) (deliver.Parcel, error) {
	body, err := ruleInput(t, e)
	if err != nil {
		return deliver.Parcel{}, err
	}
	h := sha256.Sum256([]byte(id + "\n" + *t.Id))
	j := deliver.Parcel{
		Delivery: target.Delivery{
			ID: hex.EncodeToString(h[:16]), Source: e.arn, Type: typeScheduled, Subject: f.name, Time: f.occurrence,
			ContentType: contentType(body), Body: body, TargetARN: *t.Arn,
		},
		Policy: policy(t.RetryPolicy),
		Group:  rulesPlace.group,
	}
	if d := t.DeadLetterConfig; d != nil {
		j.DeadLetter = orElse(d.Arn, "")
	}
	j.Delivery.Parameters, j.Delivery.Key = ruleParameters(t, e)
	return j, nil
}

// ruleInput returns a target's input for an event.
func ruleInput(t *RuleTarget, e *ruleEvent) ([]byte, error) {
	switch {
	case t.Input != nil:
		return []byte(*t.Input), nil
	case t.InputPath != nil:
		p, err := newPath(*t.InputPath)
		if err != nil {
			return nil, err
		}
		v, ok := p.find(e.value())
		if !ok {
			return nil, fmt.Errorf("the event has nothing at the path %s", *t.InputPath)
		}
		return compactJSON(v), nil
	case t.InputTransformer != nil:
		x, err := newTransformer(t.InputTransformer.InputPathsMap, orElse(t.InputTransformer.InputTemplate, ""))
		if err != nil {
			return nil, err
		}
		return x.transform(e)
	default:
		return e.text, nil
	}
}

// ruleParameters returns a target's blocks of parameters, in the form of a schedule's target, and
// its ordering key.
func ruleParameters(t *RuleTarget, e *ruleEvent) (text []byte, orderKey string) {
	blocks := map[string]any{}
	for name, block := range t.raw() {
		if len(block) > 0 {
			blocks[name] = block
		}
	}
	if p := t.SqsParameters; p != nil {
		blocks["SqsParameters"], orderKey = p, orElse(p.MessageGroupId, "")
	}
	if p := t.KinesisParameters; p != nil {
		orderKey = e.partitionKey(orElse(p.PartitionKeyPath, ""))
		blocks["KinesisParameters"] = KinesisParameters{PartitionKey: &orderKey}
	}
	if len(blocks) == 0 {
		return nil, orderKey
	}
	return compactJSON(blocks), orderKey
}

// partitionKey returns the value at a path, as text; the event's ID if there is none.
func (e *ruleEvent) partitionKey(text string) string {
	p, err := newPath(text)
	if err == nil {
		if v, ok := p.find(e.value()); ok {
			if s, isText := v.(string); isText && s != "" {
				return s
			}
			if b := compactJSON(v); len(b) <= partitionKeyMax {
				return string(b)
			}
		}
	}
	var id struct {
		ID string `json:"id"`
	}
	_ = json.Unmarshal(e.text, &id) // it is our own text
	return id.ID
}
