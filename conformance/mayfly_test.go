package conformance_test

import (
	"context"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"

	"github.com/mayflydb/mayfly"
	"github.com/mayflydb/mayfly/conformance"
)

// The embedded database passes the suite through its in-process clients.
func TestInProcess(t *testing.T) {
	conformance.Exercise(t, func(t *testing.T) conformance.Endpoint { return openEmbedded(t, mayfly.Options{}) })
}

// The same database passes the suite over a socket. The SDK is configured as in applications, and
// signs every request.
func TestOverHTTP(t *testing.T) { conformance.Exercise(t, serveAndDial) }

// The suite also runs with aws expiry: expired items are visible until their removal, here 20 to 50
// seconds later.
func TestInProcessAWSExpiry(t *testing.T) {
	conformance.Exercise(t, func(t *testing.T) conformance.Endpoint {
		e := openEmbedded(t, mayfly.Options{Expiry: mayfly.ExpiryAWS, ExpiryDelay: "uniform:20s-50s"})
		e.Strict, e.RemovedAfter, e.RemovedWithin = false, 20*time.Second, 50*time.Second
		e.TTLPause = time.Hour
		return e
	})
}

// shardBytes is so small that the checks of lineage get child shards.
const shardBytes = 64 << 10

func openEmbedded(t *testing.T, options mayfly.Options) conformance.Endpoint {
	db := open(t, options)
	e := conformance.Endpoint{
		DB:      db.DynamoDB(),
		Streams: db.Streams(),
		Now:     db.Clock().Now,
		Advance: func(d time.Duration) { advance(t, db, d) },
		Strict:  true,

		ShardBytes: shardBytes,
	}
	dialMore(&e, "http://in.process", "us-east-1", aws.AnonymousCredentials{}, &http.Client{Transport: db.Transport()})
	e.Scheduler = db.Scheduler()
	return e
}

func serveAndDial(t *testing.T) conformance.Endpoint {
	const key, secret = "conformance", "a secret"
	db := open(t, mayfly.Options{Credentials: []mayfly.Credential{{AccessKey: key, SecretKey: secret}}})
	pair := credentials.NewStaticCredentialsProvider(key, secret, "")
	e := dial(serve(t, db), "us-east-1", pair)
	dialMore(&e, e.URL, "us-east-1", pair, conformance.HTTPClient())
	e.Now, e.Advance, e.Strict = db.Clock().Now, func(d time.Duration) { advance(t, db, d) }, true
	e.ShardBytes = shardBytes
	return e
}

// serve answers on a free port until the test is over.
func serve(t *testing.T, db *mayfly.DB) (url string) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- db.Serve(ctx, listener) }()
	t.Cleanup(func() {
		stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return "http://" + listener.Addr().String()
}

// open opens a database in memory with a frozen clock, so that the checks of expiry can test single
// milliseconds.
func open(t *testing.T, options mayfly.Options) *mayfly.DB {
	options.ShardBytes = shardBytes
	db, err := mayfly.Open("", options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	db.Clock().Freeze()
	return db
}

func advance(t *testing.T, db *mayfly.DB, d time.Duration) {
	moved, err := db.Clock().Advance(context.Background(), d)
	if err != nil || moved.Unfinished {
		t.Errorf("advance by %v: unfinished %v, %v", d, moved.Unfinished, err)
	}
}
