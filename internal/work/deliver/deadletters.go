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
	ID string // ID of the delivery
	// instant at which the parcel became a dead letter, to the millisecond
	When       time.Time
	Target     string            // ARN
	Source     string            // ARN
	Group      string            // schedule group or trigger
	Code       string            // of the last error
	Message    string            // of the last error
	Attempts   int               // number of attempts
	Attributes map[string]string // message attributes of a dead letter
	Body       []byte            // body of the delivery, without changes by single attempts
}

// DeadLetterFilter selects dead letters. An empty field selects all.
type DeadLetterFilter struct {
	Target string // ARN, or a prefix followed by "*"
	Source string // ARN, or a prefix followed by "*"
	Code   string
}

// ErrBadToken is the error of an invalid page token.
var ErrBadToken = errors.New("invalid page token of dead letters")

// ListDeadLetters returns a page of up to limit dead letters, 1 to 1000, in no order, and the token
// of the next page, or "" after the last one. A page may be short or empty although another
// follows. Without the table the list is empty. Bodies that are too large for an item are omitted:
// GetDeadLetter returns them.
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

// scanMin is the minimum number of items that one call examines.
const scanMin = 200

// into sets the filter of a Scan. Items without a parcel are parts of bodies, not dead letters.
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

// newToken returns the token of the page after a key: the ID as JSON, so that invalid tokens are
// detected.
func newToken(key map[string]types.AttributeValue) string {
	text, _ := json.Marshal(attr.String(key[attrID])) // a string can always be marshalled
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

// GetDeadLetter returns one dead letter; found is false if the ID has none.
func GetDeadLetter(ctx context.Context, db *dynamodb.Client, id string) (letter DeadLetter, found bool, err error) {
	item, err := letterOf(ctx, db, id)
	if err != nil || item == nil {
		return DeadLetter{}, false, err
	}
	if letter, err = wholeLetter(ctx, db, item); err != nil {
		return DeadLetter{}, false, fmt.Errorf("dead letter %s: %w", id, err)
	}
	return letter, true, nil
}

// letterOf returns a dead letter's item, or nil.
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

// readLetter returns a dead letter from its item, except a body in parts.
func readLetter(item map[string]types.AttributeValue) (letter DeadLetter, encoding string, parts int, err error) {
	letter = DeadLetter{
		ID: attr.String(item[attrID]), Target: attr.String(item[attrTarget]), Source: attr.String(item[attrSource]), Group: attr.String(item[attrGroup]),
		Code: attr.String(item[attrCode]), Message: attr.String(item[attrMessage]), Attributes: map[string]string{},
	}
	letter.When = instantOf(item[attrWhen])
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

// instantOf returns the instant of a value in epoch seconds; zero if it is none.
func instantOf(v types.AttributeValue) time.Time {
	text, _ := attr.AsNumber(v)
	seconds, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return time.Time{}
	}
	return time.UnixMilli(int64(math.Round(seconds * 1000))).UTC()
}

// wholeLetter returns a dead letter from its item, with a body in parts.
func wholeLetter(ctx context.Context, db *dynamodb.Client, item map[string]types.AttributeValue) (DeadLetter, error) {
	letter, encoding, parts, err := readLetter(item)
	if err != nil || parts == 0 {
		return letter, err
	}
	stored, found, err := readParts(ctx, db, DeadLettersTable, partsOf(item), letter.ID, parts)
	if err == nil && found < parts {
		err = errors.New("a part of its body is missing")
	}
	if err == nil {
		letter.Body, err = unpackBody(stored, encoding)
	}
	return letter, err
}

// RedriveDeadLetters delivers dead letters again. Each becomes a parked parcel that is due at once,
// with new attempts and a new age. n is the number of dead letters found. After an error it may be
// called again; then a delivery may be made twice, with the same ID.
func RedriveDeadLetters(ctx context.Context, db *dynamodb.Client, ids ...string) (n int, err error) {
	return eachLetter(ctx, db, ids, "redrive", func(item map[string]types.AttributeValue) error { return redrive(ctx, db, item) })
}

// eachLetter calls f with the items of dead letters, and returns the number found.
func eachLetter(ctx context.Context, db *dynamodb.Client, ids []string, verb string, f func(map[string]types.AttributeValue) error) (n int, err error) {
	for _, id := range ids {
		item, err := letterOf(ctx, db, id)
		if err != nil {
			return n, err
		}
		if item == nil {
			continue
		}
		if err := f(item); err != nil {
			return n, fmt.Errorf("%s dead letter %s: %w", verb, id, err)
		}
		n++
	}
	return n, nil
}

// redrive parks a dead letter's parcel, and then deletes the letter.
func redrive(ctx context.Context, db *dynamodb.Client, item map[string]types.AttributeValue) error {
	letter, err := wholeLetter(ctx, db, item)
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
		attrID:   item[attrID],
		attrPart: attr.S(partParcel),
		// in the past by any clock: the instant at which it became a dead letter
		attrDue:    item[attrWhen],
		attrParcel: attr.S(text),
	}
	var parts []write
	table := retriesSpec(attr.String(item[attrOf]))
	if packed := packBody(retry, letter.Body); len(packed) > 0 {
		// a new generation: the failed parcel's parts may be about to be deleted
		anew := bodyParts{len(packed), rand.Text()}
		anew.mark(retry)
		parts = partPuts(table.Name, anew.key, letter.ID, packed)
	}
	w := newWriter(db, slog.New(slog.DiscardHandler))
	w.missing = func(ctx context.Context) error {
		_, err := ensure.Table(ctx, db, table)
		return err
	}
	for _, step := range [][]write{parts, {put(table.Name, retry, nil)}} {
		if err := w.all(ctx, step); err != nil {
			return err
		}
	}
	return w.removeLetter(ctx, item)
}

// partsOf returns the keys of the parts of a letter's body.
func partsOf(item map[string]types.AttributeValue) partKey {
	return letterParts(attr.String(item[attrLetter]))
}

// removeLetter deletes a dead letter, its item first, so that no letter is found without its body.
// It keeps a newer letter of the same delivery, which was redriven and has failed again.
func (w *writer) removeLetter(ctx context.Context, item map[string]types.AttributeValue) error {
	in := &dynamodb.DeleteItemInput{
		TableName: aws.String(DeadLettersTable), Key: map[string]types.AttributeValue{attrID: item[attrID]}, ConditionExpression: aws.String("#letter = :letter"),
		ExpressionAttributeNames:  map[string]string{"#letter": attrLetter},
		ExpressionAttributeValues: map[string]types.AttributeValue{":letter": item[attrLetter]},
	}
	if item[attrLetter] == nil { // written by an earlier version
		in.ConditionExpression, in.ExpressionAttributeValues = aws.String("attribute_not_exists(#letter)"), nil
	}
	_, err := w.db.DeleteItem(ctx, in)
	var other *types.ConditionalCheckFailedException
	if err != nil && !errors.As(err, &other) && !ensure.Missing(err) {
		return err
	}
	parts := min(max(int(attr.Integer(item[attrParts])), 0), partsMax)
	return w.all(ctx, partRemovals(DeadLettersTable, partsOf(item), attr.String(item[attrID]), parts))
}

// all makes writes in order. It returns the first error.
func (w *writer) all(ctx context.Context, writes []write) error {
	for n := 0; len(writes) > 0; writes = writes[n:] {
		n = min(len(writes), writesMax)
		in := batchOf(writes[:n])
		unprocessed := func() error {
			err := w.try(ctx, in)
			if err != nil && !errors.Is(err, errUnprocessed) {
				return retry.Final(err)
			}
			return err
		}
		if err := retry.Until(ctx, w.log, retry.Calls, "write items", unprocessed); err != nil {
			return err
		}
	}
	return nil
}

// DeleteDeadLetters deletes dead letters, and returns the number found.
func DeleteDeadLetters(ctx context.Context, db *dynamodb.Client, ids ...string) (n int, err error) {
	w := newWriter(db, slog.New(slog.DiscardHandler))
	return eachLetter(ctx, db, ids, "delete", func(item map[string]types.AttributeValue) error { return w.removeLetter(ctx, item) })
}
