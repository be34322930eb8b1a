package guard

import (
	"context"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
)

// startDynoxide runs Dynoxide, an independent implementation of DynamoDB with streams, from
// .ci/clients.
func startDynoxide(t *testing.T) (*dynamodb.Client, *dynamodbstreams.Client) {
	t.Helper()
	program, err := filepath.Abs("../.ci/clients/node_modules/@dynoxide/linux-x64/dynoxide")
	must(t, err)
	if _, err := os.Stat(program); err != nil {
		t.Skip("Dynoxide is not installed: npm install --prefix .ci/clients")
	}
	free, err := net.Listen("tcp", "127.0.0.1:0") // it does not print its port
	must(t, err)
	host, port, err := net.SplitHostPort(free.Addr().String())
	must(t, err)
	must(t, free.Close())
	command := exec.Command(program, "serve", "--host", host, "--port", port)
	must(t, command.Start())
	t.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait()
	})
	transport := &http.Transport{MaxIdleConnsPerHost: 64}
	t.Cleanup(transport.CloseIdleConnections)
	config := aws.Config{
		Region: "us-east-1", Credentials: credentials.NewStaticCredentialsProvider("k", "s", ""), BaseEndpoint: aws.String("http://" + host + ":" + port),
		HTTPClient: &http.Client{Transport: transport},
	}
	db := dynamodb.NewFromConfig(config)
	await(t, "Dynoxide answers", func() bool {
		_, err := db.ListTables(context.Background(), &dynamodb.ListTablesInput{})
		return err == nil
	})
	return db, dynamodbstreams.NewFromConfig(config)
}

// The laws NeverEarly and RenewedLives hold with the stream strategy at an independent
// implementation, for a worker that is alone and for one in a fleet.
func TestDynoxideStream(t *testing.T) {
	for name, alone := range map[string]bool{"alone": true, "fleet": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // it waits for deadlines most of the time
			db, streams := startDynoxide(t)
			_, err := db.CreateTable(t.Context(), &dynamodb.CreateTableInput{
				TableName: aws.String(worldTable), BillingMode: types.BillingModePayPerRequest,
				AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("pk"), AttributeType: "S"}, {AttributeName: aws.String("sk"), AttributeType: "N"}},
				KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("pk"), KeyType: "HASH"}, {AttributeName: aws.String("sk"), KeyType: "RANGE"}},
				StreamSpecification:  &types.StreamSpecification{StreamEnabled: aws.Bool(true), StreamViewType: types.StreamViewTypeNewAndOldImages},
			})
			must(t, err)
			e := &elsewhere{t, db}
			e.guards(Options{Streams: streams, Strategy: Stream, Alone: alone}, func(int, int64) map[string]types.AttributeValue { return nil })
		})
	}
}
