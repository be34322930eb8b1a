package strict

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"time"

	"github.com/mayflydb/mayfly/internal/clock"
	"github.com/mayflydb/mayfly/internal/store/dynamo"
)

// tables caches facts about tables, at most 10,000 at a time.
type tables struct {
	elapsed clock.Elapsed // since the start, by the monotonic clock

	mu struct {
		sync.Mutex
		attributes   map[string]known[string]
		descriptions map[string]known[*description]
	}
}

// known is a fact and the time of its discovery.
type known[T any] struct {
	fact T
	at   time.Duration
}

const (
	factAge     = time.Minute      // the age at which an attribute and a description are read again
	absenceAge  = 10 * time.Second // the same for a table without TTL
	describeTTL = "DescribeTimeToLive"
	describe    = "DescribeTable"
)

func newTables() *tables {
	t := &tables{elapsed: clock.Stopwatch()}
	t.mu.attributes = map[string]known[string]{}
	t.mu.descriptions = map[string]known[*description]{}
	return t
}

const knownMax = 10_000

// keep adds a fact. If there are too many, it drops the others.
func keep[T any](facts map[string]known[T], name string, k known[T]) {
	if len(facts) >= knownMax {
		clear(facts)
	}
	facts[name] = k
}

// forget drops the facts about a table that may have changed.
func (t *tables) forget(name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.mu.attributes, name)
	delete(t.mu.descriptions, name)
}

// attribute returns the TTL attribute of a table, or "" if it has none or does not exist. The error
// is a *refused if the endpoint refuses the call.
func (t *tables) attribute(ctx context.Context, name string, send send) (string, error) {
	now := t.elapsed()
	t.mu.Lock()
	have, ok := t.mu.attributes[name]
	t.mu.Unlock()
	if ok && (now-have.at < absenceAge || have.fact != "" && now-have.at < factAge) {
		return have.fact, nil
	}
	a, err := send(ctx, describeTTL, object{"TableName": quoted(name)}.bytes())
	if err != nil {
		return "", err
	}
	attribute, err := readTTL(a, name)
	if err != nil {
		return "", err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	keep(t.mu.attributes, name, known[string]{attribute, now})
	return attribute, nil
}

func readTTL(a answer, name string) (string, error) {
	if a.code() == dynamo.CodeResourceNotFound {
		return "", nil
	}
	if !a.ok() {
		return "", advised(a, describeTTL, name, "or name the table's TTL attribute in the rules (--table "+name+"=attribute)")
	}
	var out struct {
		TimeToLiveDescription struct{ AttributeName, TimeToLiveStatus string }
	}
	if json.Unmarshal(a.body, &out) != nil {
		return "", &refused{unreadable(describeTTL)}
	}
	d := out.TimeToLiveDescription
	if d.TimeToLiveStatus != "ENABLED" && d.TimeToLiveStatus != "ENABLING" {
		return "", nil
	}
	return d.AttributeName, nil
}

// description is the part of a table's description that matters here.
type description struct {
	keys    []string
	indexes map[string]*indexDescription
}

type indexDescription struct {
	keys    []string
	all     bool     // it projects all attributes
	project []string // or only these, in addition to its keys and the table's
}

// describe returns a table's description, or nil if there is no such table. It reads a cached
// description again if that lacks index.
func (t *tables) describe(ctx context.Context, name, index string, send send) (*description, error) {
	now := t.elapsed()
	t.mu.Lock()
	have, ok := t.mu.descriptions[name]
	t.mu.Unlock()
	if ok && now-have.at < factAge && (index == "" || have.fact.indexes[index] != nil) {
		return have.fact, nil
	}
	a, err := send(ctx, describe, object{"TableName": quoted(name)}.bytes())
	switch {
	case err != nil:
		return nil, err
	case a.code() == dynamo.CodeResourceNotFound:
		return nil, nil
	case !a.ok():
		return nil, advised(a, describe, name, "")
	}
	d, ok := readDescription(a.body)
	if !ok {
		return nil, &refused{unreadable(describe)}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	keep(t.mu.descriptions, name, known[*description]{d, now})
	return d, nil
}

type keySchema []struct{ AttributeName string }

func (k keySchema) names() (names []string) {
	for _, e := range k {
		names = append(names, e.AttributeName)
	}
	return names
}

func readDescription(body []byte) (*description, bool) {
	type index struct {
		IndexName  string
		KeySchema  keySchema
		Projection struct {
			ProjectionType   string
			NonKeyAttributes []string
		}
	}
	var out struct {
		Table struct {
			KeySchema                                     keySchema
			LocalSecondaryIndexes, GlobalSecondaryIndexes []index
		}
	}
	if json.Unmarshal(body, &out) != nil || len(out.Table.KeySchema) == 0 {
		return nil, false
	}
	d := &description{keys: out.Table.KeySchema.names(), indexes: map[string]*indexDescription{}}
	for _, x := range append(out.Table.LocalSecondaryIndexes, out.Table.GlobalSecondaryIndexes...) {
		d.indexes[x.IndexName] = &indexDescription{x.KeySchema.names(), x.Projection.ProjectionType == "ALL", x.Projection.NonKeyAttributes}
	}
	return d, true
}

// holds reports whether the index's entries have an attribute.
func (d *description) holds(x *indexDescription, attribute string) bool {
	return x.all || slices.Contains(d.keys, attribute) || slices.Contains(x.keys, attribute) || slices.Contains(x.project, attribute)
}

// refused is an error answer to one of the rewriter's own calls.
type refused struct{ answer answer }

func (r *refused) Error() string { return "strict: " + string(r.answer.body) }

// advised returns the endpoint's error for a call of the rewriter, with the call's purpose.
func advised(a answer, operation, table, or string) error {
	o, ok := readObject(a.body)
	if !ok || !o.has("__type") {
		return &refused{a}
	}
	why := "strict reads of table " + table + " need " + operation
	if or != "" {
		why += ", " + or
	}
	return &refused{a.with(object{"__type": o["__type"], "message": quoted(why + ". The endpoint says: " + o.text("message") + o.text("Message"))}.bytes())}
}
