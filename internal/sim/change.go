package sim

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// ttlNames are the attributes that hold deadlines in turn.
var ttlNames = [...]string{"ttl", "alt"}

// extraName is the index that comes and goes while clients write. It has the items of the other one.
const extraName = "extra"

// setTTL switches TTL on with an attribute, or off.
func (e *episode) setTTL(attribute string, on bool) error {
	_, err := e.plain.UpdateTimeToLive(e.ctx, &dynamodb.UpdateTimeToLiveInput{
		TableName: table, TimeToLiveSpecification: &types.TimeToLiveSpecification{Enabled: &on, AttributeName: &attribute},
	})
	return err
}

// changeTTL switches TTL off or on between two rounds, sometimes, and mostly with a crash before the
// items have been revised.
//
// When TTL is off, expired items stay gone, and the others live. When it is on again, the attribute's
// values are deadlines, and some of them have passed.
func (e *episode) changeTTL(r *rand.Rand) error {
	m, attribute := e.model, ""
	if m.ttl == "" {
		if percent(r, 30) {
			return nil
		}
		attribute = ttlNames[r.IntN(len(ttlNames))]
	} else if !percent(r, 6) {
		return nil
	}
	_, before := e.tick()
	if err := e.setTTL(cmp.Or(attribute, m.ttl), attribute != ""); err != nil {
		return err
	}
	_, after := e.tick()
	if percent(r, 60) {
		if err := e.server.crash(0); err != nil {
			return err
		}
		e.counts.Crashes++
	}
	if err := await(func() (bool, error) {
		out, err := e.plain.DescribeTimeToLive(e.ctx, &dynamodb.DescribeTimeToLiveInput{TableName: table})
		if err != nil {
			return false, err
		}
		status := out.TimeToLiveDescription.TimeToLiveStatus
		return status == types.TimeToLiveStatusEnabled || status == types.TimeToLiveStatusDisabled, nil
	}); err != nil {
		return err
	}
	m.ttl = attribute
	for _, part := range m.parts {
		for k, s := range part {
			gone := s.deadline <= before
			if before < s.deadline && s.deadline <= after { // before the change, or behind it
				o := &op{kind: get, keys: []key{k}}
				if err := o.call(e.ctx, e.plain); err != nil {
					return err
				}
				gone = o.seen[k] == nil
			}
			if !gone {
				part[k] = m.newState(s.image)
			}
		}
	}
	_, m.since = e.tick()
	e.counts.TTLChanges++
	e.note("ttl %q", attribute)
	return nil
}

// await waits until the server has done something, for as long as it may take.
func await(done func() (bool, error)) error {
	for began := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		if over, err := done(); over || err != nil {
			return err
		}
		if time.Since(began) > slack {
			return fmt.Errorf("not done after %v", slack)
		}
	}
}

// changeIndex adds or removes the second index while clients write. The server may die meanwhile.
func (e *episode) changeIndex(p *plan) {
	if !p.alters {
		return
	}
	time.Sleep(p.altsAt)
	change := types.GlobalSecondaryIndexUpdate{Delete: &types.DeleteGlobalSecondaryIndexAction{IndexName: aws.String(extraName)}}
	if !e.model.extra {
		change = types.GlobalSecondaryIndexUpdate{Create: &types.CreateGlobalSecondaryIndexAction{
			IndexName: aws.String(extraName), KeySchema: []types.KeySchemaElement{element("g", "HASH"), element("sk", "RANGE")},
			Projection: &types.Projection{ProjectionType: types.ProjectionTypeAll},
		}}
	}
	o := &op{}
	ctx := withOp(e.ctx, o)
	_, err := e.plain.UpdateTable(ctx, &dynamodb.UpdateTableInput{
		TableName: table, GlobalSecondaryIndexUpdates: []types.GlobalSecondaryIndexUpdate{change},
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("g"), AttributeType: "S"}, {AttributeName: aws.String("sk"), AttributeType: "N"}},
	})
	if err != nil && !errors.Is(err, errDown) && !errors.Is(err, errReset) && !o.hurt.Load() && !(o.full.Load() && isLimit(err)) {
		e.broken(available, "the second index was not changed: %v", err)
	}
}

// settleIndex waits until the second index is there or not.
func (e *episode) settleIndex(p *plan) error {
	if !p.alters {
		return nil
	}
	before := e.model.extra
	err := await(func() (bool, error) {
		out, err := e.plain.DescribeTable(e.ctx, &dynamodb.DescribeTableInput{TableName: table})
		if err != nil {
			return false, err
		}
		i := slices.IndexFunc(out.Table.GlobalSecondaryIndexes, func(d types.GlobalSecondaryIndexDescription) bool { return aws.ToString(d.IndexName) == extraName })
		e.model.extra = i >= 0
		return i < 0 || out.Table.GlobalSecondaryIndexes[i].IndexStatus == types.IndexStatusActive, nil
	})
	if err != nil {
		return fmt.Errorf("change an index: %w", err)
	}
	if e.model.extra && !before {
		e.counts.Indexes++
	}
	e.note("extra %t", e.model.extra)
	return nil
}
