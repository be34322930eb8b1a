package nats_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/mayflydb/mayfly/internal/sink/nats"
	"github.com/mayflydb/mayfly/internal/sink/sinktest"
	"github.com/mayflydb/mayfly/target"
)

func open(t testing.TB, c nats.Config) *nats.Sink {
	t.Helper()
	s, err := nats.New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// A stream receives the messages in order with the event in their headers, and a repeated attempt
// makes no second message.
func TestStream(t *testing.T) {
	url := serve(t, nil)
	jobs := stream(t, url, jetstream.StreamConfig{Name: "JOBS", Subjects: []string{"jobs.>"}})
	s := open(t, nats.Config{URL: url, Subject: "jobs.{name}.{key}", Stream: "JOBS"})
	if got := sinktest.Codes(s.Deliver(t.Context(), sinktest.Deliveries("a", "b", "c"))); got != "- - -" {
		t.Fatal(got)
	}
	if got := sinktest.Codes(s.Deliver(t.Context(), sinktest.Deliveries("b", "c", "d"))); got != "- - -" {
		t.Fatal(got)
	}
	all := messages(t, jobs)
	if ids(all) != "a b c d" {
		t.Fatalf("the stream holds %s", ids(all))
	}
	first := all[0]
	if first.Subject != "jobs.jobs.k_1" || string(first.Data) != `{"id":"a"}` {
		t.Errorf("%s %s", first.Subject, first.Data)
	}
	for name, want := range map[string]string{
		"ce-specversion": "1.0", "ce-id": "a", "ce-source": "arn:aws:scheduler:us-east-1:000000000000:schedule/default/a", "ce-type": "Scheduled%20Event",
		"ce-time": "2001-09-09T01:46:40Z", "ce-attempt": "1", "ce-partitionkey": "k.1", "ce-datacontenttype": "application/json", "content-type": "",
	} {
		if got := first.Header.Get(name); got != want {
			t.Errorf("%s is %q, not %q", name, got, want)
		}
	}
}

// The other modes: the whole event in the body, or only the body.
func TestModes(t *testing.T) {
	url := serve(t, nil)
	jobs := stream(t, url, jetstream.StreamConfig{Name: "JOBS", Subjects: []string{"jobs"}})
	structured, plain := open(t, nats.Config{URL: url, Subject: "jobs", Mode: "structured"}), open(t, nats.Config{URL: url, Subject: "jobs", Mode: "plain"})
	a, b := sinktest.Deliveries("a"), sinktest.Deliveries("b")
	if got := sinktest.Codes(append(structured.Deliver(t.Context(), a), plain.Deliver(t.Context(), b)...)); got != "- -" {
		t.Fatal(got)
	}
	all := messages(t, jobs)
	if got, want := string(all[0].Data), string(target.CloudEvent(a[0]).AppendJSON(nil)); got != want || all[0].Header.Get("content-type") != target.CloudEventType || all[0].Header.Get("ce-id") != "" {
		t.Errorf("%v %s, not %s", all[0].Header, got, want)
	}
	if string(all[1].Data) != `{"id":"b"}` || all[1].Header.Get("content-type") != "application/json" || all[1].Header.Get("ce-id") != "" {
		t.Errorf("%v %s", all[1].Header, all[1].Data)
	}
}

// An impossible delivery harms no other of its call. A failure that time can mend is not permanent.
func TestRefusals(t *testing.T) {
	url := serve(t, func(o *server.Options) { o.MaxPayload = 10_000 })
	stream(t, url, jetstream.StreamConfig{Name: "JOBS", Subjects: []string{"jobs.>"}, MaxMsgSize: 5000})
	stream(t, url, jetstream.StreamConfig{Name: "FULL", Subjects: []string{"full"}, MaxMsgs: 1, Discard: jetstream.DiscardNew})
	s := open(t, nats.Config{URL: url, Subject: "jobs.{key}"})
	ds := sinktest.Deliveries("a", "b", "c", "d", "e")
	ds[1].Body = make([]byte, 20_000)
	ds[2].Key = strings.Repeat("x", 5000)
	ds[3].Body = make([]byte, 6000)
	if got := sinktest.Codes(s.Deliver(t.Context(), ds)); got != "- MessageTooLarge* InvalidSubject* JetStream10054* -" {
		t.Error(got)
	}
	full := open(t, nats.Config{URL: url, Subject: "full"})
	if got := sinktest.Codes(full.Deliver(t.Context(), sinktest.Deliveries("a", "b", "c"))); got != "- JetStream10077! JetStream10077!" {
		t.Error(got)
	}
	nowhere := open(t, nats.Config{URL: url, Subject: "nowhere"})
	if got := sinktest.Codes(nowhere.Deliver(t.Context(), sinktest.Deliveries("a"))); got != "NoStreamResponse" {
		t.Error(got)
	}
	other := open(t, nats.Config{URL: url, Subject: "jobs.x", Stream: "FULL"})
	if got := sinktest.Codes(other.Deliver(t.Context(), sinktest.Deliveries("a"))); got != "JetStream10060" {
		t.Error(got)
	}
}

// Without JetStream messages reach the present subscribers.
func TestCore(t *testing.T) {
	url := serve(t, func(o *server.Options) { o.JetStream, o.MaxPayload = false, 10_000 })
	conn, err := natsgo.Connect(url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	listener, err := conn.SubscribeSync("jobs")
	if err != nil {
		t.Fatal(err)
	}
	if err := conn.Flush(); err != nil {
		t.Fatal(err)
	}
	s := open(t, nats.Config{URL: url, Subject: "jobs", Core: true})
	ds := sinktest.Deliveries("a", "b", "c")
	ds[1].Body = make([]byte, 20_000)
	if got := sinktest.Codes(s.Deliver(t.Context(), ds)); got != "- MessageTooLarge* -" {
		t.Fatal(got)
	}
	for _, id := range []string{"a", "c"} {
		if m, err := listener.NextMsg(10 * time.Second); err != nil || m.Header.Get("ce-id") != id {
			t.Errorf("%v, %v", m, err)
		}
	}
}

// A server that is down, refuses our login or stays silent only causes another attempt. No message
// contains the password.
func TestNotConnected(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	locked := serve(t, func(o *server.Options) { o.Username, o.Password = "u", "other" })
	for name, url := range map[string]string{"down": "nats://u:hunter2@127.0.0.1:1", "locked": strings.Replace(locked, "//", "//u:hunter2@", 1), "silent": "nats://u:hunter2@" + silent.Addr().String()} {
		t.Run(name, func(t *testing.T) {
			s := open(t, nats.Config{URL: url, Subject: "jobs"})
			ctx := t.Context()
			if name == "silent" { // the others fail by themselves
				short, cancel := context.WithTimeout(ctx, 500*time.Millisecond)
				defer cancel()
				ctx = short
			}
			results := s.Deliver(ctx, sinktest.Deliveries("a", "b"))
			if got := sinktest.Codes(results); got != "ConnectionError ConnectionError" && name != "silent" || got != "Timeout Timeout" && name == "silent" {
				t.Error(got, results)
			}
			if e := target.AsError(results[0]); strings.Contains(fmt.Sprintf("%v %+v %v", e, *e, e.Err), "hunter2") {
				t.Errorf("a password in %v", e)
			}
		})
	}
	s := open(t, nats.Config{URL: locked, Subject: "jobs"})
	_ = s.Close()
	if got := sinktest.Codes(s.Deliver(t.Context(), sinktest.Deliveries("a"))); got != "TargetClosed" {
		t.Error(got)
	}
}

// The server is absent at first, and its process is killed and restarted during deliveries. Every
// acknowledged delivery is in the stream, once. In the end all are.
func TestKilled(t *testing.T) {
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &process{t: t, store: t.TempDir(), port: free.Addr().(*net.TCPAddr).Port}
	_ = free.Close()
	s := open(t, nats.Config{URL: p.url(), Subject: "jobs"})
	if got := sinktest.Codes(s.Deliver(t.Context(), sinktest.Deliveries("early"))); got != "ConnectionError" {
		t.Fatal(got)
	}
	p.start()
	defer func() { p.kill() }()
	jobs := stream(t, p.url(), jetstream.StreamConfig{Name: "JOBS", Subjects: []string{"jobs"}, Duplicates: time.Hour})

	const workers, rounds, batch, kills = 4, 60, 20, 4
	var acknowledged, failed atomic.Int64
	var group sync.WaitGroup
	for w := range workers {
		group.Go(func() {
			for r := range rounds {
				var ds []target.Delivery
				for i := range batch {
					ds = append(ds, sinktest.Deliveries(fmt.Sprintf("%d-%d-%d", w, r, i))...)
				}
				failed.Add(deliverAll(t, s, ds))
				acknowledged.Add(batch)
			}
		})
	}
	for k := range kills {
		for acknowledged.Load() < int64((k+1)*workers*rounds*batch/(kills+1)) {
			time.Sleep(time.Millisecond)
		}
		p.kill()
		p.start()
	}
	group.Wait()
	got := strings.Fields(ids(messages(t, jobs)))
	slices.Sort(got)
	if distinct := slices.Compact(slices.Clone(got)); len(distinct) != workers*rounds*batch || len(got) != len(distinct) {
		t.Errorf("of %d deliveries %d are in the stream, %d messages in all", workers*rounds*batch, len(distinct), len(got))
	}
	if failed.Load() == 0 {
		t.Error("no attempt failed: the kills were not noticed")
	}
	t.Logf("%d attempts failed", failed.Load())
}

// deliverAll tries until every delivery has been acknowledged, and returns the number of failed
// attempts.
func deliverAll(t *testing.T, to target.Target, ds []target.Delivery) (failed int64) {
	for range 2000 {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		var again []target.Delivery
		for i, err := range to.Deliver(ctx, ds) {
			if e := target.AsError(err); e != nil {
				if e.Permanent {
					t.Errorf("%s: %v", ds[i].ID, err)
				}
				again = append(again, ds[i])
			}
		}
		cancel()
		if failed += int64(len(again)); len(again) == 0 {
			return failed
		}
		ds = again
		time.Sleep(5 * time.Millisecond)
	}
	t.Errorf("%d deliveries were never made", len(ds))
	return failed
}

// A context that is done ends a call soon, in any state of the server.
func TestGivenUp(t *testing.T) {
	url := serve(t, nil)
	stream(t, url, jetstream.StreamConfig{Name: "JOBS", Subjects: []string{"jobs"}})
	s := open(t, nats.Config{URL: url, Subject: "jobs"})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, err := range s.Deliver(ctx, sinktest.Deliveries("a")) {
		// the acknowledgement may have been faster
		if err != nil && !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}
}

// All faults are reported at once, without a password.
func TestConfig(t *testing.T) {
	_, err := nats.New(nats.Config{
		URL: "http://hunter2@h, nats://u:hunter2@h?x=y,nats://", Subject: "a..{kay}", Core: true, Stream: "a b", Mode: "both", Token: "hunter2", Credentials: "/nowhere",
	})
	want := `url: number 1 must begin with one of nats://, tls://, ws://, wss://
url: number 2 must have the form nats://host:4222: ? and # are not allowed; settings have their own names
url: number 3 must have the form nats://host:4222: the host is missing
subject: has the unknown field {kay}; use one of {id}, {key}, {name}, {source}, {subject}, {target}, {type}
stream: cannot be used with core
stream: "a b" is not a stream name
mode: "both" is not one of binary, structured, plain
user: use only one of user and password, token, and credentials`
	if err == nil || err.Error() != want {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
	for _, subject := range []string{"", "a.", ".a", "a b", "a.*", "a.>", "a\n", "{key", "key}"} {
		if _, err := nats.New(nats.Config{Subject: subject}); err == nil {
			t.Errorf("the subject %q was accepted", subject)
		}
	}
	if _, err := nats.New(nats.Config{Subject: "a.{type}", URL: "tls://[::1]:1,nats://b"}); err != nil {
		t.Error(err)
	}
}

func BenchmarkNATS(b *testing.B) {
	for _, core := range []bool{false, true} {
		b.Run(map[bool]string{false: "stream", true: "core"}[core], func(b *testing.B) {
			url := serve(b, nil)
			stream(b, url, jetstream.StreamConfig{Name: "JOBS", Subjects: []string{"jobs"}})
			s := open(b, nats.Config{URL: url, Subject: "jobs", Core: core})
			body := []byte(`{"deviceId":"sensor-0042","reading":21.5,"padding":"` + strings.Repeat("x", 200) + `"}`)
			batch := sinktest.Deliveries(make([]string, 100)...)
			var n int
			for b.Loop() {
				for i := range batch {
					n++
					batch[i].ID, batch[i].Body = fmt.Sprintf("%032d", n), body
				}
				if got := sinktest.Codes(s.Deliver(b.Context(), batch)); strings.Trim(got, "- ") != "" {
					b.Fatal(got)
				}
			}
			b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "deliveries/s")
		})
	}
}
