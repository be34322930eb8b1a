package deliver

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly/internal/work/attr"
	"github.com/mayflydb/mayfly/internal/work/ensure"
	"github.com/mayflydb/mayfly/internal/work/retry"
)

// DeadLetter is a parcel that has failed for good.
type DeadLetter struct {
	ID         string            // of the delivery
	When       time.Time         // it became one, to the millisecond
	Target     string            // ARN
	Source     string            // ARN
	Group      string            // schedule group or trigger
	Code       string            // of the last error
	Message    string            // of the last error
	Attempts   int               // how many were made
	Attributes map[string]string // the message attributes of a dead letter
	Body       []byte            // what the target was to get, before anything was filled in that differs by attempt
}

// DeadLetterFilter chooses dead letters; what is empty says nothing.
type DeadLetterFilter struct {
	Target string // ARN, or the beginning of one and "*"
	Source string // the same
	Code   string
}

// ErrBadToken says that a page does not begin where it was asked to.
var ErrBadToken = errors.New("invalid page token of dead letters")

// ListDeadLetters gives a page of up to limit dead letters, 1 to 1000, in no order, and where the next page begins; "" behind the last page. A page may be short, or
// empty, and yet have a next. Where nothing ever was a dead letter there is no table, and the list is empty. Bodies that are too large for an item are left
// out: GetDeadLetter gives them.
func ListDeadLetters(ctx context.Context, db *dynamodb.Client, f DeadLetterFilter, limit int, from string) (page []DeadLetter, next string, err error) {
	limit = min(max(limit, 1), 1000)
	in := &dynamodb.ScanInput{TableName: aws.String(DeadLettersTable), ConsistentRead: aws.Bool(true)}
	f.into(in)
	if from != "" {
		if in.ExclusiveStartKey, err = parseToken(from); err != nil {
			return nil, "", err
		}
	}
	in.Limit = aws.Int32(int32(max(limit, scanMin)))
	for {
		out, err := db.Scan(ctx, in)
		if ensure.Missing(err) {
			return nil, "", nil
		}
		if err != nil {
			return nil, "", fmt.Errorf("list dead letters: %w", err)
		}
		for _, item := range out.Items {
			letter, _, _, err := readLetter(item)
			if err != nil {
				return nil, "", err
			}
			if page = append(page, letter); len(page) == limit {
				return page, newToken(item), nil
			}
		}
		if in.ExclusiveStartKey = out.LastEvaluatedKey; in.ExclusiveStartKey == nil {
			return page, "", nil
		}
		if len(page) > 0 {
			return page, newToken(in.ExclusiveStartKey), nil
		}
	}
}

// scanMin is how many items one call looks at, at least.
const scanMin = 200

// into makes the filter of a Scan. What is no dead letter itself, a part of a body, has no parcel.
func (f DeadLetterFilter) into(in *dynamodb.ScanInput) {
	terms := []string{"attribute_exists(#job)"}
	in.ExpressionAttributeNames = map[string]string{"#job": attrParcel}
	is := func(attribute, value string) {
		if value == "" {
			return
		}
		name, term := "#"+attribute, "#%[1]s = :%[1]s"
		if beginning, ok := strings.CutSuffix(value, "*"); ok {
			value, term = beginning, "begins_with(#%[1]s, :%[1]s)"
		}
		if value == "" {
			return
		}
		if in.ExpressionAttributeValues == nil {
			in.ExpressionAttributeValues = map[string]types.AttributeValue{}
		}
		in.ExpressionAttributeNames[name] = attribute
		in.ExpressionAttributeValues[":"+attribute] = attr.S(value)
		terms = append(terms, fmt.Sprintf(term, attribute))
	}
	is(attrTarget, f.Target)
	is(attrSource, f.Source)
	is(attrCode, f.Code)
	in.FilterExpression = aws.String(strings.Join(terms, " AND "))
}

// A token is the id of the last dead letter looked at, as JSON has it, so that it can be told from what is none.
func newToken(key map[string]types.AttributeValue) string {
	text, _ := json.Marshal(attr.String(key[attrID])) // a string can be marshalled
	return string(text)
}

func parseToken(token string) (map[string]types.AttributeValue, error) {
	var id string
	if err := json.Unmarshal([]byte(token), &id); err != nil || id == "" {
		return nil, ErrBadToken
	}
	return letterKey(id), nil
}

func letterKey(id string) map[string]types.AttributeValue {
	return map[string]types.AttributeValue{attrID: attr.S(id)}
}

// GetDeadLetter gives one dead letter; found is false where there is none of this id.
func GetDeadLetter(ctx context.Context, db *dynamodb.Client, id string) (letter DeadLetter, found bool, err error) {
	item, err := letterOf(ctx, db, id)
	if err != nil || item == nil {
		return DeadLetter{}, false, err
	}
	letter, encoding, parts, err := readLetter(item)
	if err == nil && parts > 0 {
		var found int
		if letter.Body, found, err = readParts(ctx, db, DeadLettersTable, partsOf(item), id, parts); err == nil && found < parts {
			err = errors.New("a part of its body is missing")
		}
		if err == nil {
			letter.Body, err = unpackBody(letter.Body, encoding)
		}
	}
	if err != nil {
		return DeadLetter{}, false, fmt.Errorf("dead letter %s: %w", id, err)
	}
	return letter, true, nil
}

// letterOf reads a dead letter's item; nil where there is none.
func letterOf(ctx context.Context, db *dynamodb.Client, id string) (map[string]types.AttributeValue, error) {
	if id == "" || len(id) > idMax {
		return nil, nil
	}
	out, err := db.GetItem(ctx, &dynamodb.GetItemInput{TableName: aws.String(DeadLettersTable), Key: letterKey(id), ConsistentRead: aws.Bool(true)})
	if ensure.Missing(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read dead letter %s: %w", id, err)
	}
	if out.Item[attrParcel] == nil {
		return nil, nil
	}
	return out.Item, nil
}

// readLetter reads a dead letter from its item, all but a body in parts.
func readLetter(item map[string]types.AttributeValue) (letter DeadLetter, encoding string, parts int, err error) {
	letter = DeadLetter{
		ID: attr.String(item[attrID]), Target: attr.String(item[attrTarget]), Source: attr.String(item[attrSource]), Group: attr.String(item[attrGroup]),
		Code: attr.String(item[attrCode]), Message: attr.String(item[attrMessage]), Attributes: map[string]string{},
	}
	when, _ := attr.AsNumber(item[attrWhen])
	if seconds, err := strconv.ParseFloat(when, 64); err == nil {
		letter.When = time.UnixMilli(int64(math.Round(seconds * 1000))).UTC()
	}
	letter.Attempts = int(attr.Integer(item[attrTries]))
	maps.Copy(letter.Attributes, attr.AsStrings(item[attrDetails]))
	encoding = attr.String(item[attrEncoding])
	if parts = int(max(attr.Integer(item[attrParts]), 0)); parts > partsMax {
		return letter, "", 0, fmt.Errorf("dead letter %s: %d parts are more than possible", letter.ID, parts)
	}
	if parts > 0 {
		return letter, encoding, parts, nil
	}
	if letter.Body, err = unpackBody(attr.Bytes(item[attrBody]), encoding); err != nil {
		err = fmt.Errorf("dead letter %s: body: %w", letter.ID, err)
	}
	return letter, encoding, 0, err
}

func numberOf(v types.AttributeValue) string {
	if n, ok := v.(*types.AttributeValueMemberN); ok {
		return n.Value
	}
	return ""
}

// RedriveDeadLetters has dead letters delivered again: each becomes a parked parcel that is due at once, with its attempts and its age counted anew, and is no dead
// letter any more. It gives how many there were of these ids. What fails half-way may be redriven again: then a delivery may be made twice, with the same id.
func RedriveDeadLetters(ctx context.Context, db *dynamodb.Client, ids ...string) (n int, err error) {
	for _, id := range ids {
		item, err := letterOf(ctx, db, id)
		if err != nil {
			return n, err
		}
		if item == nil {
			continue
		}
		if err := redrive(ctx, db, id, item); err != nil {
			return n, fmt.Errorf("redrive dead letter %s: %w", id, err)
		}
		n++
	}
	return n, nil
}

// redrive parks a dead letter's parcel, and then deletes the letter.
func redrive(ctx context.Context, db *dynamodb.Client, id string, item map[string]types.AttributeValue) error {
	letter, encoding, count, err := readLetter(item)
	if err != nil {
		return err
	}
	parcel, err := decodeParcel(attr.String(item[attrParcel]))
	if err != nil {
		return err
	}
	parcel.Delivery.Attempt, parcel.Waits, parcel.First, parcel.Last = 1, 0, time.Time{}, Failure{}
	text, err := encodeParcel(&parcel)
	if err != nil {
		return err
	}
	retry := map[string]types.AttributeValue{
		attrID:     item[attrID],
		attrPart:   attr.S(partParcel),
		attrDue:    item[attrWhen], // long past by the clock that decides, whatever it shows: it became a dead letter then
		attrParcel: attr.S(text),
	}
	var parts []write
	if count > 0 {
		stored, found, err := readParts(ctx, db, DeadLettersTable, partsOf(item), id, count)
		if err == nil && found < count {
			err = errors.New("a part of its body is missing")
		}
		if err != nil {
			return err
		}
		if letter.Body, err = unpackBody(stored, encoding); err != nil {
			return err
		}
	}
	table := retriesOf(attr.String(item[attrOf]))
	if packed := packBody(retry, letter.Body); len(packed) > 0 {
		anew := kept{len(packed), rand.Text()} // those of the parcel that has failed may be being deleted
		anew.mark(retry)
		parts = partPuts(table, anew.key, id, packed)
	}
	w := newWriter(db, slog.New(slog.DiscardHandler))
	w.missing = func(ctx context.Context) error {
		_, err := ensure.Table(ctx, db, retriesSpec(table))
		return err
	}
	for _, step := range [][]write{parts, {put(table, retry, nil)}} {
		if err := w.all(ctx, step); err != nil {
			return err
		}
	}
	return w.removeLetter(ctx, item)
}

// partsOf are the keys of the parts of a letter's body.
func partsOf(item map[string]types.AttributeValue) partKey {
	return letterParts(attr.String(item[attrLetter]))
}

// removeLetter deletes a dead letter as it was read: its item first, so that none is ever found without its body. Where the delivery has another letter by now, since it has
// been redriven and has failed again, that one stays.
func (w *writer) removeLetter(ctx context.Context, item map[string]types.AttributeValue) error {
	in := &dynamodb.DeleteItemInput{
		TableName: aws.String(DeadLettersTable), Key: map[string]types.AttributeValue{attrID: item[attrID]}, ConditionExpression: aws.String("#letter = :letter"),
		ExpressionAttributeNames:  map[string]string{"#letter": attrLetter},
		ExpressionAttributeValues: map[string]types.AttributeValue{":letter": item[attrLetter]},
	}
	if item[attrLetter] == nil { // an earlier program has written it
		in.ConditionExpression, in.ExpressionAttributeValues = aws.String("attribute_not_exists(#letter)"), nil
	}
	_, err := w.db.DeleteItem(ctx, in)
	var other *types.ConditionalCheckFailedException
	if err != nil && !errors.As(err, &other) && !ensure.Missing(err) {
		return err
	}
	parts, _ := strconv.Atoi(numberOf(item[attrParts]))
	key := partsOf(item)
	removals := make([]write, min(max(parts, 0), partsMax))
	for i := range removals {
		removals[i] = remove(DeadLettersTable, key(attr.String(item[attrID]), i))
	}
	return w.all(ctx, removals)
}

// all makes writes in their order, or fails.
func (w *writer) all(ctx context.Context, writes []write) error {
	for n := 0; len(writes) > 0; writes = writes[n:] {
		n = min(len(writes), writesMax)
		in := &dynamodb.BatchWriteItemInput{RequestItems: map[string][]types.WriteRequest{}}
		for _, b := range writes[:n] {
			in.RequestItems[b.at.table] = append(in.RequestItems[b.at.table], b.request)
		}
		unprocessed := func() error {
			err := w.try(ctx, in)
			if err != nil && !errors.Is(err, errUnprocessed) {
				return retry.Final(err)
			}
			return err
		}
		if err := retry.Until(ctx, w.log, afterFailure, "write items", unprocessed); err != nil {
			return err
		}
	}
	return nil
}

// DeleteDeadLetters forgets dead letters. It gives how many there were of these ids.
func DeleteDeadLetters(ctx context.Context, db *dynamodb.Client, ids ...string) (n int, err error) {
	w := newWriter(db, slog.New(slog.DiscardHandler))
	for _, id := range ids {
		item, err := letterOf(ctx, db, id)
		if err != nil {
			return n, err
		}
		if item == nil {
			continue
		}
		if err := w.removeLetter(ctx, item); err != nil {
			return n, fmt.Errorf("delete dead letter %s: %w", id, err)
		}
		n++
	}
	return n, nil
}

// EachDeadLetter calls f for pages of the dead letters that match, until f fails or all have been given.
func EachDeadLetter(ctx context.Context, db *dynamodb.Client, match DeadLetterFilter, f func([]DeadLetter) error) error {
	for from := ""; ; {
		page, next, err := ListDeadLetters(ctx, db, match, 100, from)
		if err != nil {
			return err
		}
		if len(page) > 0 {
			if err := f(page); err != nil {
				return err
			}
		}
		if from = next; from == "" {
			return nil
		}
	}
}
