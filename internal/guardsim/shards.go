package guardsim

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// shard is a shard of the table's stream, and the partition of the table whose writes it has. A split
// closes it, and opens two children.
type shard struct {
	id, parent string
	from, to   int // sequence numbers; to is 0 while the shard is open
	records    []record
	next       []*shard // its children
	depth      int      // how many splits there are above it
	born       time.Time

	writes, bytes, calls *meter
}

// record is the number of an item; negative for its removal, as ^number.
type record int

// partitions are the partitions of the table.
type partitions struct {
	roots []*shard
	byID  map[string]*shard
	all   []*shard // in the order of their making
	make  func(parent *shard) *shard
}

// of returns the partition of an item.
func (p *partitions) of(i int) *shard {
	h := mix(i)
	s := p.roots[h%uint64(len(p.roots))]
	for h /= uint64(len(p.roots)); len(s.next) > 0; h /= 2 {
		s = s.next[h%2]
	}
	return s
}

func (p *partitions) open() (open []*shard) {
	for _, s := range p.all {
		if len(s.next) == 0 {
			open = append(open, s)
		}
	}
	return open
}

// split splits a shard in two.
func (p *partitions) split(s *shard) {
	s.to = s.from + len(s.records)
	for range 2 {
		s.next = append(s.next, p.add(s))
	}
}

func (p *partitions) add(parent *shard) *shard {
	s := p.make(parent)
	s.id, s.from = fmt.Sprintf("shardId-%020d-%08d", len(p.all), len(p.all)), 1
	if parent != nil {
		s.parent, s.from, s.depth = parent.id, parent.to+1, parent.depth+1
	}
	p.byID[s.id] = s
	p.all = append(p.all, s)
	return s
}

// sequence returns a sequence number as Amazon's look: 21 digits.
func sequence(n int) string { return fmt.Sprintf("1%020d", n) }

func readSequence(text string) int {
	n, _ := strconv.Atoi(strings.TrimPrefix(text, "1"))
	return n
}

// streamARN is the ARN of the stream.
const streamARN = "arn:aws:dynamodb:us-east-1:000000000000:table/items/stream/2000-01-01T00:00:00.000"

// pageShards is how many shards an answer lists at most.
const pageShards = 100

func (s *simulation) describeStream(body string) *http.Response {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.listings.take(s.now(), 1, s.measures()) {
		return refuse("ThrottlingException")
	}
	begin := 0
	if after := textOf(body, `"ExclusiveStartShardId":"`); after != "" {
		for begin < len(s.table.all) && s.table.all[begin].id != after {
			begin++
		}
		begin++
	}
	only := ""
	if strings.Contains(body, `"CHILD_SHARDS"`) {
		_, filter, _ := strings.Cut(body, `"ShardFilter"`)
		only = textOf(filter, `"ShardId":"`)
	}
	var list []string
	last := ""
	for _, at := range s.table.all[min(begin, len(s.table.all)):] {
		if only != "" && at.parent != only {
			continue
		}
		if len(list) == pageShards {
			last = fmt.Sprintf(`,"LastEvaluatedShardId":%q`, s.table.all[begin+pageShards-1].id)
			break
		}
		one := fmt.Sprintf(`{"ShardId":%q,"SequenceNumberRange":{"StartingSequenceNumber":%q`, at.id, sequence(at.from))
		if at.to > 0 {
			one += fmt.Sprintf(`,"EndingSequenceNumber":%q`, sequence(at.to))
		}
		one += "}"
		if at.parent != "" {
			one += fmt.Sprintf(`,"ParentShardId":%q`, at.parent)
		}
		list = append(list, one+"}")
	}
	return answer(fmt.Sprintf(`{"StreamDescription":{"StreamArn":%q,"StreamStatus":"ENABLED","StreamViewType":"NEW_AND_OLD_IMAGES","TableName":"items","KeySchema":[{"AttributeName":"pk","KeyType":"HASH"}],"Shards":[%s]%s}}`,
		streamARN, strings.Join(list, ","), last))
}

// getShardIterator answers with an iterator: the shard's id and the next sequence number.
func (s *simulation) getShardIterator(body string) *http.Response {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := s.table.byID[textOf(body, `"ShardId":"`)]
	if at == nil {
		return refuse("ResourceNotFoundException")
	}
	s.write(s.now())
	next := at.from
	switch textOf(body, `"ShardIteratorType":"`) {
	case "LATEST":
		next += len(at.records)
	case "AFTER_SEQUENCE_NUMBER":
		next = readSequence(textOf(body, `"SequenceNumber":"`)) + 1
	case "AT_SEQUENCE_NUMBER":
		next = readSequence(textOf(body, `"SequenceNumber":"`))
	}
	return answer(fmt.Sprintf(`{"ShardIterator":"%s|%d"}`, at.id, next))
}

const (
	pageRecords = 1000
	pageBytes   = 1 << 20
)

func (s *simulation) getRecords(body string) (response *http.Response) {
	id, place, _ := strings.Cut(textOf(body, `"ShardIterator":"`), "|")
	next, err := strconv.Atoi(place)
	s.mu.Lock()
	defer s.mu.Unlock()
	at, now := s.table.byID[id], s.now()
	if at == nil || err != nil {
		return refuse("ResourceNotFoundException")
	}
	if s.write(now); !at.calls.take(now, 1, s.measures()) {
		return refuse("LimitExceededException")
	}
	if at.bytes.refill(now); at.bytes.have <= 0 {
		at.bytes.take(now, 0, s.measures())
		return refuse("LimitExceededException")
	}
	s.count(&s.calls, 1)
	limit := min(numberOf(body, `"Limit":`, pageRecords), pageRecords, max(pageBytes/s.o.Load.ItemBytes, 1))
	var b strings.Builder
	b.WriteString(`{"Records":[`)
	n := 0
	for ; n < limit && next-at.from < len(at.records); n, next = n+1, next+1 {
		if n > 0 {
			b.WriteByte(',')
		}
		s.writeRecord(&b, at.records[next-at.from], next)
	}
	b.WriteByte(']')
	at.bytes.force(now, float64(n*s.o.Load.ItemBytes), s.measures())
	if at.to == 0 || next-at.from < len(at.records) {
		fmt.Fprintf(&b, `,"NextShardIterator":"%s|%d"`, id, next)
	}
	b.WriteByte('}')
	return answer(b.String())
}

func (s *simulation) writeRecord(b *strings.Builder, r record, n int) {
	i, name, image := int(r), "INSERT", "NewImage"
	if r < 0 {
		i, name, image = int(^r), "REMOVE", "OldImage"
	}
	fmt.Fprintf(b, `{"eventID":"%d","eventName":%q,"eventSource":"aws:dynamodb","eventVersion":"1.1","awsRegion":"us-east-1","dynamodb":{"ApproximateCreationDateTime":%d,"Keys":{"pk":{"S":%q}},%q:{"pk":{"S":%q},"ttl":{"N":%q}},"SequenceNumber":%q,"SizeBytes":%d,"StreamViewType":"NEW_AND_OLD_IMAGES"}}`,
		n, name, s.now().Unix(), keyText(i), image, keyText(i), s.items.text(i), sequence(n), s.o.Load.ItemBytes)
}

// write lets users write the items whose instant has come. It is called before anything looks at the
// stream.
func (s *simulation) write(now time.Time) {
	ms := now.UnixMilli()
	for ; s.written < s.items.count && s.items.made(s.written) <= ms; s.written++ {
		at := s.table.of(s.written)
		at.records = append(at.records, record(s.written))
		at.writes.force(now, s.units, s.measures())
		if s.index != nil {
			s.index[s.written%len(s.index)].force(now, s.entry, s.measures())
			s.count(&s.indexWrites, s.entry)
		}
	}
}
