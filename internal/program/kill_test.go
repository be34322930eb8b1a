package program

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// TestKillNine kills a real server under load repeatedly. After each restart it checks that every
// acknowledged change is there once and in order: items, their deadlines, their index entries and
// their stream records. A change in progress at the kill may have happened or not, but not by half.
//
// Writers put, update and delete their own items, some of which live for a second or an hour, one
// at a time or two in a transaction. ledger.go explains the comparison.
func TestKillNine(t *testing.T) {
	t.Parallel()
	rounds, load := 3, time.Second
	if testing.Short() {
		rounds, load = 1, 500*time.Millisecond
	}
	dir := t.TempDir()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	s := serveDir(t, dir)
	api, _ := s.clients()
	stream, err := createEvents(t.Context(), api)
	if err != nil {
		t.Fatal(err)
	}
	writers := make([]*writer, 16)
	for i := range writers {
		writers[i] = newWriter(i, rand.New(rand.NewPCG(seed, uint64(i))))
	}
	for round := range rounds {
		acknowledged := killUnderLoad(t, s, writers, load)
		s = serveDir(t, dir)
		audit(t, s, stream, writers)
		t.Logf("round %d: %d writes were acknowledged before the kill", round, acknowledged)
		if t.Failed() {
			return
		}
	}
	awaitExpiries(t, s, stream, writers)
}

// killUnderLoad lets the writers write for a while and then kills the server.
func killUnderLoad(t *testing.T, s *served, writers []*writer, load time.Duration) (acknowledged int) {
	t.Helper()
	api, _ := s.clients()
	var running sync.WaitGroup
	counts := make([]int, len(writers))
	for i, w := range writers {
		running.Go(func() { counts[i] = w.write(t.Context(), api) })
	}
	time.Sleep(load)
	if code, err := s.stop(syscall.SIGKILL); err != nil || code != "killed" {
		t.Fatalf("the server ended by itself: %s, %v\n%s", code, err, s.logged())
	}
	running.Wait()
	for _, n := range counts {
		acknowledged += n
	}
	if acknowledged == 0 {
		t.Fatal("nothing was written before the kill")
	}
	return acknowledged
}

const keysPerWriter = 40

// writer writes the items of its own keys, and keeps a ledger of each.
type writer struct {
	owner   string
	random  *rand.Rand
	ledgers []*ledger
	version int
}

func newWriter(number int, random *rand.Rand) *writer {
	w := &writer{owner: fmt.Sprintf("writer-%02d", number), random: random}
	for i := range keysPerWriter {
		w.ledgers = append(w.ledgers, &ledger{pk: fmt.Sprintf("%s-key-%02d", w.owner, i), owner: w.owner})
	}
	return w
}

// write writes until a call fails, which happens when the server is killed. It returns the number
// of acknowledged calls.
func (w *writer) write(ctx context.Context, api *dynamodb.Client) int {
	for n := 0; ; n++ {
		a := w.ledgers[w.random.IntN(keysPerWriter)]
		var err error
		switch w.random.IntN(8) {
		case 0:
			err = w.delete(ctx, api, a)
		case 1, 2:
			b := w.ledgers[w.random.IntN(keysPerWriter)]
			if a != b {
				err = w.putBoth(ctx, api, a, b)
			}
		case 3:
			err = w.update(ctx, api, a)
		default:
			err = w.put(ctx, api, a)
		}
		if err != nil {
			return n
		}
	}
}

// next is a new version of an item: it lives for ever, for an hour, or for up to two seconds.
func (w *writer) next() change {
	w.version++
	c := change{version: w.version}
	switch w.random.IntN(3) {
	case 0:
		c.deadline = time.Now().Add(time.Hour).Truncate(time.Millisecond)
	case 1:
		c.deadline = time.Now().Add(time.Duration(w.random.IntN(2000)) * time.Millisecond).Truncate(time.Millisecond)
	}
	return c
}

func (w *writer) put(ctx context.Context, api *dynamodb.Client, l *ledger) error {
	c := w.next()
	return acknowledge(c, func() error {
		_, err := api.PutItem(ctx, &dynamodb.PutItemInput{TableName: aws.String("events"), Item: l.item(c)}, once)
		return err
	}, l)
}

func (w *writer) update(ctx context.Context, api *dynamodb.Client, l *ledger) error {
	c := w.next()
	return acknowledge(c, func() error {
		in := &dynamodb.UpdateItemInput{
			TableName: aws.String("events"), Key: l.key(), UpdateExpression: aws.String("SET #o = :o, v = :v REMOVE #t"),
			ExpressionAttributeNames:  map[string]string{"#o": "owner", "#t": "ttl"},
			ExpressionAttributeValues: map[string]types.AttributeValue{":o": l.item(c)["owner"], ":v": l.item(c)["v"]},
		}
		if !c.deadline.IsZero() {
			in.UpdateExpression = aws.String("SET #o = :o, v = :v, #t = :t")
			in.ExpressionAttributeValues[":t"] = l.item(c)["ttl"]
		}
		_, err := api.UpdateItem(ctx, in, once)
		return err
	}, l)
}

func (w *writer) delete(ctx context.Context, api *dynamodb.Client, l *ledger) error {
	return acknowledge(change{deleted: true}, func() error {
		_, err := api.DeleteItem(ctx, &dynamodb.DeleteItemInput{TableName: aws.String("events"), Key: l.key()}, once)
		return err
	}, l)
}

// putBoth writes the same version to two items in one transaction.
func (w *writer) putBoth(ctx context.Context, api *dynamodb.Client, a, b *ledger) error {
	c := w.next()
	c.together = true
	return acknowledge(c, func() error {
		put := func(l *ledger) types.TransactWriteItem {
			return types.TransactWriteItem{Put: &types.Put{TableName: aws.String("events"), Item: l.item(c)}}
		}
		_, err := api.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{put(a), put(b)}}, once)
		return err
	}, a, b)
}

// acknowledge notes a change as under way, makes it, and notes that it was acknowledged.
func acknowledge(c change, call func() error, ledgers ...*ledger) error {
	for _, l := range ledgers {
		l.underWay = &c
	}
	if err := call(); err != nil {
		return err
	}
	c.answered = time.Now()
	for _, l := range ledgers {
		l.acknowledged = append(l.acknowledged, c)
		l.underWay = nil
	}
	return nil
}

// item is the item after a change.
func (l *ledger) item(c change) map[string]types.AttributeValue {
	item := l.key()
	item["owner"] = &types.AttributeValueMemberS{Value: l.owner}
	item["v"] = &types.AttributeValueMemberN{Value: strconv.Itoa(c.version)}
	if !c.deadline.IsZero() {
		item["ttl"] = &types.AttributeValueMemberN{Value: ttlOf(c.deadline)}
	}
	return item
}

func (l *ledger) key() map[string]types.AttributeValue {
	return map[string]types.AttributeValue{"pk": &types.AttributeValueMemberS{Value: l.pk}}
}

// ttlOf is an instant as TTL takes it, with its milliseconds.
func ttlOf(t time.Time) string {
	return fmt.Sprintf("%d.%03d", t.UnixMilli()/1000, t.UnixMilli()%1000)
}
