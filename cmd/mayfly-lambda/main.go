// Command mayfly-lambda is mayfly guard as a function of AWS Lambda; deploy/ has templates that
// deploy it. Environment variables configure it:
//
//	MAYFLY_HANDLER       sweep (called by a schedule) or stream (called with the records of the table's stream)
//	MAYFLY_TABLE         the guarded table
//	MAYFLY_ATTRIBUTE     its TTL attribute; default: the attribute of the table's own TTL
//	MAYFLY_VERSION       an attribute that changes with each write of an item
//	MAYFLY_DRY_RUN       true: remove nothing
//	MAYFLY_CONCURRENCY   concurrent removals, or calls of the Scheduler; default: 64
//	MAYFLY_MAX_WCU       write units a second at most
//	MAYFLY_MAX_SKEW      the largest difference between this machine's clock and the endpoint's; default: 5s
//	MAYFLY_LOCAL_CLOCK   true: use this machine's clock, for endpoints whose responses have no Date
//
//	sweep:  MAYFLY_INDEX, MAYFLY_GRANULARITY, MAYFLY_SHARDS, MAYFLY_MAX_RCU, MAYFLY_BATCH, MAYFLY_MARK
//	        MAYFLY_LEASES_TABLE
//	        MAYFLY_AHEAD    how long after the event a call waits for deadlines, such as 55s: items go at their instant, and the function runs all the time; default: 0
//	        MAYFLY_ALONE    true: calls never overlap
//	        MAYFLY_ACCEPT_OVERDUE  accept so many overdue items at the first sweep, or any; see docs/guard.md
//	        MAYFLY_MAX_RATE, MAYFLY_MAX_REMOVALS  limits of a call: removals a second, and in total
//	stream: MAYFLY_ROLE          ARN of the role that the schedules run as
//	        MAYFLY_DEAD_LETTERS  ARN of the queue for deletions that the schedules could not make
//
// Credentials, region and endpoints are found as by any program of the AWS SDK.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-sdk-go-v2/config"
)

func main() {
	handler, err := start(context.Background())
	if err != nil {
		fmt.Fprintln(os.Stderr, "mayfly-lambda:", err)
		os.Exit(2)
	}
	lambda.Start(handler)
}

// start makes the handler that the environment asks for.
func start(ctx context.Context) (any, error) {
	settings, err := readSettings(os.Environ())
	if err != nil {
		return nil, err
	}
	loaded, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		return nil, err
	}
	return settings.handler(loaded), nil
}
