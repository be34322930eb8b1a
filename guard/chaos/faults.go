package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mayflydb/mayfly/internal/clock"
)

// fault is a kind of fault: of requests, or of workers.
type fault struct {
	name string
	help string
	rate float64 // of the requests, or of the seconds of each worker
	only string  // the operation whose requests it changes; "": all
	each uint64  // requests in a row that share a decision; 0: one
	do   func(x *exchange, dice *rand.Rand, pass next) (*answer, error)
	hurt func(w *worker, dice *rand.Rand, healed <-chan struct{})
}

// faults are all faults. A request may meet several: the first of the table is the farthest from
// the endpoint.
var faults = []fault{
	{name: "delay", rate: 0.02, do: delay, help: "holds a request up to 1 s, a DeleteItem up to 3 s"},
	{name: "unsent", rate: 0.02, do: dropRequest, help: "cuts the connection before the endpoint sees the request"},
	{name: "lost", rate: 0.02, do: loseAnswer, help: "cuts the connection after the endpoint has answered"},
	{name: "error-before", rate: 0.02, do: failBefore, help: "answers 500 without asking the endpoint"},
	{name: "error-after", rate: 0.02, do: failAfter, help: "answers 500 after the endpoint has executed the request"},
	{name: "throttle", rate: 0.01, do: throttle, help: "answers that the throughput is exceeded"},
	{name: "partial", rate: 0.3, do: splitBatch, only: "BatchWriteItem", help: "leaves about half of a batch unprocessed"},
	{name: "expired", rate: 0.05, do: expireIterator, only: "GetRecords", help: "answers that the shard iterator has expired"},
	{name: "trimmed", rate: 0.02, do: trim, only: "GetRecords", help: "answers that the records were trimmed"},
	{name: "shuffle", rate: 0.4, do: shuffle, only: "GetRecords", help: "changes the order of records, but not of one item's"},
	{name: "repeat", rate: 0.3, do: repeat, only: "GetRecords", help: "answers with the shard's last records again, before the new ones"},
	{name: "date", rate: 0.02, each: 20, do: wrongDate, help: "20 answers in a row have a wrong Date, or none"},
	{name: "pause", rate: 0.03, hurt: (*worker).pauseFor, help: "stops a worker for up to 8 s (SIGSTOP)"},
	{name: "kill", rate: 0.03, hurt: (*worker).killAny, help: "kills a worker (SIGKILL); another starts within 2 s"},
}

// plan decides which faults happen. Its decisions follow from the seed, the strategy and the number
// of the request.
type plan struct {
	seed     uint64
	strategy string
	chosen   []fault
	on       atomic.Bool // faults happen
	begun    atomic.Bool // they have happened
	mu       sync.Mutex
	injected map[string]int // by name; guarded by mu
	events   map[string]int // that faults have caused; guarded by mu
}

func newPlan(seed uint64, strategy string, names []string) *plan {
	p := &plan{seed: seed, strategy: strategy, injected: map[string]int{}, events: map[string]int{}}
	for _, f := range faults {
		if slices.Contains(names, f.name) {
			p.chosen = append(p.chosen, f)
		}
	}
	return p
}

// diceFor returns the random numbers of one decision.
func diceFor(seed uint64, strategy, what string, n uint64) *rand.Rand {
	h := fnv.New64a()
	fmt.Fprint(h, strategy, " ", what)
	return rand.New(rand.NewPCG(seed^h.Sum64(), n))
}

// decide returns the parameters of a fault's n-th chance; nil if it does not happen.
func (p *plan) decide(f fault, n uint64) *rand.Rand {
	d := diceFor(p.seed, p.strategy, f.name, n/max(f.each, 1))
	if !p.on.Load() || d.Float64() >= f.rate {
		return nil
	}
	return d
}

// count counts an injected fault.
func (p *plan) count(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.injected[name]++
}

// note counts an event that is no fault.
func (p *plan) note(event string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.events[event]++
}

// counted returns the injected faults by name, and the other events.
func (p *plan) counted() (injected, events map[string]int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.injected), maps.Clone(p.events)
}

// wrap returns the way of a request to the endpoint, with the faults that it meets.
func (p *plan) wrap(x *exchange, pass next) next {
	for _, f := range slices.Backward(p.chosen) {
		if f.do == nil || f.only != "" && f.only != x.operation {
			continue
		}
		d := p.decide(f, x.number)
		if d == nil {
			continue
		}
		nearer := pass
		pass = func(x *exchange) (*answer, error) {
			p.count(f.name)
			return f.do(x, d, nearer)
		}
	}
	return pass
}

func delay(x *exchange, dice *rand.Rand, pass next) (*answer, error) {
	most := time.Second
	if x.operation == "DeleteItem" {
		most = 3 * time.Second
	}
	clock.Pause(time.Duration(dice.Int64N(int64(most))), nil)
	return pass(x)
}

func dropRequest(*exchange, *rand.Rand, next) (*answer, error) { return nil, errCut }

func loseAnswer(x *exchange, _ *rand.Rand, pass next) (*answer, error) {
	if _, err := pass(x); err != nil {
		return nil, err
	}
	return nil, errCut
}

func failBefore(x *exchange, _ *rand.Rand, _ next) (*answer, error) {
	return refuse(x, http.StatusInternalServerError, "InternalServerError"), nil
}

func failAfter(x *exchange, _ *rand.Rand, pass next) (*answer, error) {
	if _, err := pass(x); err != nil {
		return nil, err
	}
	return refuse(x, http.StatusInternalServerError, "InternalServerError"), nil
}

func throttle(x *exchange, _ *rand.Rand, _ next) (*answer, error) {
	if x.isStream() {
		return refuse(x, http.StatusBadRequest, "LimitExceededException"), nil
	}
	return refuse(x, http.StatusBadRequest, "ProvisionedThroughputExceededException"), nil
}

func expireIterator(x *exchange, _ *rand.Rand, _ next) (*answer, error) {
	return refuse(x, http.StatusBadRequest, "ExpiredIteratorException"), nil
}

func trim(x *exchange, _ *rand.Rand, _ next) (*answer, error) {
	return refuse(x, http.StatusBadRequest, "TrimmedDataAccessException"), nil
}

// refuse returns an error of the API.
func refuse(x *exchange, status int, code string) *answer {
	h := http.Header{"Content-Type": {"application/x-amz-json-1.0"}, "Date": {x.now().Format(http.TimeFormat)}}
	return &answer{status, h, fmt.Appendf(nil, `{"__type":"com.amazonaws.dynamodb.v20120810#%s","message":"injected by chaos"}`, code)}
}

// document is a JSON object whose fields are not decoded.
type document map[string]json.RawMessage

// splitBatch passes on about half of a batch, at least one request, and returns the rest as
// unprocessed.
func splitBatch(x *exchange, dice *rand.Rand, pass next) (*answer, error) {
	var body document
	var requests map[string][]json.RawMessage
	if json.Unmarshal(x.body, &body) != nil || json.Unmarshal(body["RequestItems"], &requests) != nil {
		return pass(x)
	}
	sent, left, none := map[string][]json.RawMessage{}, map[string][]json.RawMessage{}, true
	for _, table := range slices.Sorted(maps.Keys(requests)) {
		for _, r := range requests[table] {
			if none || dice.IntN(2) == 0 {
				sent[table] = append(sent[table], r)
				none = false
			} else {
				left[table] = append(left[table], r)
			}
		}
	}
	body["RequestItems"] = encode(sent)
	part := *x
	part.body = encode(body)
	a, err := pass(&part)
	if err != nil || a.status != http.StatusOK {
		return a, err
	}
	a.edit(func(out document) {
		var before map[string][]json.RawMessage
		_ = json.Unmarshal(out["UnprocessedItems"], &before) // missing: none
		for table, all := range before {
			left[table] = append(left[table], all...)
		}
		out["UnprocessedItems"] = encode(left)
	})
	return a, nil
}

func encode(v any) json.RawMessage {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err) // maps of texts that were JSON before
	}
	return text
}

// edit changes the body of an answer.
func (a *answer) edit(change func(document)) {
	var out document
	if json.Unmarshal(a.body, &out) != nil {
		return
	}
	change(out)
	a.body = encode(out)
	a.header.Del("X-Amz-Crc32")
}

// editRecords changes the records in an answer of GetRecords.
func editRecords(a *answer, change func([]json.RawMessage) []json.RawMessage) {
	if a.status != http.StatusOK {
		return
	}
	a.edit(func(out document) {
		var records []json.RawMessage
		_ = json.Unmarshal(out["Records"], &records)
		if records = change(records); records != nil {
			out["Records"] = encode(records)
		}
	})
}

// shuffle deals the records to queues by their keys, and draws from the queues at random.
func shuffle(x *exchange, dice *rand.Rand, pass next) (*answer, error) {
	a, err := pass(x)
	if err != nil {
		return a, err
	}
	editRecords(a, func(records []json.RawMessage) (mixed []json.RawMessage) {
		queues := map[string][]json.RawMessage{}
		var keys []string // one for each record
		for _, r := range records {
			key := keyOfRecord(r)
			queues[key] = append(queues[key], r)
			keys = append(keys, key)
		}
		dice.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
		for _, key := range keys {
			mixed = append(mixed, queues[key][0])
			queues[key] = queues[key][1:]
		}
		return mixed
	})
	return a, nil
}

// keyOfRecord returns the key of a record's item, as JSON.
func keyOfRecord(record json.RawMessage) string {
	var r struct {
		Dynamodb struct{ Keys json.RawMessage }
	}
	_ = json.Unmarshal(record, &r)
	return string(r.Dynamodb.Keys)
}

// repeat puts the records of the shard's last answer before the new ones, as if the reader had gone
// back to an earlier checkpoint.
func repeat(x *exchange, _ *rand.Rand, pass next) (*answer, error) {
	a, err := pass(x)
	if err != nil {
		return a, err
	}
	editRecords(a, func(records []json.RawMessage) []json.RawMessage {
		return append(slices.Clone(x.before), records...)
	})
	return a, nil
}

// wrongDate changes the Date of an answer: there is none, or it is wrong by minutes, by seconds, or
// by less than the workers allow.
func wrongDate(x *exchange, dice *rand.Rand, pass next) (*answer, error) {
	a, err := pass(x)
	if err != nil {
		return a, err
	}
	sign := time.Duration(1 - 2*dice.IntN(2))
	within := time.Duration(dice.Int64N(int64(x.maxSkew)))
	switch dice.IntN(4) {
	case 0:
		a.header["Date"] = nil // net/http adds none
	case 1:
		a.setDate(x.now().Add(sign * 5 * time.Minute))
	case 2:
		a.setDate(x.now().Add(sign * 10 * x.maxSkew))
	default:
		a.setDate(x.now().Add(sign * within))
	}
	return a, nil
}

func (a *answer) setDate(t time.Time) { a.header.Set("Date", t.UTC().Format(http.TimeFormat)) }

// openShards removes the end of shards from a description of a stream in which every shard has
// one. Dynoxide describes an open shard so, and then guard scans the table instead of following the
// stream. It reports whether it has changed the answer.
func openShards(a *answer) (changed bool) {
	if !bytes.Contains(a.body, []byte("EndingSequenceNumber")) {
		return false
	}
	a.edit(func(out document) {
		var description document
		var shards []document
		if json.Unmarshal(out["StreamDescription"], &description) != nil || json.Unmarshal(description["Shards"], &shards) != nil {
			return
		}
		for _, s := range shards {
			if !strings.Contains(string(s["SequenceNumberRange"]), "EndingSequenceNumber") {
				return
			}
		}
		for _, s := range shards {
			var ends document
			if json.Unmarshal(s["SequenceNumberRange"], &ends) == nil {
				delete(ends, "EndingSequenceNumber")
				s["SequenceNumberRange"] = encode(ends)
			}
		}
		description["Shards"] = encode(shards)
		out["StreamDescription"] = encode(description)
		changed = true
	})
	return changed
}
