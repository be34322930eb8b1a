package mayfly_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	lambdatypes "github.com/aws/aws-sdk-go-v2/service/lambda/types"

	"github.com/mayflydb/mayfly"
	"github.com/mayflydb/mayfly/target"
)

// A trigger calls a Go function for each expired session, in place of the Lambda function in the
// event source mapping.
func ExampleDB_Transport() {
	ctx := context.Background()
	release := target.Func(func(_ context.Context, d target.Delivery) error {
		var event struct {
			Records []struct {
				Dynamodb struct {
					Keys struct{ ID struct{ S string } }
				}
			}
		}
		if err := json.Unmarshal(d.Body, &event); err != nil {
			return err
		}
		for _, record := range event.Records {
			fmt.Println("expired:", record.Dynamodb.Keys.ID.S)
		}
		return nil
	})
	db, err := mayfly.Open("", mayfly.Options{
		Start:   time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC),
		Targets: []target.Mapping{{ARN: "arn:aws:lambda:*:*:function:release", Target: release}},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	stream := createSessions(ctx, db)

	functions := lambda.New(lambda.Options{
		BaseEndpoint: aws.String("http://in.process"), Region: "us-east-1", Credentials: aws.AnonymousCredentials{},
		HTTPClient: &http.Client{Transport: db.Transport()},
	})
	_, err = functions.CreateEventSourceMapping(ctx, &lambda.CreateEventSourceMappingInput{
		EventSourceArn: stream, FunctionName: aws.String("release"), StartingPosition: lambdatypes.EventSourcePositionTrimHorizon,
		FilterCriteria: &lambdatypes.FilterCriteria{Filters: []lambdatypes.Filter{{Pattern: aws.String(
			`{"eventName":["REMOVE"],"userIdentity":{"type":["Service"],"principalId":["dynamodb.amazonaws.com"]}}`)}}},
	})
	if err != nil {
		log.Fatal(err)
	}

	_, err = db.DynamoDB().PutItem(ctx, &dynamodb.PutItemInput{TableName: aws.String("sessions"), Item: map[string]types.AttributeValue{
		"id":      &types.AttributeValueMemberS{Value: "s-1"},
		"expires": &types.AttributeValueMemberN{Value: fmt.Sprint(db.Clock().Now().Add(time.Hour).Unix())},
	}})
	if err != nil {
		log.Fatal(err)
	}
	if _, err := db.Clock().Advance(ctx, 2*time.Hour); err != nil {
		log.Fatal(err)
	}
	// Output: expired: s-1
}
