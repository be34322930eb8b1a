package index

import (
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly/guard/internal/table"
	"github.com/mayflydb/mayfly/internal/work/attr"
)

// The partition keys of the indexes that Init makes.
const (
	windowKeyDefault = "expirationWindow"
	shardKeyDefault  = "expirationShard"
)

// layout is the form of the partition key of an index of deadlines:
//
//	windows              "<window>"                      docs/spec/patterns.md (a)
//	windows of n shards  "<window>#0" … "<window>#n-1"   (a) with flaw 9 corrected; "<window>" is
//	                                                     queried too, for items from before
//	n shards             "0" … "n-1"                     docs/spec/patterns.md (b)
type layout struct {
	// of the windows, in seconds; 0: there are none, but shards
	Granularity int64 `json:"granularity,omitempty"`
	Shards      int   `json:"shards"`
}

func (l layout) windows() bool { return l.Granularity > 0 }

func (l layout) length() time.Duration { return time.Duration(l.Granularity) * time.Second }

func (l layout) String() string {
	switch {
	case !l.windows():
		return fmt.Sprintf("%d shards", l.Shards)
	case l.Shards > 1:
		return fmt.Sprintf("windows of %v in %d shards", l.length(), l.Shards)
	}
	return fmt.Sprintf("windows of %v", l.length())
}

// shards returns the parts of the index that can be swept independently; "" is the windows without
// a shard.
func (l layout) shards() (all []string) {
	if l.windows() {
		all = append(all, "")
	}
	if !l.windows() || l.Shards > 1 {
		for i := range l.Shards {
			all = append(all, strconv.Itoa(i))
		}
	}
	return all
}

// partitions returns the partition keys of a shard's items with a TTL from low to high, in the
// order of their TTLs.
func (l layout) partitions(shard string, low, high int64) iter.Seq[string] {
	return func(yield func(string) bool) {
		if !l.windows() {
			yield(shard)
			return
		}
		for w := range windowsBetween(low, high, l.length()) {
			if !yield(l.name(w, shard)) {
				return
			}
		}
	}
}

func (l layout) name(w window, shard string) string {
	if shard == "" {
		return w.String()
	}
	return WindowShard(w.String(), shard)
}

// place returns the partition key of an item. The TTL is in whole seconds, rounded up; text differs
// among items.
func (l layout) place(ttl int64, text string) string {
	if !l.windows() {
		return Shard(text, l.Shards)
	}
	if l.Shards > 1 {
		return l.name(windowOf(ttl, l.length()), Shard(text, l.Shards))
	}
	return Window(ttl, l.length())
}

// shardOf returns the shard whose sweep finds an item. ok is false if none does: the item is in
// another window than its TTL's, or in an unknown shard.
func (l layout) shardOf(partition string, ttl int64) (shard string, ok bool) {
	if !l.windows() {
		return partition, l.isShard(partition)
	}
	w, shard, ok := readWindow(partition)
	return shard, ok && w == windowOf(ttl, l.length()) && (shard == "" || l.Shards > 1 && l.isShard(shard))
}

func (l layout) isShard(name string) bool {
	n, err := strconv.Atoi(name)
	return err == nil && n >= 0 && n < l.Shards && strconv.Itoa(n) == name
}

// text returns the layout in the form that Init stores for the sweepers.
func (l layout) text() string {
	b, _ := json.Marshal(l)
	return string(b)
}

// readLayout parses a stored layout. ok is false if it is invalid.
func readLayout(text string) (l layout, ok bool) {
	if json.Unmarshal([]byte(text), &l) != nil || l.Granularity < 0 || l.Granularity > 86_400 || l.Shards < 1 || l.Shards > shardsMost {
		return layout{}, false
	}
	return l, true
}

const shardsMost = 10_000

// guess derives the layout from items of the index and the number of shards in the options. known
// is false if the items do not show it.
func guess(items []map[string]types.AttributeValue, key string, shards int) (l layout, known bool, err *table.Problem) {
	counts, highest, sharded := map[int64]int{}, -1, false
	for _, item := range items {
		name, isText := attr.AsString(item[key])
		if !isText {
			continue
		}
		if w, shard, ok := readWindow(name); ok {
			counts[w.end-w.start]++
			sharded = sharded || shard != ""
			name = shard
		}
		if n, err := strconv.Atoi(name); err == nil && n >= 0 {
			highest = max(highest, n)
		}
	}
	// milliseconds in the published code result in longer windows, which are few
	for length, n := range counts {
		if n > counts[l.Granularity] || n == counts[l.Granularity] && length < l.Granularity {
			l.Granularity = length
		}
	}
	switch odd := stranger(items, key); {
	case odd != "" && len(counts) == 0 && (highest < 0 || shards <= highest):
		return layout{}, false, &table.Problem{
			Code: table.Misconfigured, Message: fmt.Sprintf("the index's partition key %s holds neither windows nor shards, but values such as %s", key, odd),
			Next: "name the index of deadlines (--index), or create one with `mayfly guard init`",
		}
	case len(counts) == 0 && highest < 0:
		return layout{}, false, nil
	case (len(counts) == 0 || sharded) && shards <= highest:
		return layout{}, false, &table.Problem{
			Code: table.Misconfigured, Message: fmt.Sprintf("the index has at least %d shards, but guard is set to sweep %d", highest+1, shards),
			Next: "set --shards to the number that writers use, or run `mayfly guard init` to note it",
		}
	}
	l.Shards = max(shards, 1)
	return l, true, nil
}

// findIndex finds the index of deadlines for the strategy: its sort key is the TTL attribute,
// a number, and its partition key a string.
func findIndex(t *table.Table, name string) (*expirationIndex, *table.Problem) {
	advice := fmt.Sprintf("create one with `mayfly guard init --table %s --attribute %s`", t.Name, t.Attribute)
	var found []*expirationIndex
	for i := range t.Indexes {
		d := &t.Indexes[i]
		if name != "" && aws.ToString(d.IndexName) != name {
			continue
		}
		x, why := indexOf(t, d)
		if why != nil && name != "" {
			return nil, why
		}
		if why == nil {
			found = append(found, x)
		}
	}
	switch {
	case len(found) == 0 && name != "":
		return nil, &table.Problem{Code: table.NoIndex, Message: fmt.Sprintf("table %s has no index %s", t.Name, name), Next: advice}
	case len(found) == 0:
		return nil, &table.Problem{Code: table.NoIndex, Message: fmt.Sprintf("table %s has no index with a string partition key and the number %s as its sort key", t.Name, t.Attribute), Next: advice}
	case len(found) > 1:
		if x := onlyKnown(found); x != nil {
			found = []*expirationIndex{x}
			break
		}
		return nil, &table.Problem{Code: table.Misconfigured, Message: fmt.Sprintf("table %s has several indexes with the sort key %s", t.Name, t.Attribute), Next: "name the index to use (--index)"}
	}
	if !found[0].ready {
		return nil, &table.Problem{Code: table.NoIndex, Message: fmt.Sprintf("the index %s is still being built", found[0].name), Next: "start guard when it is ACTIVE; `mayfly guard init` waits for that"}
	}
	return found[0], nil
}

// knownKeys are the partition keys of the indexes that Init makes, and of the published ones. An
// index of the same shape with another partition key may be the application's, for example one of
// users by the end of their sessions.
var knownKeys = []string{windowKeyDefault, shardKeyDefault, "GSI_PK"}

func (x *expirationIndex) known() bool { return slices.Contains(knownKeys, x.key) }

// onlyKnown returns the only index with a known partition key; nil if there are several, or none.
func onlyKnown(all []*expirationIndex) (only *expirationIndex) {
	for _, x := range all {
		if x.known() && only != nil {
			return nil
		}
		if x.known() {
			only = x
		}
	}
	return only
}

// placed reports whether a value of the index's partition key looks like a window or a shard of
// some layout.
func placed(value types.AttributeValue) bool {
	v, isText := attr.AsString(value)
	if !isText {
		return false
	}
	// including windows that the published code has made of milliseconds
	if start, end, two := strings.Cut(v, "_"); two && len(end) >= windowEndLength {
		_, wrongStart := time.Parse(windowEnd, start)
		_, wrongEnd := time.Parse(windowEnd, end[:windowEndLength])
		return wrongStart == nil && wrongEnd == nil
	}
	n, err := strconv.Atoi(v)
	return err == nil && n >= 0
}

// stranger returns the first value of the index's partition key that is neither a window nor a
// shard, as text; "" if there is none.
func stranger(items []map[string]types.AttributeValue, key string) string {
	for _, item := range items {
		if v, has := item[key]; has && !placed(v) {
			text, err := attributevalue.MarshalMapJSON(map[string]types.AttributeValue{key: v})
			if err != nil {
				return "another value"
			}
			return string(text)
		}
	}
	return ""
}

// expirationIndex is an index of deadlines.
type expirationIndex struct {
	name  string
	key   string // its partition key
	ready bool
}

// indexOf checks the shape of an index; why is the problem with it.
func indexOf(t *table.Table, d *types.GlobalSecondaryIndexDescription) (x *expirationIndex, why *table.Problem) {
	x = &expirationIndex{name: aws.ToString(d.IndexName), ready: isActive(d) || d.IndexStatus == types.IndexStatusUpdating}
	var sort string
	for _, e := range d.KeySchema {
		switch e.KeyType {
		case types.KeyTypeHash:
			x.key = aws.ToString(e.AttributeName)
		case types.KeyTypeRange:
			sort = aws.ToString(e.AttributeName)
		}
	}
	wrong := func(format string, args ...any) *table.Problem {
		return &table.Problem{Code: table.NoIndex, Message: fmt.Sprintf("the index %s of table %s ", x.name, t.Name) + fmt.Sprintf(format, args...),
			Next: fmt.Sprintf("create another with `mayfly guard init --table %s --attribute %s --index NAME`", t.Name, t.Attribute)}
	}
	switch {
	case len(d.KeySchema) != 2 || sort != t.Attribute:
		return nil, wrong("does not have a partition key and the sort key %s", t.Attribute)
	case t.Kinds[x.key] != types.ScalarAttributeTypeS:
		return nil, wrong("has the partition key %s, which is not a string", x.key)
	case t.Kinds[sort] != types.ScalarAttributeTypeN:
		return nil, wrong("has the sort key %s, which is not a number", sort)
	case t.Version != "" && !projects(t, d, t.Version):
		return nil, wrong("does not project the version attribute %s", t.Version)
	}
	return x, nil
}

// isActive reports whether an index can be queried. Without a status it was made with its table:
// ScyllaDB Alternator had no status before it could add an index to a table (scylladb/scylladb#11471).
func isActive(d *types.GlobalSecondaryIndexDescription) bool {
	return d.IndexStatus == types.IndexStatusActive || d.IndexStatus == ""
}

// projects reports whether an index has an attribute.
func projects(t *table.Table, d *types.GlobalSecondaryIndexDescription, attribute string) bool {
	if p := d.Projection; p != nil && (p.ProjectionType == types.ProjectionTypeAll || slices.Contains(p.NonKeyAttributes, attribute)) {
		return true
	}
	return slices.Contains(t.Names(), attribute)
}
