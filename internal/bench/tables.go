package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"
)

const indexName = "by-group"

// updatedMost limits the table of updates: some implementations take milliseconds per item of a
// table with a stream.
const updatedMost = 10_000

// table is a table of an endpoint.
type table struct {
	design               // as far as the endpoint has it, with the whole name
	items  uint64        // items 0 to items-1 exist: reads and updates choose among them
	fresh  atomic.Uint64 // the last key used by a write
}

// design is the schema and the use of a kind of tables.
type design struct {
	name                 string
	sorted, indexed, ttl bool
	stream               bool // of both images
	stored               bool // filled before use
}

var (
	tableItems      = &design{name: "items", ttl: true, stored: true}                      // read
	tableUpdated    = &design{name: "updated", ttl: true, stream: true, stored: true}      // updated, at most updatedMost items
	tableSeries     = &design{name: "series", sorted: true, ttl: true, stored: true}       // groupItems items per partition key
	tableIndexed    = &design{name: "indexed", indexed: true, ttl: true, stored: true}     // groupItems items per key of its global index
	tablePut        = &design{name: "put", ttl: true, stream: true}                        // written; initially empty
	tablePutIndexed = &design{name: "put-indexed", indexed: true, ttl: true, stream: true} // the same with a global index
	tablePutNoTTL   = &design{name: "put-no-ttl", stream: true}                            // the same without TTL
	tablePutPlain   = &design{name: "put-plain"}                                           // the same without TTL and stream
	// like put, for writes of several items: put's own stays as small as those compared with it
	tablePutMany    = &design{name: "put-many", ttl: true, stream: true}
	tablePending    = &design{name: "pending", ttl: true, stored: true}                  // has items with deadlines after the run
	tableSpread     = &design{name: "spread", ttl: true, stream: true}                   // expires evenly
	tableBurst      = &design{name: "burst", ttl: true, stream: true}                    // expires at one instant
	tableBurstPlain = &design{name: "burst-plain", ttl: true}                            // the same without a stream, so that no old image is needed
	tableBeside     = &design{name: "beside", ttl: true, stream: true}                   // expires evenly while others burst
	tableForeground = &design{name: "foreground", ttl: true, stream: true, stored: true} // read and written while others expire
)

// createTable creates a table, remembers it in tables, and waits until it is active. At an endpoint
// without streams or TTL the table has none, and the endpoint gets a note.
func (e *endpoint) createTable(ctx context.Context, prefix string, kind *design) (*table, error) {
	t := &table{design: *kind}
	t.name = prefix + kind.name
	_, err := e.call(ctx, apiPrefix+"CreateTable", t.createBody())
	if refused := new(refusal); t.stream && errors.As(err, &refused) {
		t.stream = false
		e.note("its tables have no stream: %s", refused.code)
		_, err = e.call(ctx, apiPrefix+"CreateTable", t.createBody())
	}
	if err != nil {
		return nil, err
	}
	if err := e.awaitActive(ctx, t.name); err != nil {
		return nil, err
	}
	if t.ttl {
		_, err := e.call(ctx, apiPrefix+"UpdateTimeToLive",
			`{"TableName":"`+t.name+`","TimeToLiveSpecification":{"AttributeName":"expires_at","Enabled":true}}`)
		if refused := new(refusal); errors.As(err, &refused) {
			e.note("its tables have no TTL: %s", refused.code)
		} else if err != nil {
			return nil, err
		}
		t.ttl = err == nil
	}
	e.tables[kind] = t
	return t, nil
}

func (d *design) createBody() string {
	attributes, key := `{"AttributeName":"pk","AttributeType":"S"}`, `{"AttributeName":"pk","KeyType":"HASH"}`
	if d.sorted {
		attributes += `,{"AttributeName":"sk","AttributeType":"N"}`
		key += `,{"AttributeName":"sk","KeyType":"RANGE"}`
	}
	rest := ""
	if d.indexed {
		attributes += `,{"AttributeName":"grp","AttributeType":"S"}`
		rest += `,"GlobalSecondaryIndexes":[{"IndexName":"` + indexName +
			`","KeySchema":[{"AttributeName":"grp","KeyType":"HASH"}],"Projection":{"ProjectionType":"ALL"}}]`
	}
	if d.stream {
		rest += `,"StreamSpecification":{"StreamEnabled":true,"StreamViewType":"NEW_AND_OLD_IMAGES"}`
	}
	return `{"TableName":"` + d.name + `","BillingMode":"PAY_PER_REQUEST","AttributeDefinitions":[` + attributes +
		`],"KeySchema":[` + key + `]` + rest + `}`
}

const (
	activeLimit = 30 * time.Second
	activePoll  = 20 * time.Millisecond
)

func (e *endpoint) awaitActive(ctx context.Context, name string) error {
	return Poll(ctx, activePoll, activeLimit, fmt.Sprintf("table %s of %s is not active", name, e.name), func() (bool, error) {
		body, err := e.call(ctx, apiPrefix+"DescribeTable", `{"TableName":"`+name+`"}`)
		return !bytes.Contains(body, []byte("CREATING")) && !bytes.Contains(body, []byte("UPDATING")), err
	})
}

// dropTables removes the run's tables from an endpoint that is not the run's own.
func (e *endpoint) dropTables(ctx context.Context) error {
	var errs []error
	for kind := range e.tables {
		errs = append(errs, e.dropTable(ctx, kind))
	}
	return errors.Join(errs...)
}

func (e *endpoint) dropTable(ctx context.Context, kind *design) error {
	name := e.tables[kind].name
	delete(e.tables, kind)
	_, err := e.call(ctx, apiPrefix+"DeleteTable", `{"TableName":"`+name+`"}`)
	return err
}
