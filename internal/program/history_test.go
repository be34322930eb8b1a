package program

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"

	"github.com/mayflydb/mayfly/internal/testkit"
)

var historyOperations = flag.Int("operations", 0, "operations of TestHistories; 0: 4,000, or 20,000 if tests run in full")

var historyOnly = flag.String("only", "", "clients of TestHistories: registers, or lists, which are those of transactions; empty: both")

// TestHistories records the answers of a real server while it is killed and stopped, and
// checks that single items are linearizable and transactions strictly serializable, with the expiry
// of items as an operation. An operation without an answer may have happened or not.
//
// The clients of single items get, query, put, update and delete, with conditions and without. The
// clients of transactions read and append to lists. A part of the history, with a few kills, is
// checked by itself and forgotten, so that a long run takes little memory.
func TestHistories(t *testing.T) {
	t.Parallel()
	operations := *historyOperations
	switch {
	case operations > 0:
	case testing.Short():
		operations = 1000
	default:
		operations = testkit.Size(4000, 20_000)
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	h := &historian{t: t, random: rand.New(rand.NewPCG(seed, 0)), seed: seed, dir: filepath.Join(t.TempDir(), "data"), origin: time.Now()}
	h.s = serveDir(t, h.dir)
	h.createTable(registers)
	for part := 0; int(h.total.Load()) < operations || h.counts.Kills < 2; part++ {
		h.part(part)
		if t.Failed() {
			return
		}
		if part%20 == 19 {
			t.Logf("after %s: %d operations, %+v", time.Since(h.origin).Round(time.Second), h.total.Load(), h.counts)
		}
	}
	t.Logf("%d operations, %+v", h.total.Load(), h.counts)
	if c := h.counts; c.Gone < operations/200 || c.Committed < operations/50 || c.Expiries < operations/400 {
		t.Error("too mild: the history has few expiries or transactions")
	}
}

// historian records and checks histories.
type historian struct {
	t       *testing.T
	random  *rand.Rand
	seed    uint64
	dir     string
	s       *served
	origin  time.Time
	total   atomic.Int64 // operations
	values  atomic.Int64
	counts  historyCounts
	clients int
}

// historyCounts counts the events of histories.
type historyCounts struct {
	Kills, Stops int
	Single       int // operations on single items
	Gone         int // of these, those that found no item where one had been put and none deleted since
	Transactions int
	Committed    int // of these, those that appended
	Refused      int
	Unanswered   int // writes of both kinds
	Expiries     int // of lists
	Longest      int // the most operations on one item
}

func (h *historian) createTable(name string) (stream string) {
	h.t.Helper()
	api, _ := h.s.clients()
	out, err := api.CreateTable(h.t.Context(), &dynamodb.CreateTableInput{
		TableName: &name, BillingMode: types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("pk"), AttributeType: types.ScalarAttributeTypeS}},
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("pk"), KeyType: types.KeyTypeHash}},
		StreamSpecification:  &types.StreamSpecification{StreamEnabled: aws.Bool(true), StreamViewType: types.StreamViewTypeNewAndOldImages},
	})
	if err != nil {
		h.t.Fatal(err)
	}
	if _, err := api.UpdateTimeToLive(h.t.Context(), &dynamodb.UpdateTimeToLiveInput{
		TableName: &name, TimeToLiveSpecification: &types.TimeToLiveSpecification{Enabled: aws.Bool(true), AttributeName: aws.String("ttl")},
	}); err != nil {
		h.t.Fatal(err)
	}
	return aws.ToString(out.TableDescription.LatestStreamArn)
}

func (h *historian) client(part int) *historyClient {
	h.clients++
	return &historyClient{
		number: h.clients, part: part, random: rand.New(rand.NewPCG(h.seed, uint64(part)<<32|uint64(h.clients))), origin: h.origin, seen: map[string]int{},
		total: func() int { return int(h.total.Add(1)) }, next: func() int { return int(h.values.Add(1)) },
	}
}

// part records a part of the history over two or three ends of the server, and checks it.
func (h *historian) part(number int) {
	h.t.Helper()
	lists := fmt.Sprintf("lists-%d", number)
	stream := h.createTable(lists)
	var registers []*registerClient
	var transactions []*listClient
	h.clients = 0
	for range 6 {
		registers = append(registers, &registerClient{historyClient: h.client(number)})
		transactions = append(transactions, &listClient{historyClient: h.client(number), table: lists})
	}
	first := int(h.total.Load()) / 150 // the first key
	for range 2 + h.random.IntN(2) {
		h.untilEnd(registers, transactions)
		if h.t.Failed() {
			return
		}
	}
	// One more client reads all.
	api, streams := h.s.clients()
	last := &listClient{historyClient: h.client(number), table: lists}
	lastSingle := &registerClient{historyClient: h.client(number)}
	registers = append(registers, lastSingle)
	for key := first; key <= int(h.total.Load())/150+10; key++ {
		x := transaction{client: last.number, call: time.Now()}
		var err error
		if x.reads, err = getLists(h.t.Context(), api, lists, []string{fmt.Sprintf("l%d", key)}); err != nil {
			h.t.Fatal(err)
		}
		x.id, x.ret = last.next(), time.Now()
		last.done = append(last.done, x)
		if err := lastSingle.record(h.t.Context(), api, registerOp{kind: "get", key: registerKey(number, key), expect: anyValue}); err != nil {
			h.t.Fatal(err)
		}
	}
	chains := listChains(h.t, streams, stream)
	var single []porcupine.Operation
	for _, c := range registers {
		single = append(single, c.ops...)
	}
	all := last.done
	for _, c := range transactions {
		all = append(all, c.done...)
	}
	for _, wrong := range append(checkRegisters(single), checkLists(all, chains)...) {
		h.t.Errorf("part %d: %s", number, wrong)
	}
	h.count(single, all, chains)
	if _, err := api.DeleteTable(h.t.Context(), &dynamodb.DeleteTableInput{TableName: &lists}); err != nil {
		h.t.Error(err)
	}
}

// untilEnd has the clients work until the server is killed or stopped, and starts it again.
func (h *historian) untilEnd(registers []*registerClient, transactions []*listClient) {
	h.t.Helper()
	api, _ := h.s.clients()
	began := time.Now()
	var running sync.WaitGroup
	var ending atomic.Bool
	work := func(number int, step func(context.Context, *dynamodb.Client) error) {
		running.Go(func() {
			for {
				err := step(h.t.Context(), api)
				if err == nil {
					continue
				}
				var answered smithy.APIError
				if errors.As(err, &answered) || !ending.Load() {
					h.t.Errorf("client %d: %v", number, err)
				}
				return
			}
		})
	}
	if *historyOnly == "lists" {
		registers = nil
	}
	if *historyOnly == "registers" {
		transactions = nil
	}
	for _, c := range registers {
		work(c.number, c.step)
	}
	for _, c := range transactions {
		work(c.number, c.step)
	}
	time.Sleep(time.Duration(200+h.random.IntN(800)) * time.Millisecond)
	signal, code := syscall.SIGKILL, "killed"
	if h.random.IntN(4) == 0 {
		signal, code = syscall.SIGTERM, "0"
		h.counts.Stops++
	} else {
		h.counts.Kills++
	}
	ending.Store(true)
	if got, err := h.s.stop(signal); err != nil || got != code {
		h.t.Errorf("the server ended with %s, %v\n%s", got, err, h.s.logged())
	}
	dead := time.Now()
	running.Wait()
	for _, c := range registers {
		c.died(began, dead)
	}
	for _, c := range transactions {
		c.died(began, dead)
	}
	h.s = serveDir(h.t, h.dir)
}

func (h *historian) count(single []porcupine.Operation, all []transaction, chains map[string][]listChange) {
	n := &h.counts
	n.Single += len(single)
	byKey := map[string][]porcupine.Operation{}
	for _, op := range single {
		in, out := op.Input.(registerOp), op.Output.(registerAnswer)
		byKey[in.key] = append(byKey[in.key], op)
		if out.unknown {
			n.Unanswered++
		}
	}
	for _, ops := range byKey {
		n.Longest = max(n.Longest, len(ops))
		n.Gone += countGone(ops)
	}
	n.Transactions += len(all)
	for _, x := range all {
		switch {
		case x.outcome == aborted:
			n.Refused++
		case x.outcome == unanswered:
			n.Unanswered++
		case len(x.appends) > 0:
			n.Committed++
		}
	}
	for _, chain := range chains {
		for _, c := range chain {
			if c.by == 0 {
				n.Expiries++
			}
		}
	}
}

// countGone counts the operations on an item that found that it had expired: a put had returned before,
// and no deletion can have happened between the two.
func countGone(ops []porcupine.Operation) (n int) {
	deletedBetween := func(put, op porcupine.Operation) bool {
		return slices.ContainsFunc(ops, func(d porcupine.Operation) bool {
			out := d.Output.(registerAnswer)
			return d.Input.(registerOp).kind == "delete" && (out.seen != 0 || out.unknown) && d.Return >= put.Call && d.Call <= op.Return
		})
	}
	for _, op := range ops {
		if out := op.Output.(registerAnswer); out.unknown || out.seen != 0 {
			continue
		}
		if slices.ContainsFunc(ops, func(put porcupine.Operation) bool {
			return put.Input.(registerOp).put != 0 && put.Output.(registerAnswer).done && put.Return < op.Call && !deletedBetween(put, op)
		}) {
			n++
		}
	}
	return n
}
