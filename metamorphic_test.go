package mayfly

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mayflydb/mayfly/internal/store/kv"
	"github.com/mayflydb/mayfly/internal/testkit"
)

var (
	metamorphicSeed = flag.Uint64("metamorphic-seed", 1, "first seed of TestMetamorphic")
	metamorphicRuns = flag.Int("metamorphic-runs", 0, "seeds of TestMetamorphic; 0: 8, or 30 if tests run in full")
)

// TestMetamorphic makes the same operations with the default options in memory and with random
// options, and wants the same answers. The options may not matter to a client: durability, shards,
// sizes, expiry modes, further indexes and streams, an index from the beginning or built later,
// page sizes, the steps of the clock, restarts, and a backup that is restored and continued.
//
// A seed determines the operations and the options. CI runs the same seeds each time on purpose, so that
// a failure there is of the change that it tests; long runs take others. Pebble's metamorphic test has the idea.
func TestMetamorphic(t *testing.T) {
	t.Parallel()
	runs := *metamorphicRuns
	switch {
	case runs > 0:
	case testing.Short():
		runs = 3
	default:
		runs = testkit.Size(8, 30)
	}
	total, successes := metamorphicCounts{}, map[string]int{}
	for seed := *metamorphicSeed; seed < *metamorphicSeed+uint64(runs); seed++ {
		steps := metamorphicSteps(seed)
		base := &metamorphicRun{t: t, seed: seed, successes: map[string]int{}, options: metamorphicOptions{PageLimit: 1000, ClockSteps: 1}}
		want := base.all(steps, nil)
		random := rand.New(rand.NewPCG(seed, 2))
		for range 2 {
			r := &metamorphicRun{t: t, seed: seed, random: random, options: metamorphicChoice(random, seed), successes: successes}
			r.all(steps, want)
			if t.Failed() {
				return
			}
			total.add(r.counts)
		}
	}
	t.Logf("%d seeds: %+v", runs, total)
	if total.Expired < runs || total.Restarts < runs/3 || runs >= 8 && total.Restores == 0 {
		t.Error("too mild: few expiries, restarts or restores")
	}
	for kind, n := range successes {
		if n == 0 && runs >= 3 {
			t.Errorf("too mild: no %s has succeeded", kind)
		}
	}
}

// metamorphicOptions are what a client should not notice.
type metamorphicOptions struct {
	Options
	Place         string // "": in memory; memory: files in memory; disk
	Extra         bool   // table plain has an index and a stream
	Early         bool   // the index byColor is there from the beginning
	PageLimit     int
	ClockSteps    int // into which an advance is divided, at most
	Interruptions int // how often one of a hundred operations follows a restart
}

func (o metamorphicOptions) String() string {
	return fmt.Sprintf("place %q, durability %s, shards %d, shard bytes %d, cache bytes %d, expiry %v %s, extra %t, early %t, page limit %d, clock steps %d, interruptions %d",
		o.Place, o.Durability, o.Shards, o.ShardBytes, o.CacheBytes, o.Expiry, o.ExpiryDelay, o.Extra, o.Early, o.PageLimit, o.ClockSteps, o.Interruptions)
}

type metamorphicCounts struct{ Answers, Refusals, Expired, Restarts, Restores int }

func (c *metamorphicCounts) add(d metamorphicCounts) {
	c.Answers += d.Answers
	c.Refusals += d.Refusals
	c.Expired += d.Expired
	c.Restarts += d.Restarts
	c.Restores += d.Restores
}

func metamorphicChoice(random *rand.Rand, seed uint64) (o metamorphicOptions) {
	o.Place = []string{"", "memory", "disk", "disk"}[random.IntN(4)]
	if o.Place != "" {
		o.Durability = []Durability{Sync, Async}[random.IntN(2)]
		o.Interruptions = random.IntN(6)
	}
	o.Shards = []int{1, 2, 4, 13, 64}[random.IntN(5)]
	o.ShardBytes = []int64{4 << 10, 64 << 10, 64 << 20}[random.IntN(3)]
	o.CacheBytes = []int64{1 << 20, 64 << 20}[random.IntN(2)]
	o.Extra, o.Early = random.IntN(2) == 0, random.IntN(2) == 0
	o.PageLimit, o.ClockSteps = 1+random.IntN(30), 1+random.IntN(5)
	if coarse(seed) && random.IntN(2) == 0 {
		o.Expiry, o.ExpiryDelay = ExpiryAWS, "fixed:0s"
	}
	return o
}

// coarse reports whether the operations of a seed are at least five seconds away from every
// deadline, and write no item that has expired at once. Then it makes no difference that aws expiry
// removes an item, at the earliest, at the first whole second after its deadline.
func coarse(seed uint64) bool { return seed%2 == 1 }

// metamorphicStart is the first instant. It lies between two deadlines of a coarse seed.
var metamorphicStart = storedStart.Add(5 * time.Second)

const coarseStep = 10 * time.Second

// metamorphicStep is an operation of the API, an advance of the clock, or a new index.
type metamorphicStep struct {
	Operation string
	In        object
	Pages     bool          // all pages of the answer count
	Advance   time.Duration // of the clock
	AddIndex  bool          // byColor
}

// kind is the operation, with the expression of an update or the text of a statement.
func (s metamorphicStep) kind() string {
	for _, member := range []string{"UpdateExpression", "Statement", "IndexName"} {
		if text, ok := s.In[member].(string); ok {
			return s.Operation + " " + text
		}
	}
	return s.Operation
}

// metamorphicSteps returns the operations of a seed.
func metamorphicSteps(seed uint64) (steps []metamorphicStep) {
	const n = 250
	g := &metamorphicGenerator{random: rand.New(rand.NewPCG(seed, 1)), now: metamorphicStart, coarse: coarse(seed)}
	for i := range n {
		if i == n/2 {
			steps = append(steps, metamorphicStep{AddIndex: true})
			g.colored = true
		}
		steps = append(steps, g.step())
	}
	for range 3 {
		steps = append(steps, metamorphicStep{Advance: 5 * time.Minute})
		for range 10 {
			steps = append(steps, g.reading())
		}
	}
	return steps
}

type metamorphicGenerator struct {
	random  *rand.Rand
	now     time.Time
	coarse  bool
	colored bool // byColor can be read
}

func (g *metamorphicGenerator) n(most int) int { return g.random.IntN(most) }

func numberValue(n int) object { return object{"N": fmt.Sprint(n)} }

func (g *metamorphicGenerator) table() string { return []string{"main", "plain"}[g.n(2)] }

func (g *metamorphicGenerator) key(table string) object {
	if table == "plain" {
		return object{"pk": object{"S": fmt.Sprintf("k%d", g.n(20))}}
	}
	return object{"pk": object{"S": fmt.Sprintf("p%d", g.n(4))}, "sk": numberValue(g.n(12) - 6)}
}

func (g *metamorphicGenerator) item(table string) object {
	it := g.key(table)
	it["n"] = object{"N": []string{"1", "-7.5", "1e20", "0.000001", "42"}[g.n(5)]}
	it["text"] = object{"S": randomText(g.random, g.n(200))}
	if g.n(3) > 0 {
		it["g"], it["r"] = object{"S": fmt.Sprintf("g%d", g.n(3))}, numberValue(g.n(50))
	}
	if g.n(3) > 0 {
		it["color"] = object{"S": []string{"red", "green", "blue"}[g.n(3)]}
	}
	if g.n(3) == 0 {
		it["set"] = object{"SS": []string{"a", fmt.Sprint("b", g.n(5))}}
		it["list"] = object{"L": []object{numberValue(g.n(9)), {"BOOL": true}, {"NULL": true}}}
		it["map"] = object{"M": object{"deep": object{"M": object{"n": numberValue(g.n(9))}}}}
	}
	if at, ok := g.deadline(); ok {
		it["ttl"] = at
	}
	return it
}

func (g *metamorphicGenerator) deadline() (object, bool) {
	var after time.Duration
	switch g.n(6) {
	case 0, 1:
		after = time.Duration(1+g.n(60_000)) * time.Millisecond
	case 2:
		after = time.Duration(1+g.n(600)) * time.Second
	case 3:
		after = time.Duration(1+g.n(100)) * time.Hour
	case 4:
		if g.coarse {
			return nil, false
		}
		after = -time.Duration(g.n(100_000)) * time.Millisecond
	default:
		return nil, false
	}
	at := g.now.Add(after)
	if g.coarse {
		at = at.Truncate(coarseStep).Add(coarseStep)
	}
	ms := at.UnixMilli()
	return object{"N": fmt.Sprintf("%d.%03d", ms/1000, ms%1000)}, true
}

// condition adds a condition to a write, or none.
func (g *metamorphicGenerator) condition(in object) object {
	switch g.n(5) {
	case 0:
		in["ConditionExpression"] = "attribute_exists(pk)"
	case 1:
		in["ConditionExpression"] = "attribute_not_exists(pk)"
	case 2:
		in["ConditionExpression"] = "attribute_not_exists(color) OR color <> :red"
		values, _ := in["ExpressionAttributeValues"].(object)
		if values == nil {
			values = object{}
		}
		values[":red"] = object{"S": "red"}
		in["ExpressionAttributeValues"] = values
	}
	return in
}

func (g *metamorphicGenerator) put() object {
	table := g.table()
	return g.condition(object{"TableName": table, "Item": g.item(table)})
}

func (g *metamorphicGenerator) remove() object {
	table := g.table()
	return g.condition(object{"TableName": table, "Key": g.key(table)})
}

func (g *metamorphicGenerator) update() object {
	table := g.table()
	in := object{"TableName": table, "Key": g.key(table)}
	switch g.n(5) {
	case 0:
		in["UpdateExpression"], in["ExpressionAttributeValues"] = "ADD points :n, #set :s", object{":n": numberValue(g.n(9)), ":s": object{"SS": []string{fmt.Sprint("c", g.n(3))}}}
		in["ExpressionAttributeNames"] = object{"#set": "set"}
	case 1:
		in["UpdateExpression"] = "REMOVE #ttl, color"
		in["ExpressionAttributeNames"] = object{"#ttl": "ttl"}
	case 2:
		in["UpdateExpression"] = "SET #list = list_append(if_not_exists(#list, :none), :l)"
		in["ExpressionAttributeNames"] = object{"#list": "list"}
		in["ExpressionAttributeValues"] = object{":none": object{"L": []object{}}, ":l": object{"L": []object{numberValue(g.n(9))}}}
	default:
		in["UpdateExpression"], in["ExpressionAttributeValues"] = "SET r = :r, g = :g", object{":r": numberValue(g.n(50)), ":g": object{"S": fmt.Sprintf("g%d", g.n(3))}}
		if at, ok := g.deadline(); ok {
			in["UpdateExpression"], in["ExpressionAttributeNames"] = "SET r = :r, g = :g, #ttl = :ttl", object{"#ttl": "ttl"}
			in["ExpressionAttributeValues"].(object)[":ttl"] = at
		}
	}
	return g.condition(in)
}

func (g *metamorphicGenerator) step() metamorphicStep {
	with := func(in object, names ...string) object {
		if name := names[g.n(len(names))]; name != "" {
			in["ReturnValues"] = name
		}
		return in
	}
	switch g.n(16) {
	case 0, 1, 2:
		return metamorphicStep{Operation: "PutItem", In: with(g.put(), "", "ALL_OLD")}
	case 3, 4:
		return metamorphicStep{Operation: "UpdateItem", In: with(g.update(), "", "ALL_OLD", "ALL_NEW", "UPDATED_OLD", "UPDATED_NEW")}
	case 5:
		return metamorphicStep{Operation: "DeleteItem", In: with(g.remove(), "", "ALL_OLD")}
	case 6:
		return g.transaction()
	case 7:
		return g.batch()
	case 8:
		return g.statement()
	case 9, 10:
		by := []time.Duration{time.Millisecond, time.Second, 20 * time.Second, time.Duration(g.n(100_000)) * time.Millisecond}[g.n(4)]
		if g.coarse {
			by = by.Truncate(coarseStep) + coarseStep
		}
		g.now = g.now.Add(by)
		return metamorphicStep{Advance: by}
	default:
		return g.reading()
	}
}

func (g *metamorphicGenerator) transaction() metamorphicStep {
	var items []object
	seen := map[string]bool{}
	for range 1 + g.n(4) {
		action, in := "Put", object{}
		switch g.n(4) {
		case 0:
			in = g.put()
		case 1:
			action, in = "Update", g.update()
		case 2:
			action, in = "Delete", g.remove()
		case 3:
			table := g.table()
			action, in = "ConditionCheck", object{"TableName": table, "Key": g.key(table), "ConditionExpression": "attribute_not_exists(color)"}
		}
		table := in["TableName"].(string)
		key, ok := in["Key"].(object)
		if !ok {
			key = object{"pk": in["Item"].(object)["pk"], "sk": in["Item"].(object)["sk"]}
		}
		if id := table + canonical([]any{key["pk"], key["sk"]}); !seen[id] {
			seen[id] = true
			in["ReturnValuesOnConditionCheckFailure"] = "ALL_OLD"
			items = append(items, object{action: in})
		}
	}
	return metamorphicStep{Operation: "TransactWriteItems", In: object{"TransactItems": items}}
}

func (g *metamorphicGenerator) batch() metamorphicStep {
	requests, seen := map[string][]object{}, map[string]bool{}
	for range 1 + g.n(10) {
		table := g.table()
		it := g.item(table)
		if id := table + canonical([]any{it["pk"], it["sk"]}); !seen[id] {
			seen[id] = true
			requests[table] = append(requests[table], object{"PutRequest": object{"Item": it}})
		}
	}
	return metamorphicStep{Operation: "BatchWriteItem", In: object{"RequestItems": requests}}
}

func (g *metamorphicGenerator) statement() metamorphicStep {
	pk := object{"S": fmt.Sprintf("k%d", g.n(20))}
	in := object{"Statement": `SELECT * FROM "plain" WHERE pk = ?`, "Parameters": []object{pk}}
	switch g.n(4) {
	case 0:
		in["Statement"], in["Parameters"] = `UPDATE "plain" SET r = ? WHERE pk = ?`, []object{numberValue(g.n(50)), pk}
	case 1:
		in["Statement"] = `DELETE FROM "plain" WHERE pk = ?`
	case 2:
		in["Statement"] = `INSERT INTO "plain" VALUE {'pk': ?, 'color': 'red'}`
	}
	return metamorphicStep{Operation: "ExecuteStatement", In: in}
}

// reading returns an operation that changes nothing.
func (g *metamorphicGenerator) reading() metamorphicStep {
	switch g.n(8) {
	case 0:
		table := g.table()
		return metamorphicStep{Operation: "GetItem", In: object{"TableName": table, "Key": g.key(table), "ConsistentRead": g.n(2) == 0}}
	case 1:
		var gets []object
		for range 1 + g.n(4) {
			table := g.table()
			gets = append(gets, object{"Get": object{"TableName": table, "Key": g.key(table)}})
		}
		return metamorphicStep{Operation: "TransactGetItems", In: object{"TransactItems": gets}}
	case 2:
		in := object{"TableName": g.table()}
		if g.n(2) == 0 {
			in["FilterExpression"], in["ExpressionAttributeValues"] = "n > :n", object{":n": numberValue(0)}
		}
		if g.n(2) == 0 {
			in["TotalSegments"], in["Segment"] = 3, g.n(3)
		}
		return metamorphicStep{Operation: "Scan", In: in, Pages: true}
	case 3:
		return g.query("byGroup", "g = :k AND r > :n", object{"S": fmt.Sprintf("g%d", g.n(3))}, g.n(30))
	case 4:
		return g.query("byRank", "pk = :k AND r > :n", object{"S": fmt.Sprintf("p%d", g.n(4))}, g.n(30))
	case 5:
		if g.colored {
			return g.query("byColor", "color = :k AND sk > :n", object{"S": "red"}, -3)
		}
	}
	return g.query("", "pk = :k AND sk > :n", object{"S": fmt.Sprintf("p%d", g.n(4))}, g.n(8)-6)
}

func (g *metamorphicGenerator) query(index, condition string, key object, above int) metamorphicStep {
	in := object{"TableName": "main", "KeyConditionExpression": condition, "ExpressionAttributeValues": object{":k": key, ":n": numberValue(above)}, "ScanIndexForward": g.n(2) == 0}
	if index != "" {
		in["IndexName"] = index
	}
	if g.n(3) == 0 {
		in["FilterExpression"] = "attribute_exists(color)"
	}
	if g.n(3) == 0 {
		in["ProjectionExpression"] = "pk, sk, r, #ttl"
		in["ExpressionAttributeNames"] = object{"#ttl": "ttl"}
	}
	return metamorphicStep{Operation: "Query", In: in, Pages: true}
}

// metamorphicRun makes the steps of a seed with some options.
type metamorphicRun struct {
	t       *testing.T
	seed    uint64
	random  *rand.Rand // for interruptions; nil: there are none
	options metamorphicOptions
	base    string // with all directories of a run on disk
	dir     string
	db      *DB
	e       endpoint
	now     time.Time
	counts  metamorphicCounts

	successes map[string]int // by the kind of the operation
}

// all makes the steps and returns the answers. The first one that differs from want fails the test.
func (r *metamorphicRun) all(steps []metamorphicStep, want []string) (answers []string) {
	switch r.options.Place {
	case "memory":
		r.dir, r.options.fs = "data", kv.NewMemFS()
	case "disk":
		r.base = r.t.TempDir()
		r.dir = filepath.Join(r.base, "data")
		defer os.RemoveAll(r.base) // a long run has thousands
	}
	r.options.Frozen, r.options.Start, r.options.ClockControl, r.now = true, metamorphicStart, ClockControlOn, metamorphicStart
	r.open()
	defer func() { r.must(r.db.Close()) }()
	r.create()
	answer := func(where string, text string) bool {
		answers = append(answers, text)
		if n := len(answers) - 1; want != nil && text != want[n] {
			r.t.Errorf("answer %d, at %s, differs.\noperation: %s\noptions: %s\nwant: %s\ngot:  %s\nrepeat: go test . -run 'TestMetamorphic$' -metamorphic-seed %d -metamorphic-runs 1",
				n, stamp(r.now), where, r.options, want[n], text, r.seed)
			return false
		}
		return true
	}
	for _, s := range steps {
		if r.random != nil && r.random.IntN(100) < r.options.Interruptions {
			r.interrupt()
		}
		if !answer(canonical(s), r.step(s)) {
			return nil
		}
	}
	for _, part := range r.rest() {
		if !answer("the contents at the end", part) {
			return nil
		}
	}
	r.must(r.db.engine.Verify(r.t.Context()))
	r.counts.Answers = len(answers)
	return answers
}

func (r *metamorphicRun) must(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatalf("seed %d, %s: %v", r.seed, r.options, err)
	}
}

func (r *metamorphicRun) open() {
	r.t.Helper()
	db, err := Open(r.dir, r.options.Options)
	r.must(err)
	r.db, r.e = db, inProcessEndpoint(db)
	if moved, err := db.Clock().Set(r.t.Context(), r.now); err != nil || moved.Unfinished {
		r.must(fmt.Errorf("the clock stands at %v, want %s: %v", moved, r.now, err))
	}
}

// interrupt opens the directory again, or goes on with its restored backup, checked before.
func (r *metamorphicRun) interrupt() {
	r.t.Helper()
	backup := r.options.Place == "disk" && r.random.IntN(3) == 0
	next := r.dir
	if backup {
		place := filepath.Join(r.base, fmt.Sprintf("backups-%d", r.counts.Restarts))
		id, err := r.db.Backup(r.t.Context(), place, 0)
		r.must(err)
		next = filepath.Join(r.base, fmt.Sprintf("restored-%d", r.counts.Restarts))
		r.must(Restore(r.t.Context(), place, id, next))
		r.counts.Restores++
	}
	r.must(r.db.Close())
	r.dir = next
	r.counts.Restarts++
	if r.options.Place == "disk" {
		var faults []error
		err := Check(r.t.Context(), r.dir, func(int64, int64) {}, func(f Fault) { faults = append(faults, fmt.Errorf("fault: %v", f)) })
		r.must(errors.Join(append(faults, err)...))
	}
	r.open()
}

// create makes the tables.
func (r *metamorphicRun) create() {
	r.t.Helper()
	attributes := func(names ...string) (all []object) {
		for _, n := range names {
			all = append(all, object{"AttributeName": n, "AttributeType": map[bool]string{true: "N", false: "S"}[n == "sk" || n == "r"]})
		}
		return all
	}
	main := object{
		"TableName": "main", "BillingMode": "PAY_PER_REQUEST", "AttributeDefinitions": attributes("pk", "sk", "g", "r"), "KeySchema": keySchema("pk", "sk"),
		"GlobalSecondaryIndexes": []object{globalIndex("byGroup", "g", "r")}, "LocalSecondaryIndexes": []object{globalIndex("byRank", "pk", "r")},
		"StreamSpecification": object{"StreamEnabled": true, "StreamViewType": "NEW_AND_OLD_IMAGES"},
	}
	if r.options.Early {
		main["AttributeDefinitions"] = attributes("pk", "sk", "g", "r", "color")
		main["GlobalSecondaryIndexes"] = append(main["GlobalSecondaryIndexes"].([]object), globalIndex("byColor", "color", "sk"))
	}
	plain := object{"TableName": "plain", "BillingMode": "PAY_PER_REQUEST", "AttributeDefinitions": attributes("pk"), "KeySchema": keySchema("pk")}
	if r.options.Extra {
		plain["AttributeDefinitions"], plain["GlobalSecondaryIndexes"] = attributes("pk", "color"), []object{globalIndex("unread", "color")}
		plain["StreamSpecification"] = object{"StreamEnabled": true, "StreamViewType": "KEYS_ONLY"}
	}
	for _, in := range []object{main, plain} {
		_, err := r.e.call("CreateTable", in)
		r.must(err)
		_, err = r.e.call("UpdateTimeToLive", object{"TableName": in["TableName"], "TimeToLiveSpecification": object{"Enabled": true, "AttributeName": "ttl"}})
		r.must(err)
	}
}

func keySchema(names ...string) (keys []object) {
	for i, name := range names {
		keys = append(keys, object{"AttributeName": name, "KeyType": []string{"HASH", "RANGE"}[i]})
	}
	return keys
}

func globalIndex(name string, key ...string) object {
	return object{"IndexName": name, "KeySchema": keySchema(key...), "Projection": object{"ProjectionType": "ALL"}}
}

// step makes a step and returns its answer.
func (r *metamorphicRun) step(s metamorphicStep) string {
	r.t.Helper()
	switch {
	case s.AddIndex:
		if !r.options.Early {
			r.addIndex()
		}
		return "there is an index byColor"
	case s.Advance > 0:
		r.advance(s.Advance)
		return "the clock shows " + stamp(r.db.Clock().Now())
	case s.Pages:
		return r.pages(s)
	}
	out, err := r.e.call(s.Operation, s.In)
	if r.judge(s, err); err != nil {
		return err.Error()
	}
	return canonical(out)
}

// judge counts an answer.
func (r *metamorphicRun) judge(s metamorphicStep, err error) {
	if err != nil {
		r.counts.Refusals++
		r.successes[s.kind()] += 0
	} else {
		r.successes[s.kind()]++
	}
}

// pages returns the items of all pages, and how many were read for them.
func (r *metamorphicRun) pages(s metamorphicStep) string {
	in := maps.Clone(s.In)
	in["Limit"] = r.options.PageLimit
	items, scanned := []any{}, 0.0
	for {
		out, err := r.e.call(s.Operation, in)
		if r.judge(s, err); err != nil {
			return err.Error()
		}
		page, _ := out["Items"].([]any)
		items, scanned = append(items, page...), scanned+out["ScannedCount"].(float64)
		next, more := out["LastEvaluatedKey"]
		if !more {
			return fmt.Sprintf("%v scanned: %s", scanned, canonical(items))
		}
		in["ExclusiveStartKey"] = next
	}
}

func (r *metamorphicRun) advance(by time.Duration) {
	r.t.Helper()
	to := r.now.Add(by)
	for n := r.options.ClockSteps; n > 0; n-- {
		next := to
		if n > 1 {
			next = r.now.Add(time.Duration(r.random.Int64N(int64(to.Sub(r.now))/int64(time.Millisecond)+1)) * time.Millisecond)
		}
		moved, err := r.db.Clock().Set(r.t.Context(), next)
		r.must(err)
		if moved.Unfinished {
			r.must(fmt.Errorf("the advance to %s is unfinished: %v", stamp(next), moved.Busy))
		}
		r.now = next
		r.counts.Expired += int(moved.Expired)
	}
}

func (r *metamorphicRun) addIndex() {
	r.t.Helper()
	_, err := r.e.call("UpdateTable", object{
		"TableName": "main", "AttributeDefinitions": []object{{"AttributeName": "color", "AttributeType": "S"}, {"AttributeName": "sk", "AttributeType": "N"}},
		"GlobalSecondaryIndexUpdates": []object{{"Create": globalIndex("byColor", "color", "sk")}},
	})
	r.must(err)
	for limit := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		out, err := r.e.call("DescribeTable", object{"TableName": "main"})
		r.must(err)
		for _, index := range out["Table"].(object)["GlobalSecondaryIndexes"].([]any) {
			if index := index.(object); index["IndexName"] == "byColor" && index["IndexStatus"] == "ACTIVE" {
				return
			}
		}
		if time.Now().After(limit) {
			r.must(errors.New("the index is not built within a minute"))
		}
	}
}

// rest returns the contents of the tables at the end, and the stream records of each key in order.
func (r *metamorphicRun) rest() (parts []string) {
	r.t.Helper()
	got := r.e.read(r.now.UnixMilli(), nil)
	r.must(errors.Join(got.failures...))
	for _, table := range []string{"main", "plain"} {
		parts = append(parts, canonical(got.Tables[table].Items))
	}
	parts = append(parts, canonical(got.Tables["main"].Entries))
	out, err := r.e.call("DescribeTable", object{"TableName": "main"})
	r.must(err)
	records := map[string][]string{}
	r.must(r.e.records(out["Table"].(object)["LatestStreamArn"].(string), func(record string) {
		key := strings.Fields(record)[1]
		records[key] = append(records[key], record)
	}))
	for _, key := range slices.Sorted(maps.Keys(records)) {
		parts = append(parts, strings.Join(records[key], "\n"))
	}
	return parts
}
