package mayfly

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"time"
)

// This file has the history of a database on disk: its steps, the model of their result, and the
// reader that finds it again. TestFormatsOpen and TestDamage compare the three.

// endpoint is a database that answers JSON: a program's port, or one in this process.
type endpoint struct {
	url    string
	client *http.Client
}

// handlerTransport answers requests by a handler.
type handlerTransport struct{ http.Handler }

func (h handlerTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Result(), nil
}

// inProcessEndpoint returns the endpoint of a database in this process, its clock included.
func inProcessEndpoint(db *DB) endpoint {
	return endpoint{"http://127.0.0.1", &http.Client{Transport: handlerTransport{db.Handler()}}}
}

type object = map[string]any

// call calls an operation of DynamoDB, or with the prefix "Streams." one of Streams.
func (e endpoint) call(operation string, in any) (object, error) {
	target := "DynamoDB_20120810." + operation
	if name, ok := strings.CutPrefix(operation, "Streams."); ok {
		target = "DynamoDBStreams_20120810." + name
	}
	return e.send("/", target, in)
}

// send posts JSON and returns the answer's JSON.
func (e endpoint) send(path, target string, in any) (object, error) {
	body, err := json.Marshal(in)
	if err != nil {
		return nil, err
	}
	r, err := http.NewRequest(http.MethodPost, e.url+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/x-amz-json-1.0")
	if target != "" {
		r.Header.Set("X-Amz-Target", target)
	}
	answer, err := e.client.Do(r)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return nil, err
	}
	if answer.StatusCode >= 300 {
		return nil, fmt.Errorf("%s%s: %d %s", path, target, answer.StatusCode, text)
	}
	var out object
	return out, json.Unmarshal(text, &out)
}

// storedStart is the first instant of the databases of these tests. It lies ahead of every
// machine's clock, so a directory that is opened with clock control goes on from its own last
// instant, to the millisecond.
var storedStart = time.Date(2090, 1, 1, 0, 0, 0, 0, time.UTC)

// storedTable is one of the tables.
type storedTable struct {
	Sort    string        // the sort key; "": none
	View    string        // of its stream; "": none
	TTL     string        // the attribute at the beginning
	Delay   time.Duration // of its removals: aws expiry
	Indexed bool          // has the indexes byGroup and byRank
}

var storedTables = map[string]storedTable{
	"plain": {TTL: "ttl"},
	"both":  {Sort: "sk", View: "NEW_AND_OLD_IMAGES", TTL: "ttl", Indexed: true},
	"keys":  {View: "KEYS_ONLY", TTL: "ttl"},
	"late":  {View: "NEW_IMAGE", TTL: "ttl", Delay: 10 * time.Minute},
	"moved": {TTL: "old"}, // until the middle; then "ttl"
	// progress holds the number of the last step, which is part of each step's transaction.
	"progress": {},
}

func (s storedTable) key() []string {
	if s.Sort != "" {
		return []string{"pk", s.Sort}
	}
	return []string{"pk"}
}

// step is one change of the database. The next begins when it is acknowledged. One member is set.
type step struct {
	Create   string     // a table, without TTL
	Expire   *ttlStep   // a change of a table's TTL attribute
	Schedule *object    // a schedule, as CreateSchedule takes it, with its name
	Put      *writeStep // an item
	Delete   *writeStep // a key
	Advance  int64      // of the clock, in milliseconds
}

type ttlStep struct{ Table, Attribute string } // Attribute "": off

type writeStep struct {
	Table string
	Item  object
}

// history returns the steps of a database with about n writes. Values have the given size. A part
// of the items written before the middle has expired at the end.
func history(seed uint64, n, size int) []step {
	random := rand.New(rand.NewPCG(seed, 1))
	var steps []step
	steps = append(steps, step{Advance: 10_000})
	for _, name := range slices.Sorted(maps.Keys(storedTables)) {
		steps = append(steps, step{Create: name})
		if attribute := storedTables[name].TTL; attribute != "" {
			steps = append(steps, step{Expire: &ttlStep{name, attribute}})
		}
	}
	for i, at := range []string{"at(2090-01-01T02:00:00)", "at(2091-06-01T00:00:00)", "rate(1 day)"} {
		s := object{
			"Name": fmt.Sprintf("schedule-%d", i), "ScheduleExpression": at, "FlexibleTimeWindow": object{"Mode": "OFF"},
			"Target": object{"Arn": "arn:aws:lambda:us-east-1:000000000000:function:any", "RoleArn": "arn:aws:iam::000000000000:role/any", "Input": `{"text":"tea"}`},
		}
		if at == "rate(1 day)" {
			s["StartDate"] = storedStart.Add(5 * time.Hour).Unix()
		}
		steps = append(steps, step{Schedule: &s})
	}
	names := []string{"plain", "both", "keys", "late", "moved"}
	now, written := storedStart.Add(10*time.Second), map[string][]object{}
	for i := range n {
		if i == n/3 {
			steps = append(steps, step{Advance: 60_000})
			now = now.Add(time.Minute)
		}
		if i == n/2 {
			steps = append(steps, step{Expire: &ttlStep{"moved", ""}}, step{Expire: &ttlStep{"moved", "ttl"}})
		}
		name := names[i%len(names)]
		if was := written[name]; len(was) > 3 && random.IntN(9) == 0 {
			steps = append(steps, step{Delete: &writeStep{name, keyIn(name, was[random.IntN(len(was))])}})
			continue
		}
		it := object{"pk": object{"S": fmt.Sprintf("k%03d", i)}, "g": object{"S": fmt.Sprintf("g%d", i%3)}, "v": object{"S": randomText(random, size)}}
		if storedTables[name].Sort != "" {
			it["pk"] = object{"S": fmt.Sprintf("k%03d", i/50)}
			it["sk"], it["r"] = object{"N": fmt.Sprint(i)}, object{"N": fmt.Sprint(random.IntN(1000))}
		}
		if was := written[name]; len(was) > 3 && random.IntN(6) == 0 { // in the place of another
			maps.Copy(it, keyIn(name, was[random.IntN(len(was))]))
		}
		switch random.IntN(5) {
		case 0, 1: // soon
			it["ttl"] = deadlineValue(now.Add(time.Duration(5+random.IntN(40)) * time.Second))
		case 2: // in an hour
			it["ttl"] = deadlineValue(now.Add(time.Hour + time.Duration(random.IntN(3600))*time.Second))
		case 3: // in ten months
			it["ttl"] = deadlineValue(now.Add(300*24*time.Hour + time.Duration(random.IntN(3600))*time.Second))
		}
		if name == "moved" {
			it["old"] = deadlineValue(now.Add(time.Duration(20+random.IntN(4000)) * time.Second))
		}
		written[name] = append(written[name], it)
		steps = append(steps, step{Put: &writeStep{name, it}})
	}
	return steps
}

func deadlineValue(at time.Time) object { return object{"N": fmt.Sprint(at.Unix())} }

func randomText(random *rand.Rand, size int) string {
	b := make([]byte, size)
	for i := range b {
		b[i] = byte('a' + random.IntN(26))
	}
	return string(b)
}

// keyIn returns the key attributes of an item.
func keyIn(table string, it object) object {
	key := object{}
	for _, part := range storedTables[table].key() {
		key[part] = it[part]
	}
	return key
}

// canonical returns JSON that is equal for equal values.
func canonical(value any) string {
	b, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// perform makes one step. number counts the writes.
func (e endpoint) perform(s step, number int) error {
	var err error
	write := func(request object) {
		_, err = e.call("TransactWriteItems", object{"TransactItems": []object{request, {"Put": object{
			"TableName": "progress", "Item": object{"pk": object{"S": "all"}, "n": object{"N": fmt.Sprint(number)}},
		}}}})
	}
	switch {
	case s.Create != "":
		_, err = e.call("CreateTable", storedTables[s.Create].definition(s.Create))
	case s.Expire != nil:
		attribute := s.Expire.Attribute
		_, err = e.call("UpdateTimeToLive", object{"TableName": s.Expire.Table, "TimeToLiveSpecification": object{
			"Enabled": attribute != "", "AttributeName": cmp.Or(attribute, "old"),
		}})
	case s.Schedule != nil:
		_, err = e.send("/schedules/"+(*s.Schedule)["Name"].(string), "", s.Schedule)
	case s.Put != nil:
		write(object{"Put": object{"TableName": s.Put.Table, "Item": s.Put.Item}})
	case s.Delete != nil:
		write(object{"Delete": object{"TableName": s.Delete.Table, "Key": s.Delete.Item}})
	default:
		_, err = e.send("/_mayfly/clock/advance", "", object{"by_ms": s.Advance})
	}
	return err
}

// definition returns the request that creates the table.
func (s storedTable) definition(name string) object {
	kinds := map[string]string{"pk": "S", "sk": "N", "g": "S", "r": "N"}
	attributes := s.key()
	schema := func(names ...string) (keys []object) {
		for i, name := range names {
			keys = append(keys, object{"AttributeName": name, "KeyType": []string{"HASH", "RANGE"}[i]})
		}
		return keys
	}
	in := object{"TableName": name, "KeySchema": schema(s.key()...), "BillingMode": "PAY_PER_REQUEST"}
	if s.Indexed {
		attributes = append(attributes, "g", "r")
		in["GlobalSecondaryIndexes"] = []object{{"IndexName": "byGroup", "KeySchema": schema("g"), "Projection": object{"ProjectionType": "KEYS_ONLY"}}}
		in["LocalSecondaryIndexes"] = []object{{"IndexName": "byRank", "KeySchema": schema("pk", "r"), "Projection": object{"ProjectionType": "ALL"}}}
	}
	var defined []object
	for _, attribute := range attributes {
		defined = append(defined, object{"AttributeName": attribute, "AttributeType": kinds[attribute]})
	}
	in["AttributeDefinitions"] = defined
	if s.View != "" {
		in["StreamSpecification"] = object{"StreamEnabled": true, "StreamViewType": s.View}
	}
	if s.Delay != 0 {
		in["Tags"] = []object{{"Key": "mayfly:expiry", "Value": "aws"}, {"Key": "mayfly:expiry-delay", "Value": "fixed:" + s.Delay.String()}}
	}
	return in
}

// contents is the visible content of the tables, in a form that can be compared and stored.
type contents struct {
	Now    int64                     // the clock, in milliseconds since 1970
	Writes int                       // the number in the table progress
	Tables map[string]*tableContents // by name
}

type tableContents struct {
	TTL   string            `json:",omitempty"` // the attribute
	Items map[string]string // by key, as JSON
	// the instant of each removal, in milliseconds; of a model only
	Removal map[string]int64    `json:",omitempty"`
	Entries map[string][]string `json:",omitempty"` // by index: the keys in the table, ascending
	Records []string            `json:",omitempty"` // of the stream
}

// model returns the result of the steps. Advances of the clock count, and now is the instant at
// which the clock stands afterwards, if it is later.
func model(steps []step, now int64) *contents {
	c := &contents{Now: storedStart.UnixMilli(), Tables: map[string]*tableContents{}}
	for _, s := range steps {
		switch {
		case s.Create != "":
			c.Tables[s.Create] = &tableContents{Items: map[string]string{}, Removal: map[string]int64{}}
		case s.Expire != nil:
			c.expireBy(s.Expire.Table, s.Expire.Attribute)
		case s.Put != nil:
			c.write(s.Put.Table, s.Put.Item, s.Put.Item)
		case s.Delete != nil:
			c.write(s.Delete.Table, s.Delete.Item, nil)
		default:
			c.advance(c.Now + s.Advance)
		}
	}
	if now > c.Now {
		c.advance(now)
	}
	c.index()
	return c
}

// expireBy changes a table's TTL attribute. Items that have not expired by the old one live by the
// new one.
func (c *contents) expireBy(table, attribute string) {
	t := c.Tables[table]
	t.TTL = attribute
	for key, text := range t.Items {
		var it object
		if err := json.Unmarshal([]byte(text), &it); err != nil {
			panic(err)
		}
		c.arm(table, key, it)
	}
	c.advance(c.Now)
}

func (c *contents) arm(table, key string, it object) {
	t := c.Tables[table]
	delete(t.Removal, key)
	value, ok := it[t.TTL].(object)
	if !ok {
		return
	}
	var seconds int64
	if _, err := fmt.Sscan(value["N"].(string), &seconds); err != nil {
		panic(err)
	}
	t.Removal[key] = seconds*1000 + storedTables[table].Delay.Milliseconds()
}

// write puts an item in the place of the one with its key; next nil: it deletes.
func (c *contents) write(table string, it, next object) {
	c.Writes++
	t, key := c.Tables[table], canonical(keyIn(table, it))
	old, was := t.Items[key]
	delete(t.Items, key)
	delete(t.Removal, key)
	event := "REMOVE"
	if next != nil {
		t.Items[key] = canonical(next)
		c.arm(table, key, next)
		if event = "INSERT"; was {
			event = "MODIFY"
		}
	}
	if (was || next != nil) && t.Items[key] != old {
		t.record(table, event, key, old)
	}
	if next != nil && t.Removal[key] != 0 && t.Removal[key] <= c.Now {
		c.advance(c.Now) // it had expired when it was written
	}
	progress := c.Tables["progress"]
	progress.Items[`{"pk":{"S":"all"}}`] = fmt.Sprintf(`{"n":{"N":"%d"},"pk":{"S":"all"}}`, c.Writes)
}

// record adds a stream record.
func (t *tableContents) record(table, event, key, old string) {
	next := t.Items[key]
	switch storedTables[table].View {
	case "":
		return
	case "KEYS_ONLY":
		old, next = "", ""
	case "NEW_IMAGE":
		old = ""
	}
	t.Records = append(t.Records, strings.TrimSpace(fmt.Sprintf("%s %s %s %s", event, key, cmp.Or(old, "-"), cmp.Or(next, "-"))))
}

// advance moves the clock and removes the items that expire.
func (c *contents) advance(now int64) {
	c.Now = now
	for name, t := range c.Tables {
		for key, at := range t.Removal {
			if at > now {
				continue
			}
			old := t.Items[key]
			delete(t.Items, key)
			delete(t.Removal, key)
			t.record(name, "EXPIRE", key, old)
		}
	}
}

// index fills in the index entries, and sorts the records: concurrent removals have no order.
func (c *contents) index() {
	for name, t := range c.Tables {
		slices.Sort(t.Records)
		if storedTables[name].Indexed {
			keys := slices.Sorted(maps.Keys(t.Items))
			t.Entries = map[string][]string{"byGroup": keys, "byRank": keys}
		}
	}
}

// reading holds the contents that were found and the errors met.
type reading struct {
	contents
	failures []error
}

// readFailure is the failure to read a part of a table: an index, the stream, a key, or "" for all
// of them.
type readFailure struct {
	table, part string
	cause       error
}

func (f *readFailure) Error() string { return fmt.Sprintf("read %s %s: %v", f.table, f.part, f.cause) }

// read reads every table by Scan, GetItem and each index, and every stream. If a Scan fails, it
// gets the known items one by one.
func (e endpoint) read(now int64, known *contents) *reading {
	r := &reading{contents: contents{Now: now, Tables: map[string]*tableContents{}}}
	table := "ListTables"
	failedAt := func(part string, err error) bool {
		if err != nil {
			r.failures = append(r.failures, &readFailure{table, part, err})
		}
		return err != nil
	}
	failed := func(err error) bool { return failedAt("", err) }
	list, err := e.call("ListTables", object{})
	if failed(err) {
		return r
	}
	for _, name := range list["TableNames"].([]any) {
		name := name.(string)
		table = name
		t := &tableContents{Items: map[string]string{}}
		r.Tables[name] = t
		answer, err := e.call("DescribeTable", object{"TableName": name})
		if failed(err) {
			continue
		}
		described := answer["Table"].(object)
		var key []string
		for _, part := range described["KeySchema"].([]any) {
			key = append(key, part.(object)["AttributeName"].(string))
		}
		if answer, err = e.call("DescribeTimeToLive", object{"TableName": name}); !failed(err) {
			t.TTL, _ = answer["TimeToLiveDescription"].(object)["AttributeName"].(string)
		}
		get := func(keys any) string {
			answer, err := e.call("GetItem", object{"TableName": name, "Key": keys, "ConsistentRead": true})
			if failedAt(canonical(keys), err) || answer["Item"] == nil {
				return ""
			}
			return canonical(answer["Item"])
		}
		scanned := e.scan(object{"TableName": name}, func(it object) {
			keys := object{}
			for _, part := range key {
				keys[part] = it[part]
			}
			k := canonical(keys)
			if _, twice := t.Items[k]; twice {
				failed(fmt.Errorf("Scan shows %s twice", k))
			}
			t.Items[k] = canonical(it)
			if got := get(keys); got != t.Items[k] && !r.failedAt(name, k) {
				failed(fmt.Errorf("GetItem shows %s, Scan %s", got, t.Items[k]))
			}
		})
		if failedAt("Scan", scanned) && known != nil && known.Tables[name] != nil {
			for k := range known.Tables[name].Items {
				if it := get(json.RawMessage(k)); it != "" {
					t.Items[k] = it
				}
			}
		}
		for _, kind := range []string{"GlobalSecondaryIndexes", "LocalSecondaryIndexes"} {
			indexes, _ := described[kind].([]any)
			for _, ix := range indexes {
				ix := ix.(object)["IndexName"].(string)
				var found []string
				failedAt(ix, e.scan(object{"TableName": name, "IndexName": ix}, func(it object) {
					keys := object{}
					for _, part := range key {
						keys[part] = it[part]
					}
					found = append(found, canonical(keys))
				}))
				slices.Sort(found)
				if t.Entries == nil {
					t.Entries = map[string][]string{}
				}
				t.Entries[ix] = found
			}
		}
		if arn, ok := described["LatestStreamArn"].(string); ok {
			failedAt("stream", e.records(arn, func(record string) { t.Records = append(t.Records, record) }))
			slices.Sort(t.Records)
		}
	}
	if t := r.Tables["progress"]; t != nil {
		for _, it := range t.Items {
			fmt.Sscanf(it, `{"n":{"N":"%d"`, &r.Writes)
		}
	}
	return r
}

// failedAt reports whether the read of a part of a table failed as one that needs a damaged file.
func (r *reading) failedAt(table, part string) bool {
	for _, err := range r.failures {
		f, ok := err.(*readFailure)
		if ok && f.table == table && (f.part == part || f.part == "") && strings.Contains(f.cause.Error(), "InternalServerError") {
			return true
		}
	}
	return false
}

// scan reads all pages.
func (e endpoint) scan(in object, visit func(object)) error {
	for {
		out, err := e.call("Scan", in)
		if err != nil {
			return err
		}
		items, _ := out["Items"].([]any)
		for _, it := range items {
			visit(it.(object))
		}
		next, more := out["LastEvaluatedKey"]
		if !more {
			return nil
		}
		in["ExclusiveStartKey"] = next
	}
}

// records reads all shards of a stream. A record is text as record writes it.
func (e endpoint) records(arn string, visit func(string)) error {
	in := object{"StreamArn": arn}
	for {
		out, err := e.call("Streams.DescribeStream", in)
		if err != nil {
			return err
		}
		described := out["StreamDescription"].(object)
		shards, _ := described["Shards"].([]any)
		for _, shard := range shards {
			if err := e.shardRecords(arn, shard.(object)["ShardId"].(string), visit); err != nil {
				return err
			}
		}
		last, more := described["LastEvaluatedShardId"]
		if !more {
			return nil
		}
		in["ExclusiveStartShardId"] = last
	}
}

func (e endpoint) shardRecords(arn, shard string, visit func(string)) error {
	out, err := e.call("Streams.GetShardIterator", object{"StreamArn": arn, "ShardId": shard, "ShardIteratorType": "TRIM_HORIZON"})
	if err != nil {
		return err
	}
	iterator, more := out["ShardIterator"]
	for more {
		page, err := e.call("Streams.GetRecords", object{"ShardIterator": iterator})
		if err != nil {
			return err
		}
		records, _ := page["Records"].([]any)
		for _, record := range records {
			record := record.(object)
			event, change := record["eventName"].(string), record["dynamodb"].(object)
			if identity, ok := record["userIdentity"].(object); ok && event == "REMOVE" && identity["PrincipalId"] == "dynamodb.amazonaws.com" {
				event = "EXPIRE"
			}
			image := func(name string) string {
				if it, ok := change[name]; ok {
					return canonical(it)
				}
				return "-"
			}
			visit(fmt.Sprintf("%s %s %s %s", event, canonical(change["Keys"]), image("OldImage"), image("NewImage")))
		}
		iterator, more = page["NextShardIterator"]
		more = more && len(records) > 0
	}
	return nil
}

// differences lists the deviations of the found contents from the wanted ones, by table. At most a
// few lines of each table.
func differences(want, got *contents) (all []string) {
	for _, name := range slices.Sorted(maps.Keys(want.Tables)) {
		w, g := want.Tables[name], got.Tables[name]
		if g == nil {
			all = append(all, "table "+name+" is missing")
			continue
		}
		if w.TTL != g.TTL {
			all = append(all, fmt.Sprintf("table %s expires by %q, want %q", name, g.TTL, w.TTL))
		}
		var lines []string
		for key, it := range w.Items {
			if got, ok := g.Items[key]; !ok {
				lines = append(lines, fmt.Sprintf("table %s: item %s is missing", name, key))
			} else if got != it {
				lines = append(lines, fmt.Sprintf("table %s: item %s is %.200s, want %.200s", name, key, got, it))
			}
		}
		for key := range g.Items {
			if _, ok := w.Items[key]; !ok {
				lines = append(lines, fmt.Sprintf("table %s: item %s should not be there", name, key))
			}
		}
		slices.Sort(lines)
		all = append(all, firstOf(lines)...)
		for _, ix := range slices.Sorted(maps.Keys(w.Entries)) {
			all = append(all, firstOf(unequal("index "+ix+" of "+name, w.Entries[ix], g.Entries[ix]))...)
		}
		all = append(all, firstOf(unequal("stream of "+name, w.Records, g.Records))...)
	}
	return all
}

func firstOf(lines []string) []string {
	const most = 3
	if len(lines) > most {
		return append(lines[:most:most], fmt.Sprintf("and %d more", len(lines)-most))
	}
	return lines
}

// unequal compares two sorted lists.
func unequal(where string, want, got []string) (lines []string) {
	for len(want) > 0 || len(got) > 0 {
		switch {
		case len(got) == 0 || len(want) > 0 && want[0] < got[0]:
			lines = append(lines, fmt.Sprintf("%s lacks %.200s", where, want[0]))
			want = want[1:]
		case len(want) == 0 || got[0] < want[0]:
			lines = append(lines, fmt.Sprintf("%s has %.200s", where, got[0]))
			got = got[1:]
		default:
			want, got = want[1:], got[1:]
		}
	}
	return lines
}

// advanceTo moves a database's clock to an instant and reads it.
func advanceTo(ctx context.Context, db *DB, e endpoint, now int64) (*reading, error) {
	if by := now - db.Clock().Now().UnixMilli(); by >= 0 {
		moved, err := db.Clock().Advance(ctx, time.Duration(by)*time.Millisecond)
		if err == nil && moved.Unfinished {
			err = fmt.Errorf("the advance to %s is unfinished at %s, busy: %v", stamp(time.UnixMilli(now)), stamp(moved.To), moved.Busy)
		}
		if err != nil {
			return nil, err
		}
	}
	return e.read(db.Clock().Now().UnixMilli(), nil), nil
}
