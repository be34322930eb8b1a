package stream

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly/guard/internal/armed"
	"github.com/mayflydb/mayfly/guard/internal/strategy"
	"github.com/mayflydb/mayfly/internal/invariant"
	"github.com/mayflydb/mayfly/internal/work/attr"
	"github.com/mayflydb/mayfly/internal/work/ensure"
	"github.com/mayflydb/mayfly/internal/work/lease"
)

// The stream strategy keeps its deadlines in the table mayfly.deadlines, so that a worker's death
// loses none. The items, by part and at:
//
//	<label>               settings        the stream, and the number of scans: see settings
//	<label>               divisions       how the table is divided: see division
//	<label>/<p>           <bucket>        partition p may have deadlines in this bucket
//	<label>/<p>           <ms>/<key>      a deadline that was due, or nearly, when it was written: the
//	                                      partition's inbox, which sorts before the buckets
//	<label>/<p>/<bucket>  <ms>/<key>      another deadline: v, ver, by, tag, claim, and key if it is
//	                                      too long for at
//
// label is the guarded table's ARN; p the number of the division, a dot, and the hash of the item's
// key modulo the number of partitions; bucket the deadline's minute and the number of one of the
// partition keys that share it, as 2030-01-01T00:00Z/3; ms the deadline in 15 digits; key the
// item's key in base64, or "#" and its hash if that is long. In division 1, p has no dot, and a
// bucket is a minute.
//
// by is the source of the deadline: the stream's epoch and the record's sequence number, or "" for
// a scan. A deadline is written and deleted only if no later record has written it, so a worker
// that resumes after a pause undoes nothing.
//
// TableName is the name of that table, unless Env.Deadlines has another.
const TableName = "mayfly.deadlines"

var deadlinesSpec = ensure.Spec{Name: TableName, Key: attrPart, Sort: attrAt}

const (
	attrPart    = "part"
	attrAt      = "at"
	attrValue   = "v"   // the item's TTL value; absent if it is the deadline in whole seconds
	attrVersion = "ver" // the version attribute as JSON; absent if the item has none
	attrBy      = "by"
	attrTag     = "tag"   // a hash of by
	attrKey     = "key"   // the item's key, if at has its hash
	attrClaim   = "claim" // the worker that has armed the row, and when; absent if the owner is to arm it

	sortKeyMax = 1000 // bytes; the API allows 1,024

	parallel = 16 // calls at the deadline table at once

	// margin is the minimum time, in ms, from now to a deadline with a place in its minute. It
	// covers a write's duration and differences between clocks. Earlier deadlines go into the
	// inbox.
	margin = 1_000
)

// row is a deadline in the table, in memory, or both. In memory it is armed, or waits behind an
// earlier deadline of the same item. Of a million rows each byte is a megabyte.
type row struct {
	key   armed.Key
	at    int64
	texts *texts // nil: the value is at in whole seconds, and there is no version
	// the record that writes or deletes the row; "": a scan writes it, or its tag deletes it
	by    string
	tag   int64 // hash of the record that wrote it
	inbox bool
	mine  bool // this worker arms it, also if it does not own the partition

	p    *partition // set while the row is in memory
	next *row       // the item's next deadline in memory
}

// texts are fields that few deadlines have.
type texts struct{ value, version string }

// hasTextsOf reports whether an attempt for one row is one for the other, if their instants are equal.
func (r *row) hasTextsOf(other *row) bool {
	return r.texts == other.texts || r.texts != nil && other.texts != nil && *r.texts == *other.texts
}

// newRow returns a row without a record.
func newRow(e armed.Entry) *row {
	e = e.Lean()
	r := &row{key: e.Key, at: e.At}
	if e.Value != "" || e.Version != "" {
		r.texts = &texts{e.Value, e.Version}
	}
	return r
}

// rowOf returns the row to write for a deadline that a record, or a scan, has shown.
func rowOf(e armed.Entry, by string, now int64) *row {
	r := newRow(e)
	r.by, r.tag, r.inbox = by, tagOf(by), e.At < now+margin
	return r
}

// entry returns the deadline. Its outcome goes to the row.
func (r *row) entry() armed.Entry {
	e := armed.Entry{Key: r.key, At: r.at, Armer: r}
	if r.texts != nil {
		e.Value, e.Version = r.texts.value, r.texts.version
	}
	return e
}

// tagOf returns a hash of by that is short enough to be held in memory for each deadline. A scan's
// is 0.
func tagOf(by string) int64 {
	if by == "" {
		return 0
	}
	h := fnv.New64a()
	h.Write([]byte(by))
	return int64(h.Sum64()>>12) | 1 // a number that JSON has no trouble with
}

// byOf returns the position of a record as text. Positions sort like the records of one key.
func byOf(epoch int64, sequence string) string {
	return fmt.Sprintf("%06d/%s%s", epoch, strings.Repeat("0", max(40-len(sequence), 0)), sequence)
}

// store is the deadline table, as one guarded table's workers see it.
type store struct {
	db        *dynamodb.Client
	spec      ensure.Spec
	leases    lease.Options // the table of leases beside it
	label     string
	divisions atomic.Pointer[[]*division] // the oldest first
	claim     func() string               // nil: rows are not claimed
}

// live returns the divisions, the oldest first.
func (s *store) live() []*division {
	if all := s.divisions.Load(); all != nil {
		return *all
	}
	return nil
}

// newest returns the division into which deadlines are written.
func (s *store) newest() *division {
	all := s.live()
	return all[len(all)-1]
}

// newStore returns the store of a guarded table. A worker's own store has the usual tables.
func newStore(e *strategy.Env, local *dynamodb.Client, label string) *store {
	if local != nil {
		return &store{db: local, spec: deadlinesSpec, label: label}
	}
	return &store{db: e.DB, spec: deadlinesSpec.With(e.Deadlines), leases: lease.Options{Table: e.Leases.Table}, label: label}
}

const minute = int64(time.Minute / time.Millisecond)

// minuteOf returns the beginning of an instant's minute, in ms.
func minuteOf(at int64) int64 { return at - at%minute }

const minuteLayout = "2006-01-02T15:04Z"

func minuteText(at int64) string { return time.UnixMilli(minuteOf(at)).UTC().Format(minuteLayout) }

// readMinute is the reverse of minuteText.
func readMinute(text string) (at int64, ok bool) {
	t, err := time.Parse(minuteLayout, text)
	return t.UnixMilli(), err == nil
}

// directory returns the partition key of a partition's list of buckets.
func (s *store) directory(d *division, p int) string { return s.label + "/" + d.name(p, "%d") }

// bucket and inbox return the partition key of the deadlines of a bucket, and of the inbox.
func (s *store) bucket(d *division, p int, b int64) string {
	return s.directory(d, p) + "/" + d.bucketText(b)
}
func (s *store) inbox(d *division, p int) string { return s.directory(d, p) }

// sortText returns the beginning of the sort keys of an instant's deadlines.
func sortText(at int64) string { return fmt.Sprintf("%015d", max(at, 0)) }

func (s *store) keyOf(e *row) map[string]types.AttributeValue {
	d := s.newest()
	if e.p != nil {
		d = e.p.d
	}
	p := d.partitionOf(e.key)
	part := s.bucket(d, p, d.bucketOf(e.key, e.at))
	if e.inbox {
		part = s.inbox(d, p)
	}
	at, _ := sortKey(e.at, e.key)
	return map[string]types.AttributeValue{attrPart: attr.S(part), attrAt: attr.S(at)}
}

// sortKey returns a deadline's sort key. whole is false if it has only the key's hash.
func sortKey(at int64, k armed.Key) (sort string, whole bool) {
	encoded := base64.RawURLEncoding.EncodeToString([]byte(k))
	if len(encoded) < sortKeyMax-16 {
		return sortText(at) + "/" + encoded, true
	}
	hash := sha256.Sum256([]byte(k))
	return sortText(at) + "/#" + hex.EncodeToString(hash[:]), false
}

// byScan is attrBy in the row of a scan. It sorts before the position of every record, and it is not
// empty, which DynamoDB Local refused until 2020. Older versions have written "".
const byScan = " "

func (s *store) item(e *row) map[string]types.AttributeValue {
	item := s.keyOf(e)
	item[attrBy], item[attrTag] = attr.S(cmp.Or(e.by, byScan)), attr.Int(tagOf(e.by))
	d := e.entry()
	if d.Value != "" {
		item[attrValue] = attr.S(d.Value)
	}
	if d.Version != "" {
		item[attrVersion] = attr.S(d.Version)
	}
	if e.mine && s.claim != nil {
		item[attrClaim] = attr.S(s.claim())
	}
	if _, whole := sortKey(e.at, e.key); !whole {
		item[attrKey] = attr.B([]byte(e.key))
	}
	return item
}

var errNoDeadline = errors.New("not a deadline written by guard")

// readRow is the reverse of item.
func readRow(item map[string]types.AttributeValue) (*row, error) {
	at, name, ok := strings.Cut(attr.String(item[attrAt]), "/")
	ms, err := strconv.ParseInt(at, 10, 64)
	if !ok || err != nil || len(at) != 15 || ms < 0 {
		return nil, errNoDeadline
	}
	var k []byte
	if strings.HasPrefix(name, "#") {
		b, isBinary := attr.AsBinary(item[attrKey])
		if !isBinary {
			return nil, errNoDeadline
		}
		k = b
	} else if k, err = base64.RawURLEncoding.DecodeString(name); err != nil {
		return nil, errNoDeadline
	}
	r := newRow(armed.Entry{Key: armed.Key(k), At: ms, Value: attr.String(item[attrValue]), Version: attr.String(item[attrVersion])})
	if r.by = attr.String(item[attrBy]); r.by == byScan {
		r.by = ""
	}
	r.tag = tagOf(r.by)
	return r, nil
}

// rangeOf returns a query for the items of a partition key whose sort keys are from low to high. No
// caller uses a high bound that is itself a sort key.
func (s *store) rangeOf(part, low, high string) *dynamodb.QueryInput {
	return &dynamodb.QueryInput{
		TableName: &s.spec.Name, ConsistentRead: aws.Bool(true), KeyConditionExpression: aws.String("#p = :p AND #a BETWEEN :low AND :high"),
		ExpressionAttributeNames:  map[string]string{"#p": attrPart, "#a": attrAt},
		ExpressionAttributeValues: map[string]types.AttributeValue{":p": attr.S(part), ":low": attr.S(low), ":high": attr.S(high)},
	}
}

// query calls each with the items of such a range, in order, until it returns false. It reads pages
// of at most limit items; 0: of any size. A page may be empty although more follow.
func (s *store) query(ctx context.Context, part, low, high string, limit int32, each func(map[string]types.AttributeValue) bool) error {
	in := s.rangeOf(part, low, high)
	if limit > 0 {
		in.Limit = &limit
	}
	for {
		out, err := s.db.Query(ctx, in)
		if err != nil {
			return err
		}
		for _, item := range out.Items {
			if !each(item) {
				return nil
			}
		}
		if in.ExclusiveStartKey = out.LastEvaluatedKey; in.ExclusiveStartKey == nil {
			return nil
		}
	}
}

// buckets returns the buckets of the minutes from low to high in which a partition may have
// deadlines.
func (s *store) buckets(ctx context.Context, d *division, p int, low, high int64) (all []int64, err error) {
	err = s.query(ctx, s.directory(d, p), minuteText(low), minuteText(high)+"~", 0, func(item map[string]types.AttributeValue) bool {
		if b, ok := readBucket(attr.String(item[attrAt])); ok {
			all = append(all, b)
		}
		return true
	})
	return all, err
}

// firstBucket returns the first bucket, from the minute of low on, in which a partition may have
// deadlines; math.MaxInt64 if there is none.
func (s *store) firstBucket(ctx context.Context, d *division, p int, low int64) (first int64, err error) {
	first = math.MaxInt64
	err = s.query(ctx, s.directory(d, p), minuteText(low), "~", 1, func(item map[string]types.AttributeValue) bool {
		if b, ok := readBucket(attr.String(item[attrAt])); ok {
			first = b
		}
		return false
	})
	return first, err
}

func (s *store) bucketKey(d *division, p int, b int64) map[string]types.AttributeValue {
	return map[string]types.AttributeValue{attrPart: attr.S(s.directory(d, p)), attrAt: attr.S(d.bucketText(b))}
}

// forgetBucket deletes a bucket from a partition's directory.
func (s *store) forgetBucket(ctx context.Context, d *division, p int, b int64) error {
	_, err := s.db.DeleteItem(ctx, &dynamodb.DeleteItemInput{TableName: &s.spec.Name, Key: s.bucketKey(d, p, b)})
	return err
}

// note is a bucket in the directory of a partition.
type note struct {
	p      *partition
	bucket int64
}

// noteBucket puts a bucket into a partition's directory.
func (s *store) noteBucket(ctx context.Context, at note) error {
	_, err := s.db.PutItem(ctx, &dynamodb.PutItemInput{TableName: &s.spec.Name, Item: s.bucketKey(at.p.d, at.p.number, at.bucket)})
	return err
}

// putOf returns the write of a row, unless a later record has written it. A scan's row is written
// only if there is none.
func (s *store) putOf(e *row) *types.Put {
	p := &types.Put{
		TableName: &s.spec.Name, Item: s.item(e), ConditionExpression: aws.String("attribute_not_exists(#p)"),
		ExpressionAttributeNames: map[string]string{"#p": attrPart},
	}
	if e.by != "" {
		p.ConditionExpression = aws.String("attribute_not_exists(#p) OR #by <= :by")
		if invariant.Injected(invariant.OverwriteNewer) {
			p.ConditionExpression = aws.String("attribute_not_exists(#p) OR #by <= :by OR #by > :by")
		}
		p.ExpressionAttributeNames["#by"] = attrBy
		p.ExpressionAttributeValues = map[string]types.AttributeValue{":by": attr.S(e.by)}
	}
	return p
}

// put writes a row; see putOf.
func (s *store) put(ctx context.Context, e *row) error {
	p := s.putOf(e)
	in := &dynamodb.PutItemInput{
		TableName: p.TableName, Item: p.Item, ConditionExpression: p.ConditionExpression,
		ExpressionAttributeNames: p.ExpressionAttributeNames, ExpressionAttributeValues: p.ExpressionAttributeValues,
	}
	if invariant.Enabled {
		in.ReturnValues = types.ReturnValueAllOld
	}
	out, err := s.db.PutItem(ctx, in)
	if invariant.Enabled && err == nil {
		before := strings.TrimSpace(attr.String(out.Attributes[attrBy]))
		invariant.CheckUnless(before <= e.by, []invariant.Fault{invariant.OverwriteNewer}, "the row of record %q overwrites that of record %q", e.by, before)
	}
	return unlessUnmet(err)
}

// dropOf returns the deletion of a row, unless a later record has written it. Without a record it
// deletes a row that has its tag or is from a scan.
func (s *store) dropOf(e *row) *types.Delete {
	d := &types.Delete{TableName: &s.spec.Name, Key: s.keyOf(e)}
	if e.by == "" {
		d.ConditionExpression = aws.String("#tag IN (:tag, :scan)")
		d.ExpressionAttributeNames = map[string]string{"#tag": attrTag}
		d.ExpressionAttributeValues = map[string]types.AttributeValue{":tag": attr.Int(e.tag), ":scan": attr.Int(tagOf(""))}
	} else {
		d.ConditionExpression = aws.String("#by <= :by")
		d.ExpressionAttributeNames = map[string]string{"#by": attrBy}
		d.ExpressionAttributeValues = map[string]types.AttributeValue{":by": attr.S(e.by)}
	}
	return d
}

// drop deletes a row; see dropOf.
func (s *store) drop(ctx context.Context, e *row) error {
	d := s.dropOf(e)
	in := &dynamodb.DeleteItemInput{
		TableName: d.TableName, Key: d.Key, ConditionExpression: d.ConditionExpression,
		ExpressionAttributeNames: d.ExpressionAttributeNames, ExpressionAttributeValues: d.ExpressionAttributeValues,
	}
	if invariant.Enabled {
		in.ReturnValues = types.ReturnValueAllOld
	}
	out, err := s.db.DeleteItem(ctx, in)
	if invariant.Enabled && err == nil && e.by != "" {
		before := attr.String(out.Attributes[attrBy])
		invariant.Check(before <= e.by, "record %q deletes the row of record %q", e.by, before)
	}
	return unlessUnmet(err)
}

func unlessUnmet(err error) error {
	if _, ok := errors.AsType[*types.ConditionalCheckFailedException](err); ok {
		return nil
	}
	return err
}

const batchMax = 25 // of BatchWriteItem

// batch writes and deletes up to 25 rows in one call, without conditions. It returns the requests
// that have to be repeated.
func (s *store) batch(ctx context.Context, puts, drops []*row) (again []types.WriteRequest, err error) {
	var all []types.WriteRequest
	for _, e := range puts {
		all = append(all, types.WriteRequest{PutRequest: &types.PutRequest{Item: s.item(e)}})
	}
	for _, e := range drops {
		all = append(all, types.WriteRequest{DeleteRequest: &types.DeleteRequest{Key: s.keyOf(e)}})
	}
	return s.write(ctx, all)
}

func (s *store) write(ctx context.Context, all []types.WriteRequest) (again []types.WriteRequest, err error) {
	out, err := s.db.BatchWriteItem(ctx, &dynamodb.BatchWriteItemInput{RequestItems: map[string][]types.WriteRequest{s.spec.Name: all}})
	if err != nil {
		return nil, err
	}
	return out.UnprocessedItems[s.spec.Name], nil
}
