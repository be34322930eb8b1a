package console

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly/internal/work/attr"
	"github.com/mayflydb/mayfly/internal/work/transfer"
)

// Limits of an expression at Amazon.
const (
	expressionBytes = 4096
	comparedMost    = 140 // attributes: an expression has at most 300 operators and functions
)

// expressions is the condition and the update of a write.
type expressions struct {
	built
	condition, update string
}

func newExpressions() *expressions {
	return &expressions{built: built{names: map[string]string{}, values: attr.Item{}}}
}

// fits reports whether the endpoint accepts expressions as long as these.
func (x *expressions) fits() bool {
	return len(x.condition) <= expressionBytes && len(x.update) <= expressionBytes && len(x.names) <= comparedMost
}

// equals adds the condition that an attribute is as it was; nil: that it is missing. Some endpoints
// compare no lists and maps: without documents, the condition on one is that it exists.
func (x *expressions) equals(name string, was types.AttributeValue, documents bool) {
	one := ""
	switch was.(type) {
	case nil:
		one = "attribute_not_exists(" + x.name(name) + ")"
	case *types.AttributeValueMemberL, *types.AttributeValueMemberM:
		if !documents {
			one = "attribute_exists(" + x.name(name) + ")"
		}
	}
	if one == "" {
		one = x.name(name) + " = " + x.value(was)
	}
	if x.condition != "" {
		x.condition += " AND "
	}
	x.condition += one
}

// renew moves a deadline by a time: to the last digit of its number, or from now if it has passed.
func (x *expressions) renew(name string, at, now time.Time, shift time.Duration) {
	if at.Before(now) {
		x.update = "SET " + x.name(name) + " = " + x.value(attr.Seconds(renewed(at, now, shift)))
		return
	}
	x.update = "SET " + x.name(name) + " = " + x.name(name) + " + " + x.value(attr.Int(int64(shift/time.Second)))
}

// difference returns the update that turns an item into another with the same key. It compares and
// writes only the attributes that differ, so another client's changes to the rest are kept.
func (t *table) difference(item, was attr.Item, documents bool) *expressions {
	x := newExpressions()
	x.condition = "attribute_exists(" + x.name(t.keys()[0]) + ")"
	var set, remove []string
	for _, name := range slices.Sorted(maps.Keys(item)) {
		if !x.fits() {
			return x
		}
		if old, ok := was[name]; ok && digest(attr.Item{"": old}) == digest(attr.Item{"": item[name]}) {
			continue
		}
		x.equals(name, was[name], documents)
		set = append(set, x.name(name)+" = "+x.value(item[name]))
	}
	for _, name := range slices.Sorted(maps.Keys(was)) {
		if !x.fits() {
			return x
		}
		if _, stays := item[name]; !stays {
			x.equals(name, was[name], documents)
			remove = append(remove, x.name(name))
		}
	}
	if len(set) > 0 {
		x.update = "SET " + strings.Join(set, ", ")
	}
	if len(remove) > 0 {
		x.update = strings.TrimSpace(x.update + " REMOVE " + strings.Join(remove, ", "))
	}
	return x
}

// comparison returns a condition that compares as many attributes of an item as fit: for writes
// that replace or delete all of it, right after it was read.
func (t *table) comparison(was attr.Item, documents bool) *expressions {
	x := newExpressions()
	names := t.keys()
	for _, name := range slices.Sorted(maps.Keys(was)) {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	for _, name := range names {
		condition, values := x.condition, maps.Clone(x.values)
		x.equals(name, was[name], documents)
		if !x.fits() {
			delete(x.names, x.name(name))
			x.condition, x.values = condition, values
			break
		}
	}
	return x
}

// errLarge is the refusal of a change of more attributes than one update compares.
var errLarge = &pageError{http.StatusBadRequest, "The change has more attributes than one update can compare with those of the item."}

// ifShown makes a write of an item unless it is no longer the one that the visitor knows, by its
// digest. write gets the item as it is and whether to compare lists and maps, and has conditions of
// its own: the item may change after it was read.
func (t *table) ifShown(ctx context.Context, v *visit, key, was string, write func(now attr.Item, documents bool) error) error {
	for _, documents := range []bool{true, false} {
		now, err := v.item(ctx, t, key)
		switch {
		case err != nil:
			return err
		case len(now) == 0:
			return errMissing
		case digest(now) != was:
			return errChanged
		}
		var failed *types.ConditionalCheckFailedException
		if err := write(now, documents); !errors.As(err, &failed) {
			return err
		}
		// The item has changed, or this endpoint compares no lists and maps. Another read shows
		// which.
	}
	return errChanged
}

// update saves the changes to the item that the visitor knows.
func (e editor) update(ctx context.Context, v *visit, item attr.Item) error {
	key, err := transfer.ReadKey([]byte(e.key))
	if err != nil {
		return err
	}
	return e.ifShown(ctx, v, e.key, e.was, func(now attr.Item, documents bool) error {
		x := e.difference(item, now, documents)
		switch {
		case !x.fits():
			return errLarge
		case x.update == "":
			return nil
		}
		_, err := v.DynamoDB().UpdateItem(ctx, &dynamodb.UpdateItemInput{
			TableName: aws.String(e.name()), Key: key, UpdateExpression: &x.update, ConditionExpression: &x.condition,
			ExpressionAttributeNames: x.names, ExpressionAttributeValues: orNil(x.values),
		})
		return err
	})
}

// replace writes the whole item. What others change between the read and the write is compared as
// far as a condition can.
func (e editor) replace(ctx context.Context, v *visit, item attr.Item) error {
	return e.ifShown(ctx, v, e.key, e.was, func(now attr.Item, documents bool) error {
		x := e.comparison(now, documents)
		_, err := v.DynamoDB().PutItem(ctx, &dynamodb.PutItemInput{
			TableName: aws.String(e.name()), Item: item, ConditionExpression: &x.condition,
			ExpressionAttributeNames: x.names, ExpressionAttributeValues: orNil(x.values),
		})
		return err
	})
}

// remove deletes the item that the visitor knows.
func (t *table) remove(ctx context.Context, v *visit, key, was string) error {
	k, err := transfer.ReadKey([]byte(key))
	if err == nil && len(k) == 0 {
		return errChange
	}
	if err != nil {
		return &pageError{http.StatusBadRequest, "The form's key is not an item's key: " + err.Error()}
	}
	return t.ifShown(ctx, v, key, was, func(now attr.Item, documents bool) error {
		x := t.comparison(now, documents)
		_, err := v.DynamoDB().DeleteItem(ctx, &dynamodb.DeleteItemInput{
			TableName: aws.String(t.name()), Key: k, ConditionExpression: &x.condition,
			ExpressionAttributeNames: x.names, ExpressionAttributeValues: orNil(x.values),
		})
		return err
	})
}
