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
	"github.com/mayflydb/mayfly/internal/work/items"
	"github.com/mayflydb/mayfly/internal/work/template"
)

// TableName is the table of reminders.
const TableName = "mayfly.reminders"

// Attributes of the items.
const (
	// S, the key: a hash of the rule's name and version, the table and the item's key; or
	// rule#NAME#VERSION
	attrName    = "name"
	attrDue     = "due"     // N, the TTL attribute: epoch seconds with milliseconds
	attrKind    = "kind"    // S: the kind of item
	attrOrder   = "order"   // S: the position of its record in the stream; see order
	attrRule    = "rule"    // S: the name of the rule
	attrVersion = "version" // S: the version of the rule
	attrKey     = "key"     // S: the item's key as JSON with types
	// N: its instant, ms since the epoch; the deadline is later if the instant was past
	attrAt    = "at"
	attrInput = "input" // S: the target's input

	attrStream  = "stream"  // of a rule: the ARN of the stream whose table is or was scanned
	attrCursor  = "cursor"  // of a rule: the position of the scan
	attrScanned = "scanned" // of a rule: true when the scan is complete
	attrLosses  = "losses"  // of a rule: number of scans that losses of records have asked for
)

// The kinds of items. Only kindReminder fires; the others withstand repeated records.
const (
	kindReminder  = "reminder"
	kindFired     = "fired"
	kindCancelled = "cancelled"
	// it came due while the worker was down, and its item has changed since: see follow
	kindSkipped = "skipped"
	kindRule    = "rule"
)

// markLife is the time for which a mark of a fired or cancelled reminder exists.
const markLife = 7 * 24 * time.Hour

var tableSpec = ensure.Spec{Name: TableName, Key: attrName, TTL: attrDue, Stream: true, Shards: 1}

type item = map[string]types.AttributeValue

// sequenceDigits is the maximum length of a sequence number.
const sequenceDigits = 40

// order returns a position in the streams of a table as text that sorts: the label of the stream,
// which is the instant of its creation, and then the sequence number. An empty sequence number, for
// the scan, sorts before all records of the stream.
func order(streamARN, sequence string) string {
	_, label, _ := strings.Cut(streamARN, "/stream/")
	return label + "#" + strings.Repeat("0", max(0, sequenceDigits-len(sequence))) + sequence
}

// reminder is the state of an item of the table for a rule.
type reminder struct {
	kind  string
	order string
	key   item
	due   time.Time // of kindReminder and kindSkipped
	input []byte    // of kindReminder
}

// name returns the key of the reminder's item.
func (r *rule) name(key item) string { return hash(r.Name, r.version, r.Table, keyText(key)) }

// id returns the ID of the delivery. It depends on rule, item and instant only.
func (r *rule) id(key string, due time.Time) string {
	return hash(r.Name, r.Table, key, strconv.FormatInt(due.UnixMilli(), 10))
}

// keyText returns a key in DynamoDB's typed JSON, which is the same for equal keys.
func keyText(key item) string { return string(template.AppendItem(nil, key)) }

// put writes a reminder, unless the table has a later position in the stream, or the reminder has
// fired. It reports whether it wrote.
func (r *rule) put(ctx context.Context, n reminder) (bool, error) {
	now := r.o.Now()
	it := item{
		attrName: attr.S(r.name(n.key)), attrKind: attr.S(n.kind), attrOrder: attr.S(n.order), attrRule: attr.S(r.Name), attrVersion: attr.S(r.version),
		attrKey: attr.S(keyText(n.key)),
	}
	// zero for a cancelled reminder, so it differs from every fired one
	it[attrAt] = attr.Millis(n.due)
	it[attrDue] = attr.Seconds(now.Add(markLife))
	if n.kind == kindReminder {
		it[attrDue] = attr.Seconds(later(n.due, now))
		it[attrInput] = attr.S(string(n.input))
	}
	return r.putItem(ctx, it, "attribute_not_exists(#name) OR #order < :order AND NOT (#kind = :fired AND #at = :at)")
}

// get returns the item with a name; empty if there is none.
func (r *rule) get(ctx context.Context, name types.AttributeValue) (item, error) {
	return items.Get(ctx, r.o.DB, TableName, item{attrName: name})
}

// fired leaves a mark in place of a reminder, and reports whether the reminder must be delivered:
// whether it is the first one for its instant, or was reported before and its record comes again.
//
// Scan and stream can both find an item. If the second writes its reminder after the first one has
// expired, but before its mark exists, two reminders expire. Only the first is delivered. It cannot
// be lost, since its own record is not done before its delivery.
func (r *rule) fired(ctx context.Context, old item) (first bool, err error) {
	it := item{attrName: old[attrName], attrKind: attr.S(kindFired), attrOrder: old[attrOrder], attrRule: old[attrRule], attrVersion: old[attrVersion], attrKey: old[attrKey]}
	it[attrDue], it[attrAt] = attr.Seconds(r.o.Now().Add(markLife)), old[attrAt]
	written, err := r.putItem(ctx, it, "attribute_not_exists(#name) OR #order <= :order AND NOT (#order < :order AND #kind = :fired AND #at = :at)")
	if written || err != nil {
		return written, err
	}
	stored, err := r.get(ctx, old[attrName])
	if err != nil {
		return false, err
	}
	return attr.String(stored[attrKind]) != kindFired || !dueOf(stored).Equal(dueOf(old)) || attr.String(stored[attrOrder]) == attr.String(old[attrOrder]), nil
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
	if _, ok := errors.AsType[*types.ConditionalCheckFailedException](err); ok {
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
