//go:build linux

package rabbitmq_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/mayflydb/mayfly/internal/sink/rabbitmq"
	"github.com/mayflydb/mayfly/internal/sink/sinktest"
	"github.com/mayflydb/mayfly/target"
)

func open(t testing.TB, c rabbitmq.Config) *rabbitmq.Sink {
	t.Helper()
	s, err := rabbitmq.New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// The broker is absent at first, and its process is killed and restarted during deliveries. Every
// acknowledged delivery is in the queue. In the end all are.
func TestKilled(t *testing.T) {
	b := serve(t)
	b.kill()
	s := open(t, rabbitmq.Config{URL: b.url(), RoutingKey: "jobs"})
	if got := sinktest.Codes(s.Deliver(t.Context(), sinktest.Deliveries("early"))); got != "ConnectionError" {
		t.Fatal(got)
	}
	b.start(t)
	declare(t, b, "jobs", nil)
	// a killed broker forgets a queue that was declared a moment ago
	b.control(t, "eval", "mnesia:sync_log().")

	const workers, rounds, batch, kills = 4, 30, 20, 1 // RabbitMQ starts slowly
	var acknowledged, attempts atomic.Int64
	var group sync.WaitGroup
	for w := range workers {
		group.Go(func() {
			for r := range rounds {
				if t.Failed() {
					return
				}
				var ds []target.Delivery
				for i := range batch {
					ds = append(ds, sinktest.Deliveries(fmt.Sprintf("%d-%d-%d", w, r, i))...)
				}
				attempts.Add(deliverAll(t, s, ds))
				acknowledged.Add(batch)
			}
		})
	}
	for k := range kills {
		for acknowledged.Load() < int64((k+1)*workers*rounds*batch/(kills+1)) && !t.Failed() {
			time.Sleep(time.Millisecond)
		}
		b.kill()
		b.start(t)
	}
	group.Wait()
	c, err := amqp.Dial(b.url())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ch, err := c.Channel()
	if err != nil {
		t.Fatal(err)
	}
	distinct := map[string]bool{}
	all := drain(t, ch, "jobs")
	for _, d := range all {
		distinct[d.MessageId] = true
	}
	if len(distinct) != workers*rounds*batch {
		t.Errorf("of %d deliveries %d are in the queue", workers*rounds*batch, len(distinct))
	}
	t.Logf("%d deliveries made %d messages in %d attempts", len(distinct), len(all), attempts.Load())
}

// A queue receives the messages in order, persistent, with the event in their headers.
func TestQueue(t *testing.T) {
	b := serve(t)
	b.start(t)
	ch := declare(t, b, "jobs", nil)
	s := open(t, rabbitmq.Config{URL: b.url(), RoutingKey: "{name}"})
	var want []string
	for i := range 50 {
		want = append(want, fmt.Sprint("d", i))
	}
	for range 2 { // the second time over a used channel
		for _, err := range s.Deliver(t.Context(), sinktest.Deliveries(want...)) {
			if err != nil {
				t.Fatal(err)
			}
		}
		all := drain(t, ch, "jobs")
		if got := ids(all); got != strings.Join(want, " ") {
			t.Fatal(got)
		}
		d := all[0]
		if d.DeliveryMode != amqp.Persistent || d.ContentType != "application/json" || string(d.Body) != `{"id":"d0"}` || !d.Timestamp.Equal(time.Unix(1e9, 0)) || d.AppId != "mayfly" {
			t.Errorf("%+v", d)
		}
		for name, want := range map[string]string{
			"specversion": "1.0", "id": "d0", "source": "arn:aws:scheduler:us-east-1:000000000000:schedule/default/a", "type": "Scheduled Event",
			"time": "2001-09-09T01:46:40Z", "attempt": "1", "partitionkey": "k.1",
		} {
			if got := d.Headers["cloudEvents:"+name]; got != want {
				t.Errorf("%s is %v, not %q", name, got, want)
			}
		}
	}
}

// The other modes, and an exchange that routes by key: a value is one word of the key.
func TestModesAndExchange(t *testing.T) {
	b := serve(t)
	b.start(t)
	ch := declare(t, b, "jobs", nil)
	if err := ch.QueueBind("jobs", "jobs.*.end", "amq.topic", false, nil); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = ch.QueueUnbind("jobs", "jobs.*.end", "amq.topic", nil) }()
	c := rabbitmq.Config{URL: b.url(), Exchange: "amq.topic", RoutingKey: "jobs.{key}.end", Mode: "structured"}
	a := sinktest.Deliveries("a")
	results := open(t, c).Deliver(t.Context(), a)
	c.Mode = "plain"
	if got := sinktest.Codes(append(results, open(t, c).Deliver(t.Context(), sinktest.Deliveries("b"))...)); got != "- -" {
		t.Fatal(got)
	}
	all := drain(t, ch, "jobs")
	if d := all[0]; d.ContentType != target.CloudEventType || string(d.Body) != string(target.CloudEvent(a[0]).AppendJSON(nil)) || len(d.Headers) != 0 || d.RoutingKey != "jobs.k_1.end" {
		t.Errorf("%+v", d)
	}
	if d := all[1]; d.ContentType != "application/json" || string(d.Body) != `{"id":"b"}` || len(d.Headers) != 0 {
		t.Errorf("%+v", d)
	}
}

// One faulty message fails alone, although the broker closes the channel for it.
func TestRefusals(t *testing.T) {
	b := serve(t)
	b.start(t)
	ch := declare(t, b, "jobs", nil)
	s := open(t, rabbitmq.Config{URL: b.url(), RoutingKey: "{subject}"})
	ds := sinktest.Deliveries("a", "b", "c", "d", "e", "f", "g")
	for i := range ds {
		ds[i].Subject = "jobs"
	}
	ds[1].Body = make([]byte, maxBody+1)
	ds[2].Subject = "nowhere"
	ds[3].Subject = strings.Repeat("x", 256)
	ds[4].Attributes = map[string]string{strings.Repeat("x", 250): "y"}
	ds[5].Attributes = map[string]string{"x": strings.Repeat("y", 200_000)}
	want := "- PRECONDITION_FAILED* NO_ROUTE InvalidRoutingKey* InvalidHeaders* InvalidHeaders* -"
	results := s.Deliver(t.Context(), ds)
	if got := sinktest.Codes(results); got != want {
		t.Errorf("%s, not %s", got, want)
	}
	if got := results[2].Error(); got != `NO_ROUTE: no queue receives messages from exchange "" with the routing key "nowhere"` {
		t.Error(got)
	}
	got := map[string]bool{}
	for _, d := range drain(t, ch, "jobs") {
		got[d.MessageId] = true
	}
	if len(got) != 2 || !got["a"] || !got["g"] {
		t.Errorf("the queue holds %v", got)
	}
	declare(t, b, "full", amqp.Table{"x-max-length": 1, "x-overflow": "reject-publish"})
	full := open(t, rabbitmq.Config{URL: b.url(), RoutingKey: "full"})
	if got := sinktest.Codes(full.Deliver(t.Context(), sinktest.Deliveries("a", "b", "c"))); got != "- NotConfirmed! NotConfirmed!" {
		t.Error(got)
	}
	nowhere := open(t, rabbitmq.Config{URL: b.url(), Exchange: "nowhere"})
	if got := sinktest.Codes(nowhere.Deliver(t.Context(), sinktest.Deliveries("a", "b"))); got != "NOT_FOUND NOT_FOUND" {
		t.Error(got)
	}
}

// Concurrent calls have a channel each.
func TestConcurrent(t *testing.T) {
	b := serve(t)
	b.start(t)
	ch := declare(t, b, "jobs", nil)
	s := open(t, rabbitmq.Config{URL: b.url(), RoutingKey: "jobs"})
	var group sync.WaitGroup
	for w := range 100 {
		group.Go(func() {
			for i := range 3 {
				if got := sinktest.Codes(s.Deliver(t.Context(), sinktest.Deliveries(fmt.Sprintf("%d-%d", w, i)))); got != "-" {
					t.Error(got)
				}
			}
		})
	}
	group.Wait()
	if all := drain(t, ch, "jobs"); len(all) != 300 {
		t.Errorf("%d messages", len(all))
	}
}

// A broker that is down, refuses our login or stays silent only causes another attempt. No message
// contains the password.
func TestNotConnected(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	garbage := serveGarbage(t)
	urls := map[string]string{"down": "amqp://u:hunter2@127.0.0.1:1", "silent": "amqp://u:hunter2@" + silent.Addr().String(), "garbage": "amqp://u:hunter2@" + garbage, "no TLS": "amqps://u:hunter2@" + garbage}
	t.Run("with a broker", func(t *testing.T) {
		b := serve(t)
		b.start(t)
		urls["locked"] = strings.Replace(b.url(), "guest:guest", "u:hunter2", 1)
		urls["no vhost"] = b.url() + "/nowhere"
	})
	for name, url := range urls {
		t.Run(name, func(t *testing.T) {
			s := open(t, rabbitmq.Config{URL: url, RoutingKey: "jobs"})
			// RabbitMQ delays a client with a wrong password by three seconds
			patience := 20 * time.Second
			if name == "silent" {
				patience = 200 * time.Millisecond
			}
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			results := s.Deliver(ctx, sinktest.Deliveries("a", "b"))
			if got := sinktest.Codes(results); got != "ConnectionError ConnectionError" && name != "silent" || got != "Timeout Timeout" && name == "silent" {
				t.Error(got, results)
			}
			if e := target.AsError(results[0]); strings.Contains(fmt.Sprintf("%v %+v %v", e, *e, e.Err), "hunter2") {
				t.Errorf("a password in %v", e)
			}
			_ = s.Close()
			if got := sinktest.Codes(s.Deliver(t.Context(), sinktest.Deliveries("a"))); got != "TargetClosed" {
				t.Error(got)
			}
		})
	}
}

// serveGarbage answers every request with bytes that are not AMQP.
func serveGarbage(t *testing.T) (address string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	group.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(c, "HTTP/1.1 400 Bad Request\r\n\r\n")
			_ = c.Close()
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		group.Wait()
	})
	return l.Addr().String()
}

// proxy forwards between the sink and the broker until a test stops it.
type proxy struct {
	net.Listener
	stalled atomic.Bool
}

func newProxy(t *testing.T, to string) *proxy {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{Listener: l}
	var group sync.WaitGroup
	pass := func(from, to net.Conn) {
		defer to.Close()
		buffer := make([]byte, 4096)
		for {
			n, err := from.Read(buffer)
			for p.stalled.Load() {
				time.Sleep(time.Millisecond)
			}
			if err != nil {
				return
			}
			if _, err := to.Write(buffer[:n]); err != nil {
				return
			}
		}
	}
	group.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			up, err := net.Dial("tcp", to)
			if err != nil {
				_ = c.Close()
				continue
			}
			group.Go(func() { pass(c, up) })
			group.Go(func() { pass(up, c) })
		}
	})
	t.Cleanup(func() {
		p.stalled.Store(false)
		_ = l.Close()
		group.Wait()
	})
	return p
}

// A context that is done ends a call soon, even if the broker reads nothing, and the sink recovers.
func TestGivenUp(t *testing.T) {
	b := serve(t)
	b.start(t)
	ch := declare(t, b, "jobs", nil)
	p := newProxy(t, fmt.Sprintf("127.0.0.1:%d", b.port))
	s := open(t, rabbitmq.Config{URL: "amqp://guest:guest@" + p.Addr().String(), RoutingKey: "jobs"})
	if got := sinktest.Codes(s.Deliver(t.Context(), sinktest.Deliveries("a"))); got != "-" {
		t.Fatal(got)
	}
	p.stalled.Store(true)
	large := sinktest.Deliveries(make([]string, 1000)...) // more than the buffers of sockets
	for i := range large {
		large[i].ID, large[i].Body = fmt.Sprint("l", i), make([]byte, maxBody-1000)
	}
	for _, ds := range [][]target.Delivery{sinktest.Deliveries("b"), large} {
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		done := make(chan []error)
		go func() { done <- s.Deliver(ctx, ds) }()
		select {
		case results := <-done:
			for _, err := range results {
				if e := target.AsError(err); e == nil || e.Permanent || e.Code != "Timeout" && e.Code != "ConnectionError" {
					t.Fatal(err)
				}
			}
		case <-time.After(5 * time.Second):
			t.Fatal("the call hangs")
		}
		cancel()
	}
	p.stalled.Store(false)
	deliverAll(t, s, sinktest.Deliveries("c"))
	if got := " " + ids(drain(t, ch, "jobs")) + " "; !strings.Contains(got, " a ") || !strings.Contains(got, " c ") {
		t.Error(got)
	}
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	if results := s.Deliver(canceled, sinktest.Deliveries("a")); !errors.Is(results[0], context.Canceled) {
		t.Error(results)
	}
}

// While the broker blocks publishing, deliveries fail at once. They succeed when it accepts
// messages again.
func TestBlocked(t *testing.T) {
	b := serve(t)
	b.start(t)
	declare(t, b, "jobs", nil)
	s := open(t, rabbitmq.Config{URL: b.url(), RoutingKey: "jobs"})
	if got := sinktest.Codes(s.Deliver(t.Context(), sinktest.Deliveries("a"))); got != "-" {
		t.Fatal(got)
	}
	b.control(t, "set_vm_memory_high_watermark", "absolute", "1MB")
	unblock := sync.OnceFunc(func() { b.control(t, "set_vm_memory_high_watermark", "0.6") })
	defer unblock()
	want := "ConnectionBlocked!"
	for range 1000 { // the broker blocks a connection at its next publishing
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		got := sinktest.Codes(s.Deliver(ctx, sinktest.Deliveries("b")))
		cancel()
		if got == want {
			want = ""
			break
		}
	}
	if want != "" {
		t.Error("the sink did not notice that it is blocked")
	}
	unblock()
	deliverAll(t, s, sinktest.Deliveries("c"))
}

// deliverAll tries until every delivery has been acknowledged, and returns the number of attempts.
func deliverAll(t *testing.T, to target.Target, ds []target.Delivery) (attempts int64) {
	var last error
	for range 2000 {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		var again []target.Delivery
		for i, err := range to.Deliver(ctx, ds) {
			if e := target.AsError(err); e != nil {
				if e.Permanent {
					t.Errorf("%s: %v", ds[i].ID, err)
				}
				again, last = append(again, ds[i]), err
			}
		}
		cancel()
		if attempts += int64(len(ds)); len(again) == 0 {
			return attempts
		}
		ds = again
		time.Sleep(50 * time.Millisecond)
	}
	t.Errorf("%d deliveries were never made: %v", len(ds), last)
	return attempts
}

// All faults are reported at once, without a password.
func TestConfig(t *testing.T) {
	_, err := rabbitmq.New(rabbitmq.Config{URL: "amqp://u:hunter2@h?heartbeat=1", Exchange: strings.Repeat("x", 256), RoutingKey: "{kay}", Mode: "both", TLS: nil})
	want := `url: must have the form amqp://host:5672: ? and # are not allowed; settings have their own names
exchange: longer than 255 bytes
routing-key: has the unknown field {kay}; use one of {id}, {key}, {name}, {source}, {subject}, {target}, {type}
mode: "both" is not one of binary, structured, plain`
	if err == nil || err.Error() != want {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
	if _, err := rabbitmq.New(rabbitmq.Config{}); err == nil || err.Error() != "routing-key: missing; give the name of the queue, or set exchange" {
		t.Error(err)
	}
}

func BenchmarkRabbitMQ(b *testing.B) {
	broker := serve(b)
	broker.start(b)
	declare(b, broker, "bench", amqp.Table{"x-max-length": 1000})
	s := open(b, rabbitmq.Config{URL: broker.url(), RoutingKey: "bench"})
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
}
