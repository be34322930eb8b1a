package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"
)

// tableKind is a kind of table.
type tableKind string

const (
	tableItems      tableKind = "items"       // read
	tableUpdated    tableKind = "updated"     // updated, at most updatedMost items
	tableSeries     tableKind = "series"      // groupItems items per partition key
	tableIndexed    tableKind = "indexed"     // groupItems items per key of its global index
	tablePut        tableKind = "put"         // written; initially empty
	tablePutIndexed tableKind = "put-indexed" // the same with a global index
	tablePutNoTTL   tableKind = "put-no-ttl"  // the same without TTL
	tablePutPlain   tableKind = "put-plain"   // the same without TTL and stream
	// like put, for writes of several items: put's own stays as small as those compared with it
	tablePutMany tableKind = "put-many"
	tablePending tableKind = "pending" // has items with deadlines after the run
	tableSpread  tableKind = "spread"  // expires evenly
	tableBurst   tableKind = "burst"   // expires at one instant; both images in its stream
	// the same without a stream, so that no old image is needed
	tableBurstPlain tableKind = "burst-plain"
	tableBeside     tableKind = "beside"     // expires evenly while others burst
	tableForeground tableKind = "foreground" // read and written while others expire
)

const indexName = "by-group"

// updatedMost limits the table of updates: some implementations take milliseconds per item of a
// table with a stream.
const updatedMost = 10_000

// table is a table of an endpoint.
type table struct {
	name   string
	ttl    bool          // it has TTL
	stored uint64        // items 0 to stored-1 exist: reads and updates choose among them
	fresh  atomic.Uint64 // the last key used by a write
}

// design is the schema and the use of a table.
type design struct {
	sorted, indexed, ttl bool
	stream               bool // of both images
	stored               bool // filled before use
}

var designs = map[tableKind]design{
	tableItems:      {ttl: true, stored: true},
	tableUpdated:    {ttl: true, stream: true, stored: true},
	tableSeries:     {sorted: true, ttl: true, stored: true},
	tableIndexed:    {indexed: true, ttl: true, stored: true},
	tablePut:        {ttl: true, stream: true},
	tablePutIndexed: {indexed: true, ttl: true, stream: true},
	tablePutNoTTL:   {stream: true},
	tablePutPlain:   {},
	tablePutMany:    {ttl: true, stream: true},
	tablePending:    {ttl: true, stored: true},
	tableSpread:     {ttl: true, stream: true},
	tableBurst:      {ttl: true, stream: true},
	tableBurstPlain: {ttl: true},
	tableBeside:     {ttl: true, stream: true},
	tableForeground: {ttl: true, stream: true, stored: true},
}

// createTable creates a table, remembers it in tables, and waits until it is active. At an endpoint
// without streams or TTL the table has none, and the endpoint gets a note.
func (e *endpoint) createTable(ctx context.Context, prefix string, kind tableKind) (*table, error) {
	d := designs[kind]
	t := &table{name: prefix + string(kind)}
	body := createTableBody(t.name, d)
	_, err := e.call(ctx, apiPrefix+"CreateTable", body)
	if refused := new(refusal); d.stream && errors.As(err, &refused) {
		d.stream = false
		e.note("its tables have no stream: %s", refused.code)
		_, err = e.call(ctx, apiPrefix+"CreateTable", createTableBody(t.name, d))
	}
	if err != nil {
		return nil, err
	}
	if err := e.awaitActive(ctx, t.name); err != nil {
		return nil, err
	}
	if d.ttl {
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

func createTableBody(name string, d design) string {
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
	return `{"TableName":"` + name + `","BillingMode":"PAY_PER_REQUEST","AttributeDefinitions":[` + attributes +
		`],"KeySchema":[` + key + `]` + rest + `}`
}

const (
	activeLimit = 30 * time.Second
	activePoll  = 20 * time.Millisecond
)

func (e *endpoint) awaitActive(ctx context.Context, name string) error {
	return poll(ctx, activePoll, activeLimit, fmt.Sprintf("table %s of %s is not active", name, e.name), func() (bool, error) {
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

func (e *endpoint) dropTable(ctx context.Context, kind tableKind) error {
	name := e.tables[kind].name
	delete(e.tables, kind)
	_, err := e.call(ctx, apiPrefix+"DeleteTable", `{"TableName":"`+name+`"}`)
	return err
}
