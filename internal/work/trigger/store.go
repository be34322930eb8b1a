package trigger

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly/internal/work/attr"
	"github.com/mayflydb/mayfly/internal/work/ensure"
	"github.com/mayflydb/mayfly/internal/work/items"
	"github.com/mayflydb/mayfly/internal/work/pattern"
)

// TableName is the table of event source mappings.
const TableName = "mayfly.triggers"

// Attributes of a mapping's item.
const (
	attrID       = "id"       // the UUID
	attrMapping  = "mapping"  // JSON
	attrRevision = "revision" // counts the user's changes
	attrVersion  = "version"  // counts all changes; the condition of every write
)

var tableSpec = ensure.Spec{Name: TableName, Key: attrID}

// mapping is a stored mapping.
type mapping struct {
	EventSourceMapping
	Enabled bool
	Tags    map[string]string `json:",omitempty"`

	revision, version int64
}

// plan returns the behaviour of a mapping.
func (m *mapping) plan() (*plan, error) {
	filter, err := pattern.Compile(m.FilterCriteria.patterns()...)
	if err != nil {
		return nil, err
	}
	p := &plan{
		id: m.UUID, arn: m.EventSourceMappingArn, stream: m.EventSourceArn, start: starts[m.StartingPosition], target: m.FunctionArn, filter: filter,
		batch: m.BatchSize, window: time.Duration(m.MaximumBatchingWindowInSeconds) * time.Second, parallel: m.ParallelizationFactor, ordered: true,
		bisect: m.BisectBatchOnFunctionError, retries: m.MaximumRetryAttempts, partial: slices.Contains(m.FunctionResponseTypes, partialResponses),
	}
	p.missed = m.LastProcessingResult == resultNoStream || m.LastProcessingResult == resultDisabled
	if m.MaximumRecordAgeInSeconds > 0 {
		p.age = time.Duration(m.MaximumRecordAgeInSeconds) * time.Second
	}
	if d := m.DestinationConfig.OnFailure; d != nil {
		p.onFailure = aws.ToString(d.Destination)
	}
	return p, nil
}

// touch records the instant of a change.
func (m *mapping) touch(now time.Time) { m.LastModified = float64(now.UnixMilli()) / 1000 }

func (m *mapping) item() (attr.Item, error) {
	text, err := json.Marshal(m)
	if err != nil {
		return nil, err
	}
	return attr.Item{
		attrID:       attr.S(m.UUID),
		attrMapping:  attr.S(string(text)),
		attrRevision: attr.Int(m.revision),
		attrVersion:  attr.Int(m.version),
	}, nil
}

func mappingOf(item attr.Item) (*mapping, error) {
	text, ok := attr.AsString(item[attrMapping])
	if !ok {
		return nil, fmt.Errorf("an item of table %s has no attribute %q", TableName, attrMapping)
	}
	m := &mapping{}
	if err := json.Unmarshal([]byte(text), m); err != nil {
		return nil, fmt.Errorf("an item of table %s: %w", TableName, err)
	}
	m.revision, m.version = attr.Integer(item[attrRevision]), attr.Integer(item[attrVersion])
	return m, nil
}

// errChanged means that another writer has changed a mapping meanwhile.
var errChanged = errors.New("the mapping was changed meanwhile")

// get reads a mapping. It returns errNoMapping if there is none.
func (t *Triggers) get(ctx context.Context, uuid string) (*mapping, error) {
	it, err := items.Get(ctx, t.o.DB, TableName, attr.Item{attrID: attr.S(uuid)})
	switch {
	case ensure.Missing(err) || err == nil && it == nil:
		return nil, errNoMapping
	case err != nil:
		return nil, err
	}
	return mappingOf(it)
}

// all returns every mapping, in the order of their UUIDs.
func (t *Triggers) all(ctx context.Context) ([]*mapping, error) {
	var all []*mapping
	for it, err := range items.Scan(ctx, t.o.DB, &dynamodb.ScanInput{TableName: aws.String(TableName)}) {
		if err != nil {
			return nil, err
		}
		m, err := mappingOf(it)
		if err != nil {
			return nil, err
		}
		all = append(all, m)
	}
	slices.SortFunc(all, func(a, b *mapping) int { return strings.Compare(a.UUID, b.UUID) })
	return all, nil
}

// put writes a mapping. It returns errChanged if the stored one has changed since it was read.
func (t *Triggers) put(ctx context.Context, m *mapping) error {
	before := m.version
	m.version++
	item, err := m.item()
	if err != nil {
		return err
	}
	in := &dynamodb.PutItemInput{TableName: aws.String(TableName), Item: item}
	in.ConditionExpression, in.ExpressionAttributeNames, in.ExpressionAttributeValues = unchanged(before)
	_, err = t.o.DB.PutItem(ctx, in)
	if ensure.Missing(err) && before == 0 {
		if _, err = ensure.Table(ctx, t.o.DB, tableSpec); err == nil {
			_, err = t.o.DB.PutItem(ctx, in)
		}
	}
	return changed(err)
}

// remove deletes a mapping. It returns errChanged like put.
func (t *Triggers) remove(ctx context.Context, m *mapping) error {
	in := &dynamodb.DeleteItemInput{TableName: aws.String(TableName), Key: attr.Item{attrID: attr.S(m.UUID)}}
	in.ConditionExpression, in.ExpressionAttributeNames, in.ExpressionAttributeValues = unchanged(m.version)
	_, err := t.o.DB.DeleteItem(ctx, in)
	return changed(err)
}

// unchanged returns the condition that an item has a version, or that it is missing for version 0.
func unchanged(version int64) (condition *string, names map[string]string, values attr.Item) {
	if version == 0 {
		return aws.String("attribute_not_exists(#id)"), map[string]string{"#id": attrID}, nil
	}
	return aws.String("#v = :v"), map[string]string{"#v": attrVersion}, attr.Item{":v": attr.Int(version)}
}

func changed(err error) error {
	if _, ok := errors.AsType[*types.ConditionalCheckFailedException](err); ok {
		return errChanged
	}
	return err
}

// alter makes a change that a user asks for, unless another one is under way. verb names it. If the
// mapping was changed meanwhile, it computes the change again.
func (t *Triggers) alter(ctx context.Context, uuid, verb string, change func(*mapping) error) (*EventSourceMapping, error) {
	for {
		m, err := t.get(ctx, uuid)
		if err != nil {
			return nil, err
		}
		if !settled(m.State) {
			return nil, inUse(verb)
		}
		if err := change(m); err != nil {
			return nil, err
		}
		m.StateTransitionReason = userAction
		m.touch(t.o.Clock.Now())
		m.revision++
		err = t.put(ctx, m)
		if err == nil {
			t.wake()
			return &m.EventSourceMapping, nil
		}
		if !errors.Is(err, errChanged) || ctx.Err() != nil {
			return nil, err
		}
	}
}

// setResult stores the result of a mapping's last batch.
func (t *Triggers) setResult(ctx context.Context, uuid, result string) error {
	for {
		m, err := t.get(ctx, uuid)
		if err == errNoMapping || err == nil && m.LastProcessingResult == result {
			return nil
		}
		if err != nil {
			return err
		}
		m.LastProcessingResult = result
		if err := t.put(ctx, m); !errors.Is(err, errChanged) {
			return err
		}
	}
}
