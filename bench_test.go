package mayfly

import (
	"fmt"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"

	"github.com/mayflydb/mayfly/internal/store/dynamo"
	"github.com/mayflydb/mayfly/internal/store/service"
)

// These benchmarks compare the SDK over the in-process transport with the same operation called
// directly, in CPU time of the whole process (cpu-ns/op), which includes the collector on another
// core. Compare pairs of one run:
//
//	go test -run '^$' -bench InProcess -count 6 .

// cpuTime returns the CPU time of the process so far.
func cpuTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// measure runs op and reports its CPU time in addition to the usual figures.
func measure(b *testing.B, op func(i int) error) {
	b.ReportAllocs()
	before, i := cpuTime(b), 0
	for b.Loop() {
		if err := op(i); err != nil {
			b.Fatal(err)
		}
		i++
	}
	b.ReportMetric(float64(cpuTime(b)-before)/float64(i), "cpu-ns/op")
}

const benchKeys = 1000

// benchDB returns a database with a table of items with 8 attributes and about 400 bytes.
func benchDB(b *testing.B) (*DB, *service.Service) {
	db := open(b, "", Options{})
	makeTable(b, db.DynamoDB(), "bench")
	for i := range benchKeys {
		if _, err := db.DynamoDB().PutItem(b.Context(), benchPut(i)); err != nil {
			b.Fatal(err)
		}
	}
	return db, service.New(service.Options{Engine: db.engine})
}

const benchText = "a value of about sixty characters, as they are found in events"

func benchItem(i int) map[string]types.AttributeValue {
	return map[string]types.AttributeValue{
		"pk": &types.AttributeValueMemberS{Value: benchKey(i)},
		"a":  &types.AttributeValueMemberS{Value: benchText},
		"b":  &types.AttributeValueMemberS{Value: benchText},
		"c":  &types.AttributeValueMemberS{Value: benchText},
		"d":  &types.AttributeValueMemberS{Value: benchText},
		"n":  &types.AttributeValueMemberN{Value: strconv.Itoa(i)},
		"t":  &types.AttributeValueMemberBOOL{Value: true},
		"z":  &types.AttributeValueMemberS{Value: benchText},
	}
}

func benchKey(i int) string { return fmt.Sprintf("key-%06d", i%benchKeys) }

func benchPut(i int) *dynamodb.PutItemInput {
	return &dynamodb.PutItemInput{TableName: aws.String("bench"), Item: benchItem(i)}
}

func directItem(i int) service.ItemArg {
	n, err := dynamo.AppendNumber(nil, strconv.AppendInt(nil, int64(i), 10))
	if err != nil {
		panic(err) // a decimal integer is a number
	}
	var item dynamo.Builder
	item.Set("pk", dynamo.AppendString(nil, benchKey(i)))
	for _, name := range []string{"a", "b", "c", "d", "z"} {
		item.Set(name, dynamo.AppendString(nil, benchText))
	}
	item.Set("n", dynamo.AppendN(nil, n))
	item.Set("t", dynamo.AppendBool(nil, true))
	return service.ItemArg{Item: item.Item()}
}

func directKey(i int) service.ItemArg {
	var key dynamo.Builder
	key.Set("pk", dynamo.AppendString(nil, benchKey(i)))
	return service.ItemArg{Item: key.Item()}
}

func BenchmarkInProcessGetItem(b *testing.B) {
	db, direct := benchDB(b)
	b.Run("direct", func(b *testing.B) {
		measure(b, func(i int) error {
			_, err := direct.GetItem(b.Context(), &service.GetItemInput{TableName: service.Some("bench"), Key: directKey(i)})
			return err
		})
	})
	b.Run("sdk", func(b *testing.B) {
		measure(b, func(i int) error {
			_, err := db.DynamoDB().GetItem(b.Context(), &dynamodb.GetItemInput{
				TableName: aws.String("bench"),
				Key:       map[string]types.AttributeValue{"pk": &types.AttributeValueMemberS{Value: benchKey(i)}},
			})
			return err
		})
	})
}

func BenchmarkInProcessPutItem(b *testing.B) {
	db, direct := benchDB(b)
	b.Run("direct", func(b *testing.B) {
		measure(b, func(i int) error {
			_, err := direct.PutItem(b.Context(), &service.WriteInput{TableName: service.Some("bench"), Item: directItem(i)})
			return err
		})
	})
	b.Run("sdk", func(b *testing.B) {
		measure(b, func(i int) error {
			_, err := db.DynamoDB().PutItem(b.Context(), benchPut(i))
			return err
		})
	})
}

func BenchmarkInProcessBatchWriteItem25(b *testing.B) {
	db, direct := benchDB(b)
	b.Run("direct", func(b *testing.B) {
		measure(b, func(i int) error {
			requests := make([]service.WriteRequest, 25)
			for j := range requests {
				item := directItem(i*25 + j)
				requests[j].Put = &item
			}
			_, err := direct.BatchWriteItem(b.Context(), &service.BatchWriteItemInput{
				RequestItems: []service.BatchWriteTable{{Table: "bench", Requests: requests}},
			})
			return err
		})
	})
	b.Run("sdk", func(b *testing.B) {
		measure(b, func(i int) error {
			requests := make([]types.WriteRequest, 25)
			for j := range requests {
				requests[j].PutRequest = &types.PutRequest{Item: benchItem(i*25 + j)}
			}
			_, err := db.DynamoDB().BatchWriteItem(b.Context(), &dynamodb.BatchWriteItemInput{
				RequestItems: map[string][]types.WriteRequest{"bench": requests},
			})
			return err
		})
	})
}

// A consumer in the process reads a page of a stream: 1,000 removals, each with an old image of
// about 400 bytes.
func BenchmarkInProcessGetRecords1000(b *testing.B) {
	db := open(b, "", Options{Shards: 1})
	start := db.Clock().Now().Add(time.Hour)
	makeTableWithView(b, db.DynamoDB(), "bench", types.StreamViewTypeOldImage)
	for i := range 1000 {
		in := benchPut(i)
		in.Item["ttl"] = &types.AttributeValueMemberN{Value: strconv.FormatInt(start.Unix(), 10)}
		if _, err := db.DynamoDB().PutItem(b.Context(), in); err != nil {
			b.Fatal(err)
		}
	}
	arn, shard := firstShard(b, db, "bench")
	inserts, err := db.Streams().GetRecords(b.Context(), &dynamodbstreams.GetRecordsInput{ShardIterator: oldest(b, db, arn, shard)})
	if err != nil || len(inserts.Records) != 1000 {
		b.Fatalf("%d records: %v", len(inserts.Records), err)
	}
	if _, err := db.Clock().Advance(b.Context(), 2*time.Hour); err != nil {
		b.Fatal(err)
	}
	direct := service.New(service.Options{Engine: db.engine})
	b.Run("direct", func(b *testing.B) {
		measure(b, func(int) error {
			out, err := direct.GetRecords(b.Context(), &service.GetRecordsInput{Iterator: service.Some(*inserts.NextShardIterator)})
			if err == nil && len(out.Records) != 1000 {
				err = fmt.Errorf("%d records", len(out.Records))
			}
			return err
		})
	})
	b.Run("sdk", func(b *testing.B) {
		measure(b, func(int) error {
			out, err := db.Streams().GetRecords(b.Context(), &dynamodbstreams.GetRecordsInput{ShardIterator: inserts.NextShardIterator})
			if err == nil && len(out.Records) != 1000 {
				err = fmt.Errorf("%d records", len(out.Records))
			}
			return err
		})
	})
}
