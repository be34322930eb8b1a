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

// tables caches facts about tables.
type tables struct {
	attributes   facts[string] // the TTL attribute; empty: the table has none or does not exist
	descriptions facts[*description]
}

func newTables() *tables {
	elapsed := clock.Stopwatch()
	return &tables{facts[string]{elapsed: elapsed}, facts[*description]{elapsed: elapsed}}
}

// facts caches one fact about each table, for at most knownMax tables.
type facts[T any] struct {
	elapsed clock.Elapsed // by the monotonic clock
	mu      sync.Mutex
	known   map[string]known[T] // guarded by mu
}

// known is a fact and the time of its discovery.
type known[T any] struct {
	fact T
	at   time.Duration
}

const (
	factAge     = time.Minute      // the age at which an attribute and a description are read again
	absenceAge  = 10 * time.Second // the same for a table without TTL
	knownMax    = 10_000
	describeTTL = "DescribeTimeToLive"
	describe    = "DescribeTable"
)

// find returns the fact about a table: the cached one if it is fresh, and otherwise the result of
// read, which it keeps. Concurrent calls may all read. A full cache is emptied first.
func (f *facts[T]) find(name string, fresh func(fact T, age time.Duration) bool, read func() (T, error)) (T, error) {
	now := f.elapsed()
	f.mu.Lock()
	have, ok := f.known[name]
	f.mu.Unlock()
	if ok && fresh(have.fact, now-have.at) {
		return have.fact, nil
	}
	fact, err := read()
	if err != nil {
		return fact, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.known == nil || len(f.known) >= knownMax {
		f.known = map[string]known[T]{}
	}
	f.known[name] = known[T]{fact, now}
	return fact, nil
}

func (f *facts[T]) forget(name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.known, name)
}

// forget drops the facts about a table that may have changed.
func (t *tables) forget(name string) {
	t.attributes.forget(name)
	t.descriptions.forget(name)
}

// attribute returns the TTL attribute of a table, or "" if it has none or does not exist. The error
// is a *refused if the endpoint refuses the call.
func (t *tables) attribute(ctx context.Context, name string, send send) (string, error) {
	return t.attributes.find(name, func(attribute string, age time.Duration) bool {
		return age < absenceAge || attribute != "" && age < factAge
	}, func() (string, error) {
		a, err := send(ctx, describeTTL, object{"TableName": quoted(name)}.bytes())
		if err != nil {
			return "", err
		}
		return readTTL(a, name)
	})
}

// readTTL returns the TTL attribute in the answer of DescribeTimeToLive. It returns "" for a
// missing table, and unless TTL is enabled or being enabled.
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
	return t.descriptions.find(name, func(d *description, age time.Duration) bool {
		return d != nil && age < factAge && (index == "" || d.indexes[index] != nil)
	}, func() (*description, error) {
		a, err := send(ctx, describe, object{"TableName": quoted(name)}.bytes())
		switch {
		case err != nil:
			return nil, err
		case a.code() == dynamo.CodeResourceNotFound:
			return nil, nil
		case !a.ok():
			return nil, advised(a, describe, name, "")
		}
		return readDescription(a.body)
	})
}

type keySchema []struct{ AttributeName string }

func (k keySchema) names() (names []string) {
	for _, e := range k {
		names = append(names, e.AttributeName)
	}
	return names
}

func readDescription(body []byte) (*description, error) {
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
		return nil, &refused{unreadable(describe)}
	}
	d := &description{keys: out.Table.KeySchema.names(), indexes: map[string]*indexDescription{}}
	for _, x := range append(out.Table.LocalSecondaryIndexes, out.Table.GlobalSecondaryIndexes...) {
		d.indexes[x.IndexName] = &indexDescription{x.KeySchema.names(), x.Projection.ProjectionType == "ALL", x.Projection.NonKeyAttributes}
	}
	return d, nil
}

// holds reports whether the index's entries have an attribute.
func (d *description) holds(x *indexDescription, attribute string) bool {
	return x.all || slices.Contains(d.keys, attribute) || slices.Contains(x.keys, attribute) || slices.Contains(x.project, attribute)
}
