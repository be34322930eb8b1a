package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly/guard"
	"github.com/mayflydb/mayfly/internal/clock"
)

// load writes the items of one strategy's table, directly at the endpoint. Each item has a life of
// its own: one goroutine makes all its writes, one after the other.
type load struct {
	db       *dynamodb.Client
	table    string
	strategy guard.Strategy
	seed     uint64
	rate     float64
	faultsAt int64 // from which instant on the run has faults
	ledger   *ledger
	clock    *clock.Clock
	number   atomic.Int64 // of the last write
}

// livesMost bounds the number of lives at a time: per new item a second.
const livesMost = 60

// run starts lives until ctx is done, and waits for all of them.
func (l *load) run(ctx context.Context) {
	var all sync.WaitGroup
	places := make(chan struct{}, int(livesMost*l.rate)+1)
	for n := uint64(1); ctx.Err() == nil; n++ {
		places <- struct{}{}
		all.Go(func() {
			l.live(ctx, n)
			<-places
		})
		clock.Pause(time.Duration(float64(time.Second)/l.rate), ctx.Done())
	}
	all.Wait()
}

// live lives the n-th life. Seed and number determine it, but for its instants.
func (l *load) live(ctx context.Context, n uint64) {
	one := &life{load: l, ctx: ctx, key: fmt.Sprint("item-", n), dice: diceFor(l.seed, string(l.strategy), "load", n)}
	sum, draw := 0, one.dice.IntN(lifeShares)
	for _, k := range lives {
		if sum += k.share; draw < sum {
			k.live(one)
			return
		}
	}
}

// lives are the kinds of lives, with their shares of a hundred.
var lives = []struct {
	share int
	live  func(*life)
}{
	{46, (*life).expire},
	{18, (*life).beRenewed},
	{8, (*life).bePutAgain},
	{6, (*life).beFreed},
	{6, (*life).moveEarlier},
	{6, (*life).beDeleted},
	{8, (*life).stay},
	{2, (*life).arriveLate},
}

const lifeShares = 100

// life is the life of one item.
type life struct {
	*load
	ctx  context.Context
	key  string
	dice *rand.Rand
}

// expire writes an item and leaves it to guard.
func (l *life) expire() { l.put(l.soon(), "") }

// beRenewed renews an item around its deadline, if it is still there, once or several times.
func (l *life) beRenewed() {
	at := l.soon()
	for ok := l.put(at, ""); ok && l.dice.IntN(4) > 0 && l.awaitAround(at); {
		at = l.soon()
		ok = l.update(at)
	}
}

// bePutAgain writes an item anew around its deadline, whether it is still there or not.
func (l *life) bePutAgain() {
	at := l.soon()
	for ok := l.put(at, ""); ok && l.dice.IntN(4) > 0 && l.awaitAround(at); {
		at = l.soon()
		ok = l.put(at, "")
	}
}

// beFreed removes the deadline around the deadline. The item stays for a while.
func (l *life) beFreed() {
	at := l.soon()
	if l.put(at, "") && l.awaitAround(at) && l.update(0) {
		l.rest()
	}
}

// moveEarlier replaces a deadline far ahead by one that is near.
func (l *life) moveEarlier() {
	if l.put(l.far(), "") && l.await(l.clock.Millis()+l.dice.Int64N(2000)) {
		l.update(l.soon())
	}
}

// beDeleted deletes an item before its deadline.
func (l *life) beDeleted() {
	at := l.soon()
	if l.put(at, "") && l.await(at-l.dice.Int64N(2000)) {
		l.delete()
	}
}

// stay writes an item that guard must leave alone: it has no deadline, one far ahead, or a value
// that is no deadline.
func (l *life) stay() {
	ok := false
	switch l.dice.IntN(4) {
	case 0:
		ok = l.put(0, "")
	case 1:
		ok = l.put(l.far(), "")
	default:
		ok = l.put(0, l.badValue())
	}
	if ok {
		l.rest()
	}
}

// arriveLate writes an item after its deadline, by less than the five minutes that every sweep of
// an index repeats. Later ones are found in up to an hour, which no run waits for.
func (l *life) arriveLate() { l.put(l.clock.Millis()-1000-l.dice.Int64N(200_000), "") }

// rest waits for up to 40 s, and then deletes the item, which must be there.
func (l *life) rest() {
	if l.await(l.clock.Millis() + 10_000 + l.dice.Int64N(30_000)) {
		l.delete()
	}
}

// badValue returns a value that is no deadline by DynamoDB's rules: not a number, not after 1970,
// milliseconds, or more than five years ago.
func (l *life) badValue() string {
	now := l.clock.Millis()
	return []string{"-5", "0", fmt.Sprint(now), fmt.Sprint(now/1000 - 6*365*86400), "soon"}[l.dice.IntN(5)]
}

const nearMost = 6000 // ms: the maximum time until a deadline that guard sees pass

// soon returns a deadline up to 6 s ahead; every second one is a whole second.
func (l *life) soon() int64 {
	at := l.clock.Millis() + 1000 + l.dice.Int64N(nearMost-1999)
	if l.dice.IntN(2) == 0 {
		at += 999 - (at+999)%1000
	}
	return at
}

func (l *life) far() int64 { return l.clock.Millis() + 3_600_000 }

// awaitAround waits for an instant from 80 ms before a deadline to 40 ms after it.
func (l *life) awaitAround(at int64) bool { return l.await(at - 80 + l.dice.Int64N(120)) }

// await waits for an instant, and reports whether the life goes on.
func (l *life) await(at int64) bool { return l.clock.Sleep(l.ctx, at, nil) == nil }

// seconds returns an instant in epoch seconds, with a fraction if it has one.
func seconds(at int64) string {
	if at%1000 == 0 {
		return fmt.Sprint(at / 1000)
	}
	return fmt.Sprintf("%d.%03d", at/1000, at%1000)
}

// value returns the value of the deadline attribute, nil for none.
func (l *life) value(at int64, bad string) types.AttributeValue {
	switch {
	case bad == "soon" && l.strategy != guard.Index: // the key of an index must be a number
		return &types.AttributeValueMemberS{Value: bad}
	case bad == "soon":
		return &types.AttributeValueMemberN{Value: "-1"}
	case bad != "":
		return &types.AttributeValueMemberN{Value: bad}
	case at != 0:
		return &types.AttributeValueMemberN{Value: seconds(at)}
	}
	return nil
}

// begin notes a write in the ledger.
func (l *life) begin(at int64, update bool) (number string) {
	w := write{number: l.number.Add(1), deadline: at, update: update, sent: l.clock.Millis()}
	w.faulty = max(w.deadline, w.sent) >= l.faultsAt
	l.ledger.begin(l.key, w)
	return strconv.FormatInt(w.number, 10)
}

// put writes the item whole. It reports whether the write has succeeded, as update does.
func (l *life) put(at int64, bad string) bool {
	item := map[string]types.AttributeValue{
		keyAttribute:   &types.AttributeValueMemberS{Value: l.key},
		writeAttribute: &types.AttributeValueMemberN{Value: l.begin(at, false)},
	}
	if v := l.value(at, bad); v != nil {
		item[deadlineAttribute] = v
	}
	if l.strategy == guard.Index {
		item[shardAttribute] = &types.AttributeValueMemberS{Value: guard.Shard(l.key, shards)}
	}
	ctx, cancel := l.limit()
	defer cancel()
	_, err := l.db.PutItem(ctx, &dynamodb.PutItemInput{TableName: &l.table, Item: item})
	return l.end(err)
}

// update sets the deadline of the item, or removes it if at is 0, if the item exists.
func (l *life) update(at int64) bool {
	in := &dynamodb.UpdateItemInput{
		TableName: &l.table, Key: l.item(),
		ConditionExpression:      aws.String("attribute_exists(#k)"),
		UpdateExpression:         aws.String("SET #n = :n REMOVE #d"),
		ExpressionAttributeNames: map[string]string{"#k": keyAttribute, "#n": writeAttribute, "#d": deadlineAttribute},
		ExpressionAttributeValues: map[string]types.AttributeValue{
			":n": &types.AttributeValueMemberN{Value: l.begin(at, true)},
		},
	}
	if v := l.value(at, ""); v != nil {
		in.UpdateExpression = aws.String("SET #n = :n, #d = :d")
		in.ExpressionAttributeValues[":d"] = v
	}
	ctx, cancel := l.limit()
	defer cancel()
	_, err := l.db.UpdateItem(ctx, in)
	return l.end(err)
}

func (l *life) item() map[string]types.AttributeValue {
	return map[string]types.AttributeValue{keyAttribute: &types.AttributeValueMemberS{Value: l.key}}
}

// limit returns a context for one call, which is completed even if the load has ended.
func (l *life) limit() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(l.ctx), 30*time.Second)
}

// end notes the outcome of a write.
func (l *life) end(err error) bool {
	var unmet *types.ConditionalCheckFailedException
	switch at := l.clock.Millis(); {
	case err == nil:
		l.ledger.written(l.key, at)
		return true
	case errors.As(err, &unmet):
		l.ledger.missed(l.key, at)
	default:
		l.ledger.failed(l.key, err)
	}
	return false
}

// delete deletes the item, and compares it with its last write.
func (l *life) delete() {
	ctx, cancel := l.limit()
	defer cancel()
	out, err := l.db.DeleteItem(ctx, &dynamodb.DeleteItemInput{TableName: &l.table, Key: l.item(), ReturnValues: types.ReturnValueAllOld})
	if err != nil {
		l.ledger.failed(l.key, err)
		return
	}
	l.ledger.deleted(l.key, imageOf(out.Attributes), len(out.Attributes) > 0, l.clock.Millis())
}
