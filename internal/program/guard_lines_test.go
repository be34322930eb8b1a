package program

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly"
	"github.com/mayflydb/mayfly/guard"
)

// The first line about a table has the reason for a scan that auto has chosen, as text and in JSON.
func TestGuardBegins(t *testing.T) {
	db, err := mayfly.Open("", mayfly.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	_, err = db.DynamoDB().CreateTable(t.Context(), &dynamodb.CreateTableInput{
		TableName: aws.String("orders"), BillingMode: types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("id"), AttributeType: "S"}},
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("id"), KeyType: "HASH"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	for strategy, reason := range map[guard.Strategy]string{guard.Auto: "no stream, and no index of deadlines", guard.Scan: ""} {
		g, err := guard.New(guard.Options{DB: db.DynamoDB(), Streams: db.Streams(), Table: "orders", Attribute: "ttl", Strategy: strategy, Alone: true})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- g.Run(ctx) }()
		<-g.Ready()
		for _, json := range []bool{false, true} {
			var out bytes.Buffer
			lines := &guardLines{out: &out, json: json}
			lines.begin(&guarded{table: "orders", Guard: g}, "ttl", guard.Scan, "here", false)
			want := "strategy scan\n"
			switch {
			case json && reason != "":
				want = `"strategy":"scan","reason":"` + reason + `","endpoint":"here"`
			case json:
				want = `"strategy":"scan","endpoint":"here"`
			case reason != "":
				want = "strategy scan (" + reason + ")\n"
			}
			if !strings.Contains(out.String(), want) {
				t.Errorf("%q is not in %q", want, out.String())
			}
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}
