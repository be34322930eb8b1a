package program

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"

	"github.com/mayflydb/mayfly/internal/testkit"
)

var kills = flag.Int("kills", 0, "rounds of TestKillNine; 0: 3, or 50 if tests run in full")

// TestKillNine kills a real server repeatedly, at random instants: under load, while it recovers,
// while it starts after a clean stop, and while it stops. After each round it checks that every
// acknowledged change is there once and in order: items, their deadlines, their index entries and
// their stream records. A change in progress at the kill may have happened or not, but not by half.
//
// Writers put, update and delete their own items, some of which live for a second or an hour, one
// at a time or two in a transaction. ledger_test.go explains the comparison. A directory serves for ten
// to thirty rounds: the audit reads every record since its creation.
func TestKillNine(t *testing.T) {
	t.Parallel()
	rounds := *kills
	switch {
	case rounds > 0:
	case testing.Short():
		rounds = 1
	default:
		rounds = testkit.Size(3, 50)
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	k := &killer{t: t, random: rand.New(rand.NewPCG(seed, 0)), started: 300 * time.Millisecond, stopped: 300 * time.Millisecond}
	for done, directories := 0, 0; done < rounds; directories++ {
		k.open(seed + uint64(directories))
		for n := 10 + k.random.IntN(20); n > 0 && done < rounds; n-- {
			k.round(done)
			if t.Failed() {
				return
			}
			done++
		}
		k.finish()
	}
	t.Logf("%d rounds: %+v", rounds, k.counts)
	if c := k.counts; c.acknowledged < rounds || rounds >= 200 && (c.recovering < rounds/50 || c.starting < rounds/50 || c.stopping < rounds/50 || c.happened == 0) {
		t.Error("too mild: the kills missed what they aim at")
	}
}

// killer kills servers on one directory after the other.
type killer struct {
	t                *testing.T
	random           *rand.Rand
	dir, stream      string
	args             []string
	s                *served // nil: killed
	writers          []*writer
	started, stopped time.Duration // how long the last whole start and stop took
	counts           killCounts
}

// killCounts counts the kills by the state of the server, and the changes around them.
type killCounts struct {
	underLoad, recovering, starting, stopping int
	missed                                    int // kills of a server that had started or stopped already
	acknowledged, underWay, happened          int // changes: answered, unanswered at a kill, and those of the latter that had happened
}

// open starts a server on a new directory.
func (k *killer) open(seed uint64) {
	k.t.Helper()
	k.dir = filepath.Join(k.t.TempDir(), "data")
	// Small shards are closed and continued in mid-load.
	k.args = [][]string{nil, {"--shard-bytes", "64KB"}, {"--shards", "1"}}[k.random.IntN(3)]
	k.start()
	api, _ := k.s.clients()
	var err error
	if k.stream, err = createEvents(k.t.Context(), api); err != nil {
		k.t.Fatal(err)
	}
	k.writers = nil
	for i := range 16 {
		k.writers = append(k.writers, newWriter(i, rand.New(rand.NewPCG(seed, uint64(i)))))
	}
}

// start starts a server, without an end of its own.
func (k *killer) start() {
	k.t.Helper()
	began := time.Now()
	k.s = serveDir(k.t, k.dir, k.args...)
	k.started = time.Since(began)
}

// round kills the server once or more, starts it again and audits it.
func (k *killer) round(number int) {
	k.t.Helper()
	before := k.counts
	load := time.Duration(k.random.IntN(400)) * time.Millisecond
	switch k.random.IntN(5) {
	case 0:
		k.underLoad(load, k.killStopping)
	case 1:
		k.underLoad(load, k.stop)
		k.killStarting(&k.counts.starting)
	case 2:
		k.underLoad(load, k.kill)
		for range 1 + k.random.IntN(3) {
			k.killStarting(&k.counts.recovering)
		}
	default:
		k.underLoad(load, k.kill)
	}
	k.start()
	for _, w := range k.writers {
		k.counts.underWay += w.underWay()
	}
	k.counts.happened += audit(k.t, k.s, k.stream, k.writers)
	if k.t.Failed() {
		k.t.Logf("round %d, with %q: from %+v to %+v", number, k.args, before, k.counts)
	}
}

// underLoad lets the writers write for a while and then ends the server.
func (k *killer) underLoad(load time.Duration, end func()) {
	k.t.Helper()
	api, _ := k.s.clients()
	var running sync.WaitGroup
	answered := func() (n int) {
		for _, w := range k.writers {
			n += int(w.answered.Load())
		}
		return n
	}
	before := answered()
	for _, w := range k.writers {
		running.Go(func() { w.write(k.t.Context(), api) })
	}
	for limit := time.Now().Add(time.Minute); answered() == before && time.Now().Before(limit); {
		time.Sleep(time.Millisecond)
	}
	time.Sleep(load)
	end()
	running.Wait()
	k.counts.acknowledged += answered() - before
	refused(k.t, k.s, k.writers)
}

// refused fails the test if the server has answered a writer with an error, instead of not at all.
func refused(t *testing.T, s *served, writers []*writer) {
	t.Helper()
	for _, w := range writers {
		if w.refused() {
			t.Errorf("%s: %v\n%.4000s", w.owner, w.err, s.logged())
		}
	}
}

func (w *writer) refused() bool {
	var answer smithy.APIError
	return errors.As(w.err, &answer)
}

func (k *killer) kill() {
	k.t.Helper()
	if code, err := k.s.stop(syscall.SIGKILL); err != nil || code != "killed" {
		k.t.Errorf("the server ended by itself: %s, %v\n%s", code, err, k.s.logged())
	}
	k.counts.underLoad++
}

func (k *killer) stop() {
	k.t.Helper()
	began := time.Now()
	if code, err := k.s.stop(syscall.SIGTERM); err != nil || code != "0" {
		k.t.Errorf("the server stopped with %s, %v\n%s", code, err, k.s.logged())
	}
	k.stopped = time.Since(began)
}

// killStopping asks the server to stop, and kills it within about the time that a stop takes.
func (k *killer) killStopping() {
	k.t.Helper()
	if err := k.s.command.Process.Signal(syscall.SIGTERM); err != nil {
		k.t.Error(err)
	}
	time.Sleep(k.within(k.stopped))
	switch code, err := k.s.stop(syscall.SIGKILL); {
	case err == nil && code == "killed":
		k.counts.stopping++
	case err == nil && code == "0":
		k.counts.missed++
	default:
		k.t.Errorf("the server stopped with %s, %v\n%s", code, err, k.s.logged())
	}
}

// killStarting starts a server and kills it within about the time that a start takes.
func (k *killer) killStarting(count *int) {
	k.t.Helper()
	command := exec.Command("mayfly", append([]string{"serve", "--port", "0", "--data", k.dir}, k.args...)...)
	var out, log buffer
	command.Stdout, command.Stderr = &out, &log
	if err := command.Start(); err != nil {
		k.t.Fatal(err)
	}
	time.Sleep(k.within(k.started))
	_ = command.Process.Kill()
	_ = command.Wait()
	switch status := command.ProcessState.Sys().(syscall.WaitStatus); {
	case !status.Signaled():
		k.t.Errorf("the server ended by itself: %s\n%s%s", command.ProcessState, out.String(), log.String())
	case strings.Contains(out.String(), "listening on "):
		k.counts.missed++
	default:
		*count++
	}
}

// within returns a random part of a time that varies, seldom more than all of it.
func (k *killer) within(d time.Duration) time.Duration {
	return time.Duration(k.random.Int64N(int64(d)*11/10 + 1))
}

// finish waits until everything due has expired, audits once more, and checks the files of the
// stopped server.
func (k *killer) finish() {
	k.t.Helper()
	awaitExpiries(k.t, k.s, k.stream, k.writers)
	k.stop()
	if out, err := exec.Command("mayfly", "check", k.dir).CombinedOutput(); err != nil {
		k.t.Errorf("mayfly check: %v\n%s", err, out)
	}
	if err := os.RemoveAll(k.dir); err != nil {
		k.t.Error(err)
	}
}

const keysPerWriter = 40

// writer writes the items of its own keys, and keeps a ledger of each.
type writer struct {
	owner   string
	random  *rand.Rand
	ledgers []*ledger
	version int

	// for a soak
	wait   time.Duration // between calls
	stop   chan struct{} // closed when it should end; nil: never
	offset *atomic.Int64 // of the server's clock, in nanoseconds; nil: none
	full   int           // writes that were refused since the disk was full

	err      error        // that ended it
	answered atomic.Int64 // calls that were acknowledged
}

func newWriter(number int, random *rand.Rand) *writer {
	w := &writer{owner: fmt.Sprintf("writer-%02d", number), random: random}
	for i := range keysPerWriter {
		w.ledgers = append(w.ledgers, &ledger{pk: fmt.Sprintf("%s-key-%02d", w.owner, i), owner: w.owner})
	}
	return w
}

// write writes until a call fails, which happens when the server is killed.
func (w *writer) write(ctx context.Context, api *dynamodb.Client) {
	for {
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
		var full *types.LimitExceededException
		switch {
		case errors.As(err, &full):
			w.full++
		case err != nil:
			w.err = err
			return
		}
		if w.stop == nil {
			continue
		}
		select {
		case <-w.stop:
			return
		case <-time.After(w.wait):
		}
	}
}

// now is the time by the server's clock, roughly.
func (w *writer) now() time.Time {
	if w.offset == nil {
		return time.Now()
	}
	return time.Now().Add(time.Duration(w.offset.Load()))
}

// underWay returns the number of the writer's changes without an answer.
func (w *writer) underWay() (n int) {
	for _, l := range w.ledgers {
		if l.underWay != nil {
			n++
		}
	}
	return n
}

// next is a new version of an item: it lives for ever, for an hour, or for up to two seconds.
func (w *writer) next() change {
	w.version++
	c := change{version: w.version}
	switch w.random.IntN(3) {
	case 0:
		c.deadline = w.now().Add(time.Hour).Truncate(time.Millisecond)
	case 1:
		c.deadline = w.now().Add(time.Duration(w.random.IntN(2000)) * time.Millisecond).Truncate(time.Millisecond)
	}
	return c
}

func (w *writer) put(ctx context.Context, api *dynamodb.Client, l *ledger) error {
	c := w.next()
	return w.acknowledge(c, func() error {
		_, err := api.PutItem(ctx, &dynamodb.PutItemInput{TableName: aws.String("events"), Item: l.item(c)}, once)
		return err
	}, l)
}

func (w *writer) update(ctx context.Context, api *dynamodb.Client, l *ledger) error {
	c := w.next()
	return w.acknowledge(c, func() error {
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
	return w.acknowledge(change{deleted: true}, func() error {
		_, err := api.DeleteItem(ctx, &dynamodb.DeleteItemInput{TableName: aws.String("events"), Key: l.key()}, once)
		return err
	}, l)
}

// putBoth writes the same version to two items in one transaction.
func (w *writer) putBoth(ctx context.Context, api *dynamodb.Client, a, b *ledger) error {
	c := w.next()
	c.together = true
	return w.acknowledge(c, func() error {
		put := func(l *ledger) types.TransactWriteItem {
			return types.TransactWriteItem{Put: &types.Put{TableName: aws.String("events"), Item: l.item(c)}}
		}
		_, err := api.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{put(a), put(b)}}, once)
		return err
	}, a, b)
}

// acknowledge notes a change as under way, makes it, and notes that it was acknowledged.
func (w *writer) acknowledge(c change, call func() error, ledgers ...*ledger) error {
	for _, l := range ledgers {
		l.underWay = &c
	}
	if err := call(); err != nil {
		if full := (*types.LimitExceededException)(nil); errors.As(err, &full) { // it has not happened
			for _, l := range ledgers {
				l.underWay = nil
			}
		}
		return err
	}
	c.answered = time.Now()
	w.answered.Add(1)
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

// An answer is not the end of a server.
func TestWritersNoticeRefusals(t *testing.T) {
	for _, c := range []struct {
		answer  http.HandlerFunc
		refused bool
	}{
		{func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusInternalServerError)
			fmt.Fprint(w, `{"__type":"com.amazonaws.dynamodb.v20120810#InternalServerError","message":"no"}`)
		}, true},
		{func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, false},
	} {
		server := httptest.NewServer(c.answer)
		defer server.Close()
		api, _ := (&served{url: server.URL}).clients()
		w := newWriter(0, rand.New(rand.NewPCG(1, 1)))
		if w.write(t.Context(), api); w.refused() != c.refused || w.err == nil || w.answered.Load() != 0 {
			t.Errorf("refused %t, want %t: %v, %d acknowledged", w.refused(), c.refused, w.err, w.answered.Load())
		}
	}
}
