package lifecycle

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly/internal/work/attr"
	"github.com/mayflydb/mayfly/internal/work/deliver"
	"github.com/mayflydb/mayfly/internal/work/ensure"
	"github.com/mayflydb/mayfly/internal/work/items"
	"github.com/mayflydb/mayfly/target"
)

// originKind is the origin of the calls of lifecycles.
const originKind = "lifecycle"

// origin identifies the event of a call. It travels with the delivery, as JSON.
type origin struct {
	Lifecycle string `json:"l"`
	Entity    string `json:"e"`
	Part      string `json:"p"` // of the event
}

// callOf hands over the call in the history of a generation, if the call has no outcome yet.
// Otherwise it marks the firing as done.
func (l *Lifecycles) callOf(ctx context.Context, p *plan, f *firing, generation int64) error {
	it, err := items.Get(ctx, l.o.DB, EntityTable(p.Name), key(f.id, numbered(partHistory, f.incarnation, generation)))
	if err != nil && !ensure.Missing(err) {
		return fmt.Errorf("read a call of %s: %w", p.Name, err)
	}
	if it != nil {
		if e := readEvent(it); e.body != nil && e.Outcome == "" {
			l.hand(ctx, p, f.id, &e, f.done)
			return nil
		}
	}
	f.done()
	return nil
}

// hand gives a call to the courier. done is called when the call has been made, parked or buried as
// a dead letter, and the history records the outcome.
func (l *Lifecycles) hand(ctx context.Context, p *plan, id string, e *Event, done func()) {
	data, err := json.Marshal(origin{p.Name, id, numbered(partHistory, e.incarnation, e.Generation)})
	if err != nil {
		// an origin consists of strings
		panic("lifecycle: an origin does not marshal: " + err.Error())
	}
	parcel := deliver.Parcel{
		Delivery: target.Delivery{
			ID: e.ID, Source: l.arn(p.Name), Type: "Lifecycle Transition", Subject: id, Time: e.instant(), Key: id,
			ContentType: "application/json", Body: e.body, TargetARN: e.Handler,
		},
		Policy: deliver.Policy{MaxAge: p.age}, DeadLetter: p.OnFailure, Group: "lifecycle:" + p.Name, Origin: deliver.Origin{Kind: originKind, Data: data}, First: l.now(),
	}
	if p.Retries != nil {
		parcel.Policy.MaxAttempts = *p.Retries + 1
	}
	switch {
	case e.shape == shapeTooLarge:
		parcel.Last = deliver.Failure{Code: "InputTooLarge", Message: tooLarge(e.body)}
		l.runner.courier.Bury(ctx, parcel, "", done)
		return
	case l.o.Handlers[e.Handler] == nil:
		parcel.Delivery.Body, parcel.Delivery.ContentType = inputOf(e.body, e.shape)
	}
	l.runner.courier.Deliver(ctx, parcel, done)
}

// recordOutcomes records the outcomes of calls in the history. It does not recreate a history that
// has expired.
func (l *Lifecycles) recordOutcomes(ctx context.Context, all []deliver.Ended) error {
	seen := map[origin]bool{}
	var actions []items.Action
	for _, e := range all {
		var from origin
		if err := json.Unmarshal(e.Origin.Data, &from); err != nil || seen[from] {
			continue
		}
		seen[from] = true
		outcome := "delivered"
		if !e.Delivered {
			outcome = fmt.Sprintf("failed: %s %s", e.Last.Code, e.Last.Message)
		}
		actions = append(actions, outcomeOf(from, outcome[:min(len(outcome), 1024)]))
	}
	for batch := range slices.Chunk(actions, outcomesMost) {
		if err := l.writeOutcomes(ctx, batch); err != nil {
			return err
		}
	}
	return nil
}

const outcomesMost = 50 // outcomes in a transaction

func outcomeOf(from origin, outcome string) items.Action {
	return items.Update(EntityTable(from.Lifecycle), key(from.Entity, from.Part), "SET #outcome = :outcome REMOVE #body, #shape", &items.Condition{
		Text:   "attribute_exists(#e)",
		Names:  map[string]string{"#outcome": attrOutcome, "#body": attrBody, "#shape": attrShape, "#e": attrEntity},
		Values: Item{":outcome": attr.S(outcome)},
	})
}

// writeOutcomes writes outcomes. Events that have expired are dropped from the transaction.
func (l *Lifecycles) writeOutcomes(ctx context.Context, actions []items.Action) error {
	if len(actions) == 1 { // the usual case, cheaper than a transaction
		u := actions[0].Update
		_, err := l.o.DB.UpdateItem(ctx, &dynamodb.UpdateItemInput{
			TableName: u.TableName, Key: u.Key, UpdateExpression: u.UpdateExpression, ConditionExpression: u.ConditionExpression,
			ExpressionAttributeNames: u.ExpressionAttributeNames, ExpressionAttributeValues: u.ExpressionAttributeValues,
		})
		if _, ok := errors.AsType[*types.ConditionalCheckFailedException](err); ok || ensure.Missing(err) {
			return nil
		}
		return err
	}
	_, err := items.TransactEach(ctx, l.o.DB, actions, func(a items.Action) []items.Action { return []items.Action{a} }, nil)
	if ensure.Missing(err) {
		return nil
	}
	return err
}

// firing is the expiry of a pending transition, or of a call.
type firing struct {
	id, incarnation string
	generation      int64  // the entity's generation when the transition was armed
	done            func() // marks the record as done
}
