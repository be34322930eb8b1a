package mayfly_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly"
)

// A table is exported to a directory, which requests name as a bucket.
func ExampleBucketDir() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	db, err := mayfly.Open("", mayfly.Options{Buckets: map[string]mayfly.Bucket{"exports": mayfly.BucketDir(dir)}})
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	createSessions(ctx, db)
	client := db.DynamoDB()

	table, err := client.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: aws.String("sessions")})
	if err != nil {
		log.Fatal(err)
	}
	_, err = client.UpdateContinuousBackups(ctx, &dynamodb.UpdateContinuousBackupsInput{
		TableName:                        aws.String("sessions"),
		PointInTimeRecoverySpecification: &types.PointInTimeRecoverySpecification{PointInTimeRecoveryEnabled: aws.Bool(true)},
	})
	if err != nil {
		log.Fatal(err)
	}
	begun, err := client.ExportTableToPointInTime(ctx, &dynamodb.ExportTableToPointInTimeInput{
		TableArn: table.Table.TableArn, S3Bucket: aws.String("exports"),
	})
	if err != nil {
		log.Fatal(err)
	}
	status := begun.ExportDescription.ExportStatus
	for status == types.ExportStatusInProgress {
		time.Sleep(10 * time.Millisecond)
		now, err := client.DescribeExport(ctx, &dynamodb.DescribeExportInput{ExportArn: begun.ExportDescription.ExportArn})
		if err != nil {
			log.Fatal(err)
		}
		status = now.ExportDescription.ExportStatus
	}
	fmt.Println(status)
	// Output: COMPLETED
}
