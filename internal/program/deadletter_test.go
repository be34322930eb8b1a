package program

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mayflydb/mayfly"
	"github.com/mayflydb/mayfly/internal/work/deliver"
	"github.com/mayflydb/mayfly/internal/work/lease"
	"github.com/mayflydb/mayfly/target"
)

// letterbox is an endpoint with a courier whose target takes nothing until it is mended.
type letterbox struct {
	*testing.T
	url     string
	courier *deliver.Courier
	mu      sync.Mutex
	mended  bool
	got     []string
}

func newLetterbox(t *testing.T) *letterbox {
	t.Helper()
	t.Setenv("AWS_ACCESS_KEY_ID", "any")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "any")
	db, err := mayfly.Open("", mayfly.Options{})
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b := &letterbox{T: t, url: "http://" + listener.Addr().String()}
	b.courier = deliver.NewCourier(deliver.Options{
		DB: db.DynamoDB(), Streams: db.Streams(), Now: db.Clock().Now, Leases: lease.Options{Exclusive: true},
		Resolver: deliver.ResolverFunc(func(arn string) (deliver.Lane, error) {
			return deliver.Lane{Name: arn, Target: target.Func(b.take)}, nil
		}),
	})
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	for _, run := range []func(context.Context) error{b.courier.Run, func(ctx context.Context) error { return db.Serve(ctx, listener) }} {
		running.Go(func() {
			if err := run(ctx); err != nil {
				t.Error(err)
			}
		})
	}
	t.Cleanup(func() {
		cancel()
		running.Wait()
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return b
}

func (b *letterbox) take(_ context.Context, d target.Delivery) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.mended {
		return target.Permanent("Broken"+d.Subject, "it is\nbroken")
	}
	b.got = append(b.got, d.ID)
	return nil
}

// fail has a delivery fail for good.
func (b *letterbox) fail(id, arn, subject, body string) {
	b.Helper()
	done := make(chan struct{})
	b.courier.Deliver(b.Context(), deliver.Parcel{Delivery: target.Delivery{
		ID: id, Source: "arn:aws:scheduler:us-east-1:000000000000:schedule/default/s", Subject: subject, TargetARN: arn, Body: []byte(body),
		Time: time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC),
	}}, func() { close(done) })
	select {
	case <-done:
	case <-time.After(20 * time.Second):
		b.Fatal("it takes too long")
	}
}

// mayfly runs the command line and returns its output.
func (b *letterbox) mayfly(code int, args ...string) string {
	b.Helper()
	var out, wrong bytes.Buffer
	if got := run(b.Context(), append(args, "--endpoint", b.url), &out, &wrong); got != code {
		b.Fatalf("%v exits with %d: %s", args, got, wrong.String())
	}
	return out.String() + wrong.String()
}

func (b *letterbox) want(text string, parts ...string) {
	b.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			b.Errorf("no %q in\n%s", part, text)
		}
	}
}

// Dead letters are listed, shown, redriven and deleted.
func TestDeadletterCommands(t *testing.T) {
	b := newLetterbox(t)
	b.want(b.mayfly(exitOK, "deadletter", "list"), "no dead letters")

	const queue, function = "arn:aws:sqs:us-east-1:000000000000:q", "arn:aws:lambda:us-east-1:000000000000:function:f"
	for i := range 120 {
		b.fail(fmt.Sprintf("%032x", i), queue, "Q", fmt.Sprintf(`{"n":%d}`, i))
	}
	b.fail("aaaa", function, "F", "a text <&>")
	b.fail("bbbb", function, "F", "\xff\x00")

	b.want(b.mayfly(exitOK, "deadletter", "list", "--target", function), "aaaa", "bbbb", "BrokenF", "it is broken")
	b.want(b.mayfly(exitOK, "deadletter", "list"), "there are more than 100; --limit 0 shows all")
	if lines := strings.Count(b.mayfly(exitOK, "deadletter", "list", "--limit", "0", "--json"), "\n"); lines != 122 {
		t.Errorf("%d lines of JSON", lines)
	}
	b.want(b.mayfly(exitOK, "deadletter", "list", "--json", "--code", "BrokenF"), `"id":"aaaa"`, `"text":"a text <&>"`, `"base64":"/wA="`)
	b.want(b.mayfly(exitOK, "deadletter", "list", "--json", "--target", "arn:aws:sqs:*", "--limit", "1"), `"json":{"n":`)
	if text := b.mayfly(exitOK, "deadletter", "list", "--source", "arn:aws:lambda:*"); !strings.Contains(text, "no dead letters") {
		t.Error(text)
	}
	b.want(b.mayfly(exitOK, "deadletter", "show", "aaaa"), function, "BrokenF", "a text <&>", "ERROR_CODE", "RETRY_ATTEMPTS")
	b.want(b.mayfly(exitOK, "deadletter", "show", "bbbb"), "2 bytes of binary data")
	if body := b.mayfly(exitOK, "deadletter", "show", "bbbb", "--body"); body != "\xff\x00" {
		t.Errorf("the body is %q", body)
	}
	b.want(b.mayfly(exitError, "deadletter", "show", "cccc"), "dead letter cccc not found", "next: ")
	b.want(b.mayfly(exitUsage, "deadletter", "delete"), "next: mayfly deadletter list")
	b.want(b.mayfly(exitUsage, "deadletter", "delete", "aaaa", "--all"), "not both")
	b.want(b.mayfly(exitUsage, "deadletter", "redrive", "aaaa", "--code", "x"), "next: add --all")
	b.want(b.mayfly(exitUsage, "deadletter", "delete", "--all", "--target", function), "delete all dead letters for "+function, "next: add --yes")

	b.want(b.mayfly(exitError, "deadletter", "delete", "bbbb", "cccc"), "deleted 1 dead letter\n", "1 of 2 dead letters not found")
	b.mu.Lock()
	b.mended = true
	b.mu.Unlock()
	b.want(b.mayfly(exitOK, "deadletter", "redrive", "aaaa"), "redriven 1 dead letter\n")
	b.want(b.mayfly(exitOK, "deadletter", "redrive", "--all", "--code", "BrokenQ", "--yes"), "redriven 120 dead letters\n")
	b.want(b.mayfly(exitOK, "deadletter", "list"), "no dead letters")
	for limit := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		b.mu.Lock()
		n := len(b.got)
		b.mu.Unlock()
		if n == 121 {
			break
		}
		if time.Now().After(limit) {
			t.Fatalf("%d of 121 have arrived", n)
		}
	}
	b.want(b.mayfly(exitOK, "deadletter", "delete", "--all", "--yes"), "deleted 0 dead letters")
	b.want(b.mayfly(exitOK, "deadletter", "redrive", "--all", "--yes", "--json"), `{"redriven":0}`)
}
