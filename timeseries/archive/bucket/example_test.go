package bucket_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"net/http/httptest"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"

	"github.com/mayflydb/mayfly/timeseries"
	"github.com/mayflydb/mayfly/timeseries/archive"
	"github.com/mayflydb/mayfly/timeseries/archive/bucket"
)

// An archive in a bucket of the account that the environment names. The example has no output that
// a test compares, since it needs that account.
func ExampleOpen() {
	const place = "s3://backups/weather"
	if !bucket.Is(place) {
		log.Fatal("not a bucket")
	}
	store, err := bucket.Open(context.Background(), place, nil)
	if err != nil {
		log.Fatal(err)
	}
	for s, err := range archive.New(store).Range(context.Background(), timeseries.Query{Device: "roof"}) {
		fmt.Println(s.Time, s.Values, err)
	}
}

// A store at a server with S3's API. Archives write, list, read and remove its files.
func ExampleNew() {
	ctx := context.Background()
	backend := s3mem.New()
	if err := backend.CreateBucket("backups"); err != nil {
		log.Fatal(err)
	}
	server := httptest.NewServer(gofakes3.New(backend, gofakes3.WithLogger(gofakes3.DiscardLog())).Server())
	defer server.Close()

	client := s3.New(s3.Options{
		Region: "us-east-1", BaseEndpoint: &server.URL, Credentials: aws.NewCredentialsCache(credentials.NewStaticCredentialsProvider("key", "secret", "")),
	}, bucket.Options)
	store, err := bucket.New(client, "s3://backups/weather")
	if err != nil {
		log.Fatal(err)
	}
	err = store.Put(ctx, "hello.txt", func(w io.Writer) error {
		_, err := io.WriteString(w, "hello")
		return err
	})
	if err != nil {
		log.Fatal(err)
	}
	names, err := store.List(ctx, "")
	fmt.Println(store, names, err)

	f, err := store.Open(ctx, "hello.txt")
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close()
	text := make([]byte, 5)
	_, err = f.ReadAt(text, 0)
	fmt.Println(string(text), err)

	if err := store.Remove(ctx, "hello.txt"); err != nil {
		log.Fatal(err)
	}
	names, err = store.List(ctx, "")
	fmt.Println(names, err)
	// Output:
	// s3://backups/weather/ [hello.txt] <nil>
	// hello <nil>
	// [] <nil>
}
