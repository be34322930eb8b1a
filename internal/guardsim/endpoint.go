package guardsim

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/mayflydb/mayfly/guard"
)

// names of the guarded table and of its index.
const (
	tableName = "items"
	indexName = "byDeadline"
)

// serve answers a request that has arrived at the endpoint.
func (s *simulation) serve(r *http.Request, operation, body string) (*http.Response, error) {
	switch operation {
	case "DescribeStream":
		return s.describeStream(body), nil
	case "GetShardIterator":
		return s.getShardIterator(body), nil
	case "GetRecords":
		return s.getRecords(body), nil
	}
	if name := textOf(body, `"TableName":"`); name != tableName && operation != "TransactWriteItems" {
		return s.own(r, operation, name, body)
	}
	switch operation {
	case "DescribeTable":
		return s.describeTable(), nil
	case "DescribeTimeToLive":
		return answer(`{"TimeToLiveDescription":{"TimeToLiveStatus":"ENABLED","AttributeName":"ttl"}}`), nil
	case "Scan": // the first scan and the patrols found nothing: they were long ago
		if strings.Contains(body, `"IndexName"`) {
			return answer(`{"Items":[{"pk":{"S":"other"},"shard":{"S":"0"},"ttl":{"N":"4102444800"}}],"Count":1,"ScannedCount":1}`), nil
		}
		return answer(`{"Items":[],"Count":0,"ScannedCount":0}`), nil
	case "Query":
		return s.query(body), nil
	case "GetItem":
		return s.getItem(body), nil
	case "DeleteItem":
		return s.deleteItem(body), nil
	}
	return nil, fmt.Errorf("guard calls %s of the table, which the simulation lacks", operation)
}

func (s *simulation) describeTable() *http.Response {
	index := ""
	if s.index != nil {
		index = fmt.Sprintf(`,"GlobalSecondaryIndexes":[{"IndexName":%q,"IndexStatus":"ACTIVE","KeySchema":[{"AttributeName":"shard","KeyType":"HASH"},{"AttributeName":"ttl","KeyType":"RANGE"}],"Projection":{"ProjectionType":"KEYS_ONLY"}}]`, indexName)
	}
	return answer(fmt.Sprintf(`{"Table":{"TableName":"items","TableStatus":"ACTIVE","TableId":"simulated","TableArn":"arn:aws:dynamodb:us-east-1:000000000000:table/items","CreationDateTime":900000000,"ItemCount":%d,`+
		`"AttributeDefinitions":[{"AttributeName":"pk","AttributeType":"S"},{"AttributeName":"shard","AttributeType":"S"},{"AttributeName":"ttl","AttributeType":"N"}],"KeySchema":[{"AttributeName":"pk","KeyType":"HASH"}],`+
		`"StreamSpecification":{"StreamEnabled":true,"StreamViewType":"NEW_AND_OLD_IMAGES"},"LatestStreamArn":%q%s}}`, int64(s.o.Load.Items), streamARN, index))
}

func (s *simulation) getItem(body string) *http.Response {
	i := numberOf(body, keyPrefix, -1)
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.items.has(i, s.now().UnixMilli()) {
		return answer(`{}`)
	}
	return answer(fmt.Sprintf(`{"Item":{"pk":{"S":%q},"ttl":{"N":%q}}}`, keyText(i), s.items.text(i)))
}

// deleteItem removes an item on the condition that it has the deadline of the request.
func (s *simulation) deleteItem(body string) *http.Response {
	i, armed := numberOf(body, keyPrefix, -1), textOf(body, `"N":"`)
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	s.write(now)
	at := s.table.of(i)
	var entries *meter
	if s.index != nil { // an index that falls behind holds up the writes of its table
		entries = s.index[max(i, 0)%len(s.index)]
		if entries.refill(now); entries.have <= 0 {
			entries.take(now, s.entry, s.measures())
			return full("Index")
		}
	}
	if !at.writes.take(now, s.units, s.measures()) {
		return full("Table")
	}
	s.count(&s.deletes, s.units)
	switch ms := now.UnixMilli(); {
	case !s.items.has(i, ms) || s.items.text(i) != armed:
		s.again++
		return refuse("ConditionalCheckFailedException")
	case ms < s.items.at(i):
		s.early++
	}
	s.items.remove(i)
	if i < s.due {
		s.gone++
	}
	at.records = append(at.records, record(^i))
	if entries != nil {
		entries.force(now, s.entry, s.measures())
		s.count(&s.indexWrites, s.entry)
	}
	return answer(fmt.Sprintf(`{"ConsumedCapacity":{"TableName":"items","CapacityUnits":%v}}`, s.units))
}

// query answers a query of a shard of the index for the deadlines between two instants.
func (s *simulation) query(body string) *http.Response {
	_, values, _ := strings.Cut(body, `"ExpressionAttributeValues":`)
	value := func(name string) string {
		_, rest, _ := strings.Cut(values, name)
		rest, _, _ = strings.Cut(rest, "}")
		return rest
	}
	shard := numberOf(value(`":p":`), `"S":"`, -1)
	low, high := numberOf(value(`":low":`), `"N":"`, 0), numberOf(value(`":high":`), `"N":"`, 0)
	s.mu.Lock()
	defer s.mu.Unlock()
	if shard < 0 || shard >= len(s.index) {
		return answer(`{"Items":[],"Count":0,"ScannedCount":0}`)
	}
	now := s.now().UnixMilli()
	i := s.items.from(int64(low) * 1000)
	if _, start, resumed := strings.Cut(body, `"ExclusiveStartKey":`); resumed {
		i = max(i, numberOf(start, keyPrefix, 0)+1)
	}
	if d := i%len(s.index) - shard; d != 0 {
		i += (len(s.index) - d) % len(s.index)
	}
	const entry = 100 // bytes of an entry's key and deadline in the index, at least
	size := max(s.o.Load.KeyBytes+2+16+8, entry)
	limit := min(numberOf(body, `"Limit":`, pageBytes), pageBytes/size)
	var b strings.Builder
	b.WriteString(`{"Items":[`)
	n, last, more := 0, 0, false
	for ; i < s.items.count && s.items.at(i) <= int64(high)*1000 && s.items.made(i) <= now; i += len(s.index) {
		if !s.items.has(i, now) {
			continue
		}
		if more = n == limit; more {
			break
		}
		if n > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"pk":{"S":%q},"shard":{"S":"%d"},"ttl":{"N":%q}}`, keyText(i), shard, s.items.text(i))
		n, last = n+1, i
	}
	units := max(float64(n*size)/4096, 1) / 2
	s.count(&s.reads, units)
	fmt.Fprintf(&b, `],"Count":%d,"ScannedCount":%d,"ConsumedCapacity":{"TableName":"items","CapacityUnits":%v}`, n, n, units)
	if more {
		fmt.Fprintf(&b, `,"LastEvaluatedKey":{"pk":{"S":%q},"shard":{"S":"%d"},"ttl":{"N":%q}}`, keyText(last), shard, s.items.text(last))
	}
	b.WriteByte('}')
	return answer(b.String())
}

// own passes a request about one of guard's own tables to the database, within the limits of the
// partition key. A shard's checkpoints are the further apart, the more shards a stream has, so that all
// of a fleet's are 500 a second. Workers that see only their share of the shards save more often, and
// each of these saves counts as much less.
func (s *simulation) own(r *http.Request, operation, name, body string) (*http.Response, error) {
	isLeases := name == guard.LeasesTable
	attribute, key, units := `"part":{"S":"`, "", 0.0
	if isLeases {
		attribute = `"consumer":{"S":"`
	}
	switch operation {
	case "PutItem", "DeleteItem", "UpdateItem":
		if key, units = textOf(body, attribute), 1; isLeases && strings.Contains(body, `"shardId-`) {
			units = s.saves
		}
	case "TransactWriteItems":
		units = 2 * float64(strings.Count(body, attribute))
	}
	if units > 0 {
		s.mu.Lock()
		m := s.key(name, key)
		taken := key == "" || m.take(s.now(), units, s.measures())
		if taken {
			s.count(&s.ownWrites, units)
			if isRow := !isLeases && (strings.Contains(body, `"#p"`) || strings.Contains(body, `"#by"`) || strings.Contains(body, `"#tag"`)); isRow && operation == "PutItem" {
				s.count(&s.rows, 1)
			} else if isRow && operation == "DeleteItem" { // directories, watermarks and divisions have other conditions, or none
				s.count(&s.rows, -1)
			}
		}
		s.mu.Unlock()
		if !taken {
			return full("Table"), nil
		}
	}
	if operation == "Query" || operation == "GetItem" {
		body = `{"ReturnConsumedCapacity":"TOTAL",` + strings.TrimPrefix(body, "{")
	}
	r.Body, r.ContentLength = io.NopCloser(strings.NewReader(body)), int64(len(body))
	out, err := s.store.Do(r)
	if err != nil || operation != "Query" && operation != "GetItem" {
		return out, err
	}
	text, err := io.ReadAll(out.Body)
	if err != nil {
		return nil, err
	}
	out.Body = io.NopCloser(bytes.NewReader(text))
	s.read(isLeases, textOf(body, `"S":"`), consumed(text))
	return out, nil
}

// closedShards is for how many closed shards the table of leases has rows, for each open one: a shard
// of Amazon's is replaced about every four hours, and kept for a day. The run has none of them, so
// their bytes are added to the reads.
const (
	closedShards = 6
	leaseRow     = 220 // bytes
)

// read counts the units of a read.
func (s *simulation) read(isLeases bool, consumer string, units float64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !isLeases {
		s.count(&s.reads, units)
		return
	}
	if strings.Contains(consumer, "/stream/") {
		units += float64(closedShards*len(s.table.roots)*leaseRow) / 4096
	}
	if now := s.now(); now.After(s.settled) && now.Before(s.end) {
		s.leaseReads += units
	}
}

// consumed returns the units in an answer.
func consumed(body []byte) float64 {
	_, rest, _ := strings.Cut(string(body), `"CapacityUnits":`)
	end := strings.IndexAny(rest, ",}")
	if end < 0 {
		return 0
	}
	v, _ := strconv.ParseFloat(rest[:end], 64)
	return v
}

// textOf returns the text behind a mark up to the next quote. guard writes no quotes into such texts.
func textOf(body, mark string) string {
	_, rest, _ := strings.Cut(body, mark)
	text, _, _ := strings.Cut(rest, `"`)
	return text
}

// numberOf returns the number behind a mark.
func numberOf(body, mark string, otherwise int) int {
	_, rest, ok := strings.Cut(body, mark)
	end := 0
	for end < len(rest) && rest[end] >= '0' && rest[end] <= '9' {
		end++
	}
	n, err := strconv.Atoi(rest[:end])
	if !ok || err != nil {
		return otherwise
	}
	return n
}

func answer(body string) *http.Response { return response(http.StatusOK, body) }

// full refuses a write to a partition, of a table or of an index, that has no units left.
func full(what string) *http.Response {
	return refuse("ProvisionedThroughputExceededException", fmt.Sprintf(`,"ThrottlingReasons":[{"reason":"%sWriteKeyRangeThroughputExceeded"}]`, what))
}

// refuse returns an API error, with more members of its body.
func refuse(code string, more ...string) *http.Response {
	r := response(http.StatusBadRequest, fmt.Sprintf(`{"__type":"com.amazonaws.dynamodb.v20120810#%s","message":"by the simulation"%s}`, code, strings.Join(more, "")))
	r.Header.Set("X-Amzn-Errortype", code)
	return r
}

func response(status int, body string) *http.Response {
	return &http.Response{
		StatusCode: status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, ContentLength: int64(len(body)), Body: io.NopCloser(strings.NewReader(body)),
		Header: http.Header{"Content-Type": {"application/x-amz-json-1.0"}},
	}
}
