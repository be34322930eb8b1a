package console_test

import (
	"context"
	"fmt"
	"log"
	"net"
	"net/http"
	"net/http/httptest"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"

	"github.com/mayflydb/mayfly"
	"github.com/mayflydb/mayfly/console"
)

// A program serves an embedded database with its pages.
func ExampleNew() {
	db, err := mayfly.Open("", mayfly.Options{Console: console.New})
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- db.Serve(ctx, listener) }()
	defer func() { cancel(); <-served }()

	answer, err := http.Get("http://" + listener.Addr().String() + "/_mayfly/")
	if err != nil {
		log.Fatal(err)
	}
	answer.Body.Close()
	fmt.Println(answer.Status, answer.Header.Get("Content-Type"))
	// Output: 200 OK text/html; charset=utf-8
}

// A program serves pages for tables at another endpoint. Visitors need the password.
func ExampleHandler() {
	pages := httptest.NewServer(console.Handler(console.Options{
		Config:   aws.Config{Region: "us-east-1", Credentials: credentials.NewStaticCredentialsProvider("any", "any", "")},
		URL:      "http://127.0.0.1:8000",
		Password: "open sesame",
	}))
	defer pages.Close()

	answer, err := http.Get(pages.URL + "/_mayfly/")
	if err != nil {
		log.Fatal(err)
	}
	answer.Body.Close()
	fmt.Println(answer.Status, answer.Header.Get("WWW-Authenticate"))
	// Output: 401 Unauthorized Basic realm="mayfly", charset="UTF-8"
}
