package console

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"net/url"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	streamtypes "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"

	"github.com/mayflydb/mayfly/internal/work/attr"
	"github.com/mayflydb/mayfly/internal/work/consume"
	"github.com/mayflydb/mayfly/internal/work/transfer"
)

// showStream shows the tail of a table's stream. The records follow as events.
func showStream(ctx context.Context, v *visit) (*page, error) {
	t, err := v.table(ctx)
	if err != nil {
		return nil, err
	}
	if t.noStream != "" {
		return t.page("stream", lacks(t.noStream)), nil
	}
	if t.streamText() == "off" {
		return t.page("stream", t.withoutStream()), nil
	}
	f := form{v.r.Form}
	events := []option{{"", "all events"}, {"INSERT", "INSERT"}, {"MODIFY", "MODIFY"}, {"REMOVE", "REMOVE"}, {"expired", "expirations"}}
	p := t.page("stream",
		el("div", has("id", "problem")),
		el("form", has("class", "filter"), has("method", "get"),
			f.choice("event", "Event", events),
			el("label", words("Key contains "), el("input", has("type", "search"), has("name", "q"), has("value", f.get("q")), has("data-search"))),
			f.choice("from", "Begin", []option{{"", "with new records"}, {"oldest", "with the oldest record"}}),
			el("button", words("Follow")),
		),
		el("p", has("id", "position"), words("Connecting…")),
		el("div", has("class", "scroll stacked"), has("tabindex", "0"), has("role", "region"), has("aria-label", "Records"), el("table", has("class", "list steady"), has("data-rows"),
			el("thead", el("tr", mapped(recordHeads, func(head string) node { return el("th", has("scope", "col"), words(head)) }))),
			el("tbody", has("id", "records"), has("aria-live", "off"), optional(f.get("from") == "oldest", has("data-fresh"))), // each connection begins anew
		)),
		el("p", el("small", words("The newest record is on top; the page keeps 500. "+t.imagesText()))),
		el("section", has("id", "consumers"), has("aria-label", "Consumers"), v.consumers(ctx, t)),
	)
	p.live = below + "live/stream/" + t.name() + "?" + url.Values{"event": {f.get("event")}, "q": {f.get("q")}, "from": {f.get("from")}}.Encode()
	return p, nil
}

// tail reads a stream.
type tail struct {
	streams *dynamodbstreams.Client
	arn     string
	from    streamtypes.ShardIteratorType
	open    map[string]*string // iterators by shard
	seen    map[string]bool    // shards, also those that are read to their ends
	records int64
	shown   int64  // that the filter accepts
	last    string // sequence number
	behind  bool   // the last turn found a full page
}

const (
	shardsMost  = 100 // read at once: a page is not a consumer
	recordsMost = 500 // of a shard in one turn
	rowsFirst   = 500 // that a page shows of its first turn: all that it keeps
	rowsMost    = 20  // and of each later one: more would take time from other work, and cannot be read
)

// followStream sends the records of a stream.
func followStream(ctx context.Context, v *visit, l *live) error {
	t, err := v.table(ctx)
	if err != nil {
		return err
	}
	f := form{v.r.Form}
	keep := recordFilter{event: f.get("event"), part: strings.ToLower(f.get("q"))}
	s := &tail{streams: v.Streams(), arn: aws.ToString(t.LatestStreamArn), from: streamtypes.ShardIteratorTypeLatest, open: map[string]*string{}, seen: map[string]bool{}}
	if f.get("from") == "oldest" {
		s.from = streamtypes.ShardIteratorTypeTrimHorizon
	}
	turn, position := 0, ""
	return every(ctx, func() error {
		if turn%10 == 0 { // new shards are rare
			if err := s.discover(ctx); err != nil {
				return err
			}
		}
		rows, err := s.read(ctx, t, keep)
		if err != nil {
			return err
		}
		if len(rows) > 0 {
			if err := l.insert("records", rows...); err != nil {
				return err
			}
		}
		if turn%consumersEvery == 0 && turn > 0 {
			v.read = nil // the clock goes on, and the page stays
			if err := l.replace("consumers", v.consumers(ctx, t)); err != nil {
				return err
			}
		}
		turn++
		if now := s.position(); now != position {
			position = now
			return l.replace("position", words(position))
		}
		return l.alive()
	})
}

// recordHeads are the heads of the records.
var recordHeads = []string{"Event", "Key", "Change", "Time", "Sequence"}

// consumersEvery is how often, in turns, the consumers are looked at.
const consumersEvery = 3

// position says where in the stream the page is.
func (s *tail) position() string {
	shards := counted(len(s.open), "open shard")
	switch {
	case s.records == 0 && s.from == streamtypes.ShardIteratorTypeLatest:
		return "At the end of " + shards + ": new records appear here."
	case s.records == 0:
		return "At the end of " + shards + ": the stream has no records."
	}
	text := counted(s.records, "record") + " read from " + counted(len(s.seen), "shard")
	if s.shown != s.records {
		text += ", " + grouped(s.shown) + " of them shown"
	}
	where := "at the end"
	if s.behind {
		where = "more are waiting"
	}
	return text + "; " + where + ". Last sequence number: " + s.last + "."
}

// discover opens the shards that are new.
func (s *tail) discover(ctx context.Context) error {
	in := &dynamodbstreams.DescribeStreamInput{StreamArn: &s.arn}
	for {
		out, err := s.streams.DescribeStream(ctx, in)
		if err != nil {
			return err
		}
		for _, shard := range out.StreamDescription.Shards {
			id := aws.ToString(shard.ShardId)
			closed := shard.SequenceNumberRange != nil && shard.SequenceNumberRange.EndingSequenceNumber != nil
			if s.seen[id] || len(s.open) >= shardsMost || closed && s.from == streamtypes.ShardIteratorTypeLatest {
				continue
			}
			from := s.from
			if len(s.seen) > 0 && s.seen[aws.ToString(shard.ParentShardId)] {
				from = streamtypes.ShardIteratorTypeTrimHorizon // the continuation of a shard that is being read
			}
			it, err := s.streams.GetShardIterator(ctx, &dynamodbstreams.GetShardIteratorInput{StreamArn: &s.arn, ShardId: &id, ShardIteratorType: from})
			if err != nil {
				return err
			}
			s.seen[id], s.open[id] = true, it.ShardIterator
		}
		if in.ExclusiveStartShardId = out.StreamDescription.LastEvaluatedShardId; in.ExclusiveStartShardId == nil {
			return nil
		}
	}
}

// read reads the next records of all shards, and returns the rows of those to show, the newest
// first.
func (s *tail) read(ctx context.Context, t *table, keep recordFilter) ([]node, error) {
	ids := slices.Sorted(maps.Keys(s.open))
	pages := make([][]streamtypes.Record, len(ids))
	next := make([]*string, len(ids))
	failed := make([]error, len(ids))
	parallel(len(ids), func(i int) {
		out, err := s.streams.GetRecords(ctx, &dynamodbstreams.GetRecordsInput{ShardIterator: s.open[ids[i]], Limit: aws.Int32(recordsMost)})
		if err != nil {
			failed[i] = err
			return
		}
		pages[i], next[i] = out.Records, out.NextShardIterator
	})
	for i, err := range failed {
		var expired *streamtypes.ExpiredIteratorException
		var trimmed *streamtypes.TrimmedDataAccessException
		switch {
		case errors.As(err, &expired) || errors.As(err, &trimmed):
			delete(s.seen, ids[i]) // discover opens it again
		case err != nil:
			return nil, err
		}
	}
	var all []streamtypes.Record
	s.behind = false
	for i, id := range ids {
		s.records += int64(len(pages[i]))
		s.behind = s.behind || len(pages[i]) == recordsMost
		all = append(all, pages[i]...)
		if s.open[id] = next[i]; next[i] == nil {
			delete(s.open, id)
		}
	}
	sort.SliceStable(all, func(i, j int) bool { return newer(all[j].Dynamodb, all[i].Dynamodb) < 0 })
	if len(all) > 0 {
		s.last = aws.ToString(all[0].Dynamodb.SequenceNumber)
	}
	most := rowsMost
	if s.shown == 0 {
		most = rowsFirst
	}
	var rows []node
	left := 0
	for _, r := range all {
		switch one := readRecord(r, t); {
		case !keep.accepts(one):
		case len(rows) == most:
			left++
		default:
			rows = append(rows, one.row(t))
		}
	}
	s.shown += int64(len(rows))
	rows = labelled(recordHeads, rows)
	if left > 0 {
		rows = append(rows, el("tr", el("td", has("colspan", strconv.Itoa(len(recordHeads))), el("small",
			words(counted(left, "earlier record")+" left out: so many came at once. Choose events or a part of the key above.")))))
	}
	return rows, nil
}

// newer compares records by their times, which have whole seconds at some endpoints, and then by
// their sequence numbers, which count within a shard.
func newer(a, b *streamtypes.StreamRecord) int {
	x, y := aws.ToString(a.SequenceNumber), aws.ToString(b.SequenceNumber)
	return cmp.Or(aws.ToTime(a.ApproximateCreationDateTime).Compare(aws.ToTime(b.ApproximateCreationDateTime)), cmp.Compare(len(x), len(y)), cmp.Compare(x, y))
}

// record is a stream record. Its images are read when it is shown: most records of a fast stream
// are not.
type record struct {
	*streamtypes.StreamRecord
	event   string
	expired bool
	item    attr.Item // the key
	key     string    // as text
}

func readRecord(r streamtypes.Record, t *table) record {
	one := record{StreamRecord: r.Dynamodb, event: string(r.EventName), expired: consume.Expired(&r, t.ttl, ""), item: fromStream(r.Dynamodb.Keys)}
	one.key = clip(keyText(one.item, t.keys()), 2*cellMost)
	return one
}

// recordFilter chooses records.
type recordFilter struct {
	event string // "": all; "expired": removals by deadlines
	part  string // of the key, in small letters
}

func (f recordFilter) accepts(r record) bool {
	ofEvent := f.event == "" || f.event == r.event || f.event == "expired" && r.expired
	return ofEvent && strings.Contains(strings.ToLower(r.key), f.part)
}

// row returns the row of a record.
func (r record) row(t *table) node {
	event := node(words(r.event))
	if r.expired {
		event = group{event, el("span", has("class", "expiration"), words(" by its deadline"))}
	}
	return el("tr", optional(r.expired, has("class", "expired")),
		el("td", event),
		el("td", el("a", has("href", t.itemPath(keyJSON(r.item, t.keys()))), words(r.key))),
		el("td", difference(fromStream(r.OldImage), fromStream(r.NewImage))),
		el("td", instant(aws.ToTime(r.ApproximateCreationDateTime))),
		el("td", el("code", words(aws.ToString(r.SequenceNumber)))),
	)
}

// differencesMost is the number of attributes of a record that are shown.
const differencesMost = 12

// difference shows the attributes that a change added, changed or removed.
func difference(old, new attr.Item) node {
	names := map[string]bool{}
	for name := range old {
		names[name] = true
	}
	for name := range new {
		names[name] = true
	}
	var rows []node
	for _, name := range slices.Sorted(maps.Keys(names)) {
		before, after := old[name], new[name]
		if before != nil && after != nil && same(before, after) {
			continue
		}
		if len(rows) == differencesMost {
			rows = append(rows, el("li", el("small", words("and more"))))
			break
		}
		row := []node{el("code", words(clip(name, cellMost))), words(": ")}
		if before != nil {
			row = append(row, el("del", cell(before)))
		}
		if before != nil && after != nil {
			row = append(row, words(" → "))
		}
		if after != nil {
			row = append(row, el("ins", cell(after)))
		}
		rows = append(rows, el("li", row...))
	}
	if len(rows) == 0 {
		return el("small", words("the stream has no images"))
	}
	return el("ul", has("class", "difference"), group(rows))
}

// fromStream returns an image of a record as an item.
func fromStream(image map[string]streamtypes.AttributeValue) attr.Item {
	item, err := attributevalue.FromDynamoDBStreamsMap(image)
	if err != nil {
		return nil // the SDK knows all types that the endpoint may send
	}
	return item
}

// same reports whether two values are equal.
func same(a, b types.AttributeValue) bool {
	return slices.Equal(transfer.AppendItem(nil, attr.Item{"": a}), transfer.AppendItem(nil, attr.Item{"": b}))
}
