package kafka_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/mayflydb/mayfly/internal/sink/kafka"
	"github.com/mayflydb/mayfly/internal/sink/sinktest"
	"github.com/mayflydb/mayfly/target"
)

func open(t testing.TB, c kafka.Config) *kafka.Sink {
	t.Helper()
	s, err := kafka.New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// Deliveries of one key come in order, in one partition, with the event in their headers.
func TestRecords(t *testing.T) {
	brokers := serve(t, kfake.SeedTopics(5, "jobs.Scheduled_Event"))
	s := open(t, kafka.Config{Brokers: brokers, Topic: "{name}.{type}"})
	var want []string
	for i := range 30 {
		want = append(want, fmt.Sprint("d", i))
	}
	for _, err := range s.Deliver(t.Context(), sinktest.Deliveries(want...)) {
		if err != nil {
			t.Fatal(err)
		}
	}
	all := read(t, brokers, "jobs.Scheduled_Event", atLeast(30))
	if got := ids(all); got != strings.Join(want, " ") {
		t.Errorf("%s", got)
	}
	for _, r := range all {
		if r.Partition != all[0].Partition || string(r.Key) != "k.1" {
			t.Errorf("partition %d, key %s", r.Partition, r.Key)
		}
	}
	for name, want := range map[string]string{
		"ce_specversion": "1.0", "ce_source": "arn:aws:scheduler:us-east-1:000000000000:schedule/default/a", "ce_type": "Scheduled Event",
		"ce_time": "2001-09-09T01:46:40Z", "ce_attempt": "1", "ce_partitionkey": "k.1", "content-type": "application/json",
	} {
		if got := header(all[0], name); got != want {
			t.Errorf("%s is %q, not %q", name, got, want)
		}
	}
}

// The other modes: the whole event in the value, or only the body; a delivery without a key has a
// record without one.
func TestModes(t *testing.T) {
	brokers := serve(t, kfake.SeedTopics(1, "jobs"))
	a, b := sinktest.Deliveries("a"), sinktest.Deliveries("b")
	b[0].Key = ""
	for mode, ds := range map[string][]target.Delivery{"structured": a, "plain": b} {
		c := kafka.Config{Brokers: brokers, Topic: "jobs"}
		c.Mode = map[string]kafka.Config{"structured": {Mode: "structured"}, "plain": {Mode: "plain"}}[mode].Mode
		if got := sinktest.Codes(open(t, c).Deliver(t.Context(), ds)); got != "-" {
			t.Fatal(got)
		}
	}
	for _, r := range read(t, brokers, "jobs", atLeast(2)) {
		switch {
		case header(r, "content-type") == target.CloudEventType && string(r.Value) == string(target.CloudEvent(a[0]).AppendJSON(nil)) && string(r.Key) == "k.1":
		case header(r, "content-type") == "application/json" && string(r.Value) == `{"id":"b"}` && r.Key == nil:
		default:
			t.Errorf("%v %s", r.Headers, r.Value)
		}
		if header(r, "ce_id") != "" {
			t.Errorf("%v", r.Headers)
		}
	}
}

// The client puts records into batches, and a broker refuses batches. If only the batch is too
// large, every record arrives; if one record is too large, only that one fails.
func TestTooLarge(t *testing.T) {
	brokers := serve(t, kfake.SeedTopics(1, "jobs"), kfake.BrokerConfigs(map[string]string{"message.max.bytes": "2000"}))
	s := open(t, kafka.Config{Brokers: brokers, Topic: "jobs", MaxBytes: 10_000})
	ds := sinktest.Deliveries("a", "b", "c", "d", "e", "f", "g", "h")
	for i := range ds {
		// compression does not shrink it
		ds[i].Body = []byte(rand.Text() + strings.Repeat(rand.Text(), 10))
	}
	random := make([]byte, 5000)
	_, _ = rand.Read(random)
	ds[2].Body = random
	ds[3].Body = make([]byte, 50_000)
	want := "- - MESSAGE_TOO_LARGE* MESSAGE_TOO_LARGE* - - - -"
	if got := sinktest.Codes(s.Deliver(t.Context(), ds)); got != want {
		t.Errorf("%s, not %s", got, want)
	}
	long := sinktest.Deliveries("x")
	long[0].Key = strings.Repeat("k", 300)
	if got := sinktest.Codes(open(t, kafka.Config{Brokers: brokers, Topic: "jobs-{key}"}).Deliver(t.Context(), long)); got != "INVALID_TOPIC_EXCEPTION*" {
		t.Error(got)
	}
	if all := read(t, brokers, "jobs", atLeast(6)); len(all) != 6 {
		t.Errorf("the topic holds %s", ids(all))
	}
}

// Brokers that are down, refuse our login or stay silent, and a missing topic, only cause another
// attempt. No message contains the password.
func TestNotDelivered(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	locked := serve(t, kfake.EnableSASL(), kfake.Superuser("PLAIN", "u", "other"), kfake.SeedTopics(1, "jobs"))
	answers, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.EnableSASL(), kfake.Superuser("PLAIN", "u", "other"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(answers.Close)
	var refused atomic.Bool
	// answers like Kafka; the fake itself hangs up silently, as it does from then on here
	answers.ControlKey(int16(kmsg.SASLAuthenticate), func(r kmsg.Request) (kmsg.Response, error, bool) {
		if refused.Swap(true) {
			return nil, nil, false
		}
		refusal := r.ResponseKind().(*kmsg.SASLAuthenticateResponse)
		refusal.ErrorCode = kerr.SaslAuthenticationFailed.Code
		return refusal, nil, true
	})
	for name, test := range map[string]struct {
		brokers []string
		user    string
		want    string
		message string
	}{
		"down":       {[]string{"127.0.0.1:1"}, "", "ConnectionError ConnectionError", "connection refused"},
		"silent":     {[]string{silent.Addr().String()}, "", "ConnectionError ConnectionError", "could not be sent within 1s"},
		"locked":     {locked, "u", "ConnectionError ConnectionError", "EOF"},
		"refused":    {answers.ListenAddrs(), "u", "SASL_AUTHENTICATION_FAILED SASL_AUTHENTICATION_FAILED", "Authentication failed"},
		"not secure": {locked, "", "ConnectionError ConnectionError", "could not be sent within 1s"},
		"no topic":   {serve(t), "", "UNKNOWN_TOPIC_OR_PARTITION UNKNOWN_TOPIC_OR_PARTITION", "topic"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := kafka.Config{Brokers: test.brokers, Topic: "jobs", Timeout: time.Second}
			if test.user != "" {
				c.User, c.Password = test.user, "hunter2"
			}
			results := open(t, c).Deliver(t.Context(), sinktest.Deliveries("a", "b"))
			if got := sinktest.Codes(results); got != test.want || !strings.Contains(results[0].Error(), test.message) {
				t.Errorf("%s, not %s: %v", got, test.want, results)
			}
			if e := target.AsError(results[0]); strings.Contains(fmt.Sprintf("%v %+v %v", e, *e, e.Err), "hunter2") {
				t.Errorf("a password in %v", e)
			}
		})
	}
}

// With the right password, by each mechanism.
func TestAuthentication(t *testing.T) {
	brokers := serve(t, kfake.EnableSASL(), kfake.SeedTopics(1, "jobs"), kfake.Superuser("PLAIN", "p", "hunter2"), kfake.Superuser("SCRAM-SHA-256", "s", "hunter2"), kfake.Superuser("SCRAM-SHA-512", "t", "hunter2"))
	for mechanism, user := range map[string]string{"": "p", "plain": "p", "scram-sha-256": "s", "scram-sha-512": "t"} {
		s := open(t, kafka.Config{Brokers: brokers, Topic: "jobs", User: user, Password: "hunter2", Mechanism: mechanism})
		if results := s.Deliver(t.Context(), sinktest.Deliveries("a")); results[0] != nil {
			t.Errorf("%s: %v", mechanism, results)
		}
	}
}

// A context that is done ends a call soon, in any state of the brokers, and harms no other call.
func TestGivenUp(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	s := open(t, kafka.Config{Brokers: []string{silent.Addr().String()}, Topic: "jobs"})
	short, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if got := sinktest.Codes(s.Deliver(short, sinktest.Deliveries("a", "b"))); got != "Timeout Timeout" {
		t.Error(got)
	}
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	if results := s.Deliver(canceled, sinktest.Deliveries("a")); !errors.Is(results[0], context.Canceled) {
		t.Error(results)
	}
	_ = s.Close()
	if got := sinktest.Codes(s.Deliver(t.Context(), sinktest.Deliveries("a"))); got != "TargetClosed" {
		t.Error(got)
	}
}

// The broker is absent at first, and its process is killed and restarted during deliveries. Every
// acknowledged delivery is in the topic. In the end all are, and in order per key.
func TestKilled(t *testing.T) {
	p := newProcess(t)
	s := open(t, kafka.Config{Brokers: []string{p.address()}, Topic: "jobs", Timeout: time.Second})
	if got := sinktest.Codes(s.Deliver(t.Context(), sinktest.Deliveries("early"))); got != "ConnectionError" {
		t.Fatal(got)
	}
	p.start()

	const workers, rounds, batch, kills = 4, 40, 20, 3
	var acknowledged, attempts atomic.Int64
	var group sync.WaitGroup
	for w := range workers {
		group.Go(func() {
			for r := range rounds {
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
		for acknowledged.Load() < int64((k+1)*workers*rounds*batch/(kills+1)) {
			time.Sleep(time.Millisecond)
		}
		p.kill()
		p.start()
	}
	group.Wait()
	distinct := map[string]bool{}
	all := read(t, []string{p.address()}, "jobs", func(all []*kgo.Record) bool {
		for _, r := range all {
			distinct[header(r, "ce_id")] = true
		}
		return len(distinct) >= workers*rounds*batch
	})
	t.Logf("%d deliveries made %d records in %d attempts", len(distinct), len(all), attempts.Load())
}

// deliverAll tries until every delivery has been acknowledged, and returns the number of attempts.
func deliverAll(t *testing.T, to target.Target, ds []target.Delivery) (attempts int64) {
	for range 1000 {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
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
		if attempts += int64(len(ds)); len(again) == 0 {
			return attempts
		}
		ds = again
		time.Sleep(5 * time.Millisecond)
	}
	t.Errorf("%d deliveries were never made", len(ds))
	return attempts
}

// All faults are reported at once, without a password.
func TestConfig(t *testing.T) {
	_, err := kafka.New(kafka.Config{
		Brokers: []string{"h", "u:hunter2@h:1", "h:1"}, Topic: "a b", Mode: "both", User: "u", Password: "hunter2", Mechanism: "md5", ClientID: "a b", MaxBytes: 1, Timeout: time.Hour,
	})
	want := `brokers: number 1 must have the form host:9092
brokers: number 2 must have the form host:9092
topic: use up to 249 letters, digits, dots, underscores and hyphens
mode: "both" is not one of binary, structured, plain
mechanism: "md5" is not one of plain, scram-sha-256, scram-sha-512
client-id: use up to 249 printable characters without spaces
max-bytes: 1 is not between 1024 and 104857600
timeout: 1h0m0s is not between 1s and 15m0s`
	if err == nil || err.Error() != want {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
	for _, c := range []kafka.Config{{}, {Topic: "a"}, {Brokers: []string{"h:1"}}, {Brokers: []string{"h:1"}, Topic: ".."}, {Brokers: []string{"h:x"}, Topic: "a"}, {Brokers: []string{"h:1"}, Topic: "a", User: "u"}} {
		if _, err := kafka.New(c); err == nil {
			t.Errorf("%+v was accepted", c)
		}
	}
}

func BenchmarkKafka(b *testing.B) {
	brokers := serve(b, kfake.SeedTopics(3, "jobs"))
	s := open(b, kafka.Config{Brokers: brokers, Topic: "jobs"})
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
