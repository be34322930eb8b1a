package program

import (
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
)

// bucketServer starts a server in memory with the bucket named exports: a directory, or another place.
func bucketServer(t *testing.T, place string, env ...string) (*served, *dynamodb.Client) {
	t.Helper()
	s, err := startServer(t.TempDir(), append(os.Environ(), env...), "--memory", "--bucket", "exports="+place)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.kill)
	db, _ := s.clients()
	return s, db
}

// serverExport exports a table to the bucket named exports.
func serverExport(t *testing.T, db *dynamodb.Client, in dynamodb.ExportTableToPointInTimeInput) {
	t.Helper()
	on := true
	_, err := db.UpdateContinuousBackups(t.Context(), &dynamodb.UpdateContinuousBackupsInput{
		TableName: in.TableArn, PointInTimeRecoverySpecification: &types.PointInTimeRecoverySpecification{PointInTimeRecoveryEnabled: &on},
	})
	if err != nil {
		t.Fatal(err)
	}
	in.S3Bucket = aws.String("exports")
	begun, err := db.ExportTableToPointInTime(t.Context(), &in)
	if err != nil {
		t.Fatal(err)
	}
	for range 3000 {
		out, err := db.DescribeExport(t.Context(), &dynamodb.DescribeExportInput{ExportArn: begun.ExportDescription.ExportArn})
		if err != nil {
			t.Fatal(err)
		}
		switch e := out.ExportDescription; e.ExportStatus {
		case types.ExportStatusCompleted:
			return
		case types.ExportStatusFailed:
			t.Fatal(*e.FailureCode, *e.FailureMessage)
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatal("the export does not end")
}

// serverImport imports files from the bucket named exports.
func serverImport(t *testing.T, db *dynamodb.Client, table, prefix string, keys types.TableCreationParameters, compression types.InputCompressionType) {
	t.Helper()
	keys.TableName, keys.BillingMode = &table, types.BillingModePayPerRequest
	begun, err := db.ImportTable(t.Context(), &dynamodb.ImportTableInput{
		S3BucketSource: &types.S3BucketSource{S3Bucket: aws.String("exports"), S3KeyPrefix: &prefix}, InputFormat: types.InputFormatDynamodbJson,
		InputCompressionType: compression, TableCreationParameters: &keys,
	})
	if err != nil {
		t.Fatal(err)
	}
	for range 3000 {
		out, err := db.DescribeImport(t.Context(), &dynamodb.DescribeImportInput{ImportArn: begun.ImportTableDescription.ImportArn})
		if err != nil {
			t.Fatal(err)
		}
		switch i := out.ImportTableDescription; {
		case i.ImportStatus == types.ImportStatusFailed || i.ErrorCount > 0:
			t.Fatal(*i.FailureCode, *i.FailureMessage)
		case i.ImportStatus == types.ImportStatusCompleted:
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatal("the import does not end")
}

// ImportTable and mayfly import read exports of the server and of mayfly export alike, in a directory
// and in a bucket of S3.
func TestServerExports(t *testing.T) {
	t.Parallel()
	backend := s3mem.New()
	if err := backend.CreateBucket("real"); err != nil {
		t.Fatal(err)
	}
	cloud := httptest.NewServer(gofakes3.New(backend, gofakes3.WithLogger(gofakes3.DiscardLog())).Server())
	t.Cleanup(cloud.Close)
	dir := t.TempDir()
	settings := []string{"AWS_ENDPOINT_URL_S3=" + cloud.URL, "AWS_ACCESS_KEY_ID=any", "AWS_SECRET_ACCESS_KEY=any", "AWS_REGION=us-east-1"}
	for name, place := range map[string]string{"directory": dir, "S3": "s3://real"} {
		s, db := bucketServer(t, place, settings...)
		side := sideOf(db, "things")
		table := thingsTable()
		if err := side.Create(t.Context(), table); err != nil {
			t.Fatal(err)
		}
		put(t, side, table, everyType)
		want := contents(t, db, "things")
		described, err := side.Describe(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		serverExport(t, db, dynamodb.ExportTableToPointInTimeInput{TableArn: &described.ARN, S3Prefix: aws.String("server")})
		keys := types.TableCreationParameters{KeySchema: table.KeySchema, AttributeDefinitions: table.AttributeDefinitions[1:]}
		serverImport(t, db, "there", "server", keys, types.InputCompressionTypeGzip)
		same(t, name+": ImportTable of ExportTableToPointInTime", contents(t, db, "there"), want)
		if place != dir {
			continue
		}
		mustTransfer(t, "import", "--endpoint", s.url, "--table", "here", "--from", filepath.Join(dir, "server"), "--progress", filepath.Join(t.TempDir(), "p"))
		same(t, "mayfly import of ExportTableToPointInTime", contents(t, db, "here"), want)
		here, err := sideOf(db, "here").Describe(t.Context())
		if err != nil || len(here.GlobalSecondaryIndexes) != 1 || len(here.LocalSecondaryIndexes) != 1 || here.TimeToLiveAttribute != "until" {
			t.Errorf("mayfly import made %+v, %v", here.Table, err)
		}
		mustTransfer(t, "export", "--endpoint", s.url, "--table", "things", "--to", filepath.Join(dir, "line"))
		serverImport(t, db, "line", "line", keys, types.InputCompressionTypeGzip)
		same(t, "ImportTable of mayfly export", contents(t, db, "line"), want)
	}
}

// ImportTable reads Amazon's export in its documented form.
func TestServerImportsAmazons(t *testing.T) {
	t.Parallel()
	full, err := filepath.Abs("../exportfile/testdata/full")
	if err != nil {
		t.Fatal(err)
	}
	_, db := bucketServer(t, full)
	keys := types.TableCreationParameters{
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("Id"), KeyType: types.KeyTypeHash}},
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("Id"), AttributeType: types.ScalarAttributeTypeN}},
	}
	serverImport(t, db, "checked", "", keys, types.InputCompressionTypeGzip)
	serverImport(t, db, "data", "AWSDynamoDB/01693685827463-2d8752fd/data/", keys, types.InputCompressionTypeGzip)
	if got := contents(t, db, "checked"); len(got) != 3 || !strings.Contains(got[1], "20-Bike-205") {
		t.Errorf("%v", got)
	}
	same(t, "the data without manifests", contents(t, db, "data"), contents(t, db, "checked"))
}
