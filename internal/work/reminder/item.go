package reminder

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly/internal/work/attr"
	"github.com/mayflydb/mayfly/internal/work/ensure"
	"github.com/mayflydb/mayfly/internal/work/template"
)

// TableName is the table of reminders.
const TableName = "mayfly.reminders"

// Attributes of its items.
const (
	attrName    = "name"    // S, the key: a hash over the rule's name and version, the table and the item's key; or rule#, a rule's name, # and its version
	attrDue     = "due"     // N, the TTL attribute: epoch seconds with milliseconds
	attrKind    = "kind"    // S: what is at the name
	attrOrder   = "order"   // S: the place in the stream of the record that it follows from; see order
	attrRule    = "rule"    // S, its name
	attrVersion = "version" // S, the rule's
	attrKey     = "key"     // S: the item's key as JSON with types
	attrAt      = "at"      // N: when it is due, ms since the epoch; the deadline is later where this was past
	attrInput   = "input"   // S: what the target gets

	attrStream  = "stream"  // of a rule: the ARN of the stream whose table was scanned, or is
	attrCursor  = "cursor"  // of a rule: where the scan goes on
	attrScanned = "scanned" // of a rule: true when the scan is complete
)

// The kinds. All but a reminder are there to hold off records that come again, and are not fired when they expire.
const (
	kindReminder  = "reminder"
	kindFired     = "fired"
	kindCancelled = "cancelled"
	kindSkipped   = "skipped" // it was due when the worker was not there, and its item has changed meanwhile: see follow
	kindRule      = "rule"
)

// kept is how long it is remembered that a reminder has fired or was cancelled.
const kept = 7 * 24 * time.Hour

var tableSpec = ensure.Spec{Name: TableName, Key: attrName, TTL: attrDue, Stream: true, Shards: 1}

type item = map[string]types.AttributeValue

// sequenceDigits is how many digits a sequence number has at most.
const sequenceDigits = 40

// order is a place in the streams of a table that compares as text: the streams by their labels, which are the instants of their beginning, and in a stream by
// sequence number. What the scan finds comes before all records of the stream.
func order(streamARN, sequence string) string {
	_, label, _ := strings.Cut(streamARN, "/stream/")
	return label + "#" + strings.Repeat("0", max(0, sequenceDigits-len(sequence))) + sequence
}

// reminder is what is known of a table's item for a rule.
type reminder struct {
	kind  string
	order string
	key   item
	due   time.Time // of kindReminder and kindSkipped
	input []byte    // of kindReminder
}

// name is the reminder's name in the table.
func (r *rule) name(key item) string { return hash(r.Name, r.version, r.Table, keyText(key)) }

// id is that of the delivery: of this rule, item and instant, whatever else changes.
func (r *rule) id(key string, due time.Time) string {
	return hash(r.Name, r.Table, key, strconv.FormatInt(due.UnixMilli(), 10))
}

// keyText is a key as JSON with types, as Lambda's events have it.
func keyText(key item) string {
	return string(template.AppendMap(nil, key, func(dst []byte, v types.AttributeValue) []byte {
		kind := "S"
		switch v := v.(type) {
		case *types.AttributeValueMemberN:
			return append(append(append(dst, `{"N":"`...), v.Value...), `"}`...)
		case *types.AttributeValueMemberB:
			kind = "B"
		}
		dst = append(append(append(dst, `{"`...), kind...), `":`...)
		return append(template.AppendPlain(dst, v), '}')
	}))
}

// put writes a reminder where nothing is known yet that comes later in the stream, and where it has not fired. It reports whether it was written.
func (r *rule) put(ctx context.Context, n reminder) (bool, error) {
	now := r.o.Now()
	it := item{
		attrName: attr.S(r.name(n.key)), attrKind: attr.S(n.kind), attrOrder: attr.S(n.order), attrRule: attr.S(r.Name), attrVersion: attr.S(r.version),
		attrKey: attr.S(keyText(n.key)),
	}
	it[attrAt] = attr.Millis(n.due) // of one that was cancelled: of no meaning, and of no other
	it[attrDue] = attr.Seconds(now.Add(kept))
	if n.kind == kindReminder {
		it[attrDue] = attr.Seconds(later(n.due, now))
		it[attrInput] = attr.S(string(n.input))
	}
	return r.putItem(ctx, it, "attribute_not_exists(#name) OR #order < :order AND NOT (#kind = :fired AND #at = :at)")
}

// known is what the table has of an item; empty where it has nothing.
func (r *rule) known(ctx context.Context, key item) (item, error) {
	return r.get(ctx, attr.S(r.name(key)))
}

// get is what the table has at a name; empty where it has nothing.
func (r *rule) get(ctx context.Context, name types.AttributeValue) (item, error) {
	out, err := r.o.DB.GetItem(ctx, &dynamodb.GetItemInput{TableName: aws.String(TableName), ConsistentRead: aws.Bool(true), Key: item{attrName: name}})
	if err != nil {
		return nil, err
	}
	return out.Item, nil
}

// fired leaves a mark where a reminder was, and reports whether it is the first for its instant. The scan and the stream may both tell of one item: where the one makes its
// reminder after that of the other has expired and before its mark is there, two expire. The second is not delivered: the record of the first is not done until that is.
func (r *rule) fired(ctx context.Context, old item) (first bool, err error) {
	it := item{attrName: old[attrName], attrKind: attr.S(kindFired), attrOrder: old[attrOrder], attrRule: old[attrRule], attrVersion: old[attrVersion], attrKey: old[attrKey]}
	it[attrDue], it[attrAt] = attr.Seconds(r.o.Now().Add(kept)), old[attrAt]
	written, err := r.putItem(ctx, it, "attribute_not_exists(#name) OR #order <= :order AND NOT (#order < :order AND #kind = :fired AND #at = :at)")
	if written || err != nil {
		return written, err
	}
	is, err := r.get(ctx, old[attrName])
	if err != nil {
		return false, err
	}
	return attr.String(is[attrKind]) != kindFired || !dueOf(is).Equal(dueOf(old)) || attr.String(is[attrOrder]) == attr.String(old[attrOrder]), nil
}

func (r *rule) putItem(ctx context.Context, it item, condition string) (bool, error) {
	in := &dynamodb.PutItemInput{
		TableName: aws.String(TableName), Item: it, ConditionExpression: &condition,
		ExpressionAttributeNames: map[string]string{"#name": attrName, "#order": attrOrder}, ExpressionAttributeValues: item{":order": it[attrOrder]},
	}
	if strings.Contains(condition, "#kind") {
		in.ExpressionAttributeNames["#kind"], in.ExpressionAttributeNames["#at"] = attrKind, attrAt
		in.ExpressionAttributeValues[":fired"], in.ExpressionAttributeValues[":at"] = attr.S(kindFired), it[attrAt]
	}
	_, err := r.o.DB.PutItem(ctx, in)
	var failed *types.ConditionalCheckFailedException
	if errors.As(err, &failed) {
		return false, nil
	}
	return err == nil, err
}

func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}
