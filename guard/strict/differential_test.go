package strict_test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/middleware"

	"github.com/mayflydb/mayfly"
	"github.com/mayflydb/mayfly/guard/strict"
)

var seedFlag = flag.Uint64("seed", 0, "seed of the differential test; 0: three fixed ones")

// pair is two databases: one is strict itself, and the other, which removes no expired items, is
// behind the rules.
type pair struct {
	t            *testing.T
	late, strict *mayfly.DB
	a, b         *dynamodb.Client // late behind the rules, strict
	r            *rand.Rand
}

// start is the instant at which both clocks begin.
var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// lateOptions configure a database in which expired items stay.
var lateOptions = mayfly.Options{Start: start, Frozen: true, Expiry: mayfly.ExpiryAWS, ExpiryDelay: "fixed:8784h"}

func open(t *testing.T, o mayfly.Options) *mayfly.DB {
	t.Helper()
	db, err := mayfly.Open("", o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

// guarded returns a client of a database behind rules, by the database's clock.
func guarded(db *mayfly.DB, rules strict.Rules) *dynamodb.Client {
	rules.Now = db.Clock().Now
	return dynamodb.New(db.DynamoDB().Options(), strict.Middleware(rules))
}

// TestSameAsStrict checks that for any request, an endpoint that removes nothing answers behind the
// rules as a strict database does.
func TestSameAsStrict(t *testing.T) {
	seeds := []uint64{1, 2, 3}
	if *seedFlag != 0 {
		seeds = []uint64{*seedFlag}
	}
	for _, seed := range seeds {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			late := open(t, lateOptions)
			compare(t, late, guarded(late, strict.Rules{Tables: map[string]string{"plain": "ttl", "keyed": ""}}), seed, steps())
		})
	}
}

func steps() int {
	if testing.Short() {
		return 400
	}
	return 4000
}

// compare makes random calls to the database behind a client, and to a strict one.
func compare(t *testing.T, late *mayfly.DB, a *dynamodb.Client, seed uint64, steps int) {
	t.Logf("seed %d: go test ./guard/strict -run %s -seed %d", seed, strings.SplitN(t.Name(), "/", 2)[0], seed)
	p := &pair{t: t, late: late, strict: open(t, mayfly.Options{Start: start, Frozen: true}), a: a, r: rand.New(rand.NewPCG(seed, 0))}
	p.b = p.strict.DynamoDB()
	for _, c := range []*dynamodb.Client{a, p.b} {
		makeTables(t, c)
	}
	for range steps {
		p.step()
	}
}

// step makes one call.
func (p *pair) step() {
	switch p.r.IntN(32) {
	case 0, 1:
		step := time.Duration(p.r.IntN(2000)) * time.Millisecond
		for _, db := range []*mayfly.DB{p.late, p.strict} {
			if _, err := db.Clock().Advance(p.t.Context(), step); err != nil {
				p.t.Fatal(err)
			}
		}
	case 2, 3, 4, 5:
		p.same(p.put())
	case 6, 7, 8, 9:
		p.same(p.update())
	case 10, 11:
		p.same(p.delete())
	case 12, 13:
		p.same(p.get())
	case 14, 15:
		p.same(p.query())
	case 16:
		p.same(p.scan())
	case 17:
		p.same(p.batchGet())
	case 18:
		p.same(p.batchWrite())
	case 19:
		p.same(p.transactGet())
	case 20, 21, 22, 23, 24:
		p.same(p.execute())
	case 25:
		p.same(p.batchExecute())
	case 26, 27:
		p.same(p.executeTransaction())
	default:
		p.same(p.transactWrite())
	}
}

// same makes a call to both, and compares the answers.
func (p *pair) same(request any, do func(context.Context, *dynamodb.Client) (any, error)) {
	p.t.Helper()
	outA, errA := do(p.t.Context(), p.a)
	outB, errB := do(p.t.Context(), p.b)
	gotA, gotB := shown(outA, errA), shown(outB, errB)
	if a, failed := gotA.(failure); failed && a.Code == "ValidationException" && strings.Contains(printed(request), `"other"`) {
		// of several faults, the other may come first: the endpoint checks unguarded tables itself
		if b, both := gotB.(failure); both {
			gotA, gotB = a.Code, b.Code
		}
	}
	if !reflect.DeepEqual(gotA, gotB) {
		p.t.Fatalf("at %v\n%T %s\nbehind the rules: %s\nstrict:           %s", p.strict.Clock().Now(), request, printed(request), printed(gotA), printed(gotB))
	}
}

// shown returns an answer without its permitted differences.
func shown(out any, err error) any {
	if api, ok := errors.AsType[smithy.APIError](err); ok {
		f := failure{Code: api.ErrorCode(), Message: api.ErrorMessage()}
		if failed, ok := errors.AsType[*types.ConditionalCheckFailedException](err); ok {
			f.Item = failed.Item
		}
		if cancelled, ok := errors.AsType[*types.TransactionCanceledException](err); ok {
			for _, r := range cancelled.CancellationReasons {
				f.Reasons = append(f.Reasons, failure{Code: aws.ToString(r.Code), Message: aws.ToString(r.Message), Item: r.Item})
			}
		}
		return f
	}
	if err != nil {
		return err.Error()
	}
	v := reflect.ValueOf(out).Elem()
	if f := v.FieldByName("ResultMetadata"); f.IsValid() {
		f.Set(reflect.ValueOf(middleware.Metadata{}))
	}
	if f := v.FieldByName("ScannedCount"); f.IsValid() {
		f.SetInt(0)
	}
	return out
}

type failure struct {
	Code, Message string
	Item          map[string]types.AttributeValue
	Reasons       []failure
}

func printed(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprintf("%+v", v)
	}
	return string(b)
}

// makeTables creates two guarded tables and an unguarded one.
func makeTables(t *testing.T, c *dynamodb.Client) {
	t.Helper()
	attribute := func(name string, typ types.ScalarAttributeType) types.AttributeDefinition {
		return types.AttributeDefinition{AttributeName: aws.String(name), AttributeType: typ}
	}
	key := func(names ...string) (schema []types.KeySchemaElement) {
		for i, name := range names {
			schema = append(schema, types.KeySchemaElement{AttributeName: aws.String(name), KeyType: []types.KeyType{types.KeyTypeHash, types.KeyTypeRange}[i]})
		}
		return schema
	}
	index := func(name string, typ types.ProjectionType, nonKey []string, keys ...string) types.GlobalSecondaryIndex {
		return types.GlobalSecondaryIndex{IndexName: aws.String(name), KeySchema: key(keys...), Projection: &types.Projection{ProjectionType: typ, NonKeyAttributes: nonKey}}
	}
	for _, table := range []string{"plain", "keyed", "other"} {
		in := &dynamodb.CreateTableInput{
			TableName: aws.String(table), BillingMode: types.BillingModePayPerRequest, KeySchema: key("pk", "sk"),
			AttributeDefinitions: []types.AttributeDefinition{attribute("pk", "S"), attribute("sk", "N"), attribute("g", "S"), attribute("a", "N")},
			GlobalSecondaryIndexes: []types.GlobalSecondaryIndex{
				index("all", types.ProjectionTypeAll, nil, "g", "a"),
				index("keys", types.ProjectionTypeKeysOnly, nil, "g"),
				index("some", types.ProjectionTypeInclude, []string{"b"}, "g", "sk"),
				index("timed", types.ProjectionTypeInclude, []string{"ttl", "b"}, "g"),
			},
			LocalSecondaryIndexes: []types.LocalSecondaryIndex{
				{IndexName: aws.String("local"), KeySchema: key("pk", "a"), Projection: &types.Projection{ProjectionType: types.ProjectionTypeKeysOnly}},
			},
		}
		if table == "keyed" {
			in.AttributeDefinitions = append(in.AttributeDefinitions, attribute("ttl", "N"))
			in.GlobalSecondaryIndexes = append(in.GlobalSecondaryIndexes, index("windows", types.ProjectionTypeKeysOnly, nil, "g", "ttl"))
		}
		if _, err := c.CreateTable(t.Context(), in); err != nil {
			t.Fatal(err)
		}
		if table == "other" {
			continue
		}
		if _, err := c.UpdateTimeToLive(t.Context(), &dynamodb.UpdateTimeToLiveInput{TableName: aws.String(table),
			TimeToLiveSpecification: &types.TimeToLiveSpecification{Enabled: aws.Bool(true), AttributeName: aws.String("ttl")}}); err != nil {
			t.Fatal(err)
		}
	}
}
