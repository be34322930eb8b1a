package service

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/mayflydb/mayfly/internal/store/dynamo"
)

// slow creates a table "Slow" with the key "id" and a global index "byGroup", which can serve these
// units in a second, and returns a database that enforces them.
func slow(t *testing.T, read, write, indexRead, indexWrite int64) *db {
	t.Helper()
	d := open(t)
	d.throttle = true
	ix := index("byGroup", "KEYS_ONLY", "group")
	ix.Throughput = throughput(indexRead, indexWrite)
	in := CreateTableInput{
		TableName: Some("Slow"), Attributes: definitions("id:S", "group:S"), KeySchema: keys("id"),
		BillingMode: Some("PROVISIONED"), Throughput: throughput(read, write), Global: []IndexSpec{ix},
	}
	if _, err := d.CreateTable(ctx, &in); err != nil {
		t.Fatal(err)
	}
	return d
}

func throughput(read, write int64) *Throughput {
	return &Throughput{Read: Some(read), Write: Some(write)}
}

// puts puts items without a group until one is refused, and returns how many were taken.
func (d *db) puts(most int) int {
	for i := range most {
		_, err := d.PutItem(ctx, &WriteInput{TableName: Some("Slow"), Item: arg(fmt.Sprintf(`{"id":{"S":"%d"}}`, i))})
		if err != nil {
			return i
		}
	}
	return most
}

// A table takes the units of a second at first, and later those that it did not use, for 300
// seconds at most.
func TestThrottledWrites(t *testing.T) {
	d := slow(t, 1, 2, 1, 1)
	for _, step := range []struct {
		wait time.Duration
		want int
	}{
		{0, 2}, {0, 0}, {499 * time.Millisecond, 1}, {501 * time.Millisecond, 1},
		{10 * time.Second, 20}, {time.Hour, 600},
	} {
		d.clock.Advance(step.wait)
		if got := d.puts(700); got != step.want {
			t.Errorf("after %s: %d puts, want %d", step.wait, got, step.want)
		}
	}
	_, err := d.PutItem(ctx, &WriteInput{TableName: Some("Slow"), Item: arg(`{"id":{"S":"x"}}`)})
	throttledAs(t, err, dynamo.CodeThroughputExceeded, "TableWriteProvisionedThroughputExceeded arn:aws:dynamodb:eu-west-1:123456789012:table/Slow")
	refused(t, err, dynamo.CodeThroughputExceeded, msgTableThroughput)
	if got := d.get("Slow", `{"id":{"S":"x"}}`); got != "(none)" {
		t.Errorf("the refused put wrote %s", got)
	}
}

// throttledAs checks the reasons of a throttled request.
func throttledAs(t *testing.T, err error, code dynamo.Code, want string) {
	t.Helper()
	e, ok := errors.AsType[*dynamo.Error](err)
	if !ok || e.Code != code {
		t.Fatalf("error %v, want %s", err, code)
	}
	var got []string
	for _, r := range e.Throttled {
		got = append(got, r.Reason+" "+r.Resource)
	}
	if strings.Join(got, ", ") != want {
		t.Errorf("reasons %v, want %s", got, want)
	}
}

// A large request leaves a debt.
func TestThrottleDebt(t *testing.T) {
	d := slow(t, 1, 1, 1, 1)
	d.put("Slow", `{"id":{"S":"big"},"v":{"S":"`+strings.Repeat("x", 9*1024)+`"}}`)
	d.clock.Advance(9 * time.Second) // ten units were used, and one was there
	if got := d.puts(5); got != 0 {
		t.Errorf("%d puts, want none before the debt is paid", got)
	}
	d.clock.Advance(time.Second)
	if got := d.puts(5); got != 1 {
		t.Errorf("%d puts, want 1", got)
	}
}

func TestThrottledReads(t *testing.T) {
	d := slow(t, 1, 100, 1, 100)
	d.put("Slow", `{"id":{"S":"a"},"group":{"S":"g"}}`)
	get := func() error {
		_, err := d.GetItem(ctx, &GetItemInput{TableName: Some("Slow"), Key: arg(`{"id":{"S":"a"}}`), ConsistentRead: Some(true)})
		return err
	}
	query := func() error {
		_, err := d.Query(ctx, &QueryInput{TableName: Some("Slow"), IndexName: Some("byGroup"), KeyCondition: Some("#g = :g"),
			Names: Names{"#g": "group"}, Values: vals(`{":g":{"S":"g"}}`)})
		return err
	}
	scan := func() error {
		_, err := d.Scan(ctx, &ScanInput{TableName: Some("Slow")})
		return err
	}
	if err := get(); err != nil {
		t.Fatal(err)
	}
	const table = "TableReadProvisionedThroughputExceeded arn:aws:dynamodb:eu-west-1:123456789012:table/Slow"
	throttledAs(t, get(), dynamo.CodeThroughputExceeded, table)
	throttledAs(t, scan(), dynamo.CodeThroughputExceeded, table)
	// the index has its own units: one second's is two eventually consistent reads
	for range 2 {
		if err := query(); err != nil {
			t.Fatal(err)
		}
	}
	throttledAs(t, query(), dynamo.CodeThroughputExceeded, "IndexReadProvisionedThroughputExceeded arn:aws:dynamodb:eu-west-1:123456789012:table/Slow/index/byGroup")
	_, err := d.TransactGetItems(ctx, &TransactGetItemsInput{Items: []TransactGet{{Present: true, TableName: Some("Slow"), Key: arg(`{"id":{"S":"a"}}`)}}})
	refused(t, err, dynamo.CodeTransactionCanceled, cancelMessage([]dynamo.Reason{{Code: reasonThroughput}}))
}

// Writes that would change an index without room are refused, and no others.
func TestThrottledByIndex(t *testing.T) {
	d := slow(t, 100, 100, 100, 1)
	d.put("Slow", `{"id":{"S":"in"},"group":{"S":"g"}}`)
	const index = "IndexWriteProvisionedThroughputExceeded arn:aws:dynamodb:eu-west-1:123456789012:table/Slow/index/byGroup"
	update := func(id, expression string) error {
		_, err := d.UpdateItem(ctx, &WriteInput{TableName: Some("Slow"), Item: arg(`{"id":{"S":"` + id + `"}}`), Update: Some(expression),
			Values: vals(`{":v":{"S":"v"}}`), Names: Names{"#a": map[bool]string{true: "group", false: "other"}[id != "in"]}})
		return err
	}
	if got := d.puts(3); got != 3 {
		t.Errorf("%d puts of items that are not in the index, want 3", got)
	}
	if err := update("in", "SET #a = :v"); err != nil {
		t.Errorf("an attribute that the index lacks: %v", err)
	}
	throttledAs(t, update("0", "SET #a = :v"), dynamo.CodeThroughputExceeded, index)
	_, err := d.PutItem(ctx, &WriteInput{TableName: Some("Slow"), Item: arg(`{"id":{"S":"new"},"group":{"S":"g"}}`)})
	throttledAs(t, err, dynamo.CodeThroughputExceeded, index)
	_, err = d.DeleteItem(ctx, &WriteInput{TableName: Some("Slow"), Item: arg(`{"id":{"S":"in"}}`)})
	throttledAs(t, err, dynamo.CodeThroughputExceeded, index)
	_, err = d.DeleteItem(ctx, &WriteInput{TableName: Some("Slow"), Item: arg(`{"id":{"S":"0"}}`)})
	if err != nil {
		t.Errorf("a delete of an item that is not in the index: %v", err)
	}
	_, err = d.TransactWriteItems(ctx, &TransactWriteItemsInput{Items: []TransactAction{
		{Put: &WriteInput{TableName: Some("Slow"), Item: arg(`{"id":{"S":"free"}}`)}},
		{Put: &WriteInput{TableName: Some("Slow"), Item: arg(`{"id":{"S":"x"},"group":{"S":"g"}}`)}},
	}})
	refused(t, err, dynamo.CodeTransactionCanceled, cancelMessage([]dynamo.Reason{{Code: reasonNone}, {Code: reasonThroughput}}))
	if got := d.get("Slow", `{"id":{"S":"free"}}`); got != "(none)" {
		t.Errorf("the cancelled transaction wrote %s", got)
	}
}

// Batches return the requests that find no units, and fail only if none finds some.
func TestThrottledBatches(t *testing.T) {
	d := slow(t, 2, 3, 1, 1)
	var requests []WriteRequest
	for i := range 5 {
		p := arg(fmt.Sprintf(`{"id":{"S":"%d"}}`, i))
		requests = append(requests, WriteRequest{Put: &p})
	}
	write := &BatchWriteItemInput{RequestItems: []BatchWriteTable{{Table: "Slow", Requests: requests}}}
	out, err := d.BatchWriteItem(ctx, write)
	if err != nil {
		t.Fatal(err)
	}
	if len(out.Unprocessed) != 1 || len(out.Unprocessed[0].Requests) != 2 || out.Unprocessed[0].Requests[0].Put != requests[3].Put {
		t.Errorf("unprocessed: %+v, want the last two", out.Unprocessed)
	}
	if got := d.get("Slow", `{"id":{"S":"3"}}`); got != "(none)" {
		t.Errorf("the unprocessed put wrote %s", got)
	}
	_, err = d.BatchWriteItem(ctx, write)
	refused(t, err, dynamo.CodeThroughputExceeded, msgTableThroughput)

	d.clock.Advance(2 * time.Second)
	read := &BatchGetItemInput{RequestItems: []BatchGetTable{{Table: "Slow", ConsistentRead: Some(true)}}}
	for i := range 6 {
		read.RequestItems[0].Keys = append(read.RequestItems[0].Keys, arg(fmt.Sprintf(`{"id":{"S":"%d"}}`, i)))
	}
	got, err := d.BatchGetItem(ctx, read)
	if err != nil {
		t.Fatal(err)
	}
	// d.get has used a half unit of six
	if len(got.Unprocessed) != 0 {
		t.Errorf("unprocessed: %+v, want none", got.Unprocessed)
	}
	d.clock.Advance(time.Second)
	if got, err = d.BatchGetItem(ctx, read); err != nil {
		t.Fatal(err)
	}
	if len(got.Unprocessed) != 1 || len(got.Unprocessed[0].Keys) != 4 {
		t.Errorf("unprocessed: %+v, want four keys", got.Unprocessed)
	}
	_, err = d.BatchGetItem(ctx, read)
	refused(t, err, dynamo.CodeThroughputExceeded, msgTableThroughput)
}

// A batch leaves the puts that a global index has no units for.
func TestThrottledBatchByIndex(t *testing.T) {
	d := slow(t, 10, 10, 1, 2)
	var requests []WriteRequest
	for i := range 4 {
		p := arg(fmt.Sprintf(`{"id":{"S":"%d"},"group":{"S":"g"}}`, i))
		requests = append(requests, WriteRequest{Put: &p})
	}
	p := arg(`{"id":{"S":"free"}}`)
	requests = append(requests, WriteRequest{Put: &p})
	out, err := d.BatchWriteItem(ctx, &BatchWriteItemInput{RequestItems: []BatchWriteTable{{Table: "Slow", Requests: requests}}})
	if err != nil {
		t.Fatal(err)
	}
	if len(out.Unprocessed) != 1 || len(out.Unprocessed[0].Requests) != 2 || out.Unprocessed[0].Requests[0].Put != requests[2].Put {
		t.Errorf("unprocessed: %+v, want the third and the fourth put", out.Unprocessed)
	}
}

// An on-demand table has only the maxima that it is given, and keeps nothing beyond a second.
func TestThrottledOnDemand(t *testing.T) {
	d := open(t)
	d.throttle = true
	in := CreateTableInput{TableName: Some("Slow"), Attributes: definitions("id:S"), KeySchema: keys("id"), BillingMode: Some("PAY_PER_REQUEST")}
	if _, err := d.CreateTable(ctx, &in); err != nil {
		t.Fatal(err)
	}
	if got := d.puts(50); got != 50 {
		t.Errorf("without a maximum: %d puts, want 50", got)
	}
	change := UpdateTableInput{TableName: Some("Slow"), OnDemand: &OnDemandThroughput{MaxWrite: Some(int64(5))}}
	if _, err := d.UpdateTable(ctx, &change); err != nil {
		t.Fatal(err)
	}
	for _, wait := range []time.Duration{0, time.Second, time.Hour} {
		d.clock.Advance(wait)
		if got := d.puts(50); got != 5 {
			t.Errorf("after %s: %d puts, want 5", wait, got)
		}
	}
	put := &WriteInput{TableName: Some("Slow"), Item: arg(`{"id":{"S":"x"}}`)}
	_, err := d.PutItem(ctx, put)
	throttledAs(t, err, dynamo.CodeThrottling, "TableWriteMaxOnDemandThroughputExceeded arn:aws:dynamodb:eu-west-1:123456789012:table/Slow")
	_, err = d.TransactWriteItems(ctx, &TransactWriteItemsInput{Items: []TransactAction{{Put: put}}})
	refused(t, err, dynamo.CodeTransactionCanceled, cancelMessage([]dynamo.Reason{{Code: reasonThrottling}}))
}

// A global index of a table on demand has maxima of its own. A write that would change it is refused
// without room there.
func TestThrottledIndexOnDemand(t *testing.T) {
	d := open(t)
	d.throttle = true
	ix := index("byGroup", "KEYS_ONLY", "group")
	ix.OnDemand = &OnDemandThroughput{MaxRead: Some[int64](2), MaxWrite: Some[int64](3)}
	in := CreateTableInput{
		TableName: Some("Slow"), Attributes: definitions("id:S", "group:S"), KeySchema: keys("id"), BillingMode: Some("PAY_PER_REQUEST"), Global: []IndexSpec{ix},
	}
	if _, err := d.CreateTable(ctx, &in); err != nil {
		t.Fatal(err)
	}
	grouped := func() (done int, err error) {
		for done = range 50 {
			put := &WriteInput{TableName: Some("Slow"), Item: arg(fmt.Sprintf(`{"id":{"S":"g%d"},"group":{"S":"g"}}`, done))}
			if _, err = d.PutItem(ctx, put); err != nil {
				return done, err
			}
		}
		return 50, nil
	}
	const arn = "arn:aws:dynamodb:eu-west-1:123456789012:table/Slow/index/byGroup"
	done, err := grouped()
	throttledAs(t, err, dynamo.CodeThrottling, "IndexWriteMaxOnDemandThroughputExceeded "+arn)
	equal(t, "puts", done, 3)
	if got := d.puts(20); got != 20 {
		t.Errorf("without the index: %d puts, want 20", got)
	}
	for range 4 { // each costs half a unit
		if _, err = d.Scan(ctx, &ScanInput{TableName: Some("Slow"), IndexName: Some("byGroup")}); err != nil {
			t.Fatal(err)
		}
	}
	_, err = d.Scan(ctx, &ScanInput{TableName: Some("Slow"), IndexName: Some("byGroup")})
	throttledAs(t, err, dynamo.CodeThrottling, "IndexReadMaxOnDemandThroughputExceeded "+arn)
}

// Units that were consumed while nothing limited them are not made up for.
func TestThrottledAgain(t *testing.T) {
	d := slow(t, 1, 5, 1, 1)
	bill := func(mode string, to *Throughput) {
		t.Helper()
		in := UpdateTableInput{TableName: Some("Slow"), BillingMode: Some(mode), Throughput: to}
		if to != nil {
			in.GlobalUpdates = []IndexUpdate{{Update: &IndexThroughput{IndexName: Some("byGroup"), Throughput: to}, Actions: 1}}
		}
		if _, err := d.UpdateTable(ctx, &in); err != nil {
			t.Fatal(err)
		}
	}
	equal(t, "puts before", d.puts(20), 5)
	bill("PAY_PER_REQUEST", nil)
	equal(t, "puts without a limit", d.puts(1000), 1000)
	bill("PROVISIONED", throughput(1, 5))
	equal(t, "puts at once", d.puts(20), 0)
	d.clock.Advance(2 * time.Second)
	equal(t, "puts two seconds later", d.puts(20), 10)
}

// The tag of a table decides for it, and without tag and option nothing is enforced.
func TestThrottleTag(t *testing.T) {
	d := slow(t, 1, 1, 1, 1)
	tag := func(value string) error {
		_, err := d.TagResource(ctx, &TagResourceInput{ARN: Some(d.tableARN("Slow")), Tags: []Tag{{Key: Some(tagThrottle), Value: Some(value)}}})
		return err
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(tag(throttleOff))
	equal(t, "puts with the tag off", d.puts(20), 20)
	d.throttle = false
	must(tag(throttleOn))
	equal(t, "puts with the tag on", d.puts(20), 1)
	_, err := d.UntagResource(ctx, &UntagResourceInput{ARN: Some(d.tableARN("Slow")), Keys: []string{tagThrottle}})
	must(err)
	equal(t, "puts without the tag", d.puts(20), 20)
	refused(t, tag("yes"), dynamo.CodeValidation, "The value of the tag mayfly:throttle is on or off, and not: yes")
}

// Refused calls are counted.
func TestThrottledCounts(t *testing.T) {
	d := slow(t, 1, 1, 1, 1)
	d.puts(20)
	for _, c := range d.Consumed() {
		if c.Index == "" && (c.Write != 1 || c.ThrottledWrites != 1 || c.ThrottledReads != 0) {
			t.Errorf("%+v, want one unit and one refusal", c)
		}
	}
}

// A write that the engine decides several times is throttled once.
func TestThrottledOncePerWrite(t *testing.T) {
	d := slow(t, 9, 9, 9, 9)
	desc := d.engine.DescOf(namespace, "Slow")
	f := flow{desc: desc, index: &desc.Indexes[0], write: true}
	throttled := func() int64 { _, writes := f.units().Throttled(); return writes }
	strained := &action{desc: desc, kind: actionPut, item: item(`{"id":{"S":"a"},"group":{"S":"g"}}`), strained: []strainedIndex{{f, d.throttled(f)}}}
	other := &action{desc: desc, kind: actionPut, item: item(`{"id":{"S":"b"}}`), strained: []strainedIndex{{f, d.throttled(f)}}}
	for range 3 {
		_, strained.write.Err = strained.decide(nil, 0)
		_, other.write.Err = other.decide(nil, 0)
	}
	if strained.write.Err == nil || other.write.Err != nil || throttled() != 0 {
		t.Errorf("errors %v and %v, %d throttled writes before the refusal", strained.write.Err, other.write.Err, throttled())
	}
	countRefused([]*action{strained, other}, 1)
	if throttled() != 1 {
		t.Errorf("%d throttled writes, want 1", throttled())
	}
}
