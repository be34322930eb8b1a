package guard

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"regexp"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"

	"github.com/mayflydb/mayfly"
)

// A stream that cannot be followed becomes a problem, and the table is scanned, until it can be
// followed again: it seems to have no open shard, or the endpoint refuses a call. One failed attempt
// is no problem.
func TestStreamStalls(t *testing.T) {
	t.Parallel()
	closed := func(r *request) (*http.Response, error) {
		answer, err := r.pass()
		if err != nil || r.operation != "DescribeStream" {
			return answer, err
		}
		body, err := io.ReadAll(answer.Body)
		body = bytes.ReplaceAll(body, []byte(`"SequenceNumberRange":{`), []byte(`"SequenceNumberRange":{"EndingSequenceNumber":"1",`))
		answer.Body, answer.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		answer.Header.Del("X-Amz-Crc32")
		return answer, err
	}
	refused := func(operation string) func(r *request) (*http.Response, error) {
		return func(r *request) (*http.Response, error) {
			if r.operation == operation {
				return r.refuse(http.StatusBadRequest, "ValidationException")
			}
			return r.pass()
		}
	}
	for name, fault := range map[string]func(r *request) (*http.Response, error){
		"no open shard": closed, "DescribeStream": refused("DescribeStream"), "GetRecords": refused("GetRecords"),
	} {
		for _, alone := range []bool{true, false} {
			if alone && name == "DescribeStream" { // it lists the shards only at the end of one
				continue
			}
			t.Run(fmt.Sprint(name, " alone ", alone), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w := &world{t: t}
					db, err := mayfly.Open("", mayfly.Options{Expiry: mayfly.ExpiryAWS, ExpiryDelay: "fixed:8784h"})
					must(t, err)
					w.DB, w.db, w.streams = db, db.DynamoDB(), db.Streams()
					w.createTable(worldTable)
					l := newLine(nil)
					var lines bytes.Buffer
					var mu sync.Mutex
					o := l.lay(Options{DB: w.db, Streams: w.streams, Table: worldTable, Attribute: "ttl", Strategy: Stream, Alone: alone, LocalClock: true, AcceptOverdue: -1})
					o.Logger = slog.New(slog.NewTextHandler(lockedWriter{&mu, &lines}, nil))
					if name == "no open shard" { // as dynoxide from the first record on
						l.set(fault)
					}
					r := w.run(mustNew(t, o), nil)
					time.Sleep(time.Minute)
					if name != "no open shard" {
						l.set(fault)
						w.rollStream()
						time.Sleep(40 * time.Second)
					}
					if open := r.Problems(); len(open) > 0 {
						t.Errorf("too soon: %v", open[0])
					}
					at := func(seconds int64) string { return fmt.Sprint(time.Now().Unix() + seconds) }
					w.put("unread", at(600))
					time.Sleep(5 * time.Minute)
					if open := r.Problems(); len(open) != 1 || open[0].Code != NoStream {
						t.Errorf("the problems are %v", open)
					}
					time.Sleep(310 * time.Second)
					if w.has("unread") {
						t.Error("an item that the stream does not show is there")
					}
					l.set(nil)
					if name != "no open shard" { // else the shards are noted as finished
						for i := 0; i < 120 && len(r.Problems()) > 0; i++ { // an idle shard may answer in an hour
							time.Sleep(time.Minute)
						}
						if open := r.Problems(); len(open) > 0 {
							t.Errorf("it has not passed: %v", open[0])
						}
						before := sentOf([]*line{l})["Scan "+worldTable]
						w.put("read", at(10))
						time.Sleep(2 * time.Minute)
						if w.has("read") || sentOf([]*line{l})["Scan "+worldTable] != before {
							t.Error("the table is still scanned, or its stream not followed")
						}
					}
					must(t, r.stop())
					must(t, db.Close())
					if !bytes.Contains(lines.Bytes(), []byte("level=WARN msg=\"the stream of table items cannot be followed")) {
						t.Error("there is no warning")
					}
				})
			})
		}
	}
}

// rollStream ends the waits of GetRecords at the database.
func (w *world) rollStream() {
	w.put("~roll", fmt.Sprint(time.Now().Unix()+100_000))
}

func mustNew(t *testing.T, o Options) *Guard {
	t.Helper()
	g, err := New(o)
	must(t, err)
	return g
}

// lockedWriter writes from many goroutines into a buffer.
type lockedWriter struct {
	mu *sync.Mutex
	to *bytes.Buffer
}

func (w lockedWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.to.Write(p)
}

// ending matches the end of a shard in a description of a stream.
var ending = regexp.MustCompile(`,?"EndingSequenceNumber":"[^"]*"`)

// openShards is a proxy that leaves out the end of shards, which Dynoxide sets on open ones.
func openShards(c *dynamodbstreams.Client) *dynamodbstreams.Client {
	return dynamodbstreams.New(c.Options(), func(o *dynamodbstreams.Options) {
		to := o.HTTPClient
		o.HTTPClient = through(func(r *http.Request) (*http.Response, error) {
			answer, err := to.Do(r)
			if err != nil {
				return nil, err
			}
			body, err := io.ReadAll(answer.Body)
			_ = answer.Body.Close()
			body = ending.ReplaceAll(body, nil)
			answer.Body, answer.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
			answer.Header.Del("X-Amz-Crc32")
			return answer, err
		})
	})
}

// Dynoxide gives its open shard an end, so guard cannot follow the stream. It notices, and items
// that are put later go by scans. Behind a proxy that leaves the end out they go by the stream, also
// if the table was made again meanwhile, and guard had seen the end.
func TestDynoxideLaterItems(t *testing.T) {
	t.Parallel() // it waits for deadlines most of the time
	db, streams := startDynoxide(t)
	create := func() {
		_, err := db.CreateTable(t.Context(), &dynamodb.CreateTableInput{
			TableName: aws.String(worldTable), BillingMode: types.BillingModePayPerRequest,
			AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("pk"), AttributeType: "S"}, {AttributeName: aws.String("sk"), AttributeType: "N"}},
			KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("pk"), KeyType: "HASH"}, {AttributeName: aws.String("sk"), KeyType: "RANGE"}},
			StreamSpecification:  &types.StreamSpecification{StreamEnabled: aws.Bool(true), StreamViewType: types.StreamViewTypeNewAndOldImages},
		})
		must(t, err)
	}
	create()
	e, w := &elsewhere{t, db}, &world{t: t}
	e.put(0, time.Now().Unix()+100_000, nil)
	start := func(streams *dynamodbstreams.Client) *guarding {
		g := mustNew(t, Options{DB: db, Streams: streams, Table: worldTable, Attribute: "ttl", Strategy: Stream, Alone: true, AcceptOverdue: -1})
		g.checkEach = 2 * time.Second
		return w.run(g, nil)
	}
	r := start(streams)
	r.await("the stream is found to have no open shard", func() bool { return r.troubled(NoStream) })
	for i := range 20 {
		e.put(1+i, time.Now().Unix()+2, nil)
	}
	r.awaitCount(Removed, 20)
	must(t, r.stop())

	_, err := db.DeleteTable(context.Background(), &dynamodb.DeleteTableInput{TableName: aws.String(worldTable)})
	must(t, err)
	create()
	e.put(0, time.Now().Unix()+100_000, nil)
	r = start(openShards(streams))
	r.await("the first scan has ended", func() bool { return r.Stats().Read > 0 })
	for i := range 20 {
		e.put(1+i, time.Now().Unix()+2, nil)
	}
	r.awaitCount(Removed, 20)
	if r.troubled(NoStream) {
		t.Error("the stream is not followed")
	}
	must(t, r.stop())
}
