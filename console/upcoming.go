package console

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"sort"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly/internal/work/attr"
	"github.com/mayflydb/mayfly/internal/work/transfer"
)

// upcoming are the deadlines of a table, or of all, in a range of time.
type upcoming struct {
	table    string // "": all tables
	from, to time.Time
	counts   []float64 // of each step; estimates if only a part of the table was read
	until    time.Time // the counts are complete before it; without steps, due is
	first    time.Time // of the range; zero: none
	last     time.Time // of the table; zero: none
	due      []dueItem // the first of the range
	found    []dueItem // all that a scan found in the range
	withheld int       // tables whose keys are missing in due: the visitor's key may not read them
	read     *part     // of a scan; nil: the endpoint counted
	overdue  float64   // of a scan: expired and still there
}

// dueItem is the key of an item, in DynamoDB JSON, with its deadline.
type dueItem struct {
	table string
	key   string
	at    time.Time
}

// upcoming returns the deadlines of a table. mayfly counts them in the order of time; at other
// endpoints a Scan of a part of the table stands for the whole.
func (v *visit) upcoming(ctx context.Context, t *table, from, to time.Time, steps, keys int) (*upcoming, error) {
	if !from.Before(to) {
		to = from.Add(time.Millisecond)
	}
	if v.clock(ctx).ours {
		return v.countedDeadlines(ctx, t.name(), from, to, steps, keys)
	}
	return v.scannedDeadlines(ctx, t, from, to, steps, keys)
}

// countedDeadlines asks mayfly. An empty table means all.
func (v *visit) countedDeadlines(ctx context.Context, table string, from, to time.Time, steps, keys int) (*upcoming, error) {
	q := url.Values{"table": {table}, "from_ms": {millis(from)}, "to_ms": {millis(to)}, "steps": {strconv.Itoa(steps)}, "keys": {strconv.Itoa(keys)}}
	text, err := v.ask(ctx, http.MethodGet, "/_mayfly/deadlines?"+q.Encode(), nil)
	if err != nil {
		return nil, err
	}
	var said struct {
		Counts []float64 `json:"counts"`
		Until  int64     `json:"counted_until_ms"`
		First  *int64    `json:"first_ms"`
		Last   *int64    `json:"last_ms"`
		Keys   []struct {
			Table string          `json:"table"`
			Key   json.RawMessage `json:"key"`
			At    int64           `json:"at_ms"`
		} `json:"keys"`
		Withheld int `json:"keys_withheld"`
	}
	if err := json.Unmarshal(text, &said); err != nil {
		return nil, err
	}
	u := &upcoming{table: table, from: from, to: to, counts: said.Counts, until: time.UnixMilli(said.Until), withheld: said.Withheld}
	if said.First != nil {
		u.first = time.UnixMilli(*said.First)
	}
	if said.Last != nil {
		u.last = time.UnixMilli(*said.Last)
	}
	for _, k := range said.Keys {
		u.due = append(u.due, dueItem{k.Table, string(k.Key), time.UnixMilli(k.At)})
	}
	return u, nil
}

// scannedDeadlines reads a part of the table.
func (v *visit) scannedDeadlines(ctx context.Context, t *table, from, to time.Time, steps, keys int) (*upcoming, error) {
	u := &upcoming{table: t.name(), from: from, to: to, counts: make([]float64, steps), until: to}
	now := v.clock(ctx).now
	names := map[string]string{"#d": t.ttl}
	projection := "#d"
	for i, name := range t.keys() {
		place := "#k" + strconv.Itoa(i)
		names[place] = name
		projection += ", " + place
	}
	in := &dynamodb.ScanInput{TableName: aws.String(t.name()), ProjectionExpression: &projection, ExpressionAttributeNames: names}
	read, err := readPart(ctx, v.DynamoDB(), in, pageLimits, func(items []attr.Item) {
		for _, item := range items {
			u.add(t, item, now)
		}
	})
	if err != nil {
		return nil, err
	}
	u.read = &read
	sort.Slice(u.due, func(i, j int) bool { return u.due[i].at.Before(u.due[j].at) })
	u.found = u.due
	u.due = u.due[:min(len(u.due), keys)]
	if items := aws.ToInt64(t.ItemCount); !read.whole && items > read.items && read.items > 0 {
		scale := float64(items) / float64(read.items)
		for i := range u.counts {
			u.counts[i] *= scale
		}
		u.overdue *= scale
	}
	return u, nil
}

// after returns the first items of a scan from an instant on, without another scan.
func (u *upcoming) after(at time.Time, keys int) *upcoming {
	i := sort.Search(len(u.found), func(i int) bool { return !u.found[i].at.Before(at) })
	return &upcoming{due: u.found[i:min(len(u.found), i+keys)]}
}

// add counts an item of a scan.
func (u *upcoming) add(t *table, item attr.Item, now time.Time) {
	n, ok := item[t.ttl].(*types.AttributeValueMemberN)
	if !ok {
		return
	}
	at, why := deadlineOf(n.Value, now)
	if why != "" {
		return
	}
	if !at.After(now) {
		u.overdue++
	}
	if at.After(u.last) {
		u.last = at
	}
	if at.Before(u.from) || !at.Before(u.to) {
		return
	}
	if u.first.IsZero() || at.Before(u.first) {
		u.first = at
	}
	step := int(float64(at.Sub(u.from)) / float64(u.to.Sub(u.from)) * float64(len(u.counts)))
	u.counts[min(step, len(u.counts)-1)]++
	u.due = append(u.due, dueItem{t.name(), keyJSON(item, t.keys()), at})
}

// total returns the number of deadlines of the range.
func (u *upcoming) total() (n float64) {
	for _, c := range u.counts {
		n += c
	}
	return n
}

// item returns the key as an item.
func (d dueItem) item() attr.Item {
	key, err := transfer.ReadKey([]byte(d.key))
	if err != nil {
		return nil
	}
	return key
}

// unlisted says which deadlines are missing in due, and why; nil: none.
func (u *upcoming) unlisted() node {
	var parts group
	if u.withheld > 0 {
		where, whose := u.table, "its"
		if where == "" {
			where = counted(u.withheld, "table")
		}
		if u.withheld > 1 {
			whose = "their"
		}
		parts = append(parts, words("Your key does not allow dynamodb:Scan on "+where+", so "+whose+" items are not listed. "))
	}
	if len(u.counts) == 0 && u.until.Before(u.to) {
		parts = append(parts, words("From "), instant(u.until), words(" on, items may be missing: a changed TTL is being applied to many items. "))
	}
	return optional(len(parts) > 0, el("p", has("class", "missing"), parts))
}
