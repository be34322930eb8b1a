package mayfly

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// exported waits until an export has ended.
func exported(t *testing.T, db *dynamodb.Client, begun *dynamodb.ExportTableToPointInTimeOutput, err error) *types.ExportDescription {
	t.Helper()
	for range 3000 {
		if err != nil {
			t.Fatal(err)
		}
		var out *dynamodb.DescribeExportOutput
		out, err = db.DescribeExport(t.Context(), &dynamodb.DescribeExportInput{ExportArn: begun.ExportDescription.ExportArn})
		if err == nil && out.ExportDescription.ExportStatus != types.ExportStatusInProgress {
			return out.ExportDescription
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatal("the export does not end")
	return nil
}

// Through the SDK, a full export has the items of its instant: strict expiry hides those whose deadlines
// have passed. An incremental one has an item that has expired as a deleted one. An import of the full
// one makes a table with the same items.
func TestExportOverHTTP(t *testing.T) {
	t.Parallel()
	bucket := t.TempDir()
	db := openAtMidnight(t, Options{Buckets: map[string]Bucket{"exports": BucketDir(bucket)}})
	client := db.DynamoDB()
	makeTable(t, client, "things")
	on := true
	_, err := client.UpdateContinuousBackups(t.Context(), &dynamodb.UpdateContinuousBackupsInput{
		TableName: aws.String("things"), PointInTimeRecoverySpecification: &types.PointInTimeRecoverySpecification{PointInTimeRecoveryEnabled: &on},
	})
	if err != nil {
		t.Fatal(err)
	}
	begin := db.Clock().Now()
	putUntil(t, client, "things", "gone", begin.Add(10*time.Minute))
	putUntil(t, client, "things", "kept", begin.Add(time.Hour))
	advance(t, db, time.Minute)
	from := db.Clock().Now()
	advance(t, db, 20*time.Minute)
	table, err := client.DescribeTable(t.Context(), &dynamodb.DescribeTableInput{TableName: aws.String("things")})
	if err != nil {
		t.Fatal(err)
	}
	arn := table.Table.TableArn
	for at, want := range map[time.Time]int64{from: 2, db.Clock().Now(): 1} {
		begun, err := client.ExportTableToPointInTime(t.Context(), &dynamodb.ExportTableToPointInTimeInput{
			TableArn: arn, S3Bucket: aws.String("exports"), S3Prefix: aws.String(at.Format("at-150405")), ExportTime: &at,
		})
		if e := exported(t, client, begun, err); e.ExportStatus != types.ExportStatusCompleted || *e.ItemCount != want || !e.ExportTime.Equal(at) {
			t.Errorf("at %s: %s, %d items, %s", at, e.ExportStatus, aws.ToInt64(e.ItemCount), aws.ToString(e.FailureMessage))
		}
	}
	begun, err := client.ExportTableToPointInTime(t.Context(), &dynamodb.ExportTableToPointInTimeInput{
		TableArn: arn, S3Bucket: aws.String("exports"), S3Prefix: aws.String("changes"), ExportType: types.ExportTypeIncrementalExport,
		IncrementalExportSpecification: &types.IncrementalExportSpecification{ExportFromTime: &from},
	})
	e := exported(t, client, begun, err)
	if e.ExportStatus != types.ExportStatusCompleted || *e.ItemCount != 1 || e.IncrementalExportSpecification.ExportViewType != types.ExportViewTypeNewAndOldImages {
		t.Errorf("changes: %s, %d items, %s", e.ExportStatus, aws.ToInt64(e.ItemCount), aws.ToString(e.FailureMessage))
	}
	if files, err := filepath.Glob(filepath.Join(bucket, "changes/AWSDynamoDB/data/*.json.gz")); err != nil || len(files) != 1 {
		t.Errorf("files of changes: %v, %v", files, err)
	}
	for name, want := range map[string]int32{from.Format("at-150405"): 2, db.Clock().Now().Format("at-150405"): 1} {
		_, err := client.ImportTable(t.Context(), &dynamodb.ImportTableInput{
			S3BucketSource: &types.S3BucketSource{S3Bucket: aws.String("exports"), S3KeyPrefix: &name}, InputFormat: types.InputFormatDynamodbJson,
			InputCompressionType: types.InputCompressionTypeGzip,
			TableCreationParameters: &types.TableCreationParameters{
				TableName: &name, BillingMode: types.BillingModePayPerRequest,
				AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("pk"), AttributeType: types.ScalarAttributeTypeS}},
				KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("pk"), KeyType: types.KeyTypeHash}},
			},
		})
		if err == nil {
			err = dynamodb.NewTableExistsWaiter(client, func(o *dynamodb.TableExistsWaiterOptions) { o.MinDelay = 10 * time.Millisecond }).
				Wait(t.Context(), &dynamodb.DescribeTableInput{TableName: &name}, time.Minute)
		}
		if err != nil {
			t.Fatal(err)
		}
		if out, err := client.Scan(t.Context(), &dynamodb.ScanInput{TableName: &name}); err != nil || out.Count != want {
			t.Errorf("imported from %s: %d items, %v", name, out.Count, err)
		}
	}
}

// Requests reach the directories of Options.Buckets, and no other file.
func TestBucketsAreBounds(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	if err := errors.Join(os.Mkdir(filepath.Join(root, "bucket"), 0o700), os.WriteFile(filepath.Join(root, "secret"), []byte(`{"Item":{"pk":{"S":"secret"}}}`), 0o600)); err != nil {
		t.Fatal(err)
	}
	db := openAtMidnight(t, Options{Buckets: map[string]Bucket{"exports": BucketDir(filepath.Join(root, "bucket"))}})
	for _, prefix := range []string{"../secret", "a/../../secret", "/secret", "./../secret", `..\secret`} {
		_, err := db.DynamoDB().ImportTable(t.Context(), &dynamodb.ImportTableInput{
			S3BucketSource: &types.S3BucketSource{S3Bucket: aws.String("exports"), S3KeyPrefix: &prefix}, InputFormat: types.InputFormatDynamodbJson,
			TableCreationParameters: &types.TableCreationParameters{
				TableName: aws.String("stolen"), BillingMode: types.BillingModePayPerRequest,
				AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("pk"), AttributeType: types.ScalarAttributeTypeS}},
				KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("pk"), KeyType: types.KeyTypeHash}},
			},
		})
		if err == nil || !strings.Contains(err.Error(), "ValidationException") {
			t.Errorf("%s: %v", prefix, err)
		}
	}
	for _, buckets := range []map[string]Bucket{{"": BucketDir("x")}, {"a b": BucketDir("x")}, {"../x": BucketDir("x")}, {"none": nil}} {
		if _, err := Open("", Options{Buckets: buckets}); err == nil || !strings.Contains(err.Error(), "Buckets") {
			t.Errorf("%v: %v", buckets, err)
		}
	}
}
