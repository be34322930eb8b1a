package fromkinesis_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"

	"github.com/mayflydb/mayfly/timeseries"
	"github.com/mayflydb/mayfly/timeseries/fromkinesis"
)

// Ingest stores the readings of a stream until it has caught up. The example has no output that a
// test compares, since it needs a stream in an account.
func ExampleIngest() {
	ctx := context.Background()
	account, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		log.Fatal(err)
	}
	db := dynamodb.NewFromConfig(account)
	series, err := timeseries.Create(ctx, db, timeseries.Spec{Table: "weather"})
	if err != nil {
		log.Fatal(err)
	}
	w, err := series.Writer(ctx, timeseries.WriterOptions{})
	if err != nil {
		log.Fatal(err)
	}
	defer w.Close()
	aside := func(lines []timeseries.Rejected) error {
		for _, l := range lines {
			fmt.Fprintln(os.Stderr, l.From, l.Reason)
		}
		return nil
	}
	r, err := timeseries.NewReceiver(w, timeseries.NDJSON, timeseries.Mapping{}, aside)
	if err != nil {
		log.Fatal(err)
	}
	err = fromkinesis.Ingest(ctx, r, fromkinesis.Options{
		Client: kinesis.NewFromConfig(account), Stream: "readings", DB: db, Name: "weather", UntilCaughtUp: true,
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(r.Report().Written, "written")
}
