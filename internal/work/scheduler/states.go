package scheduler

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly/internal/work/items"
)

// State is the state of a schedule that the API does not return.
type State struct {
	CatchUp    CatchUp   // as the schedule has it
	Anchor     time.Time // start of a rate
	Occurrence time.Time // the armed occurrence; zero: none
	Due        time.Time // deadline of its firing, within the flexible time window
}

// statesAtOnce is the number of schedules read by one call: BatchGetItem takes 100 items, two for
// each.
const statesAtOnce = 50

// ReadStates reads the state of schedules of a group, by name. The result has no entry for an
// unknown schedule.
func ReadStates(ctx context.Context, db *dynamodb.Client, group string, names ...string) (map[string]State, error) {
	states := map[string]State{}
	for batch := range slices.Chunk(names, statesAtOnce) {
		if err := readStates(ctx, db, groupPlace(group).table, batch, states); err != nil {
			return nil, err
		}
	}
	return states, nil
}

func readStates(ctx context.Context, db *dynamodb.Client, table string, names []string, into map[string]State) error {
	ask := types.KeysAndAttributes{
		ProjectionExpression: new("#n, #p, #d, #s, #l"),
		ExpressionAttributeNames: map[string]string{
			"#n": attrName, "#p": attrPart, "#d": attrDocument, "#s": attrScheduled, "#l": attrDeadline,
		},
	}
	for _, name := range names {
		ask.Keys = append(ask.Keys, key(name, partDefinition), key(name, partFiring))
	}
	firings := map[string]State{}
	err := items.BatchGet(ctx, db, map[string]types.KeysAndAttributes{table: ask}, func(_ string, it item) error {
		r := reader{from: it}
		name := r.text(attrName)
		if r.text(attrPart) == partFiring {
			firings[name] = State{Occurrence: r.instant(attrScheduled), Due: r.instant(attrDeadline)}
			return r.errOf(name)
		}
		var d document
		if err := json.Unmarshal([]byte(r.text(attrDocument)), &d); err != nil {
			return fmt.Errorf("the schedule %q: %w", name, err)
		}
		into[name] = State{CatchUp: d.CatchUp, Anchor: time.UnixMilli(d.Anchor).UTC()}
		return r.errOf(name)
	})
	if noTable(err) {
		return nil // the group has never had a schedule
	}
	if err != nil {
		return fmt.Errorf("read schedules: %w", err)
	}
	for name, f := range firings {
		if k, known := into[name]; known {
			k.Occurrence, k.Due = f.Occurrence, f.Due
			into[name] = k
		}
	}
	return nil
}
