package conformance_test

import (
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/credentials"

	"github.com/mayflydb/mayfly/conformance"
)

// TestEndpoint runs the suite against the endpoint that the environment names:
//
//	MAYFLY_ENDPOINT               its URL, such as http://127.0.0.1:8000
//	MAYFLY_ENDPOINT_KIND          "dynalite" for that emulator's known differences; otherwise none are known
//	MAYFLY_ENDPOINT_SHARD_BYTES   the size at which its shards get children, for the checks of lineage
//	MAYFLY_ENDPOINT_REMOVED       how long after their deadlines it removes items that it shows until then, such as 20s-50s
//	AWS_REGION, AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN   as usual; made-up ones if unset
//
// If the endpoint has mayfly's clock control, the checks of expiry run too, and move its clock.
func TestEndpoint(t *testing.T) {
	url := strings.TrimSuffix(os.Getenv("MAYFLY_ENDPOINT"), "/")
	if url == "" {
		t.Skip("MAYFLY_ENDPOINT names no endpoint to hold against the suite")
	}
	region := orElse(os.Getenv("AWS_REGION"), "us-east-1")
	pair := credentials.NewStaticCredentialsProvider(
		orElse(os.Getenv("AWS_ACCESS_KEY_ID"), "conformance"), orElse(os.Getenv("AWS_SECRET_ACCESS_KEY"), "conformance"), os.Getenv("AWS_SESSION_TOKEN"))
	shardBytes, err := strconv.ParseInt(orElse(os.Getenv("MAYFLY_ENDPOINT_SHARD_BYTES"), "0"), 10, 64)
	if err != nil {
		t.Fatalf("MAYFLY_ENDPOINT_SHARD_BYTES: %v", err)
	}
	conformance.Exercise(t, func(t *testing.T) conformance.Endpoint {
		e := dial(url, region, pair)
		e.ShardBytes = shardBytes
		if os.Getenv("MAYFLY_ENDPOINT_KIND") == "dynalite" {
			e.Known, e.Streams = dynaliteKnown, nil
		}
		if clock := (remoteClock{t, url, region, pair}); clock.controllable() {
			e.Now, e.Advance, e.Strict = clock.now, clock.advance, true
			// an endpoint with such a clock has these APIs too
			dialMore(&e, url, region, pair, conformance.HTTPClient())
		}
		if removed := os.Getenv("MAYFLY_ENDPOINT_REMOVED"); removed != "" {
			after, within, _ := strings.Cut(removed, "-")
			e.Strict, e.RemovedAfter, e.RemovedWithin = false, duration(t, after), duration(t, within)
			e.TTLPause = time.Hour
		}
		return e
	})
}

func duration(t *testing.T, text string) time.Duration {
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatalf("MAYFLY_ENDPOINT_REMOVED: %v", err)
	}
	return d
}

func orElse(text, other string) string {
	if text == "" {
		return other
	}
	return text
}
