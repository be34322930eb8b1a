package target_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"runtime"
	"time"

	"github.com/mayflydb/mayfly/target"
)

// greeting is the delivery of the examples.
var greeting = target.Delivery{
	ID: "1", Source: "arn:app:greeter", Type: "greeting", Time: time.Unix(0, 0).UTC(), Attempt: 1,
	ContentType: "text/plain", Body: []byte("hello"),
}

// A Go function is a target. Its error is retried, unless it is permanent.
func ExampleFunc() {
	greet := target.Func(func(_ context.Context, d target.Delivery) error {
		fmt.Printf("%s\n", d.Body)
		return target.Permanent("Refused", "no greetings today")
	})
	for _, err := range greet.Deliver(context.Background(), []target.Delivery{greeting}) {
		fmt.Println(err)
	}
	// Output:
	// hello
	// Refused: no greetings today
}

// An error of any kind has a code and a message for the dead letter.
func ExampleAsError() {
	for _, err := range []error{errors.New("connection refused"), target.Permanent("Refused", "unknown user")} {
		e := target.AsError(err)
		fmt.Println(e.Message, e.Permanent)
	}
	// Output:
	// connection refused false
	// unknown user true
}

// A permanent error is not retried.
func ExamplePermanent() {
	err := target.Permanent("Refused", "unknown user")
	fmt.Println(err, target.AsError(err).Permanent)
	// Output: Refused: unknown user true
}

// A webhook receives a CloudEvent; in binary mode its attributes are headers.
func ExampleNewWebhook() {
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		fmt.Println(r.Method, r.Header.Get("ce-type"), r.Header.Get("Content-Type"))
	}))
	defer server.Close()
	hook, err := target.NewWebhook(target.WebhookOptions{URL: server.URL, Mode: target.Binary, Now: time.Now})
	if err != nil {
		log.Fatal(err)
	}
	defer hook.Close()
	fmt.Println(hook.Deliver(context.Background(), []target.Delivery{greeting}))
	// Output:
	// POST greeting text/plain
	// [<nil>]
}

// A command receives the body on its standard input.
func ExampleNewExec() {
	command := []string{"grep", "-q", "hello"}
	if runtime.GOOS == "windows" {
		command = []string{"findstr", "hello"}
	}
	run, err := target.NewExec(target.ExecOptions{Command: command})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(run.Deliver(context.Background(), []target.Delivery{greeting}))
	// Output: [<nil>]
}

// The context attributes of a delivery, and the whole event.
func ExampleCloudEvent() {
	event := target.CloudEvent(greeting)
	for name, value := range event.Context() {
		fmt.Println(name, value)
	}
	fmt.Println(event.DataContentType())
	fmt.Println(string(event.AppendJSON(nil)))
	// Output:
	// specversion 1.0
	// id 1
	// source arn:app:greeter
	// type greeting
	// time 1970-01-01T00:00:00Z
	// attempt 1
	// text/plain
	// {"specversion":"1.0","id":"1","source":"arn:app:greeter","type":"greeting","time":"1970-01-01T00:00:00Z","attempt":1,"datacontenttype":"text/plain","data":"hello"}
}

// A value with quotes and other characters fits into a header.
func ExampleHeaderValue() {
	fmt.Println(target.HeaderValue(`a "ü"`))
	// Output: a%20%22%C3%BC%22
}
