package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	signer "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"github.com/mayflydb/mayfly/internal/clock"
)

// exchange is a request of a worker.
type exchange struct {
	number    uint64
	target    string // "DynamoDB_20120810.DeleteItem"
	operation string
	body      []byte
	header    http.Header
	maxSkew   time.Duration     // of the workers
	before    []json.RawMessage // for GetRecords: the shard's last records
	now       func() time.Time
}

func (x *exchange) isStream() bool { return strings.HasPrefix(x.target, "DynamoDBStreams") }

// answer is the answer to an exchange.
type answer struct {
	status int
	header http.Header
	body   []byte
}

// next passes an exchange on towards the endpoint. An error cuts the worker's connection.
type next func(*exchange) (*answer, error)

var errCut = errors.New("the connection was cut")

// proxy is the workers' way to the endpoint.
type proxy struct {
	e       *endpoint
	table   string
	plan    *plan
	ledger  *ledger
	clock   *clock.Clock
	maxSkew time.Duration
	direct  http.Handler // the endpoint, if it is in this process; nil: it is called over HTTP

	url    string
	ctx    context.Context // of the requests that pass directly
	cancel context.CancelFunc
	server *http.Server
	client *http.Client
	signer *signer.Signer
	served chan struct{}
	number atomic.Uint64
	flight clock.Activity // requests
	mu     sync.Mutex
	shards map[string]string            // shard by iterator; guarded by mu
	last   map[string][]json.RawMessage // last records by shard; guarded by mu
}

// start begins to listen.
func (p *proxy) start() error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	p.url = "http://" + l.Addr().String()
	p.client, p.signer = pooled(), signer.NewSigner()
	p.shards, p.last = map[string]string{}, map[string][]json.RawMessage{}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	p.server, p.served = &http.Server{Handler: p}, make(chan struct{})
	go func() {
		defer close(p.served)
		_ = p.server.Serve(l) // it returns when the server is closed
	}()
	return nil
}

// stop cuts all connections and waits until the last request has been answered.
func (p *proxy) stop(ctx context.Context) error {
	_ = p.server.Close() // of the listener only
	<-p.served
	p.cancel() // ends waits for stream records
	return p.flight.Idle(ctx)
}

// ServeHTTP implements http.Handler. A request continues without its client, as at any endpoint.
func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	defer p.flight.Begin()()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	x := &exchange{number: p.number.Add(1), target: r.Header.Get("X-Amz-Target"), body: body, header: r.Header, maxSkew: p.maxSkew, now: p.clock.Now}
	_, x.operation, _ = strings.Cut(x.target, ".")
	a, err := p.plan.wrap(x, p.watch)(x)
	if err != nil {
		panic(http.ErrAbortHandler) // cuts the connection
	}
	for name, values := range a.header {
		w.Header()[name] = values
	}
	w.WriteHeader(a.status)
	_, _ = w.Write(a.body) // the worker may be gone
}

// watch passes a request to the endpoint, and reports its effect to the ledger.
func (p *proxy) watch(x *exchange) (*answer, error) {
	switch x.operation {
	case "DeleteItem", "PutItem", "UpdateItem", "BatchWriteItem", "TransactWriteItems":
		return p.watchWrite(x)
	case "GetShardIterator", "GetRecords":
		if len(p.plan.chosen) > 0 {
			return p.watchShard(x)
		}
	case "DescribeStream":
		a, err := p.forward(x, x.body)
		if err == nil && openShards(a) {
			p.plan.note("corrected stream descriptions")
		}
		return a, err
	}
	return p.forward(x, x.body)
}

// request is the part of a writing request that the witness looks at.
type request struct {
	TableName          string
	RequestItems       map[string]json.RawMessage
	ClientRequestToken string
	TransactItems      []struct {
		Delete *struct {
			TableName string
			Key       json.RawMessage
		}
		Put, Update *struct{ TableName string }
	}
}

// watchWrite passes on a write. It asks for the old image of a removal.
func (p *proxy) watchWrite(x *exchange) (*answer, error) {
	var in request
	if err := json.Unmarshal(x.body, &in); err != nil {
		return p.forward(x, x.body)
	}
	switch {
	case x.operation == "DeleteItem" && in.TableName == p.table:
		return p.watchDelete(x)
	case in.TableName == p.table || in.RequestItems[p.table] != nil:
		p.ledger.unexpected(x.operation)
	case x.operation == "TransactWriteItems":
		return p.watchTransaction(x, in)
	}
	return p.forward(x, x.body)
}

func (p *proxy) watchDelete(x *exchange) (*answer, error) {
	var body document
	if err := json.Unmarshal(x.body, &body); err != nil {
		return nil, err
	}
	body["ReturnValues"] = encode("ALL_OLD")
	a, err := p.forward(x, encode(body))
	if err != nil {
		return a, err
	}
	at := p.clock.Millis()
	var out struct{ Attributes wireItem }
	switch {
	case a.status == http.StatusOK:
		if json.Unmarshal(a.body, &out) == nil && len(out.Attributes) > 0 {
			p.ledger.removed(out.Attributes.image(), at)
		}
	case bytes.Contains(a.body, []byte("ConditionalCheckFailed")):
		p.ledger.refused()
	}
	return a, nil
}

func (p *proxy) watchTransaction(x *exchange, in request) (*answer, error) {
	var keys []string
	for _, t := range in.TransactItems {
		switch {
		case t.Delete != nil && t.Delete.TableName == p.table:
			var key wireItem
			_ = json.Unmarshal(t.Delete.Key, &key)
			keys = append(keys, key.image().key)
		case t.Put != nil && t.Put.TableName == p.table, t.Update != nil && t.Update.TableName == p.table:
			p.ledger.unexpected(x.operation)
		}
	}
	sent := p.clock.Millis()
	a, err := p.forward(x, x.body)
	if err != nil {
		return a, err
	}
	at := p.clock.Millis()
	if a.status == http.StatusOK {
		for _, key := range keys {
			p.ledger.removedUnseen(key, in.ClientRequestToken, span{sent, at})
		}
		return a, nil
	}
	var cancelled struct{ CancellationReasons []struct{ Code string } }
	_ = json.Unmarshal(a.body, &cancelled) // another error has none
	for i, t := range in.TransactItems {
		if t.Delete != nil && t.Delete.TableName == p.table && i < len(cancelled.CancellationReasons) && cancelled.CancellationReasons[i].Code == "ConditionalCheckFailed" {
			p.ledger.refused()
		}
	}
	return a, nil
}

// wireItem is an item in the form of the API.
type wireItem map[string]struct{ S, N string }

func (w wireItem) image() image {
	i := image{key: w[keyAttribute].S}
	_, _ = fmt.Sscan(w[writeAttribute].N, &i.write)
	return i
}

// watchShard remembers the shard of each iterator, and the shard's last records for the fault
// repeat.
func (p *proxy) watchShard(x *exchange) (*answer, error) {
	var in struct{ ShardId, ShardIterator string }
	_ = json.Unmarshal(x.body, &in)
	a, err := p.forward(x, x.body)
	if err != nil || a.status != http.StatusOK {
		return a, err
	}
	var out struct {
		ShardIterator, NextShardIterator string
		Records                          []json.RawMessage
	}
	_ = json.Unmarshal(a.body, &out)
	p.mu.Lock()
	defer p.mu.Unlock()
	if x.operation == "GetShardIterator" {
		p.shards[out.ShardIterator] = in.ShardId
		return a, nil
	}
	shard := p.shards[in.ShardIterator]
	delete(p.shards, in.ShardIterator)
	p.shards[out.NextShardIterator] = shard
	x.before = p.last[shard]
	if len(out.Records) > 0 {
		p.last[shard] = out.Records
	}
	return a, nil
}

// forwardLimit is how long the endpoint may take for an answer.
const forwardLimit = time.Minute

// forward sends a request to the endpoint, signed with this program's credentials.
func (p *proxy) forward(x *exchange, body []byte) (*answer, error) {
	if p.direct != nil {
		return p.pass(x, body)
	}
	ctx, cancel := context.WithTimeout(context.Background(), forwardLimit)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, p.e.url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("X-Amz-Target", x.target)
	r.Header.Set("Content-Type", x.header.Get("Content-Type"))
	r.Header.Set("Accept-Encoding", "identity")
	if err := p.sign(ctx, r, body); err != nil {
		return nil, err
	}
	response, err := p.client.Do(r)
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(response.Body)
	if err := errors.Join(err, response.Body.Close()); err != nil {
		return nil, err
	}
	h := response.Header.Clone()
	for _, name := range []string{"Content-Length", "Connection", "Keep-Alive", "Transfer-Encoding"} {
		h.Del(name)
	}
	return &answer{response.StatusCode, h, text}, nil
}

// pass passes a request to the endpoint in this process, which checks no signature.
func (p *proxy) pass(x *exchange, body []byte) (*answer, error) {
	r, err := http.NewRequestWithContext(p.ctx, http.MethodPost, "/", bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header = x.header.Clone()
	w := &written{answer: answer{status: http.StatusOK, header: http.Header{}}}
	p.direct.ServeHTTP(w, r)
	return &w.answer, nil
}

// written is the answer of a handler in this process. It implements http.ResponseWriter.
type written struct{ answer }

func (w *written) Header() http.Header { return w.header }

func (w *written) WriteHeader(status int) { w.status = status }

func (w *written) Write(p []byte) (int, error) {
	w.body = append(w.body, p...)
	return len(p), nil
}

func (p *proxy) sign(ctx context.Context, r *http.Request, body []byte) error {
	c, err := p.e.credentials.Retrieve(ctx)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(body)
	return p.signer.SignHTTP(ctx, c, r, hex.EncodeToString(sum[:]), "dynamodb", p.e.region, p.clock.Now())
}
