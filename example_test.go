package mayfly_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	streamtypes "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"

	"github.com/mayflydb/mayfly"
)

// A session ends in half an hour: the clock moves there, and the session is gone to the
// millisecond.
func Example() {
	ctx := context.Background()
	db, err := mayfly.Open("", mayfly.Options{Start: time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC), Frozen: true, Shards: 1})
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	stream := createSessions(ctx, db)

	deadline := time.Date(2030, 1, 1, 12, 30, 0, 0, time.UTC)
	_, err = db.DynamoDB().PutItem(ctx, &dynamodb.PutItemInput{
		TableName: aws.String("sessions"),
		Item: map[string]types.AttributeValue{
			"id":      &types.AttributeValueMemberS{Value: "s-1"},
			"user":    &types.AttributeValueMemberS{Value: "ada"},
			"expires": &types.AttributeValueMemberN{Value: fmt.Sprint(deadline.Unix())},
		},
	})
	if err != nil {
		log.Fatal(err)
	}

	moveTo(ctx, db, deadline.Add(-time.Millisecond))
	moveTo(ctx, db, deadline)
	printRecords(ctx, db, stream)
	// Output:
	// 12:29:59.999: 0 expired, the session is there: true
	// 12:30:00.000: 1 expired, the session is there: false
	// INSERT s-1 of ada
	// REMOVE s-1 of ada by dynamodb.amazonaws.com
}

// createSessions creates a table whose items expire, with a stream, and returns the stream's ARN.
func createSessions(ctx context.Context, db *mayfly.DB) *string {
	created, err := db.DynamoDB().CreateTable(ctx, &dynamodb.CreateTableInput{
		TableName:            aws.String("sessions"),
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("id"), AttributeType: types.ScalarAttributeTypeS}},
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("id"), KeyType: types.KeyTypeHash}},
		BillingMode:          types.BillingModePayPerRequest,
		StreamSpecification: &types.StreamSpecification{
			StreamEnabled: aws.Bool(true), StreamViewType: types.StreamViewTypeNewAndOldImages,
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	_, err = db.DynamoDB().UpdateTimeToLive(ctx, &dynamodb.UpdateTimeToLiveInput{
		TableName: aws.String("sessions"),
		TimeToLiveSpecification: &types.TimeToLiveSpecification{
			Enabled: aws.Bool(true), AttributeName: aws.String("expires"),
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	return created.TableDescription.LatestStreamArn
}

// moveTo moves the clock, and prints whether the session still exists.
func moveTo(ctx context.Context, db *mayfly.DB, to time.Time) {
	moved, err := db.Clock().Set(ctx, to)
	if err != nil {
		log.Fatal(err)
	}
	got, err := db.DynamoDB().GetItem(ctx, &dynamodb.GetItemInput{
		TableName: aws.String("sessions"),
		Key:       map[string]types.AttributeValue{"id": &types.AttributeValueMemberS{Value: "s-1"}},
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s: %d expired, the session is there: %t\n", moved.To.Format("15:04:05.000"), moved.Expired, got.Item != nil)
}

// printRecords prints the records of the stream, which has one shard here.
func printRecords(ctx context.Context, db *mayfly.DB, stream *string) {
	description, err := db.Streams().DescribeStream(ctx, &dynamodbstreams.DescribeStreamInput{StreamArn: stream})
	if err != nil {
		log.Fatal(err)
	}
	iterator, err := db.Streams().GetShardIterator(ctx, &dynamodbstreams.GetShardIteratorInput{
		StreamArn:         stream,
		ShardId:           description.StreamDescription.Shards[0].ShardId,
		ShardIteratorType: streamtypes.ShardIteratorTypeTrimHorizon,
	})
	if err != nil {
		log.Fatal(err)
	}
	page, err := db.Streams().GetRecords(ctx, &dynamodbstreams.GetRecordsInput{ShardIterator: iterator.ShardIterator})
	if err != nil {
		log.Fatal(err)
	}
	for _, record := range page.Records {
		image := record.Dynamodb.NewImage
		if image == nil {
			image = record.Dynamodb.OldImage
		}
		id, user := image["id"].(*streamtypes.AttributeValueMemberS), image["user"].(*streamtypes.AttributeValueMemberS)
		fmt.Printf("%s %s of %s", record.EventName, id.Value, user.Value)
		if record.UserIdentity != nil {
			fmt.Printf(" by %s", aws.ToString(record.UserIdentity.PrincipalId))
		}
		fmt.Println()
	}
}
